"""Kernels that use the public functions of cuda.tile, in launches of several blocks, against torch and numpy."""

import math

import cuda.tile as ct
import numpy as np
import pytest
import torch

from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

BLOCKS, SIZE = 4, 16
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BY_FLOAT = pytest.mark.parametrize("dtype", FLOATS, ids=lambda each: str(each).removeprefix("torch."))
BY_INTEGER = pytest.mark.parametrize("dtype", INTEGERS)


def launch(kernel, *arguments, grid=(BLOCKS,), arch="sm_100"):
    Launcher(Settings(arch=arch)).launch(0, grid, kernel, arguments)


def elementwise(function, *operands, dtype):
    """What `function` makes of tiles of the operands, one for each block."""
    result = torch.zeros(BLOCKS * SIZE, dtype=dtype)
    if len(operands) == 1:

        @ct.kernel
        def unary(X, Z):
            ct.store(Z, (ct.bid(0),), function(ct.load(X, (ct.bid(0),), (SIZE,))))

        launch(unary, *operands, result)
    else:

        @ct.kernel
        def binary(X, Y, Z):
            x = ct.load(X, (ct.bid(0),), (SIZE,))
            y = ct.load(Y, (ct.bid(0),), (SIZE,))
            ct.store(Z, (ct.bid(0),), function(x, y))

        launch(binary, *operands, result)
    return result


def close(result, exact, units=2, terms=1 / 64):
    """Within `units` of rounding of the float64 values `exact`, which are sums of numbers as large as `terms`."""
    unit = torch.finfo(result.dtype).eps * units
    expected = exact.to(result.dtype).to(torch.float64)
    torch.testing.assert_close(result.to(torch.float64), expected, rtol=unit, atol=unit * terms)


def floats(dtype, low=-3.0, high=3.0):
    torch.manual_seed(0)
    return (torch.rand(BLOCKS * SIZE, dtype=torch.float64) * (high - low) + low).to(dtype)


def integers(dtype, nonzero=False):
    """Every magnitude of a dtype, as numpy and torch see it."""
    generator = np.random.default_rng(0)
    info = np.iinfo(dtype)
    values = generator.integers(info.min, info.max, BLOCKS * SIZE, dtype=dtype, endpoint=True)
    values[::3] = generator.integers(0, 50, len(values[::3])).astype(dtype)
    values[:4] = [info.min, info.max, 0, 1]
    generator.shuffle(values)
    values = np.where(values == 0, 3, values).astype(dtype) if nonzero else values
    return values, as_tensor(values)


def as_tensor(array):
    return torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, str(array.dtype)))


def as_numpy(tensor, dtype):
    return tensor.view(getattr(torch, f"int{np.dtype(dtype).itemsize * 8}")).numpy().view(dtype)


UNARY = {
    "exp": (-3, 3),
    "exp2": (-3, 3),
    "log": (0.1, 9),
    "log2": (0.1, 9),
    "sin": (-3, 3),
    "cos": (-3, 3),
    "tan": (-1, 1),
    "sinh": (-3, 3),
    "cosh": (-3, 3),
    "tanh": (-3, 3),
    "sqrt": (0, 9),
    "rsqrt": (0.1, 9),
    "floor": (-9, 9),
    "ceil": (-9, 9),
    "abs": (-9, 9),
    "negative": (-9, 9),
}


@BY_FLOAT
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats(name, dtype):
    x = floats(dtype, *UNARY[name])
    close(elementwise(getattr(ct, name), x, dtype=dtype), getattr(torch, name)(x.to(torch.float64)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
def test_functions_of_integers_are_computed_in_float32(dtype):
    x = torch.arange(BLOCKS * SIZE).to(getattr(torch, dtype))
    close(elementwise(ct.sqrt, x, dtype=torch.float32), torch.arange(BLOCKS * SIZE, dtype=torch.float64).sqrt())


@BY_FLOAT
def test_nan_is_found(dtype):
    x = floats(dtype)
    x[::3] = math.nan
    assert torch.equal(elementwise(ct.isnan, x, dtype=torch.bool), x.isnan())


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.div,
    "floordiv": torch.floor_divide,
    "mod": torch.remainder,
    "atan2": torch.atan2,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}


@BY_FLOAT
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic_of_floats(name, dtype):
    x, y = floats(dtype), floats(dtype, 0.5, 4.0)
    close(elementwise(getattr(ct, name), x, y, dtype=dtype), BINARY[name](x.to(torch.float64), y.to(torch.float64)))


@BY_FLOAT
def test_powers(dtype):
    x, y = floats(dtype, 0.1, 3.0), floats(dtype)
    close(elementwise(ct.pow, x, y, dtype=dtype), x.to(torch.float64) ** y.to(torch.float64), units=4)
    n = (torch.arange(BLOCKS * SIZE) % 7 - 3).to(torch.int32)
    signed = x * (n % 2 * 2 - 1)
    close(elementwise(ct.pow, signed, n, dtype=dtype), signed.to(torch.float64) ** n.to(torch.float64), units=4)


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@BY_FLOAT
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_floats(name, dtype):
    x, y = floats(dtype).round(), floats(dtype).round().roll(1)
    x[::5] = math.nan
    expected = COMPARISONS[name](x.to(torch.float64).numpy(), y.to(torch.float64).numpy())
    assert elementwise(getattr(ct, name), x, y, dtype=torch.bool).tolist() == expected.tolist()


@BY_INTEGER
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_integers(name, dtype):
    x, tx = integers(dtype)
    y = np.where(np.arange(len(x)) % 4 == 0, x, np.roll(x, 1))
    result = elementwise(getattr(ct, name), tx, as_tensor(y), dtype=torch.bool)
    assert result.tolist() == COMPARISONS[name](x, y).tolist()


INTEGER_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


@BY_INTEGER
@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_arithmetic_of_integers(name, dtype):
    x, tx = integers(dtype)
    y = integers(dtype, nonzero=True)[0][::-1].copy()
    with np.errstate(over="ignore"):
        expected = INTEGER_BINARY[name](x, y)
    result = elementwise(getattr(ct, name), tx, as_tensor(y), dtype=tx.dtype)
    assert as_numpy(result, dtype).tolist() == expected.tolist()


@BY_INTEGER
def test_division_rounded_up(dtype):
    x, tx = integers(dtype)
    y, ty = integers(dtype, nonzero=True)
    result = as_numpy(elementwise(ct.cdiv, tx, ty, dtype=tx.dtype), dtype).tolist()
    bits, lowest = np.dtype(dtype).itemsize * 8, int(np.iinfo(dtype).min)
    exact = [-(-a // b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert result == [(each - lowest) % 2**bits + lowest for each in exact]


@BY_INTEGER
@pytest.mark.parametrize("name", ["bitwise_lshift", "bitwise_rshift"])
def test_shifts(name, dtype):
    x, tx = integers(dtype)
    bits = np.dtype(dtype).itemsize * 8
    counts = (np.arange(len(x)) % bits).astype(dtype)
    expected = np.left_shift(x, counts) if name == "bitwise_lshift" else np.right_shift(x, counts)
    result = elementwise(getattr(ct, name), tx, as_tensor(counts), dtype=tx.dtype)
    assert as_numpy(result, dtype).tolist() == expected.tolist()


@BY_INTEGER
def test_functions_of_integers(dtype):
    x, tx = integers(dtype)
    assert as_numpy(elementwise(ct.bitwise_not, tx, dtype=tx.dtype), dtype).tolist() == np.invert(x).tolist()
    assert as_numpy(elementwise(ct.negative, tx, dtype=tx.dtype), dtype).tolist() == np.negative(x).tolist()
    magnitudes = np.abs(x.view(f"i{x.itemsize}")).view(dtype)
    assert as_numpy(elementwise(ct.abs, tx, dtype=tx.dtype), dtype).tolist() == magnitudes.tolist()


def test_bools():
    x, y = torch.arange(BLOCKS * SIZE) % 2 == 0, torch.arange(BLOCKS * SIZE) % 3 == 0
    assert torch.equal(elementwise(ct.bitwise_and, x, y, dtype=torch.bool), x & y)
    assert torch.equal(elementwise(ct.bitwise_xor, x, y, dtype=torch.bool), x ^ y)
    assert torch.equal(elementwise(ct.bitwise_not, x, dtype=torch.bool), ~x)
    assert torch.equal(elementwise(ct.abs, x, dtype=torch.bool), x)
    assert torch.equal(elementwise(ct.negative, x, dtype=torch.int32), -x.to(torch.int32))


def quotient_and_remainder(x, y):
    quotient, remainder = divmod(x, y)
    return quotient * 1000 + remainder


@pytest.mark.skipif(not hasattr(ct, "insert"), reason="cuda-tile 1.6 begins to know divmod")
def test_divmod():
    x = torch.arange(-32, 32, dtype=torch.int32)
    y = torch.arange(64, dtype=torch.int32) % 7 - 10
    expected = [a // b * 1000 + a % b for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert elementwise(quotient_and_remainder, x, y, dtype=torch.int32).tolist() == expected


def larger_or_minus_one(x, y):
    return ct.where(x > y, x, -1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int8, torch.int64])
def test_where(dtype):
    x, y = floats(torch.float32).round().to(dtype), floats(torch.float32).roll(1).round().to(dtype)
    assert torch.equal(elementwise(larger_or_minus_one, x, y, dtype=dtype), torch.where(x > y, x, -1))


def towards_zero(x, y):
    return ct.mul(ct.add(x, y, rounding_mode=ct.RoundingMode.RZ), 1.0, flush_to_zero=True)


def test_rounding_modes_and_flushing():
    x, y = floats(torch.float32), floats(torch.float32, -1e-9, 1e-9)
    exact = x.to(torch.float64) + y.to(torch.float64)
    nearest = exact.to(torch.float32)
    inward = torch.where(
        nearest.abs().to(torch.float64) > exact.abs(), torch.nextafter(nearest, torch.zeros_like(nearest)), nearest
    )
    assert torch.equal(elementwise(towards_zero, x, y, dtype=torch.float32), inward)
    tiny = torch.full((BLOCKS * SIZE,), 1e-41)
    assert not elementwise(towards_zero, tiny, tiny, dtype=torch.float32).any()


def matrix(dtype, *shape):
    torch.manual_seed(1)
    return (torch.randn(BLOCKS, *shape, dtype=torch.float64) * 2).to(dtype)


def tilewise(function, x, shape, dtype):
    """What `function` makes of the matrix that each block has of `x`."""
    result = torch.zeros(BLOCKS, *shape, dtype=dtype)
    tile, start = tuple(x.shape[1:]), (0,) * len(shape)

    @ct.kernel
    def kernel(X, Z):
        value = function(ct.reshape(ct.load(X, (ct.bid(0), 0, 0), (1, *tile)), tile))
        ct.store(Z, (ct.bid(0), *start), ct.reshape(value, (1, *shape)))

    launch(kernel, x, result)
    return result


REDUCTIONS = {"sum": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin}


@BY_FLOAT
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_floats(name, axis, dtype):
    function = getattr(ct, name)

    def along(x):
        return function(x, axis=axis)

    x = matrix(dtype, 4, 8)
    close(tilewise(along, x, (8, 4)[axis : axis + 1], dtype), REDUCTIONS[name](x.to(torch.float64), dim=axis + 1), 8, 4)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_reductions_of_everything(name):
    function = getattr(ct, name)

    def everything(x):
        return function(x, keepdims=True)

    x = torch.randint(-3, 4, (BLOCKS, 4, 8), dtype=torch.int32)
    reference = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}.get(name)
    flat = x.reshape(BLOCKS, -1)
    expected = reference(flat, dim=1) if reference else flat.prod(1)
    assert torch.equal(tilewise(everything, x, (1, 1), torch.int32).flatten(), expected.to(torch.int32))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_extrema(name, axis):
    function = getattr(ct, name)

    def along(x):
        return function(x, axis=axis)

    torch.manual_seed(0)
    x = torch.stack([torch.randperm(32).reshape(4, 8) for _ in range(BLOCKS)]).to(torch.float32)
    expected = getattr(torch, name)(x, dim=axis + 1).to(torch.int32)
    assert torch.equal(tilewise(along, x, (8, 4)[axis : axis + 1], torch.int32), expected)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_and_products(name, axis, reverse):
    function = getattr(ct, name)

    def along(x):
        return function(x, axis=axis, reverse=reverse)

    x = matrix(torch.float32, 4, 8)
    turned = x.to(torch.float64).flip(axis + 1) if reverse else x.to(torch.float64)
    exact = getattr(torch, name)(turned, dim=axis + 1)
    close(tilewise(along, x, (4, 8), torch.float32), exact.flip(axis + 1) if reverse else exact, 64, 4)


def largest_magnitude(x, y):
    return ct.where(ct.abs(x) > ct.abs(y), x, y)


def reduced_with_a_function(x):
    return ct.reduce(x, 1, largest_magnitude, 0.0)


def scanned_with_a_function(x):
    return ct.scan(x, 1, largest_magnitude, 0.0)


def test_reductions_and_scans_with_a_function():
    x = matrix(torch.float32, 4, 8)
    place = x.abs().argmax(2, keepdim=True)
    assert torch.equal(tilewise(reduced_with_a_function, x, (4,), torch.float32), x.gather(2, place)[..., 0])
    running = x.gather(2, x.abs().cummax(2).indices)
    assert torch.equal(tilewise(scanned_with_a_function, x, (4, 8), torch.float32), running)


MMA = [
    (torch.float16, torch.float16),
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.float32, torch.float32),
    (torch.float64, torch.float64),
    (torch.float8_e4m3fn, torch.float32),
    (torch.float8_e5m2, torch.float16),
    (torch.int8, torch.int32),
    (torch.uint8, torch.int32),
]


@pytest.mark.parametrize(("dtype", "accumulator"), MMA, ids=lambda each: str(each).removeprefix("torch."))
def test_products_of_matrices(dtype, accumulator):
    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        x = ct.load(X, (i, 0, 0), (1, 8, 16))
        y = ct.load(Y, (0, 0, 0), (1, 16, 4))
        z = ct.load(Z, (i, 0, 0), (1, 8, 4))
        ct.store(Z, (i, 0, 0), ct.mma(x, y, z))

    torch.manual_seed(0)
    if dtype.is_floating_point:
        x, y = torch.randn(BLOCKS, 8, 16).to(dtype), torch.randn(1, 16, 4).to(dtype)
    else:
        x, y = torch.randint(0, 127, (BLOCKS, 8, 16)).to(dtype), torch.randint(0, 127, (1, 16, 4)).to(dtype)
    z = torch.ones(BLOCKS, 8, 4, dtype=accumulator)
    exact = x.to(torch.float64) @ y.to(torch.float64) + 1
    launch(kernel, x, y, z)
    if accumulator is torch.int32:
        assert torch.equal(z, exact.to(torch.int32))
    else:
        close(z, exact, 16, 4)


def test_matmul_of_vectors_and_tf32():
    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.astype(ct.load(X, (0, 0), (8, 16)), ct.tfloat32)
        y = ct.astype(ct.load(Y, (0, 0), (16, 4)), ct.tfloat32)
        ct.store(Z, (0, 0), ct.mma(x, y, ct.zeros((8, 4), ct.float32)))

    x, y, z = torch.randn(8, 16), torch.randn(16, 4), torch.zeros(8, 4)
    launch(kernel, x, y, z, grid=(1,))
    torch.testing.assert_close(z, x @ y, rtol=2e-3, atol=2e-3)


def test_scaled_products_of_matrices():
    @ct.kernel
    def kernel(X, XS, Y, YS, Z):
        i = ct.bid(0)
        x = ct.reshape(ct.load(X, (i, 0, 0), (1, 8, 64)), (8, 64))
        xs = ct.bitcast(ct.load(XS, (0, 0), (8, 2)), ct.float8_e8m0fnu)
        y = ct.load(Y, (0, 0), (64, 4))
        ys = ct.bitcast(ct.load(YS, (0, 0), (2, 4)), ct.float8_e8m0fnu)
        z = ct.mma_scaled(x, xs, y, ys, ct.full((8, 4), 1.0, ct.float32))
        ct.store(Z, (i, 0, 0), ct.reshape(z, (1, 8, 4)))

    torch.manual_seed(0)
    x, y = torch.randn(BLOCKS, 8, 64).to(torch.float8_e4m3fn), torch.randn(64, 4).to(torch.float8_e4m3fn)
    xs, ys = torch.randint(120, 134, (8, 2), dtype=torch.uint8), torch.randint(120, 134, (2, 4), dtype=torch.uint8)
    z = torch.zeros(BLOCKS, 8, 4)
    launch(kernel, x, xs, y, ys, z)
    left = x.to(torch.float64) * (2.0 ** (xs.to(torch.float64) - 127)).repeat_interleave(32, 1)
    right = y.to(torch.float64) * (2.0 ** (ys.to(torch.float64) - 127)).repeat_interleave(32, 0)
    torch.testing.assert_close(z, (left @ right + 1).to(torch.float32))


ARRAYS = {
    "bool_": torch.bool,
    **{each: getattr(torch, each) for each in INTEGERS},
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}


@pytest.mark.parametrize("source", ARRAYS)
def test_a_dtype_converts_to_every_other(source):
    count = len(ARRAYS)

    @ct.kernel
    def kernel(X, results):
        x = ct.load(X, (ct.bid(0),), (SIZE,))
        for k in ct.static_iter(range(count)):
            result = results[k]
            ct.store(result, (ct.bid(0),), ct.astype(x, result.dtype))

    x = torch.tensor([0, 1, 2, 3, 7, 12, 96, 112] * 8, dtype=torch.float64).to(ARRAYS[source])
    results = tuple(torch.zeros(BLOCKS * SIZE, dtype=torch.uint8).to(each) for each in ARRAYS.values())
    launch(kernel, x, results)
    for result in results:
        expected = x.to(torch.float64).to(result.dtype)
        assert torch.equal(result.to(torch.float64), expected.to(torch.float64)), result.dtype


def through_bytes(x):
    return ct.unpack_from_bytes(ct.pack_to_bytes(x), ct.int16)


def test_bytes():
    result = torch.zeros(BLOCKS * SIZE * 2, dtype=torch.int16)

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, (ct.bid(0),), through_bytes(ct.load(X, (ct.bid(0),), (SIZE,))))

    x = floats(torch.float32)
    launch(kernel, x, result)
    assert torch.equal(result, x.view(torch.int16))


def test_movement_of_elements():
    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        x = ct.reshape(ct.load(X, (i, 0, 0), (1, 4, 8)), (4, 8))
        turned = ct.permute(ct.transpose(x), (1, 0))
        half = ct.extract(turned, (i % 2, 0), (2, 8))
        joined = ct.cat((half, ct.broadcast_to(ct.expand_dims(ct.arange(8, dtype=ct.int32), 0), (2, 8))), 0)
        ct.store(Z, (i, 0, 0), ct.reshape(joined, (1, 4, 8)))

    x = torch.randint(0, 99, (BLOCKS, 4, 8), dtype=torch.int32)
    z = torch.zeros_like(x)
    launch(kernel, x, z)
    for i in range(BLOCKS):
        expected = torch.cat((x[i, i % 2 * 2 :][:2], torch.arange(8, dtype=torch.int32).expand(2, 8)))
        assert torch.equal(z[i], expected)


@pytest.mark.skipif(not hasattr(ct, "insert"), reason="cuda-tile 1.6 begins to insert")
def test_parts_are_inserted():
    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        x = ct.reshape(ct.load(X, (i, 0, 0), (1, 4, 8)), (4, 8))
        replaced = ct.insert(x, (0, i), ct.full((1, 2), -1, ct.int32))
        ct.store(Z, (i, 0, 0), ct.reshape(replaced, (1, 4, 8)))

    x = torch.randint(0, 99, (BLOCKS, 4, 8), dtype=torch.int32)
    z = torch.zeros_like(x)
    launch(kernel, x, z)
    for i in range(BLOCKS):
        x[i, 0, 2 * i : 2 * i + 2] = -1
    assert torch.equal(z, x)


def test_constants():
    @ct.kernel
    def kernel(Z):
        table = ct.astile(((1.5, 2.5), (3.5, -0.1)), dtype=ct.float16)
        ct.store(Z, (0, 0), table + ct.ones((2, 2), ct.float16) + ct.zeros((2, 2), ct.float16))

    z = torch.zeros(2, 2, dtype=torch.float16)
    launch(kernel, z, grid=(1,))
    assert torch.equal(z, torch.tensor([[1.5, 2.5], [3.5, -0.1]], dtype=torch.float16) + 1)


def test_scalars_of_every_block():
    @ct.kernel
    def kernel(Z, n: ct.Constant[int]):
        i = ct.bid(0)
        wide = ct.uint64(i) * 0xFFFF_FFFF_FFFF_FFFF
        shifted = ct.bitwise_rshift(wide, ct.uint64(60))
        ct.store(
            Z, (i,), ct.astype(shifted, ct.int64) * 1000 + ct.int64(i // 3 * 100 + (i - n) % 3 * 10 + ct.cdiv(i, 2))
        )

    z = torch.zeros(BLOCKS, dtype=torch.int64)
    launch(kernel, z, 5)
    expected = [((-i % 2**64) >> 60) * 1000 + i // 3 * 100 + (i - 5) % 3 * 10 + -(-i // 2) for i in range(BLOCKS)]
    assert z.tolist() == expected
