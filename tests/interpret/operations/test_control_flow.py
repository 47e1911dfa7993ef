"""Helper functions run in a kernel, for every block of a grid at once, and in Python, which says what is right."""

from importlib.metadata import version

import cuda.tile as ct
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies

from tilewright.interpret.launch import Launcher

BLOCKS = 12


def in_kernel(function, blocks=BLOCKS):
    """What a kernel makes of `function` for each index of its blocks."""

    @ct.kernel
    def kernel(X):
        ct.store(X, (ct.bid(0),), function(ct.bid(0)))

    results = torch.full((blocks,), -1, dtype=torch.int32)
    Launcher().launch(0, (blocks,), kernel, (results,))
    return results.tolist()


def early_return(i):
    if i > 6:
        return i * 2
    if i % 3 == 0:
        return -i
    return i


def break_out(i):
    total = 0
    for j in range(i, 10):
        if j == 7:
            break
        total += j
    return total


def skip_some(i):
    total = 0
    for j in range(10):
        if (j + i) % 3 == 0:
            continue
        total += j
    return total


def while_loop(i):
    steps = 0
    n = i + 1
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def endless_with_break(i):
    n = 0
    while True:
        n += 3
        if n > i:
            break
    return n


def nested_loops(i):
    total = 0
    for j in range(i):
        for k in range(j, 2 * j, 2):
            if k > 9:
                break
            if k == 4:
                continue
            total += k * j
        total -= 1
    return total


def return_from_nested_loops(i):
    for j in range(1, 9):
        for k in range(j):
            if j * k > i:
                return 10 * j + k
    return -5


def swap_variables(i):
    a = 0
    b = 1
    for _ in range(i):
        a, b = b, a + b
    return a


def uniform_loop(i):
    total = i
    for j in range(2, 20, 5):
        total = total * 2 + j
    return total


def zero_iterations(i):
    last = 77
    for j in range(5, 5 - i):
        last = j
    return last


def short_circuit(i):
    hits = 0
    if i > 2 and i % 2 == 0:
        hits += 1
    if i < 2 or i == 9:
        hits += 10
    if i != 4:
        hits += 100
    return hits


def branches_of_branches(i):
    if i < 4:
        if i < 2:
            x = 1
            z = 4
        else:
            x = 2
            z = i
        y = x * 10 + z
    elif i < 8:
        x = 3
        y = i
    else:
        x = i
        y = 0
    return x + y


def calls_itself_with_a_constant(i):
    return power(i, 3)


def power(base, exponent):
    if exponent == 0:
        return 1
    return base * power(base, exponent - 1)


def tuples(i):
    pair = (i, i + 1)
    first, second = pair
    triple = (*pair, 5)
    return first * 100 + second * 10 + triple[2] + len(triple)


def conditional_expression(i):
    return (i if i > 5 else -i) * (2 if i % 2 else 3)


FUNCTIONS = [
    early_return,
    break_out,
    skip_some,
    while_loop,
    endless_with_break,
    nested_loops,
    return_from_nested_loops,
    swap_variables,
    uniform_loop,
    zero_iterations,
    short_circuit,
    branches_of_branches,
    calls_itself_with_a_constant,
    tuples,
    conditional_expression,
]


# The first release of cuda-tile that compiles them.
SINCE = {break_out: (1, 6), nested_loops: (1, 6), return_from_nested_loops: (1, 7)}
INSTALLED = tuple(map(int, version("cuda-tile").split(".")[:2]))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_control_flow_does_what_python_does(function):
    if SINCE.get(function, (1, 5)) <= INSTALLED:
        assert in_kernel(function) == [function(i) for i in range(BLOCKS)]
    else:
        with pytest.raises(ct.TileSyntaxError, match="a for loop is not supported"):
            in_kernel(function)


def test_persistent_blocks_share_the_work():
    @ct.kernel
    def kernel(X, n: int):
        for i in range(ct.bid(0), n, ct.num_blocks(0)):
            ct.store(X, (i,), i * i)

    for blocks, n in ((4, 16), (5, 16), (3, 2)):
        results = torch.full((16,), -1, dtype=torch.int32)
        Launcher().launch(0, (blocks,), kernel, (results, n))
        assert results.tolist() == [i * i if i < n else -1 for i in range(16)]


def test_blocks_of_all_axes_know_where_they_are():
    @ct.kernel
    def kernel(X):
        x, y, z = ct.bid(0), ct.bid(1), ct.bid(2)
        ct.store(X, (x, y, z), x + 10 * y + 100 * z + 1000 * ct.num_blocks(1))

    results = torch.zeros(3, 4, 2, dtype=torch.int32)
    Launcher().launch(0, (3, 4, 2), kernel, (results,))
    expected = [[[x + 10 * y + 100 * z + 4000 for z in range(2)] for y in range(4)] for x in range(3)]
    assert results.tolist() == expected


def test_loop_carries_tiles_and_scalars_together():
    @ct.kernel
    def kernel(X, Y, n: int):
        rows = ct.zeros((4,), ct.float32)
        count = 0
        for i in range(n):
            tile = ct.load(X, (i, 0), (1, 4)).reshape((4,))
            if i % 2 == 0:
                rows = rows + tile
                count += 1
            else:
                rows = rows - tile
        ct.store(Y, (0,), rows * count)

    x = torch.arange(20.0).reshape(5, 4)
    y = torch.zeros(4)
    Launcher().launch(0, (1,), kernel, (x, y, 5))
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])
    torch.testing.assert_close(y, (signs[:, None] * x).sum(0) * 3)


def test_branches_choose_between_arrays():
    @ct.kernel
    def kernel(X, Y, Z):
        source = X
        if ct.bid(0) % 2 == 1:
            source = Y
        ct.store(Z, (ct.bid(0),), ct.load(source, (ct.bid(0),), (1,)))

    z = torch.zeros(6)
    Launcher().launch(0, (6,), kernel, (torch.arange(6.0), -torch.arange(6.0), z))
    assert z.tolist() == [0.0, -1.0, 2.0, -3.0, 4.0, -5.0]


@settings(max_examples=30, deadline=None)
@given(
    bounds=strategies.lists(
        strategies.tuples(strategies.integers(-5, 9), strategies.integers(-5, 9)), min_size=1, max_size=8
    ),
    step=strategies.integers(1, 4),
)
def test_ranges_of_blocks_are_those_of_python(bounds, step):
    starts = torch.tensor([start for start, _ in bounds], dtype=torch.int32)
    stops = torch.tensor([stop for _, stop in bounds], dtype=torch.int32)
    results = torch.zeros(len(bounds), dtype=torch.int32)
    SHARED.launch(0, (len(bounds),), sum_of_range, (starts, stops, step, results))
    assert results.tolist() == [sum(3 * i + 1 for i in range(*each, step)) for each in bounds]


SHARED = Launcher()


@ct.kernel
def sum_of_range(starts, stops, step: int, results):
    b = ct.bid(0)
    total = 0
    for i in range(ct.load(starts, (b,), ()), ct.load(stops, (b,), ()), step):
        total += 3 * i + 1
    ct.store(results, (b,), total)
