"""Stands in for the child processes of `tune`: runs the candidate as plain Python, and has a formula for its time.

The file must define CONFIGS and `launched(configs, size)`, which picks the entry that a size leads to. The variable ACT
says what befalls at tile 128: `crash`, `hang`, `wrong`, `lie` (a wrong result that only the final check notices) or
`stall` (it compiles until another one was timed).
"""

import hashlib
import json
import os
import signal
import sys
import time

ACT = os.environ.get("ACT", "")
UNFORTUNATE = 128
TIMED = []


def cost(config, size):
    """Best at a tile of 64 and a depth of 32; a depth of 64 beside a tile of 256 spills."""
    return size[0] * (1 + abs(config.tile - 64) / 48 + abs(config.depth - 32) / 320)


def run(text):
    namespace = {}
    exec(text, namespace)
    return namespace


def launched(text, sizes):
    configs = run(text)
    return [configs["launched"](configs["CONFIGS"], size) for size in sizes]


def digests(configs, sizes):
    return [hashlib.sha256(repr(each).encode()).hexdigest() for each in zip(configs, sizes, strict=True)]


def compiled(text, sizes):
    chosen = launched(text, sizes)
    with open(os.environ["COMPILED"], "a") as file:
        print(*(config.tile for config in run(text)["CONFIGS"][2][9]), file=file)
    if ACT == "stall" and any(config.tile == UNFORTUNATE for config in chosen):
        wait_for(os.environ["TIMED"])
    if any(config.tile == 512 for config in chosen):
        return {"error": "needs 512 KiB of shared memory; a block may have 227"}
    digested = digests(chosen, sizes)
    spilled = max(96 if config.tile == 256 and config.depth == 64 else 0 for config in chosen)
    return {"launches": digested, "keys": digested, "spilled": spilled}


def wait_for(path, seconds=20):
    end = time.monotonic() + seconds
    while not os.path.exists(path):
        assert time.monotonic() < end, "nothing was timed in the meantime"
        time.sleep(0.01)


def timed(text, size, milliseconds):
    configs = run(text)
    config = configs["launched"](configs["CONFIGS"], size)
    TIMED.append(size)
    with open(os.environ["TIMED"], "a") as file:
        print(config.tile, config.depth, size[0], milliseconds, file=file)
    if config.tile == UNFORTUNATE:
        if ACT == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if ACT == "hang":
            time.sleep(600)
        if ACT == "wrong":
            return {"error": "AssertionError: not close"}
        if ACT == "lie":
            return {"milliseconds": {"median": size[0] * 0.1, "low": 0.0, "high": 1.0}}
    median = cost(config, size)
    return {"milliseconds": {"median": median, "low": median, "high": median}}


def checked(text):
    assert not TIMED, "what was timed may have spoilt this process"
    configs = run(text)
    used = [configs["launched"](configs["CONFIGS"], size) for size in ([64], [8])]
    wrong = ACT == "lie" and any(config.tile == UNFORTUNATE for config in used)
    return {"error": "AssertionError: not close"} if wrong else {}


def main():
    setup = json.loads(sys.stdin.readline())
    if ACT == "unfit":
        sys.exit("ImportError: no package")
    if setup["target"]:
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "", "one that compiles must not wake up a GPU"
        dtypes = {"float16": 2, "bfloat16": 2, "float32": 4}
        print(json.dumps({"names": ["n"], "sizes": [[64], [1024]], "dtypes": dtypes}), flush=True)
    else:
        gpu = {"gpu": "A GPU", "arch": "sm_90", "driver": os.environ.get("DRIVER", "580"), "multiprocessors": 132}
        print(json.dumps(gpu), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        match request["do"]:
            case "launch":
                reply = {"launches": digests(launched(request["text"], request["sizes"]), request["sizes"])}
            case "compile":
                reply = compiled(request["text"], request["sizes"])
            case "time":
                reply = timed(request["text"], request["size"], request["milliseconds"])
            case "check":
                reply = checked(request["text"])
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
