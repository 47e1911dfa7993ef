"""Child process: print the bytes that each kernel of an operator spills, for rows of given lengths.

The operator's own tests, of which `tilewright compile` takes its inputs, have no such lengths. `StandIn` changes torch
for good.
"""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cuda.tile as ct
import torch

from tilewright.aot.capture import Recorder
from tilewright.aot.capture import capture
from tilewright.aot.capture import load
from tilewright.aot.cubin import read_resources
from tilewright.aot.standin import StandIn
from tilewright.aot.worker import export_cubin
from tilewright.config import find_host
from tilewright.cutile.targets import select
from tilewright.verify.operators import choose
from tilewright.verify.operators import find_operators

_PATIENCE = 60  # seconds for a kernel


def main() -> None:
    """Take architectures, operator, dtype, and an aligned and a ragged length from the command line."""
    archs, name, dtype, *columns = sys.argv[1:]
    host = find_host(Path.cwd())
    (operator,) = choose(find_operators(host), [name], host)
    recorder, gpu = Recorder(), StandIn(select(archs)[0])
    ct.launch = recorder.launch
    gpu.install()
    subject = load(
        paths=[str(path) for path in operator.import_paths],
        package=host.operators_module,
        stub=operator.module(operator.stub),
        name=operator.function,
        kernel=operator.module(operator.kernel),
        test=operator.module(operator.test),
    )
    aligned, ragged = ([(64, int(n))] for n in columns)
    cases = SimpleNamespace(_aligned=aligned, _ragged=ragged, inputs=subject.cases.inputs)
    subject = replace(subject, cases=cases, kernels=frozenset())  # no further shape is tried
    for gpu.target in select(archs):
        for launch in capture(subject, recorder, getattr(torch, dtype)):
            cubin = export_cubin(launch.kernel, launch.signature, gpu.target, _PATIENCE)
            print(gpu.target.name, launch.name, read_resources(cubin)[launch.signature.symbol].spilled_bytes)


if __name__ == "__main__":
    main()
