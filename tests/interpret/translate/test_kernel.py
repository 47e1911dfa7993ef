"""What becomes of the IR of a kernel: nothing is ignored, constants are computed once, memory stays bounded."""

import dataclasses
import gc
import importlib
import weakref

import cuda.tile as ct
import pytest
import torch

from tilewright.cutile.signature import signature
from tilewright.interpret import operations  # noqa: F401  registers the operations
from tilewright.interpret.faults import UnsupportedOperation
from tilewright.interpret.frontend import typed_kernel
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings
from tilewright.interpret.translate.kernel import translate
from tilewright.interpret.translate.lowering import LOWERINGS
from tilewright.interpret.translate.lowering import Lowering
from tilewright.interpret.translate.lowering import lowers


@ct.kernel
def exponential(X, Y):
    ct.store(Y, (ct.bid(0),), ct.exp(ct.load(X, (ct.bid(0),), (1024,))))


def translated(kernel, *arguments):
    parameters = signature(kernel, arguments, aligned=True).parameters
    return translate(typed_kernel(kernel._annotated_function, parameters, "sm_90"))


def spied(monkeypatch, opcode, spy):
    """Let `spy` take the results of all operations of an opcode."""
    lowering = LOWERINGS[opcode]

    def handler(op):
        step = lowering.handler(op)

        def function(*operands):
            result = step.function(*operands)
            spy(result)
            return result

        return dataclasses.replace(step, function=function)

    monkeypatch.setitem(LOWERINGS, opcode, Lowering(handler, lowering.attributes))


@ct.kernel
def bounded(X, Y, first: int):
    start = ct.assume_divisible_by(first, 4)
    ct.store(Y, (ct.bid(0),), ct.gather(X, start + ct.arange(1024, dtype=ct.int32)))


@pytest.mark.parametrize(("kernel", "more"), [(exponential, ()), (bounded, (8,))], ids=["tiles", "assumptions"])
def test_the_ir_is_not_kept(kernel, more):
    arguments = (torch.zeros(1024), torch.zeros(1024), *more)
    typed = typed_kernel(kernel._annotated_function, signature(kernel, arguments, aligned=True).parameters, "sm_90")
    context = weakref.ref(typed.body.ctx)
    kept = translate(typed)
    del typed
    gc.collect()
    assert context() is None
    assert kept.typed is None


def test_unknown_operation_is_named(monkeypatch):
    monkeypatch.delitem(LOWERINGS, "unaryop")
    with pytest.raises(UnsupportedOperation, match=rf"the operation unaryop \({__file__}:\d+:\d+\)\ninstall a release"):
        translated(exponential, torch.zeros(1024), torch.zeros(1024))


def test_unknown_attribute_is_named(monkeypatch):
    monkeypatch.setitem(LOWERINGS, "unaryop", Lowering(LOWERINGS["unaryop"].handler, frozenset({"fn"})))
    with pytest.raises(UnsupportedOperation, match="the attribute rounding_mode of the operation unaryop"):
        translated(exponential, torch.zeros(1024), torch.zeros(1024))


def test_unknown_name_in_an_attribute_is_named(monkeypatch):
    def handler(op):
        return {}[op.fn]

    monkeypatch.setitem(LOWERINGS, "unaryop", Lowering(handler, LOWERINGS["unaryop"].attributes))
    with pytest.raises(UnsupportedOperation, match=r"does not know 'exp' of the operation unaryop \(.*\)\ninstall"):
        translated(exponential, torch.zeros(1024), torch.zeros(1024))


def test_operation_is_lowered_once():
    with pytest.raises(ValueError, match="unaryop is lowered twice"):
        lowers("unaryop")(LOWERINGS["unaryop"].handler)


def loops_in_each_other(depth, x):
    if depth == 0:
        return x + 1
    for _ in range(2 if depth < 4 else 1):
        x = loops_in_each_other(depth - 1, x)
    return x


def endless_loops_in_each_other(depth, x):
    if depth == 0:
        return x + 8
    while True:
        x = endless_loops_in_each_other(depth - 1, x)
        break
    return x


@pytest.mark.parametrize("depth", [25, 40])
@pytest.mark.parametrize("function", [loops_in_each_other, endless_loops_in_each_other])
def test_loops_may_be_nested_deeper_than_in_python(function, depth):
    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), function(depth, ct.load(X, (0,), ())))

    x = torch.zeros(1, dtype=torch.int32)
    Launcher().launch(0, (1,), kernel, (x,))
    assert x.item() == 8


def test_chain_of_more_branches_than_python_indents(tmp_path, monkeypatch):
    arms = dict.fromkeys(range(1, 101), "pass") | {30: "total += 100", 60: "continue", 99: "break"}
    lines = ["def count(i, last):", " i -= 1", " total = 0", " while i + 1 < last:", "  i += 1", "  if i == 0: pass"]
    lines += [f"  elif i == {arm}: {does}" for arm, does in arms.items()]
    source = "\n".join([*lines, "  total += 1", " return total", ""])
    (tmp_path / "chained.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    count = importlib.import_module("chained").count

    @ct.kernel
    def kernel(X):
        first = 40 * ct.bid(0)
        ct.store(X, (ct.bid(0),), count(first, first + 40))

    x = torch.zeros(3, dtype=torch.int32)
    Launcher().launch(0, (3,), kernel, (x,))
    # 40 steps and the hundred of 30; one fewer for 60; those from 80 to 99.
    assert x.tolist() == [count(0, 40), count(40, 80), count(80, 120)] == [140, 39, 19]


def test_what_no_launch_decides_is_computed_once(monkeypatch):
    results = []
    spied(monkeypatch, "tile_arange", results.append)

    @ct.kernel
    def kernel(X, n: int):
        total = ct.zeros((8,), ct.int32)
        for _ in range(n):
            total = total + ct.arange(8, dtype=ct.int32)
        ct.store(X, (0,), total)

    launcher = Launcher()
    for n in (5, 50):
        x = torch.zeros(8, dtype=torch.int32)
        launcher.launch(0, (1,), kernel, (x, n))
        assert x.tolist() == [n * i for i in range(8)]
    assert len(results) == 1


def test_large_constants_are_not_kept(monkeypatch):
    results = []
    spied(monkeypatch, "unaryop", lambda tile: results.append(weakref.ref(tile)))

    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), -ct.arange(2**20, dtype=ct.int32))

    x = torch.zeros(2**20, dtype=torch.int32)
    launcher = Launcher()
    launcher.launch(0, (1,), kernel, (x,))
    assert torch.equal(x, -torch.arange(2**20, dtype=torch.int32))
    assert results
    assert not any(result() is not None for result in results)


def repeated(times):
    @ct.kernel
    def kernel(X):
        x = ct.load(X, (ct.bid(0),), (1024,))
        for _ in ct.static_iter(range(times)):
            x = ct.exp(x)
        ct.store(X, (ct.bid(0),), x)

    return kernel


@pytest.fixture
def alive(monkeypatch):
    """How many results of unary operations are alive at each of them, its own among them."""
    counts = []
    seen = []

    def spy(tile):
        seen.append(weakref.ref(tile))
        counts.append(sum(each() is not None for each in seen))

    spied(monkeypatch, "unaryop", spy)
    return counts


def test_tiles_are_released_after_their_last_use(alive):
    Launcher().launch(0, (1,), repeated(20), (torch.zeros(1024),))
    assert len(alive) == 20
    assert max(alive) == 2  # the operand and the result


def test_what_a_loop_returns_is_released_after_its_last_use(alive):
    @ct.kernel
    def kernel(X, n: int):
        x = ct.load(X, (0,), (1024,))
        for _ in range(n):
            x = ct.exp(x)
        for _ in ct.static_iter(range(5)):
            x = ct.exp(x)
        ct.store(X, (0,), x)

    Launcher().launch(0, (1,), kernel, (torch.zeros(1024), 3))
    assert alive[3:] == [2] * 5


def test_memory_that_a_block_needs_does_not_grow_with_the_length_of_its_kernel():
    x = torch.zeros(1024)
    short, long = (translated(repeated(times), x).block_bytes for times in (1, 30))
    assert long == short
    assert long >= 2 * 4 * 1024  # at least an operand and a result


def test_memory_that_a_block_needs_covers_what_is_alive_together():
    @ct.kernel
    def kernel(X):
        tiles = (ct.load(X, (0,), (1024,)), ct.load(X, (1,), (1024,)), ct.load(X, (2,), (1024,)))
        for i in range(4):
            tiles = (tiles[0] + i, tiles[1] * 2, tiles[2] - i)
        ct.store(X, (0,), tiles[0] + tiles[1] + tiles[2])

    assert translated(kernel, torch.zeros(4096)).block_bytes >= 4 * 4 * 1024


def test_memory_that_a_block_needs_covers_what_an_operation_computes_in_between():
    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), ct.exp(ct.load(X, (0,), (1024,))))

    # The operand and the result in 16 bits, and one of them in 32.
    assert translated(kernel, torch.zeros(1024, dtype=torch.float16)).block_bytes >= (2 + 2 + 4) * 1024


def test_memory_that_a_block_needs_covers_what_parts_of_a_batch_copy():
    @ct.kernel
    def kernel(X, n: int):
        tiles = ()
        for i in ct.static_iter(range(16)):
            tiles += (ct.load(X, (i,), (1024,)),)
        total = ct.zeros((1024,), ct.float32)
        for _ in range(n):
            for i in ct.static_iter(range(16)):
                total = total + tiles[i]
        ct.store(X, (0,), total)

    # The 16 tiles and total, their parts for the blocks of an iteration, and the new total: far more than temporaries.
    assert translated(kernel, torch.zeros(16 * 1024), 3).block_bytes >= 35 * 4 * 1024


def test_blocks_that_run_at_once_keep_the_limit_of_memory(monkeypatch):
    sizes = []
    spied(monkeypatch, "unaryop", lambda tile: sizes.append(len(tile)))
    x = torch.zeros(64 * 1024)
    kernel = repeated(1)
    limit = 8 * translated(kernel, x).block_bytes
    sizes.clear()
    Launcher(Settings(batch_bytes=limit)).launch(0, (64,), kernel, (x,))
    assert sizes == [8] * 8


@pytest.mark.parametrize("blocks", [1, 16, 4096])
def test_an_operation_runs_once_for_all_blocks_that_agree(monkeypatch, blocks):
    sizes = []
    spied(monkeypatch, "unaryop", lambda tile: sizes.append(len(tile)))

    @ct.kernel
    def kernel(X):
        b = ct.bid(0)
        for _ in range(3):
            ct.store(X, (b,), ct.exp(ct.load(X, (b,), (2,))))

    Launcher().launch(0, (blocks,), kernel, (torch.zeros(2 * blocks),))
    assert sizes == [blocks] * 3


def test_constant_that_cannot_be_computed_fails_where_it_runs(monkeypatch):
    def fail(_):
        raise ArithmeticError("no such number")

    spied(monkeypatch, "tile_arange", fail)

    @ct.kernel
    def kernel(X, really: bool):
        if really:
            ct.store(X, (0,), ct.arange(4, dtype=ct.int32))

    x = torch.zeros(4, dtype=torch.int32)
    Launcher().launch(0, (1,), kernel, (x, False))
    with pytest.raises(ArithmeticError, match="no such number") as caught:
        Launcher().launch(0, (1,), kernel, (x, True))
    assert "kernel kernel, block (0, 0, 0)" in caught.value.__notes__[0]


def test_functions_of_reductions_may_use_scalars_from_outside():
    @ct.kernel
    def kernel(X, Y, weight: float):
        b = ct.bid(0)

        def weighted(earlier, later):
            return earlier + later * weight

        def shifted(earlier, later):
            return ct.maximum(earlier, later + b)

        x = ct.load(X, (0,), (2,))
        ct.store(Y, (b, 0), ct.reduce(x, 0, weighted, 0.0).reshape((1, 1)))
        ct.store(Y, (b, 1), ct.reduce(x, 0, shifted, 0.0).reshape((1, 1)))

    y = torch.zeros(3, 2)
    Launcher().launch(0, (3,), kernel, (torch.tensor([1.0, 0.5]), y, 4.0))
    assert y.tolist() == [[3.0, 1.0], [3.0, 1.5], [3.0, 2.5]]
