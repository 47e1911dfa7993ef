"""The compiler tileiras: what passes the front end, and then fails without a line of your file."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

COMPILER = (
    Entry(
        name="matrix-product-rank",
        title="A product of matrices with more than three axes",
        pattern=r"op operands must be 2D or 3D tiles",
        causes=(
            Cause(
                what="ct.mma or ct.matmul of tiles with four axes, as (batch, head, rows, columns)",
                tell="tiles are loaded with four sizes: reshape to the sizes of the tile, not of the array",
            ),
        ),
        wrong='''
        @ct.kernel
        def product(A, B, C, TILE: ct.Constant[int]):
            """C (1, 1, TILE, TILE) = A (1, 1, TILE, TILE) @ B (1, 1, TILE, TILE)."""
            a = ct.load(A, (0, 0, 0, 0), (1, 1, TILE, TILE))
            b = ct.load(B, (0, 0, 0, 0), (1, 1, TILE, TILE))
            ct.store(C, (0, 0, 0, 0), ct.mma(a, b, ct.zeros((1, 1, TILE, TILE), ct.float32)))
        ''',
        right='''
        @ct.kernel
        def product(A, B, C, TILE: ct.Constant[int]):
            """C (1, 1, TILE, TILE) = A (1, 1, TILE, TILE) @ B (1, 1, TILE, TILE)."""
            a = ct.reshape(ct.load(A, (0, 0, 0, 0), (1, 1, TILE, TILE)), (TILE, TILE))
            b = ct.reshape(ct.load(B, (0, 0, 0, 0), (1, 1, TILE, TILE)), (TILE, TILE))
            c = ct.mma(a, b, ct.zeros((TILE, TILE), ct.float32))
            ct.store(C, (0, 0, 0, 0), ct.reshape(c, (1, 1, TILE, TILE)))
        ''',
        rules=("TW290",),
    ),
    Entry(
        name="store-rank",
        title="A tile with another number of axes than the array that it is stored to",
        pattern=r"expected tensor_view rank and tile rank to match",
        causes=(
            Cause(
                what="A reduction without keepdims=True dropped an axis",
                tell="the message has both ranks; the tile has one less",
            ),
            Cause(what="The tile was reshaped and not reshaped back", tell="the kernel contains ct.reshape"),
        ),
        wrong='''
        @ct.kernel
        def row_sums(X, Y, TILE_M: ct.Constant[int], TILE_K: ct.Constant[int]):
            """Y (M, 1) = sums of the rows of X (M, K)."""
            x = ct.load(X, (0, 0), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0, 0), ct.sum(x, axis=1))
        ''',
        right='''
        @ct.kernel
        def row_sums(X, Y, TILE_M: ct.Constant[int], TILE_K: ct.Constant[int]):
            """Y (M, 1) = sums of the rows of X (M, K)."""
            x = ct.load(X, (0, 0), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (0, 0), ct.sum(x, axis=1, keepdims=True))
        ''',
        rules=("TW291",),
    ),
    Entry(
        name="integer-padding",
        title="Integers are padded with what only floating-point numbers have",
        pattern=r"padding_value \w+ can only be used with floating point element types",
        causes=(
            Cause(
                what="PaddingMode.NEG_INF, POS_INF or NAN with an array of integers",
                tell="the operator fails for integers only: pad with ZERO and mask with ct.where",
            ),
        ),
        wrong='''
        @ct.kernel
        def largest(X, Y, TILE: ct.Constant[int]):
            """Y (1) of int32 = largest of X (N) of int32."""
            x = ct.load(X, (0,), (TILE,), padding_mode=ct.PaddingMode.NEG_INF)
            ct.store(Y, (0,), ct.max(x))
        ''',
        right='''
        @ct.kernel
        def largest(X, Y, TILE: ct.Constant[int]):
            """Y (1) of int32 = largest of X (N) of int32."""
            x = ct.load(X, (0,), (TILE,), padding_mode=ct.PaddingMode.ZERO)
            inside = ct.arange(TILE, dtype=ct.int32) < X.shape[0]
            ct.store(Y, (0,), ct.max(ct.where(inside, x, -(2**31))))
        ''',
        rules=("TW214",),
    ),
    Entry(
        name="operand-not-floating-point",
        title="A function of floating-point numbers gets a dtype that it does not take",
        pattern=r"op operand #\d+ must be tile of f16 or bf16 or f32 or f64 values",
        causes=(
            Cause(
                what="The argument is tfloat32 or float8: these are for storing, converting and matrix products only",
                tell="the message names the function: convert its argument to float32 before",
            ),
        ),
        wrong='''
        @ct.kernel
        def exponential(X, Y, TILE: ct.Constant[int]):
            """Y (N) = exp of X (N)."""
            x = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.tfloat32)
            ct.store(Y, (ct.bid(0),), ct.exp(x).astype(ct.float32))
        ''',
        right='''
        @ct.kernel
        def exponential(X, Y, TILE: ct.Constant[int]):
            """Y (N) = exp of X (N)."""
            x = ct.load(X, (ct.bid(0),), (TILE,))
            ct.store(Y, (ct.bid(0),), ct.exp(x))
        ''',
    ),
    Entry(
        name="dtype-of-the-architecture",
        title="The GPU has no such dtype, or no such operation with it",
        pattern=r"\w+ is not supported (on|by [\w ]+ on) sm_\d+",
        causes=(
            Cause(
                what="float8 needs sm_90, bfloat16 atomics sm_90, float8_e8m0fnu and ct.mma_scaled sm_100",
                tell="the message names dtype and architecture: `tilewright compile --arch sm_90` asks for another",
            ),
        ),
        wrong="""
        out = torch.empty(n, dtype=torch.float8_e4m3fn, device=x.device)
        """,
        right="""
        if torch.cuda.get_device_capability(x.device) < (9, 0):
            raise NotImplementedError("my_op in float8 needs compute capability 9.0")
        out = torch.empty(n, dtype=torch.float8_e4m3fn, device=x.device)
        """,
        samples=("float8_e4m3fn is not supported on sm_89", "bfloat16 is not supported by atomic add on sm_80"),
    ),
    Entry(
        name="compiler-crash",
        title="The compiler itself was ended by a signal",
        pattern=r"Return code -\d+|the compiler was ended by SIG\w+",
        causes=(
            Cause(
                what="A compiler hint that this compiler does not survive, such as occupancy=2 or num_ctas=2",
                tell="the kernel compiles with @ct.kernel without arguments",
            ),
            Cause(
                what="A construct that it does not survive, as a matrix product in a loop of unknown length",
                tell="take statements out until it compiles, and report the rest to cuda-tile",
            ),
            Cause(what="The machine ran out of memory", tell="the signal is SIGKILL, and `dmesg` says so"),
        ),
        wrong="""
        @ct.kernel(num_ctas=2, occupancy=2)
        """,
        right="""
        @ct.kernel
        """,
        rules=("TW314", "TW315"),
        samples=("Return code -11\n", "the compiler was ended by SIGSEGV"),
    ),
    Entry(
        name="compiler-timeout",
        title="The compiler took too long",
        pattern=r"compiler exceeded timeout",
        causes=(
            Cause(
                what="Tiles are too large: registers spill, and compilation takes long",
                tell="`tilewright compile` shows spilled bytes and seconds: halve the sizes",
            ),
            Cause(what="The machine is busy", tell="alone it compiles within the time"),
        ),
        wrong="""
        with ct.compiler_timeout(5):
            ct.launch(stream, grid, kernel, (x, y, 65536))
        """,
        right="""
        with ct.compiler_timeout(30):
            ct.launch(stream, grid, kernel, (x, y, 8192))
        """,
        rules=("TW318",),
        samples=("`tileiras` compiler exceeded timeout 5s. Using a smaller tile size may reduce compilation time.",),
    ),
    Entry(
        name="shared-memory",
        title="A kernel needs more shared memory than a block may have",
        pattern=r"needs \d+ KiB of shared memory; a block may have \d+",
        causes=(
            Cause(
                what="The tiles that are multiplied are too large for this architecture",
                tell="others compile: sm_90 and sm_100 have 227 KiB, sm_80 163, sm_86, sm_89 and sm_120 99",
            ),
        ),
        wrong="""
        TILE_M, TILE_N, TILE_K = 256, 256, 128
        """,
        right="""
        TILE_M, TILE_N, TILE_K = 128, 128, 64
        """,
        samples=("needs 256 KiB of shared memory; a block may have 227",),
    ),
    Entry(
        name="return-code-5",
        title="The compiler failed and does not say where",
        pattern=r"Return code 5\b|failed to compile Tile IR program",
        causes=(
            Cause(
                what="The pieces of the toolkit are of different releases",
                tell="`tilewright doctor` says of tileiras: not one release",
            ),
            Cause(
                what="The compiler of the driver is older than the toolkit",
                tell="the driver of `tilewright doctor` has a lower CUDA version than tileiras",
            ),
        ),
        wrong="""
        pip install cuda-tile
        """,
        right="""
        pip install --upgrade --force-reinstall 'cuda-tile[tileiras]>=1.5,<1.8'
        """,
        samples=("Return code 5\nfailed to compile Tile IR program\n    Unknown location\n",),
    ),
    Entry(
        name="return-code",
        title="The compiler refuses what the front end accepted",
        pattern=r"Return code \d+",
        causes=(
            Cause(
                what="An operation has operands of a rank or dtype that it does not take",
                tell="the second line of the message names it, as 'cuda_tile.mmaf': look for it in the kernel",
            ),
            Cause(
                what="The compiler is older than what cuda-tile writes",
                tell="the second line speaks of a version: `tilewright doctor` shows both",
            ),
        ),
        wrong="""
        ct.launch(stream, grid, kernel, args)   # fails at the first launch, without a line of the kernel
        """,
        right="""
        # tilewright check finds most of these from the source, with the line:
        #   tilewright check my_ops/my_op/cutile.py
        ct.launch(stream, grid, kernel, args)
        """,
        general=True,
        samples=("Return code 3\nerror: something that no entry knows\n",),
    ),
)
