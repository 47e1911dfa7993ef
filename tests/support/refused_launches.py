"""Launch what cuda-tile refuses, and print the messages as JSON; needs some libcuda.so.1 to be found."""

import json

import cuda.tile as ct
import torch

X = torch.empty(64, device="meta")


@ct.kernel
def copy(X, Y, TILE: ct.Constant[int]):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))


LAUNCHES = {
    "kernel-called": [lambda: copy(X, X, 64)],
    "grid-form": [lambda grid=grid: ct.launch(0, grid, copy, (X, X, 64)) for grid in (1, [1], (1,) * 4, (1.0,))],
    "grid-empty": [lambda: ct.launch(0, (-1,), copy, (X, X, 64))],
    "grid-too-large": [lambda: ct.launch(0, (2**24,), copy, (X, X, 64))],
    "number-of-arguments": [lambda: ct.launch(0, (1,), copy, (X, X)), lambda: ct.launch(0, (1,), copy, [X, X, 64])],
    "argument-type": [lambda: ct.launch(0, (1,), copy, (None, X, 64)), lambda: ct.launch(0, (1,), copy, (X, X, "64"))],
    "tensor-not-on-gpu": [lambda: ct.launch(0, (1,), copy, (torch.empty(64), X, 64))],
    "number-too-large": [
        lambda: ct.launch(0, (1,), copy, (torch.empty(2**31, device="meta"), X, 64)),
        lambda: ct.launch(0, (1,), copy, (X, 2**40, 64)),
    ],
}


def refusal(launch) -> str:
    """What a launch is refused with."""
    try:
        launch()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("the launch was accepted")


if __name__ == "__main__":
    print(json.dumps({name: [refusal(launch) for launch in launches] for name, launches in LAUNCHES.items()}))
