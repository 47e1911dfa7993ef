"""Launches: grids, arguments and what goes wrong while a kernel runs."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

LAUNCH = (
    Entry(
        name="kernel-called",
        title="A kernel is launched, not called",
        pattern=r"Tile kernels cannot be called directly",
        causes=(Cause(what="The kernel was called as a function", tell="the line has `kernel(...)`"),),
        wrong="""
        _kernel(x, y, TILE)
        """,
        right="""
        ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.numel(), TILE),), _kernel, (x, y, TILE))
        """,
        samples=("Tile kernels cannot be called directly. Use cuda.tile.launch() instead.",),
    ),
    Entry(
        name="grid-form",
        title="A grid is a tuple of at most three Python ints",
        pattern=r"Grid must be a tuple|Grid dimensions must be at most 3|a grid is a tuple of up to three ints"
        r"|a grid has at most 3 axes|an integer is required"
        r"|'\w+' object cannot be interpreted as an integer",
        causes=(
            Cause(what="One number stands for a tuple", tell="the call has (n) or n instead of (n,)"),
            Cause(
                what="An axis is a float, a number of numpy or a tensor",
                tell="the grid has `/`, `math.ceil(a / b)` of a tensor, or `.sum()`: ct.cdiv gives an int",
            ),
            Cause(what="There are four or more axes", tell="fold them: (batch * heads, rows)"),
        ),
        wrong="""
        ct.launch(stream, (n / TILE), kernel, (x, y, TILE))
        """,
        right="""
        ct.launch(stream, (ct.cdiv(n, TILE),), kernel, (x, y, TILE))
        """,
        rules=("TW303",),
        samples=(
            "Grid must be a tuple",
            "Grid dimensions must be at most 3, got length 4",
            "a grid is a tuple of up to three ints, not 1",
            "a grid has at most 3 axes, not 4: (1, 1, 1, 1)",
            "'float' object cannot be interpreted as an integer",
        ),
    ),
    Entry(
        name="grid-empty",
        title="A grid without blocks",
        pattern=r"axis \d of a grid has 1 to \d+ blocks, not (0|-\d+)|can't convert negative value"
        r"|CUDA_ERROR_INVALID_VALUE|CUDA error: invalid (argument|configuration argument)",
        causes=(
            Cause(
                what="A tensor has no elements",
                tell="the test that fails has a 0 in its shape: return the result before the launch",
            ),
            Cause(
                what="A quotient is 0, as NUM_SMS // (batch * heads)",
                tell="only large tensors fail: use max(1, ...) or ct.cdiv",
            ),
        ),
        wrong="""
        ct.launch(stream, (ct.cdiv(x.numel(), TILE),), kernel, (x, y, TILE))
        """,
        right="""
        if x.numel() == 0:
            return y
        ct.launch(stream, (ct.cdiv(x.numel(), TILE),), kernel, (x, y, TILE))
        """,
        rules=("TW308", "TW309"),
        samples=(
            "axis 0 of a grid has 1 to 16777215 blocks, not 0: (0,)",
            "Failed to launch cuTile kernel: CUDA_ERROR_INVALID_VALUE: invalid argument",
        ),
    ),
    Entry(
        name="grid-too-large",
        title="A grid with too many blocks",
        pattern=r"Grid\[\d\] (exceeds 24-bit limit|is too big)|axis \d of a grid has 1 to \d+ blocks, not [1-9]\d*",
        causes=(
            Cause(
                what="A length of a tensor counts on the second or third axis, which end at 65535",
                tell="the message speaks of Grid[1], Grid[2], axis 1 or axis 2: put the longest first",
            ),
            Cause(
                what="More than 16777215 blocks on the first axis",
                tell="tiles are small: make them larger, or let each block take several in a loop",
            ),
        ),
        wrong="""
        ct.launch(stream, (1, rows), kernel, (x, y, TILE))
        """,
        right="""
        ct.launch(stream, (rows, 1), kernel, (x, y, TILE))   # and ct.bid(0) for the row
        """,
        rules=("TW304",),
        samples=(
            "Grid[0] exceeds 24-bit limit: max=16777215, got=16777216",
            "Grid[1] is too big: max=65535, got=70000",
            "axis 1 of a grid has 1 to 65535 blocks, not 70000: (1, 70000)",
        ),
    ),
    Entry(
        name="number-of-arguments",
        title="A launch with more or fewer arguments than the kernel has parameters",
        pattern=r"Kernel expects \d+ arguments? but \d+|the kernel takes \d+ arguments?, the launch passes \d+"
        r"|takes the kernel's arguments as a tuple|expects a tuple as the fourth argument",
        causes=(
            Cause(
                what="A constant was forgotten: they are passed at their place, like all others",
                tell="the missing ones are the last, with ct.Constant",
            ),
            Cause(what="A default was relied on", tell="the parameter has one: launches must pass it all the same"),
            Cause(what="A single argument without a comma is no tuple", tell="the call has (x) instead of (x,)"),
        ),
        wrong="""
        ct.launch(stream, grid, kernel, (x, y))
        """,
        right="""
        ct.launch(stream, grid, kernel, (x, y, TILE))
        """,
        rules=("TW285", "TW305"),
        samples=(
            "Kernel expects 3 arguments but 2 were given",
            "the kernel takes 2 arguments, the launch passes 1",
            "a launch takes the kernel's arguments as a tuple, not as list",
        ),
    ),
    Entry(
        name="argument-type",
        title="An argument that a launch cannot pass",
        pattern=r"a constant of a kernel is a bool, int or float|a launch cannot pass \w+"
        r"|Invalid kernel argument #\d+: (Objects of type '.*' are not supported|Could not interpret)"
        r"|Invalid kernel parameter '\w+'|Unsupported argument type \w+"
        r"|Array dtypes with multiple lanes are not supported|Unsupported array dtype|cuTile has no arrays of",
        causes=(
            Cause(
                what="Arguments are in another order than the parameters",
                tell="the value in the message belongs to another parameter",
            ),
            Cause(
                what="A number of numpy, a tensor of one element, None or a string was passed",
                tell="convert it: int(n), x.item(), or a constant that says whether there is one",
            ),
            Cause(
                what="A tensor has a dtype that arrays do not have: complex numbers, or pairs of float4",
                tell="pass torch.view_as_real(x); or x.view(torch.uint8), and ct.unpack_from_bytes its tiles",
            ),
        ),
        wrong="""
        ct.launch(stream, grid, kernel, (x, bias, TILE))   # bias is None
        """,
        right="""
        has_bias = bias is not None
        ct.launch(stream, grid, kernel, (x, bias if has_bias else x, has_bias, TILE))
        """,
        rules=("TW306",),
        samples=(
            "a constant of a kernel is a bool, int or float, not str: 'a'",
            "a launch cannot pass NoneType: None",
            "cuTile has no arrays of torch.complex64",
        ),
    ),
    Entry(
        name="tensor-not-on-gpu",
        title="A tensor that is not on the GPU",
        pattern=r"Input array is not on a CUDA device|is on cpu, not on a CUDA device",
        causes=(
            Cause(
                what="A test or a result was made without device=",
                tell="`print(x.device)` says cpu: use device=x.device for results, and device='cuda' in tests",
            ),
        ),
        wrong="""
        out = torch.empty(x.shape, dtype=x.dtype)
        """,
        right="""
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        """,
        rules=("TW320",),
        samples=("Input array is not on a CUDA device",),
    ),
    Entry(
        name="number-too-large",
        title="A number, a shape or a stride that does not fit 32 bits",
        pattern=r"\b(shape|stride) is too big|Python int too large to convert to C int|value too big: "
        r"|\bscalar -?\d+ does not fit|strides \(.*\) exceed int32",
        causes=(
            Cause(
                what="A tensor has more than 2**31 - 1 elements along an axis, or such a stride",
                tell="the message has the number: annotate the array with ct.IndexedWithInt64",
            ),
            Cause(
                what="A seed, an address or a count is passed as a number",
                tell="the parameter is no array: annotate it with ct.ScalarInt64",
            ),
        ),
        wrong="""
        def kernel(X, Y, seed, TILE: ct.Constant[int]): ...
        """,
        right="""
        def kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, seed: ct.ScalarInt64, TILE: ct.Constant[int]): ...
        """,
        rules=("TW204",),
        samples=(
            "scalar 4294967296 does not fit int32; annotate the parameter with ct.ScalarInt64",
            "shape (2147483648,) or strides (1,) exceed int32; annotate the parameter with ct.IndexedWithInt64",
        ),
    ),
    Entry(
        name="illegal-access",
        title="A kernel touches memory that is not its own",
        pattern=r"illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS|misaligned address|access outside of an array"
        r"|outside of the memory|OutOfBounds|\bIndexError\b.*(index|tile)|unspecified launch failure",
        causes=(
            Cause(
                what="An element's index stands where ct.load or ct.store takes a tile's",
                tell="the index has `* TILE`, or steps by it",
            ),
            Cause(
                what="The grid has more blocks than there are tiles, as it was computed with another size",
                tell="ct.cdiv in the grid has another number than the launch passes",
            ),
            Cause(
                what="check_bounds=False where a tile hangs over",
                tell="only lengths that are no multiple of the tile fail",
            ),
            Cause(
                what="An earlier launch failed: CUDA reports it at the next call",
                tell="with CUDA_LAUNCH_BLOCKING=1 another line fails; `pytest --tile-device=interpret --tile-check`"
                " names the line of the kernel",
            ),
        ),
        wrong="""
        i = ct.bid(0)
        x = ct.load(X, (i * TILE,), (TILE,))
        """,
        right="""
        i = ct.bid(0)
        x = ct.load(X, (i,), (TILE,))
        """,
        rules=("TW201", "TW202", "TW215", "TW217", "TW301"),
        samples=(
            "CUDA error: an illegal memory access was encountered",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "1 fault(s) in kernel copy\naccess outside of an array\n  block (1, 0, 0): tile (64,) of X",
            "IndexError: tile index out of range",
        ),
    ),
    Entry(
        name="cuda-error",
        title="CUDA reports an error",
        pattern=r"\bCUDA error\b|CUDA_ERROR_\w+|Failed to launch cuTile kernel",
        causes=(
            Cause(
                what="The grid or an index of a tile is wrong",
                tell="`tilewright check` and `pytest --tile-device=interpret --tile-check` find it with the line",
            ),
            Cause(
                what="An earlier launch failed",
                tell="with CUDA_LAUNCH_BLOCKING=1 another line fails",
            ),
            Cause(what="Driver and toolkit do not fit", tell="every kernel fails: `tilewright doctor`"),
        ),
        wrong="""
        grid = ((n + 1023) // 1024,)
        ct.launch(stream, grid, kernel, (x, y, 512))
        """,
        right="""
        grid = (ct.cdiv(n, TILE),)
        ct.launch(stream, grid, kernel, (x, y, TILE))
        """,
        rules=("TW201", "TW301", "TW303"),
        samples=("CUDA error: something that no entry knows",),
        general=True,
    ),
    Entry(
        name="depends-on-padding",
        title="A result depends on the padding of a tile",
        pattern=r"result that depends on padding",
        causes=(
            Cause(
                what="A load without padding_mode reaches a reduction, which then takes in what lies behind the array",
                tell="lengths that are multiples of the tile work",
            ),
            Cause(
                what="The padding is not what the reduction ignores",
                tell="the load has a padding_mode: a maximum needs NEG_INF, a sum ZERO",
            ),
        ),
        wrong="""
        x = ct.load(X, (i, 0), (1, TILE))
        m = ct.max(x, axis=1, keepdims=True)
        """,
        right="""
        x = ct.load(X, (i, 0), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        m = ct.max(x, axis=1, keepdims=True)
        """,
        rules=("TW210", "TW211", "TW212"),
        samples=("1 fault(s) in kernel softmax\nresult that depends on padding\n  block (0, 0, 0): undetermined",),
    ),
    Entry(
        name="blocks-interfere",
        title="Two blocks touch one element",
        pattern=r"two blocks write one element|a block reads what another one writes"
        r"|result that depends on the order of blocks|store of several values to one element",
        causes=(
            Cause(
                what="An axis of the grid does not reach the index of the store",
                tell="the kernel has a ct.bid(...) that ct.store does not use",
            ),
            Cause(
                what="Blocks add to one place: that takes ct.atomic_add",
                tell="the kernel loads what it stores",
            ),
        ),
        wrong="""
        i, j = ct.bid(0), ct.bid(1)
        ct.store(Y, (i,), ct.sum(ct.load(X, (i, j), (1, TILE)), axis=1))
        """,
        right="""
        i, j = ct.bid(0), ct.bid(1)
        ct.atomic_add(Y, (i,), ct.sum(ct.load(X, (i, j), (1, TILE))))
        """,
        rules=("TW203",),
        samples=("1 fault(s) in kernel row_sums\ntwo blocks write one element\n  block (0, 1, 0): Y (0,)",),
    ),
    Entry(
        name="store-beside",
        title="A store writes beside its array",
        pattern=r"store beside an array",
        causes=(
            Cause(
                what="TMA stores 16 bytes at a time, and rows of the array end within such a unit",
                tell="the array is a slice of a larger tensor; its last dimension times the bytes of an element is no "
                "multiple of 16",
            ),
        ),
        wrong="""
        ct.store(Y, (i,), ct.sum(tile, axis=1))
        """,
        right="""
        ct.store(Y, (i,), ct.sum(tile, axis=1), allow_tma=False)
        """,
        rules=("TW243",),
        samples=(
            "1 fault(s) in kernel row_sums\nstore beside an array\n  block (5, 0, 0): TMA stores 16 bytes at a time",
        ),
    ),
    Entry(
        name="kernel-source",
        title="The source of a kernel cannot be read",
        pattern=r"could not get source code|source code not available",
        causes=(
            Cause(
                what="Kernels are compiled from their source, and this one was made by exec or in a shell",
                tell="there is no file with the kernel: write one",
            ),
        ),
        wrong="""
        exec(text_of_kernel)
        """,
        right="""
        Path("my_kernel.py").write_text(text_of_kernel)
        from my_kernel import kernel
        """,
        samples=("OSError: could not get source code",),
    ),
    Entry(
        name="no-configuration",
        title="Every candidate of a search failed",
        pattern=r"No valid config found in search space",
        causes=(
            Cause(
                what="The time limit is too short for a busy machine",
                tell="the causes in the message are timeouts: raise ct.compiler_timeout(...)",
            ),
            Cause(what="All candidates are too large for this GPU", tell="compile one: `tilewright compile`"),
        ),
        wrong="""
        best = exhaustive_search(configs, stream, grid, kernel, arguments, hints).best
        """,
        right="""
        try:
            best = exhaustive_search(configs, stream, grid, kernel, arguments, hints).best
        except ValueError:
            best = configs[0]
        """,
        rules=("TW318",),
        samples=("No valid config found in search space. Errors: ...",),
    ),
)
