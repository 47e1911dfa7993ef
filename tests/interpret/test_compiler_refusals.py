"""Kernels that pass the front end and that tileiras refuses are refused in its words, without it."""

import cuda.tile as ct
import pytest
import torch
from cuda.tile.compilation import CallingConvention
from cuda.tile.compilation import KernelSignature
from cuda.tile.compilation import export_kernel

from tilewright.cutile.signature import signature
from tilewright.cutile.toolchain import find_toolchain
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

PaddingMode = ct.PaddingMode
CONVENTION = CallingConvention.cutile_python_v2()
FAILED = "failed to compile Tile IR program"
CASES = {}


def case(*arguments):
    """A kernel that is refused, launched with these arguments."""

    def register(function):
        CASES[function.__name__] = ct.kernel(function), arguments
        return function

    return register


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape).to(dtype)


@case(ones(8, dtype=torch.uint8))
def floor_division_of_unsigned_integers(X):
    x = ct.load(X, (0,), (8,))
    ct.store(X, (0,), x // x)


@case(ones(8, dtype=torch.uint32))
def floor_division_of_unsigned_scalars(X):
    x = ct.load(X, (0,), ())
    ct.store(X, (0,), x // (x + x))


@case(ones(8, dtype=torch.int32))
def padding_of_integers_by_infinity(X):
    ct.store(X, (0,), ct.load(X, (0,), (8,), padding_mode=PaddingMode.NEG_INF))


@case(ones(8, dtype=torch.bool))
def padding_of_bools_by_nan(X):
    ct.store(X, (0,), ct.load(X, (0,), (8,), padding_mode=PaddingMode.NAN))


@case(ones(8, dtype=torch.float8_e4m3fn))
def padding_by_an_infinity_that_there_is_not(X):
    ct.store(X, (0,), ct.load(X, (0,), (8,), padding_mode=PaddingMode.POS_INF))


@case(ones(8, dtype=torch.float8_e8m0fnu))
def padding_by_a_sign_that_there_is_not(X):
    ct.store(X, (0,), ct.load(X, (0,), (8,), padding_mode=PaddingMode.NEG_ZERO))


@case(ones(8, dtype=torch.int16), ones(8))
def cast_of_integers_to_exponents(X, Y):
    ct.store(Y, (0,), ct.astype(ct.astype(ct.load(X, (0,), (8,)), ct.float8_e8m0fnu), ct.float32))


@case(ones(8))
def range_of_exponents(X):
    ct.store(X, (0,), ct.astype(ct.arange(8, dtype=ct.float8_e8m0fnu), ct.float32))


@case(ones(8, dtype=torch.int32), ones(8))
def bits_of_an_integer_as_tfloat32(X, Y):
    ct.store(Y, (0,), ct.astype(ct.bitcast(ct.load(X, (0,), (8,)), ct.tfloat32), ct.float32))


@case(ones(4, 2))
def bits_of_tfloat32_as_a_float(X):
    x = ct.astype(ct.load(X, (0, 0), (4, 2)), ct.tfloat32)
    ct.store(X, (0, 0), ct.bitcast(x, ct.float32))


@case(ones(2, 2, 4, 4))
def product_of_matrices_in_four_dimensions(X):
    x = ct.load(X, (0, 0, 0, 0), (2, 2, 4, 4))
    ct.store(X, (0, 0, 0, 0), ct.mma(x, x, x))


@case(ones(2, 2, 4, 4, dtype=torch.int8), ones(2, 2, 4, 4, dtype=torch.int32))
def product_of_integers_in_four_dimensions(X, Y):
    x = ct.load(X, (0, 0, 0, 0), (2, 2, 4, 4))
    ct.store(Y, (0, 0, 0, 0), ct.mma(x, x, ct.load(Y, (0, 0, 0, 0), (2, 2, 4, 4))))


@case(ones(4, 4, 4))
def store_of_a_matrix_to_three_dimensions(X):
    ct.store(X, (0, 0, 0), ct.ones((2, 2), ct.float32))


@case(ones(8, 8), ones(1, dtype=torch.int64))
def extraction_at_a_wide_index(X, Y):
    x = ct.load(X, (0, 0), (8, 8))
    ct.store(X, (0, 0), ct.extract(x, (0, ct.load(Y, (0,), ())), (2, 2)))


@case(ones(8, 8), ones(4, dtype=torch.int64))
def wide_indices(X, Y):
    rows = ct.load(Y, (0,), (4,))
    ct.store(X, (0, 0), ct.load_advanced_indexing(X, (rows, ct.Slice(0, 4))))


@case(ones(8, 8), ones(4, dtype=torch.int8))
def narrow_indices(X, Y):
    rows = ct.load(Y, (0,), (4,))
    ct.store_advanced_indexing(X, (rows, ct.Slice(0, 4)), ct.ones((4, 4), ct.float32))


@case(ones(8, dtype=torch.uint8), ones(8))
def one_element_of_float4(X, Y):
    x = ct.unpack_from_bytes(ct.load(X, (0,), (8,)), ct.float4_e2m1fn)
    ct.store(Y, (0,), ct.astype(ct.extract(x, (0,), (1,)), ct.float32))


@case(ones(8, dtype=torch.uint8), ones(16))
def choice_between_elements_of_float4(X, Y):
    x = ct.unpack_from_bytes(ct.load(X, (0,), (8,)), ct.float4_e2m1fn)
    ct.store(Y, (0,), ct.astype(ct.where(ct.arange(16, dtype=ct.int32) < 3, x, x), ct.float32))


@case(ones(4))
def tile_of_too_many_elements(X):
    tile = ct.broadcast_to(ct.load(X, (0,), (1,)), (2**25,))
    ct.store(X, (0,), ct.extract(tile, (0,), (1,)))


if hasattr(ct, "insert"):  # cuda-tile 1.6, which has rounding modes of casts as well

    @case(ones(8, dtype=torch.bfloat16), ones(8, dtype=torch.float16))
    def cast_between_halves_rounded_down(X, Y):
        ct.store(Y, (0,), ct.astype(ct.load(X, (0,), (8,)), ct.float16, rounding_mode=ct.RoundingMode.RM))


@pytest.mark.parametrize("name", CASES)
def test_kernel_is_refused_as_by_tileiras(name, tmp_path):
    kernel, arguments = CASES[name]
    with pytest.raises(ct.TileCompilerExecutionError) as refused:
        Launcher(Settings(arch="sm_100")).launch(0, (1,), kernel, arguments)
    code, message, location = str(refused.value).splitlines()[:3]
    assert f'"{__file__}", line ' in location
    if find_toolchain() is None:
        pytest.skip("tileiras is not installed")
    unnamed = KernelSignature(signature(kernel, arguments, aligned=True).parameters, CONVENTION, symbol="kernel")
    with pytest.raises(ct.TileCompilerExecutionError) as expected:
        export_kernel(kernel, [unnamed], tmp_path / "kernel", gpu_code="sm_100", output_format="cubin")
    found_code, found = str(expected.value).splitlines()[:2]
    assert code == found_code
    # What it gives no reason for is followed by one.
    assert found.endswith(message) or (found == FAILED and message.startswith(f"{FAILED}: "))


@ct.kernel
def allowed(X, Y, Z, H):
    x = ct.load(X, (0,), (8,), padding_mode=PaddingMode.ZERO)
    ct.store(X, (0,), ct.cdiv(x, x + x) + x % x)
    signed = ct.load(Y, (ct.extract(ct.astype(x, ct.int32), (0,), (1,)).item(),), (8,))
    view = Y.tiled_view((8,), padding_mode=PaddingMode.NAN)  # by which nothing is padded
    view.store((0,), signed // signed)
    z = ct.load(Z, (0, 0, 0), (1, 4, 4))
    ct.store(Z, (0, 0, 0), ct.mma(z, z, z))
    ct.store(H, (0,), ct.astype(ct.astype(ct.load(H, (0,), (8,)), ct.float8_e5m2), ct.float16))
    ct.store(H, (0,), ct.load(H, (0,), (8,), padding_mode=PaddingMode.NEG_INF))


def test_what_tileiras_compiles_is_not_refused(tmp_path):
    y = 4 * ones(8, dtype=torch.int32)
    arguments = (ones(8, dtype=torch.uint8), y, ones(1, 4, 4), ones(8, dtype=torch.float16))
    Launcher(Settings(arch="sm_100")).launch(0, (1,), allowed, arguments)
    if find_toolchain() is None:
        pytest.skip("tileiras is not installed")
    unnamed = KernelSignature(signature(allowed, arguments, aligned=True).parameters, CONVENTION, symbol="kernel")
    export_kernel(allowed, [unnamed], tmp_path / "kernel", gpu_code="sm_100", output_format="cubin")
