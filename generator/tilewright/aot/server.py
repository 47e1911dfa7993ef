"""Child process of `compile`: import the operator once, have workers compile it, report as JSON lines."""

import json
import os
import signal
import sys
from dataclasses import asdict
from typing import Any

import cuda.tile as ct

from tilewright.aot.capture import Recorder
from tilewright.aot.capture import load
from tilewright.aot.standin import StandIn
from tilewright.aot.supervisor import Supervisor
from tilewright.aot.worker import Imported
from tilewright.aot.worker import Unit
from tilewright.aot.worker import describe_error
from tilewright.aot.worker import warm_up
from tilewright.cutile.targets import select
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import CompiledKernel


def serve() -> None:
    """Read one request from stdin, write events to stdout."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the workers are ended too
    request = json.load(sys.stdin)
    # What the operator's modules print must not end up between the events.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(event: str, **data: Any) -> None:
        print(json.dumps({"event": event, **data}), file=events)

    targets = select(",".join(request["targets"]))
    recorder = Recorder()
    ct.launch = recorder.launch
    gpu = StandIn(targets[0])
    gpu.install()
    try:
        # The default action of the signal: it ends this process whatever the import is busy with, parent or no parent.
        signal.alarm(request["import_limit"])
        subject = load(**request["operator"])
        signal.alarm(0)
    except (Exception, SystemExit) as error:
        say("broken", error=describe_error(error))
        return
    try:
        warm_up(targets[0])
    except FileNotFoundError as error:
        say("no compiler", error=str(error))
        return
    dtypes = [name for name in subject.dtypes if name in (request["dtypes"] or subject.dtypes)]
    units = [Unit(target, dtype) for target in targets for dtype in dtypes]
    say("start", units=len(units), kernels=sorted(subject.kernels), dtypes=list(subject.dtypes))
    for result in Supervisor(Imported(subject, recorder, gpu), request["jobs"], request["time_limit"]).run(units):
        match result:
            case CompiledKernel():
                say("kernel", **asdict(result))
            case CaptureFailure():
                say("failure", **asdict(result))
            case Unit():
                say("unit")
