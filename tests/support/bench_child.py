"""Stands in for the child process of `bench`: acts out what each contestant is called.

An operator has the contestants of its name below, or of the name in the variable ACT.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

SECONDS = {"cutile": 1.0, "torch": 2.0}
PROBLEM = {"index": 0, "size": {"M": 2, "N": 3}, "dtype": "float16", "unit": "GB/s", "work": 4e6}
CONTESTANTS = {
    "fine": ("cutile", "torch"),
    "crashing": ("cutile", "crash", "torch"),
    "hanging": ("cutile", "hang", "torch"),
    "leaving": ("cutile", "leave", "torch"),
    "poisoned": ("cutile", "poison", "torch"),
    "unprepared": ("cutile", "torch"),
    "wrong": ("lie", "torch"),
    "refused": (),
    "broken": (),
}


def say(event: str, **data: object) -> None:
    print(json.dumps({"event": event, **data}), flush=True)


def measure(name: str) -> dict[str, object]:
    if name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hang":
        time.sleep(600)
    if name == "leave":
        sys.exit()
    found = {"verdict": "ok", "milliseconds": None, "error": ""}
    if name in SECONDS:
        found["milliseconds"] = {"median": SECONDS[name], "low": SECONDS[name] * 0.8, "high": SECONDS[name] * 1.25}
    if name == "poison":
        found |= {"verdict": "failed", "error": "illegal memory access"}
    if name == "lie":
        name, found = "cutile", found | {"verdict": "wrong", "error": "not close"}
    return {"contestant": name, **found}


def main() -> None:
    request = json.loads(sys.stdin.readline())
    assert os.environ["DISABLE_FALLBACK"] == "1", "TileGym must not answer for a backend that is missing"
    names = [operator["name"] for operator in request["operators"]]
    if request["prepare"]:
        Path(f"prepared-{names[0]}").touch()
        if "unprepared" in names:
            os.kill(os.getpid(), signal.SIGSEGV)
        say("prepared")
        sys.stdin.readline()
    say("gpu", gpu="A GPU", arch="sm_90", driver="580")
    for operator in request["operators"]:
        name = operator["name"]
        if name == "broken":
            sys.exit("ImportError: no such package")
        if name == "refused":
            say("refused", operator=name, error="it has no SIZES")
            continue
        say("limits", operator=name, copy=8.0, matrix={})
        say("problem", operator=name, **PROBLEM, backward=request["backward"])
        for contestant in CONTESTANTS.get(name) or CONTESTANTS[os.environ.get("ACT", "fine")]:
            if [0, contestant] not in operator["done"]:
                say("begin", operator=name, index=0, contestant=contestant)
                say("measured", operator=name, index=0, **measure(contestant))
                if contestant == "poison":
                    sys.exit("the GPU is unusable")
        say("complete", operator=name)


if __name__ == "__main__":
    main()
