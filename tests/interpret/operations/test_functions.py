"""Functions of floats do not depend on where an element is in a tile, or on how many blocks run at once."""

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
