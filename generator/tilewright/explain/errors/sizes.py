"""Front end: sizes, ranks and indices of tiles."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

SIZES = (
    Entry(
        name="size-not-constant",
        title="A size of a tile is not known when the kernel is compiled",
        pattern=r"Expected (a constant integer tuple|an integer constant), but given value is not constant"
        r"|missing Constant annotation",
        causes=(
            Cause(
                what="The parameter lacks `ct.Constant[int]`; `int` alone makes it a number of the run",
                tell="the name in the shape is a parameter of the kernel",
            ),
            Cause(
                what="The size is computed from the shape of an array, which is not known then",
                tell="the shape contains `X.shape[...]` or `ct.num_blocks(...)`",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: int):
            """Y (N) = X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        rules=("TW221",),
        samples=("TypeError: missing Constant annotation",),
    ),
    Entry(
        name="size-not-power-of-two",
        title="A size of a tile is no power of two",
        pattern=r"is not a power of two|must be power of 2|dimension not power of 2",
        causes=(
            Cause(
                what="The host passes the length of a tensor as the size of a tile",
                tell="the number in the message is a length of your tensor",
            ),
            Cause(
                what="A sum or product of sizes is used as a size, as of two tiles that are concatenated",
                tell="no parameter of the kernel has the value in the message",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y):
            """Y (N) = X (N)."""
            ct.store(Y, (0,), ct.load(X, (0,), (100,)))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y):
            """Y (N) = X (N); on the host: TILE = 1 << (n - 1).bit_length()."""
            x = ct.load(X, (0,), (128,), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0,), x)
        ''',
        rules=("TW220",),
        samples=(
            "Result tile shape must be power of 2, got 100",
            "ValueError: tile dimension not power of 2",
        ),
    ),
    Entry(
        name="size-not-positive",
        title="A size of a tile is zero or negative",
        pattern=r"Dimension #\d+ of shape \(.*\) is not positive",
        causes=(
            Cause(
                what="The size follows from the length of an empty tensor, or from a division that gave 0",
                tell="the test that fails has a tensor without elements, or one shorter than the tile",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y):
            """Y (N) = X (N)."""
            ct.store(Y, (0,), ct.load(X, (0,), (64 // 128,)))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y):
            """Y (N) = X (N)."""
            ct.store(Y, (0,), ct.load(X, (0,), (max(64 // 128, 1),)))
        ''',
        rules=("TW220", "TW308", "TW309"),
    ),
    Entry(
        name="size-or-index-not-integer",
        title="A size or an index is no integer",
        pattern=r"Expected a tuple of (signed )?integers\b.*, but"
        r"|Invalid argument (?!\"axis\").*: Expected an integer constant, but given value has type",
        causes=(
            Cause(what="`/` gives a float; `//` gives an integer", tell="the expression contains `/`"),
            Cause(
                what="A tile, such as ct.arange(...), stands where one number is expected",
                tell="the type in the message has a shape, as Tile[int32,(64)]: ct.gather takes such indices",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            i = ct.bid(0) / 2
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            i = ct.bid(0) // 2
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        rules=("TW294",),
    ),
    Entry(
        name="rank-of-index-or-shape",
        title="An index or a shape has another number of axes than the array",
        pattern=r"Expected shape length to be \d+, got \d+|Index size \d+ does not match the array rank \d+",
        causes=(
            Cause(
                what="The kernel was written for flat tensors and gets one with more axes, or the reverse",
                tell="the host passes the tensor as it came: it should pass `x.contiguous().view(-1)`",
            ),
            Cause(what="An axis was forgotten in the index or in the shape", tell="the two have different lengths"),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (M, N) = X (M, N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (M, N) = X (M, N)."""
            i, j = ct.bid(0), ct.bid(1)
            ct.store(Y, (i, j), ct.load(X, (i, j), (1, TILE)))
        ''',
        rules=("TW291",),
    ),
    Entry(
        name="shapes-that-do-not-fit",
        title="Tiles of shapes that do not fit together",
        pattern=r"Shapes are not broadcastable",
        causes=(
            Cause(
                what="A reduction dropped an axis: ct.sum(x, axis=1) of (M, N) has the shape (M,), which meets N",
                tell="one of the shapes has an axis less; `keepdims=True` keeps it",
            ),
            Cause(what="Two tiles were loaded with different sizes", tell="the shapes have as many axes each"),
        ),
        wrong='''
        @ct.kernel
        def center(X, Y, TILE_M: ct.Constant[int], TILE_K: ct.Constant[int]):
            """Y (M, K) = X (M, K) less the sum of each row."""
            x = ct.load(X, (0, 0), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0, 0), x - ct.sum(x, axis=1))
        ''',
        right='''
        @ct.kernel
        def center(X, Y, TILE_M: ct.Constant[int], TILE_K: ct.Constant[int]):
            """Y (M, K) = X (M, K) less the sum of each row."""
            x = ct.load(X, (0, 0), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0, 0), x - ct.sum(x, axis=1, keepdims=True))
        ''',
    ),
    Entry(
        name="arguments-of-arange",
        title="ct.arange takes one size, and a dtype by name",
        pattern=r"arange\(\): (too many positional arguments|missing a required argument: 'dtype')",
        causes=(Cause(what="It was written as torch.arange or tl.arange", tell="it has a start, or no dtype"),),
        wrong='''
        @ct.kernel
        def count(Y, TILE: ct.Constant[int]):
            """Y (N) of int32 = 0, 1, 2, ..."""
            ct.store(Y, (0,), ct.arange(0, TILE))
        ''',
        right='''
        @ct.kernel
        def count(Y, TILE: ct.Constant[int]):
            """Y (N) of int32 = 0, 1, 2, ..."""
            ct.store(Y, (0,), ct.arange(TILE, dtype=ct.int32))
        ''',
        rules=("TW223",),
    ),
    Entry(
        name="negative-step",
        title="A range with a negative step",
        pattern=r"Step must be positive, got -?\d+",
        causes=(Cause(what="A loop that counts down", tell="the third argument of range is negative"),),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            for i in range(3, -1, -1):
                ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            for i in range(4):
                ct.store(Y, (3 - i,), ct.load(X, (3 - i,), (TILE,)))
        ''',
        rules=("TW282",),
    ),
)
