"""Compile the kernels that an operator launches for one architecture and dtype, in a process of its own."""

import io
import os
import re
import signal
import time
import traceback
from dataclasses import dataclass
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import cuda.tile as ct
import torch
from cuda.tile.compilation import CallingConvention
from cuda.tile.compilation import KernelSignature
from cuda.tile.compilation import export_kernel

from tilewright.aot.capture import Recorder
from tilewright.aot.capture import Subject
from tilewright.aot.capture import capture
from tilewright.aot.cubin import read_resources
from tilewright.aot.standin import StandIn
from tilewright.cutile.targets import Target
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import CompiledKernel
from tilewright.model.kernel import Resources


@dataclass(frozen=True)
class Unit:
    """Work of one process: fresh, so that nothing cached for another architecture or dtype is used."""

    target: Target
    dtype: str


@dataclass(frozen=True)
class Imported:
    """What every worker inherits from the process it is forked from."""

    subject: Subject
    recorder: Recorder
    gpu: StandIn


def work(imported: Imported, unit: Unit, done: frozenset[str], time_limit: float, channel: Connection) -> None:
    """Send each kernel before it is compiled and again with the result, except those already done."""
    os.setpgrp()  # so that the compiler it started can be ended with it
    imported.gpu.target = unit.target
    try:
        launches = capture(imported.subject, imported.recorder, imported.subject.dtypes[unit.dtype])
        kernels = {kernel_id(k): (k, launch) for launch in reversed(launches) for k in [_describe(launch, unit)]}
    except (Exception, SystemExit) as error:
        refused = isinstance(error, NotImplementedError)
        text = str(error) if refused else describe_error(error)
        channel.send(CaptureFailure(arch=unit.target.name, dtype=unit.dtype, error=text, refused=refused))
        return
    for identity, (kernel, launch) in reversed(kernels.items()):
        if identity not in done:
            channel.send(kernel)
            channel.send(compile_kernel(kernel, launch.kernel, launch.signature, unit.target, time_limit))


def kernel_id(kernel: CompiledKernel) -> str:
    """What tells two compilations of one unit apart."""
    return f"{kernel.symbol} {kernel.hints}"


def _describe(launch: Any, unit: Unit) -> CompiledKernel:
    return CompiledKernel(
        kernel=launch.name,
        arch=unit.target.name,
        dtype=unit.dtype,
        signature="aligned" if launch.aligned else "unaligned",
        symbol=launch.signature.symbol,
        hints=launch.hints,
    )


def compile_kernel(
    kernel: CompiledKernel, function: Any, signature: KernelSignature, target: Target, time_limit: float
) -> CompiledKernel:
    """Compile one kernel; whatever goes wrong is its result."""
    start = time.perf_counter()

    def result(**found: Any) -> CompiledKernel:
        return replace(kernel, seconds=round(time.perf_counter() - start, 3), **found)

    try:
        resources = read_resources(export_cubin(function, signature, target, time_limit))[kernel.symbol]
    except Exception as error:
        return result(error=describe_error(error))
    return result(resources=resources, error=beyond_limit(resources, target))


def export_cubin(function: Any, signature: KernelSignature, target: Target, time_limit: float) -> bytes:
    """What the compiler makes of a kernel; raises what it raises."""
    cubin = io.BytesIO()
    with ct.compiler_timeout(time_limit):
        export_kernel(function, [signature], cubin, gpu_code=target.name, output_format="cubin")
    return cubin.getvalue()


def beyond_limit(resources: Resources, target: Target) -> str:
    """Why the architecture cannot launch it, or nothing."""
    if resources.shared_bytes <= target.shared_kib * 1024:
        return ""
    return f"needs {resources.shared_bytes / 1024:.0f} KiB of shared memory; a block may have {target.shared_kib}"


def warm_up(target: Target) -> None:
    """Do what is slow only the first time: import what meta tensors need, find the compiler and ask its version."""
    torch.randn(1, device="meta")
    signature = KernelSignature([], CallingConvention.cutile_python_v2())
    export_kernel(_nothing, [signature], io.BytesIO(), gpu_code=target.name, output_format="cubin")


@ct.kernel  # type: ignore[untyped-decorator]
def _nothing() -> None:
    pass


def describe_error(error: Exception | SystemExit) -> str:
    """One line: what was raised, where in the kernel or in the files of the host."""
    if isinstance(error, ct.TileError):
        code = re.match(r"Return code (-?\d+)\n", error.message)
        if code and int(code[1]) < 0:
            return f"the compiler was ended by {signal.Signals(-int(code[1])).name}"
        text = error.message[code.end() :] if code else error.message
        place = f" ({error.loc})" if error.loc.filename else ""
        return " ".join(text.split()) + place
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(os.getcwd())]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
