"""Compare signatures of random tensors with those that cuda-tile infers; needs some libcuda.so.1 to be found."""

import random
from collections.abc import Callable
from typing import Annotated

import cuda.tile as ct
import torch
from cuda.tile.compilation import CallingConvention
from cuda.tile.compilation import KernelSignature

from tilewright.cutile.signature import signature

CONVENTIONS = (CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2())
DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16),
    *(torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64),
]


@ct.kernel
def plain(X, a):
    pass


@ct.kernel
def wide(X: ct.IndexedWithInt64, a: ct.Constant):
    pass


@ct.kernel
def static_shape(X: Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(-1,))], a: ct.ScalarInt64):
    pass


def random_tensor(choose: random.Random) -> torch.Tensor:
    rank = choose.randint(1, 6)
    shape = [choose.choice([1, 1, 2, 3, 7, 8, 16, 17, 32, 48, 100, 1024]) for _ in range(rank)]
    x = torch.empty(shape, dtype=choose.choice(DTYPES), device="meta")
    match choose.randrange(4):
        case 0:
            return x.permute(choose.sample(range(rank), rank))
        case 1:
            return x[..., choose.randint(0, shape[-1] - 1) :]
        case 2:
            return x.as_strided(shape, [choose.choice([0, 1, 1, 2, 4, 8, 16, 100]) for _ in range(rank)])
    return x


def random_list(choose: random.Random) -> list[torch.Tensor]:
    first = random_tensor(choose)
    rest = [
        torch.empty([choose.choice([n, n, 16]) for n in first.shape], dtype=first.dtype, device="meta")
        for _ in range(choose.randint(0, 2))
    ]
    return [first, *rest]


def outcome(infer: Callable[[], KernelSignature]) -> KernelSignature | type[Exception]:
    try:
        return infer()
    except (OverflowError, ValueError) as err:
        return type(err)


def inferred(kernel: ct.kernel, arguments: tuple[object, ...]) -> KernelSignature:
    """By the first convention that has what is inferred, which is what a launch is compiled for."""
    first, second = CONVENTIONS
    found = KernelSignature.from_kernel_args(kernel, arguments, second)
    try:
        KernelSignature(found.parameters, first)
    except ValueError:
        return found
    return KernelSignature.from_kernel_args(kernel, arguments, first)


def main() -> None:
    choose = random.Random(0)
    for _ in range(500):
        kernel, scalar = choose.choice([(plain, False), (plain, 7), (plain, 0.5), (wide, True), (static_shape, 2**40)])
        array = random_list(choose) if kernel is plain and choose.random() < 0.3 else random_tensor(choose)
        arguments = (array, scalar)
        expected = outcome(lambda: inferred(kernel, arguments))  # noqa: B023
        found = outcome(lambda: signature(kernel, arguments, aligned=True))  # noqa: B023
        assert found == expected, f"{arguments}\n{found}\n{expected}"
    print("500 signatures compared")


if __name__ == "__main__":
    main()
