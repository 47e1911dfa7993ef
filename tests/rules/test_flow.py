"""What is known of the values of a kernel."""

import textwrap
from pathlib import Path

import pytest

from tilewright.rules.flow import Flow
from tilewright.rules.flow import flows
from tilewright.rules.source import Module
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import unknown
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile

TILE = unknown("parameter", "TILE")
N = unknown("parameter", "N")


def flow_of(body: str, *, parameters: str = "X, Y, N: int, TILE: ct.Constant[int]", around: str = "") -> Flow:
    kernel = f"@ct.kernel\ndef kernel({parameters}):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    text = f"import math\nimport cuda.tile as ct\nimport torch\n\n{textwrap.dedent(around)}\n\n{kernel}"
    return flows(Module(Path("operator.py"), text))[0]


def stored(flow: Flow) -> Tile:
    tile = flow.named("store")[-1].value("tile")
    assert isinstance(tile, Tile)
    return tile


def index(flow: Flow) -> list[object]:
    value = flow.named("load")[-1].value("index")
    assert isinstance(value, Sequence)
    return [each.number if isinstance(each, Scalar) else None for each in value.items]


def test_a_loop_variable_is_its_start_plus_so_many_steps() -> None:
    flow = flow_of("for j in range(0, N, TILE):\n    t = ct.load(X, (ct.bid(0), j), (1, TILE))")
    first, second = index(flow)
    assert first == unknown("bid", 0)
    assert second.divided(TILE).atom.kind == "step"


def test_a_quotient_undoes_the_step_of_a_loop() -> None:
    flow = flow_of("for j in range(0, N, TILE):\n    t = ct.load(X, (j // TILE,), (TILE,))")
    assert index(flow)[0].atom.kind == "step"


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("ct.zeros((TILE, 1), ct.float32) + ct.zeros((1, TILE), ct.float32)", (TILE, TILE)),
        ("ct.zeros((TILE,), ct.float32)[:, None]", (TILE, integer(1))),
        ("ct.expand_dims(ct.zeros((TILE,), ct.float32), 0)", (integer(1), TILE)),
        ("ct.sum(ct.zeros((4, TILE), ct.float32), 1)", (integer(4),)),
        ("ct.sum(ct.zeros((4, TILE), ct.float32), 1, keepdims=True)", (integer(4), integer(1))),
        ("ct.zeros((4, TILE), ct.float32).transpose()", (TILE, integer(4))),
        ("ct.zeros((1, TILE, 4), ct.float32).permute((2, 0, 1))", (integer(4), integer(1), TILE)),
        ("ct.zeros((1, TILE), ct.float32).reshape((TILE,))", (TILE,)),
        ("ct.zeros((4, TILE), ct.float32) @ ct.zeros((TILE, 8), ct.float32)", (integer(4), integer(8))),
        ("ct.where(ct.arange(TILE, dtype=ct.int32) < N, ct.zeros((4, TILE), ct.float32), 0.0)", (integer(4), TILE)),
    ],
)
def test_shapes_follow_the_operations(expression: str, shape: tuple[object, ...]) -> None:
    assert stored(flow_of(f"ct.store(Y, (0,), {expression})")).shape == shape


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("x", "X.dtype"),
        ("x * 2.0", "X.dtype"),
        ("x.astype(ct.float32) * 0.5", "float32"),
        ("x.astype(ct.float16) + ct.zeros((TILE,), ct.float32)", "float32"),
        ("x.astype(Y.dtype)", "Y.dtype"),
        ("x > 0.0", "bool"),
        ("ct.argmax(x, 0, keepdims=True)", "int32"),
        ("ct.exp(x.astype(ct.float16))", "float16"),
        ("ct.mma(x, x, ct.zeros((TILE, TILE), ct.float32))", "float32"),
    ],
)
def test_dtypes_follow_the_operations(expression: str, dtype: str) -> None:
    assert stored(flow_of(f"x = ct.load(X, (0,), (TILE,))\nct.store(Y, (0,), {expression})")).dtype == dtype


def outside(flow: Flow) -> Padding:
    axis = stored(flow).axes[-1]
    assert isinstance(axis, Padding)
    return axis


LOOP = """
for j in range(ct.cdiv(N, TILE)):
    x = ct.load(X, (ct.bid(0), j), (1, TILE){mode})
    ct.store(Y, (ct.bid(0), j), {expression})
"""


@pytest.mark.parametrize(
    ("mode", "expression", "kind", "number"),
    [
        ("", "x", Outside.ANYTHING, 0.0),
        ("", "x * 0.0", Outside.ANYTHING, 0.0),
        ("ZERO", "x", Outside.NUMBER, 0.0),
        ("ZERO", "x.astype(ct.float32) * 3.0", Outside.NUMBER, 0.0),
        ("ZERO", "ct.exp(x)", Outside.NUMBER, 1.0),
        ("NEG_INF", "ct.exp(x)", Outside.NUMBER, 0.0),
        ("NEG_INF", "ct.exp(x - ct.max(x, 1, keepdims=True))", Outside.NUMBER, 0.0),
        ("ZERO", "x - ct.max(x, 1, keepdims=True)", Outside.COMPUTED, 0.0),
        ("", "ct.where((j * TILE + ct.arange(TILE, dtype=ct.int32))[None, :] < N, x, 7.0)", Outside.NUMBER, 7.0),
        ("ZERO", "ct.maximum(x, 0.0)", Outside.NUMBER, 0.0),
        ("ZERO", "ct.where(x > 0.0, x, 1.0)", Outside.NUMBER, 1.0),
    ],
)
def test_what_lies_outside_follows_the_operations(mode: str, expression: str, kind: Outside, number: float) -> None:
    given = f", padding_mode=ct.PaddingMode.{mode}" if mode else ""
    padding = outside(flow_of(LOOP.format(mode=given, expression=expression)))
    assert (padding.kind, padding.number) == (kind, number)


def test_nothing_is_known_to_lie_outside_where_the_number_of_tiles_is_not_rounded_up() -> None:
    flow = flow_of(LOOP.format(mode="", expression="x").replace("ct.cdiv(N, TILE)", "N // TILE"))
    assert stored(flow).axes[-1] is None


def test_branches_that_differ_leave_nothing_known() -> None:
    body = """
    for j in range(ct.cdiv(N, TILE)):
        x = ct.load(X, (0, j), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
        if N > 4:
            x = x - 1.0
        ct.store(Y, (0, j), x)
    """
    assert stored(flow_of(body)).axes[-1] is None


def test_an_accumulator_has_the_padding_of_what_is_added() -> None:
    body = """
    acc = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(N, TILE)):
        acc = acc + ct.load(X, (0, j), (1, TILE))
    ct.store(Y, (0, 0), acc)
    """
    assert outside(flow_of(body)).kind is Outside.ANYTHING


def test_helpers_are_followed_with_their_arguments() -> None:
    around = """
    def _load(A, place, size):
        return ct.load(A, (place,), (size,)).astype(ct.float32)
    """
    flow = flow_of("ct.store(Y, (0,), _load(X, ct.bid(0), TILE))", around=around)
    assert stored(flow).shape == (TILE,)
    assert stored(flow).dtype == "float32"
    assert len(flow.functions) == 2


def test_constants_of_the_module_are_followed() -> None:
    flow = flow_of("ct.store(Y, (0,), ct.full((WIDTH,), LOWEST, ct.float32))", around="WIDTH = 32\nLOWEST = -math.inf")
    assert stored(flow).shape == (integer(32),)
    assert stored(flow).number == float("-inf")


def test_the_parts_of_an_axis_have_what_lies_outside_of_it() -> None:
    body = """
    for j in range(ct.cdiv(N, TILE)):
        x = ct.load(X, (ct.bid(0), j), (4, TILE), padding_mode=ct.PaddingMode.ZERO)
        ct.store(Y, (ct.bid(0), j, 0), x.reshape((4, TILE // 8, 8)))
    """
    axes = stored(flow_of(body)).axes
    assert axes[0] is None
    assert [each.kind for each in axes[1:] if isinstance(each, Padding)] == [Outside.NUMBER, Outside.NUMBER]


def test_a_kernel_with_a_choice_of_masking_is_run_for_both() -> None:
    text = """
    import cuda.tile as ct

    @ct.kernel
    def kernel(X, Y, TILE: ct.Constant[int], RAGGED: ct.Constant[bool]):
        lane = ct.arange(TILE, dtype=ct.int32)
        for j in range(ct.cdiv(X.shape[0], TILE)):
            tile = ct.load(X, (j,), (TILE,), padding_mode=ct.PaddingMode.ZERO)
            if RAGGED:
                tile = ct.where(j * TILE + lane < X.shape[0], tile, 3.0)
            ct.store(Y, (j,), tile)
    """
    found = flows(Module(Path("operator.py"), textwrap.dedent(text)))
    assert [outside(flow).number for flow in found] == [0.0, 3.0]


def test_tuples_that_a_loop_adds_up_keep_what_their_tiles_are() -> None:
    body = """
    tiles = ()
    for j in ct.static_iter(range(N)):
        tiles += (ct.load(X, (0, j), (1, TILE)),)
    for t in ct.static_iter(tiles[1:]):
        ct.store(Y, (0, 0), t)
    """
    assert stored(flow_of(body, parameters="X, Y, N: ct.Constant[int], TILE: ct.Constant[int]")).dtype == "X.dtype"


def test_a_kernel_with_a_choice_of_axis_is_run_for_each() -> None:
    text = """
    import cuda.tile as ct

    @ct.kernel
    def kernel(X, Y, AXIS: ct.Constant[int], TILE: ct.Constant[int]):
        tile = (TILE, 4)
        shape = tile if AXIS == 0 else (4, TILE)
        ct.store(Y, (0, 0), ct.load(X, (0, 0), shape) * tile[AXIS])
    """
    found = flows(Module(Path("operator.py"), textwrap.dedent(text)))
    assert [stored(flow).shape for flow in found] == [(TILE, integer(4)), (integer(4), TILE)]


def test_recursion_ends() -> None:
    around = """
    def _more(x):
        return _more(x) + 1
    """
    assert flow_of("ct.store(Y, (0,), _more(TILE))", around=around).named("store")


@pytest.mark.parametrize(
    "body",
    [
        "while ct.bid(0) < N:\n    break",
        "x, *y = (1, 2, 3)",
        "x = [1, 2][ct.bid(0)]",
        "x = ct.load(X)",
        "x = ct.load(*X)",
        "X.shape[N] = 3",
        "x = (lambda a, b=2: a + b)(1)",
        "x = not_known(ct.bid(0))",
        "x = ct.bid(0) // 0 + ct.cdiv(3, 0) + 3 % 0",
        "for i in X:\n    pass",
        "with X:\n    pass",
        "x = ct.zeros((TILE,), ct.float32).reshape((-1, -1)).permute((5, 6)).extract(1)",
        "x = ct.sum(ct.zeros((TILE,), ct.float32), 7)",
    ],
)
def test_nothing_that_parses_stops_it(body: str) -> None:
    assert flow_of(body).kernel.name == "kernel"


def test_tiles_of_a_view_have_its_shape_and_padding() -> None:
    body = """
    view = X.tiled_view((1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    for j in range(ct.cdiv(N, TILE)):
        ct.store(Y, (0, j), view.load((0, j)))
    """
    padding = outside(flow_of(body))
    assert (padding.kind, padding.number) == (Outside.NUMBER, float("-inf"))


def test_the_place_of_a_tile_that_overlaps_others_is_not_known() -> None:
    body = """
    view = X.tiled_view((4, TILE), traversal_steps=(1, TILE))
    ct.store(Y, (0, 0), view.load((ct.bid(0) * 4, ct.bid(1))))
    """
    assert index(flow_of(body)) == [None, unknown("bid", 1)]
