"""Front end: functions, arguments and subscripts that cuTile does not have."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

CALLS = (
    Entry(
        name="no-such-function",
        title="A function that cuda.tile does not have",
        pattern=r"Module 'cuda\.tile' has no attribute '\w+'",
        causes=(
            Cause(
                what="The function exists in PyTorch, NumPy or Triton only",
                tell="`tilewright explain TW260` names replacements; `dir(cuda.tile)` lists what there is",
            ),
            Cause(
                what="The function came with a newer cuda-tile",
                tell="the documentation names it, and `pip show cuda-tile` shows an older release",
            ),
        ),
        wrong='''
        @ct.kernel
        def sigmoid(X, Y, TILE: ct.Constant[int]):
            """Y (N) = sigmoid of X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.sigmoid(ct.load(X, (i,), (TILE,))))
        ''',
        right='''
        @ct.kernel
        def sigmoid(X, Y, TILE: ct.Constant[int]):
            """Y (N) = sigmoid of X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), 1.0 / (1.0 + ct.exp(-ct.load(X, (i,), (TILE,)))))
        ''',
        rules=("TW260",),
    ),
    Entry(
        name="no-such-attribute",
        title="A method or attribute that tiles and arrays do not have",
        pattern=r"No such attribute '\w+' for object of type",
        causes=(
            Cause(
                what="It was written as for a tensor: tiles have astype, reshape, permute, transpose, extract and item",
                tell="the name is one of torch.Tensor: use the function of cuda.tile, as ct.sum(x, axis=0)",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), x.to(ct.float32))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), x.astype(ct.float32))
        ''',
        rules=("TW261",),
    ),
    Entry(
        name="python-function-in-kernel",
        title="A function of Python, math, torch or numpy in a kernel",
        pattern=r"\w+\(\) is not supported in device code|constant from value of type builtin_function",
        causes=(
            Cause(what="A tile was passed to a function of the host", tell="cuda.tile has one of the same name"),
            Cause(
                what="A constant is computed with a function of the host",
                tell="all arguments are constants: wrap the expression in ct.static_eval(...)",
            ),
        ),
        wrong='''
        @ct.kernel
        def root(X, Y, TILE: ct.Constant[int]):
            """Y (N) = square root of X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), math.sqrt(ct.load(X, (i,), (TILE,))))
        ''',
        right='''
        @ct.kernel
        def root(X, Y, TILE: ct.Constant[int]):
            """Y (N) = square root of X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.sqrt(ct.load(X, (i,), (TILE,))))
        ''',
        rules=("TW262",),
    ),
    Entry(
        name="padding-value-of-load",
        title="ct.load takes padding_mode, ct.gather takes padding_value",
        pattern=r"load\(\): got an unexpected keyword argument 'padding_value'"
        r"|gather\(\): got an unexpected keyword argument 'padding_mode'",
        causes=(
            Cause(what="The name of the one was used with the other", tell="the message names function and argument"),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,), padding_value=0))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,), padding_mode=ct.PaddingMode.ZERO))
        ''',
        rules=("TW263",),
    ),
    Entry(
        name="arguments-of-a-function",
        title="An argument that the function does not take, or one that it needs",
        pattern=r"\w+\(\): (got an unexpected keyword argument|missing a required argument|too many positional)",
        causes=(
            Cause(
                what="The argument has another name here: axis for dim, keepdims for keepdim, fill_value for value",
                tell="`help(cuda.tile.NAME)` shows the signature",
            ),
            Cause(
                what="The argument came with a newer cuda-tile, such as propagate_nan or check_bounds with 1.6",
                tell="the documentation names it, and the installed release is older",
            ),
        ),
        wrong='''
        @ct.kernel
        def row_sums(X, Y, TILE_M: ct.Constant[int], TILE_K: ct.Constant[int]):
            """Y (M) = sums of the rows of X (M, K)."""
            x = ct.load(X, (0, 0), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0,), ct.sum(x, dim=1))
        ''',
        right='''
        @ct.kernel
        def row_sums(X, Y, TILE_M: ct.Constant[int], TILE_K: ct.Constant[int]):
            """Y (M) = sums of the rows of X (M, K)."""
            x = ct.load(X, (0, 0), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0,), ct.sum(x, axis=1))
        ''',
        rules=("TW263",),
        general=True,
    ),
    Entry(
        name="max-of-two",
        title="ct.max and ct.min reduce; of two values ct.maximum and ct.minimum take one",
        pattern=r'Invalid argument "axis" of (max|min)\(\): Expected an integer constant',
        causes=(
            Cause(
                what="The second argument is an axis, not a value",
                tell="it is a float or a tile; an int, as in ct.max(x, 0), compiles and reduces axis 0",
            ),
        ),
        wrong='''
        @ct.kernel
        def relu(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N) where positive, else 0."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.max(ct.load(X, (i,), (TILE,)), 0.0))
        ''',
        right='''
        @ct.kernel
        def relu(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N) where positive, else 0."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.maximum(ct.load(X, (i,), (TILE,)), 0.0))
        ''',
        rules=("TW250", "TW251"),
    ),
    Entry(
        name="subscript",
        title="A subscript of a tile or an array",
        pattern=r"Directly indexing a tile is not supported|Arrays are not directly subscriptable"
        r"|Arrays do not support item assignment",
        causes=(
            Cause(
                what="An array is read or written with []: ct.load, ct.store, ct.gather and ct.scatter do that",
                tell="the name is a parameter of the kernel",
            ),
            Cause(
                what="A part of a tile is taken with []: ct.extract(tile, index, shape) does that",
                tell="the name is the result of an operation; x[:, None] is allowed",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            Y[0] = X[0]
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            i = ct.bid(0)
            ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        rules=("TW264",),
    ),
    Entry(
        name="unsupported-syntax",
        title="A statement that the compiler does not know",
        pattern=r"Unsupported syntax|(Unsupported|Tile)SyntaxError",
        causes=(
            Cause(
                what="try, with, assert, comprehensions, global and yield are not part of kernels",
                tell="the message shows the line; ct.assert_ and ct.static_assert replace assert",
            ),
            Cause(
                what="`break` in a for loop needs cuda-tile 1.6",
                tell="the line is a break; a while loop may have one in every release",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            tiles = [ct.load(X, (i,), (TILE,)) for i in range(2)]
            ct.store(Y, (0,), tiles[0])
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            for i in range(2):
                ct.store(Y, (i,), ct.load(X, (i,), (TILE,)))
        ''',
        rules=("TW280",),
    ),
    Entry(
        name="kernel-returns",
        title="A kernel returns a value",
        pattern=r"Tile kernels cannot return values",
        causes=(
            Cause(
                what="Results leave a kernel through ct.store, ct.scatter or an atomic operation only",
                tell="a function that kernels call may return one: it has no @ct.kernel",
            ),
        ),
        wrong='''
        @ct.kernel
        def copy(X, TILE: ct.Constant[int]):
            """Returns X (N)."""
            return ct.load(X, (ct.bid(0),), (TILE,))
        ''',
        right='''
        @ct.kernel
        def copy(X, Y, TILE: ct.Constant[int]):
            """Y (N) = X (N)."""
            ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
        ''',
        rules=("TW281",),
    ),
)
