"""Front end: types of values."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

TYPES = (
    Entry(
        name="implicit-promotion",
        title="Two dtypes without a common one",
        pattern=r"Implicit promotion of \w+ and \w+ is not supported",
        causes=(
            Cause(
                what="float16 meets bfloat16, or one that is only stored, such as float8 and tfloat32",
                tell="the message names both: convert to float32 before, and to the dtype of the target after",
            ),
        ),
        wrong='''
        @ct.kernel
        def add(X, Y, Z, TILE: ct.Constant[int]):
            """Z (N) of float32 = X (N) of float16 + Y (N) of bfloat16."""
            i = ct.bid(0)
            ct.store(Z, (i,), ct.load(X, (i,), (TILE,)) + ct.load(Y, (i,), (TILE,)))
        ''',
        right='''
        @ct.kernel
        def add(X, Y, Z, TILE: ct.Constant[int]):
            """Z (N) of float32 = X (N) of float16 + Y (N) of bfloat16."""
            i = ct.bid(0)
            x = ct.load(X, (i,), (TILE,)).astype(ct.float32)
            y = ct.load(Y, (i,), (TILE,)).astype(ct.float32)
            ct.store(Z, (i,), x + y)
        ''',
        rules=("TW233",),
    ),
    Entry(
        name="store-of-another-dtype",
        title="A tile is stored to an array that its dtype does not convert to by itself",
        pattern=r"cannot implicitly cast \w+ to \w+",
        causes=(
            Cause(
                what="float32 is stored to float16 or bfloat16, or a float to an integer",
                tell="the message names both dtypes: store `value.astype(Y.dtype)`",
            ),
        ),
        wrong='''
        @ct.kernel
        def exponential(X, Y, TILE: ct.Constant[int]):
            """Y (N) of float16 = exp of X (N) of float16."""
            i = ct.bid(0)
            x = ct.load(X, (i,), (TILE,)).astype(ct.float32)
            ct.store(Y, (i,), ct.exp(x))
        ''',
        right='''
        @ct.kernel
        def exponential(X, Y, TILE: ct.Constant[int]):
            """Y (N) of float16 = exp of X (N) of float16."""
            i = ct.bid(0)
            x = ct.load(X, (i,), (TILE,)).astype(ct.float32)
            ct.store(Y, (i,), ct.exp(x).astype(Y.dtype))
        ''',
        rules=("TW241", "TW242"),
    ),
    Entry(
        name="type-changes-in-loop",
        title="A variable changes its type in a loop or in a branch",
        pattern=r"Type of ['`].*['`] depends on path taken",
        causes=(
            Cause(
                what="An accumulator starts as int or in half precision, and becomes float32 in the loop",
                tell="the message shows both types and lines: start with 0.0 or ct.zeros(..., ct.float32)",
            ),
            Cause(
                what="The branches of an if give different types",
                tell="the two lines of the message are in one if",
            ),
        ),
        wrong='''
        @ct.kernel
        def total(X, Y, TILE: ct.Constant[int]):
            """Y (1) = sum of X (N)."""
            acc = 0
            for i in range(ct.num_tiles(X, 0, (TILE,))):
                acc = acc + ct.sum(ct.load(X, (i,), (TILE,), padding_mode=ct.PaddingMode.ZERO))
            ct.store(Y, (0,), acc)
        ''',
        right='''
        @ct.kernel
        def total(X, Y, TILE: ct.Constant[int]):
            """Y (1) = sum of X (N)."""
            acc = 0.0
            for i in range(ct.num_tiles(X, 0, (TILE,))):
                acc = acc + ct.sum(ct.load(X, (i,), (TILE,), padding_mode=ct.PaddingMode.ZERO))
            ct.store(Y, (0,), acc)
        ''',
        rules=("TW272",),
    ),
    Entry(
        name="variable-first-assigned-in-loop",
        title="A variable that is first assigned in a loop is used after it",
        pattern=r"Use of potentially undefined variable",
        causes=(
            Cause(
                what="A loop may run not at all, and then the variable has no value",
                tell="assign it before the loop, with the type that it has in the loop",
            ),
        ),
        wrong='''
        @ct.kernel
        def last(X, Y, TILE: ct.Constant[int]):
            """Y (TILE) = the last tile of X (N)."""
            for i in range(ct.num_tiles(X, 0, (TILE,))):
                x = ct.load(X, (i,), (TILE,))
            ct.store(Y, (0,), x)
        ''',
        right='''
        @ct.kernel
        def last(X, Y, TILE: ct.Constant[int]):
            """Y (TILE) = the last tile of X (N)."""
            x = ct.zeros((TILE,), ct.float32)
            for i in range(ct.num_tiles(X, 0, (TILE,))):
                x = ct.load(X, (i,), (TILE,))
            ct.store(Y, (0,), x)
        ''',
        rules=("TW283",),
    ),
    Entry(
        name="truth-of-a-tile",
        title="and, or, a chained comparison or a branch on a tile",
        pattern=r"Expected a scalar value, but given value has type Tile\[|of if_else\(\): Expected a bool",
        causes=(
            Cause(
                what="A tile has many truth values: combine them with & | ~ and choose with ct.where",
                tell="the type in the message has a shape",
            ),
        ),
        wrong='''
        @ct.kernel
        def clip(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N) where it is in (0, 1), else 0."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), ct.where(0 < x and x < 1, x, 0.0))
        ''',
        right='''
        @ct.kernel
        def clip(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N) where it is in (0, 1), else 0."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), ct.where((0 < x) & (x < 1), x, 0.0))
        ''',
        rules=("TW270",),
    ),
    Entry(
        name="arithmetic-of-truth-values",
        title="Arithmetic between truth values",
        pattern=r"Binary arithmetic op ['`]\w+['`] does not support bool",
        causes=(
            Cause(
                what="Masks were multiplied or added",
                tell="both operands are comparisons: use & and |, or convert one with .astype(ct.int32)",
            ),
        ),
        wrong='''
        @ct.kernel
        def inside(X, Y, TILE: ct.Constant[int]):
            """Y (N) of bool = whether X (N) is in (0, 1)."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), (x > 0) * (x < 1))
        ''',
        right='''
        @ct.kernel
        def inside(X, Y, TILE: ct.Constant[int]):
            """Y (N) of bool = whether X (N) is in (0, 1)."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), (x > 0) & (x < 1))
        ''',
        rules=("TW271",),
    ),
    Entry(
        name="dtype-expected",
        title="Something else stands where a dtype is expected",
        pattern=r"Expected a dtype constant, but given value has type",
        causes=(
            Cause(
                what='A type of Python or a string, such as float or "float32", was given',
                tell="use ct.float32, or the dtype of an array: Y.dtype",
            ),
        ),
        wrong='''
        @ct.kernel
        def zero(Y, TILE: ct.Constant[int]):
            """Y (N) = 0."""
            ct.store(Y, (ct.bid(0),), ct.zeros((TILE,), "float32"))
        ''',
        right='''
        @ct.kernel
        def zero(Y, TILE: ct.Constant[int]):
            """Y (N) = 0."""
            ct.store(Y, (ct.bid(0),), ct.zeros((TILE,), Y.dtype))
        ''',
    ),
    Entry(
        name="no-constant-of-this-type",
        title="A value of the host that a kernel cannot use",
        pattern=r"Cannot create constant from value of type (?!builtin_function)",
        causes=(
            Cause(
                what="A global list, tensor or object of the module is used in the kernel",
                tell="ints, floats, bools, dtypes and tuples of them may be global; pass tensors as arguments",
            ),
            Cause(
                what="ct.Constant[int] was called to make a constant",
                tell="the type in the message is _AnnotatedAlias: write x = 1",
            ),
        ),
        wrong='''
        OFFSETS = [1]


        @ct.kernel
        def one(Y, TILE: ct.Constant[int]):
            """Y (N) = 1."""
            ct.store(Y, (ct.bid(0),), ct.full((TILE,), OFFSETS[0], ct.float32))
        ''',
        right='''
        OFFSETS = (1,)


        @ct.kernel
        def one(Y, TILE: ct.Constant[int]):
            """Y (N) = 1."""
            ct.store(Y, (ct.bid(0),), ct.full((TILE,), OFFSETS[0], ct.float32))
        ''',
        samples=("Cannot create constant from value of type typing._AnnotatedAlias.",),
    ),
    Entry(
        name="dtypes-of-a-matrix-product",
        title="Matrices, or their accumulator, of dtypes that cannot be multiplied",
        pattern=r"x and y must have the same dtype|Unsupported (acc|input) dtype",
        causes=(
            Cause(
                what="The accumulator is not float32 (int32 for int8), or the matrices have different dtypes",
                tell="the message names the dtype, and those that are possible",
            ),
        ),
        wrong='''
        @ct.kernel
        def product(A, B, C, TILE: ct.Constant[int]):
            """C (TILE, TILE) of bfloat16 = A (TILE, TILE) of bfloat16 @ B (TILE, TILE) of bfloat16."""
            a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
            ct.store(C, (0, 0), ct.mma(a, b, ct.zeros((TILE, TILE), ct.bfloat16)))
        ''',
        right='''
        @ct.kernel
        def product(A, B, C, TILE: ct.Constant[int]):
            """C (TILE, TILE) of bfloat16 = A (TILE, TILE) of bfloat16 @ B (TILE, TILE) of bfloat16."""
            a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
            acc = ct.mma(a, b, ct.zeros((TILE, TILE), ct.float32))
            ct.store(C, (0, 0), acc.astype(C.dtype))
        ''',
        rules=("TW231", "TW293"),
    ),
    Entry(
        name="float32-only-option",
        title="rounding_mode and flush_to_zero are for float32 only",
        pattern=r"(Rounding mode \w+|Flush to zero) can only be used for float32 type",
        causes=(Cause(what="The operand is in half precision or float64", tell="convert it to float32 before"),),
        wrong='''
        @ct.kernel
        def root(X, Y, TILE: ct.Constant[int]):
            """Y (N) of float16 = square root of X (N) of float16."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), ct.sqrt(x, flush_to_zero=True))
        ''',
        right='''
        @ct.kernel
        def root(X, Y, TILE: ct.Constant[int]):
            """Y (N) of float16 = square root of X (N) of float16."""
            x = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
            ct.store(Y, (ct.bid(0),), ct.sqrt(x, flush_to_zero=True).astype(Y.dtype))
        ''',
        rules=("TW232",),
    ),
    Entry(
        name="arithmetic-of-storage-dtypes",
        title="Arithmetic with a dtype that can only be stored, converted and multiplied as matrices",
        pattern=r"has non-arithmetic dtype \w+",
        causes=(
            Cause(what="A tile of tfloat32 or float8 was added or multiplied", tell="convert it to float32 before"),
        ),
        wrong='''
        @ct.kernel
        def double(X, Y, TILE: ct.Constant[int]):
            """Y (N) = 2 X (N)."""
            x = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.tfloat32)
            ct.store(Y, (ct.bid(0),), (x + x).astype(ct.float32))
        ''',
        right='''
        @ct.kernel
        def double(X, Y, TILE: ct.Constant[int]):
            """Y (N) = 2 X (N)."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), x + x)
        ''',
    ),
)
