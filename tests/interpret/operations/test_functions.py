"""Functions of floats: special values, and that neither the place in a tile nor the number of blocks matters."""

import pytest
import torch

from tilewright.interpret.numbers.dtypes import BFLOAT16
from tilewright.interpret.numbers.dtypes import FLOAT16
from tilewright.interpret.numbers.dtypes import FLOAT32
from tilewright.interpret.operations.arithmetic import float_arithmetic
from tilewright.interpret.operations.functions import unary

UNARY = ["exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "rsqrt"]
BINARY = ["add", "sub", "mul", "truediv", "pow", "atan2", "c_mod"]


def functions():
    for element in (FLOAT16, BFLOAT16, FLOAT32):
        for name in UNARY:
            yield pytest.param(unary(name, element), element, 1, id=f"{name}-{element.name}")
        for name in BINARY:
            function = float_arithmetic(name, element, None, False, False)
            yield pytest.param(function, element, 2, id=f"{name}-{element.name}")


@pytest.mark.parametrize(("function", "element", "operands"), list(functions()))
def test_results_are_the_same_for_one_block_and_for_many(function, element, operands):
    numbers = torch.Generator().manual_seed(0)
    # 7 elements fill no vector; 300 blocks of them fill many.
    tiles = [(3 * torch.rand(300, 7, generator=numbers) + 0.01).to(element.compute) for _ in range(operands)]
    together = function(*tiles)
    alone = torch.cat([function(*(tile[block : block + 1].clone() for tile in tiles)) for block in range(300)])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("element", [FLOAT16, BFLOAT16], ids=lambda each: each.name)
def test_functions_of_narrow_floats_are_those_of_float32_rounded(element):
    x = torch.linspace(-4, 4, 999).to(element.compute)
    for name in ("exp", "tanh", "sin"):
        expected = getattr(torch, name)(x.to(torch.float32)).to(element.compute)
        assert torch.equal(unary(name, element)(x), expected)


def test_zeros_and_negative_numbers_are_as_on_an_h200():
    x = torch.tensor([0.0, -0.0, float("inf"), 4.0, -1.0])
    assert unary("rsqrt", FLOAT32)(x).tolist()[:4] == [float("inf"), float("-inf"), 0.0, 0.5]
    assert unary("sqrt", FLOAT32)(x).tolist()[:4] == [0.0, -0.0, float("inf"), 2.0]
    assert unary("sqrt", FLOAT16)(x.half())[4].isnan()
    assert unary("exp2", FLOAT32, flush_to_zero=True)(torch.tensor([-130.0, -126.0])).tolist() == [0, 2.0**-126]
