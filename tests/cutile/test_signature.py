import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest

torch = pytest.importorskip("torch")
ct = pytest.importorskip("cuda.tile")

from cuda.tile._stub import ListAnnotation  # noqa: E402
from cuda.tile.compilation import CallingConvention  # noqa: E402
from cuda.tile.compilation import ConstantConstraint  # noqa: E402
from cuda.tile.compilation import KernelSignature  # noqa: E402
from cuda.tile.compilation import ScalarConstraint  # noqa: E402
from cuda.tile.compilation import TupleConstraint  # noqa: E402

from tilewright.cutile.signature import signature  # noqa: E402

SUPPORT = Path(__file__).parents[1] / "support"


@ct.kernel
def one(X):
    pass


@ct.kernel
def constant(N: ct.Constant[int]):
    pass


@ct.kernel
def wide(X: ct.IndexedWithInt64, n: ct.ScalarInt64):
    pass


@ct.kernel
def static_shape(X: Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(-1,))]):
    pass


@ct.kernel
def static_list(X: Annotated[list, ListAnnotation(element=ct.ArrayAnnotation(static_shape_dims=(-1,)))]):
    pass


@ct.kernel
def pair(P: tuple[int, int]):
    pass


def array(tensor, *, kernel=one, aligned=True):
    return signature(kernel, (tensor,), aligned=aligned).parameters[0]


def empty(*shape, dtype=torch.float16):
    return torch.empty(shape, dtype=dtype, device="meta")


def test_contiguous_rows_of_a_multiple_of_16_bytes_may_be_vectorised():
    x = array(empty(30, 4096))
    assert x.stride_constant == (None, 1)
    assert x.stride_divisible_by == (8, 1)  # 8 halves are 16 bytes; redundant where the stride is constant
    assert x.shape_divisible_by == (1, 16)  # 4096 is a multiple of 16, 30 is not
    assert x.base_addr_divisible_by == 16


def test_ragged_rows_carry_no_assumption():
    x = array(empty(7, 1021))
    assert x.stride_divisible_by == (1, 1)
    assert x.shape_divisible_by == (1, 1)


def test_divisor_of_strides_depends_on_the_element_size():
    assert array(empty(2, 8, dtype=torch.float32)).stride_divisible_by == (4, 1)
    assert array(empty(2, 8, dtype=torch.float64)).stride_divisible_by == (2, 1)
    assert array(empty(2, 8, dtype=torch.int8)).stride_divisible_by == (1, 1)


def test_unaligned_signature_does_not_know_the_address():
    assert array(empty(64, 64), aligned=False).base_addr_divisible_by == 1


def test_view_that_starts_off_a_16_byte_boundary_is_not_aligned():
    assert array(empty(100)[1:]).base_addr_divisible_by == 1
    assert array(empty(100)[8:]).base_addr_divisible_by == 16


def test_transposed_tensor_has_its_constant_stride_first():
    assert array(empty(64, 32).t()).stride_constant == (1, None)


def test_expanded_tensor_may_alias_itself():
    assert array(empty(4, 1).expand(4, 8)).may_alias_internally
    assert not array(empty(4, 8)).may_alias_internally


def test_more_than_five_dimensions_carry_no_assumption():
    x = array(empty(16, 16, 16, 16, 16, 16))
    assert x.shape_divisible_by == (1,) * 6
    assert x.stride_constant == (None,) * 6


def test_annotated_lengths_are_constant():
    assert array(empty(4, 100), kernel=static_shape).shape_constant == (None, 100)


def test_more_than_int32_needs_an_annotation():
    with pytest.raises(OverflowError, match="IndexedWithInt64"):
        array(empty(2**31))
    big = signature(wide, (empty(2**31), 2**40), aligned=True).parameters
    assert big[0].index_dtype == ct.int64
    assert big[1] == ScalarConstraint(ct.int64)


@pytest.mark.parametrize(("value", "dtype"), [(True, ct.bool_), (3, ct.int32), (0.5, ct.float32)])
def test_scalars_have_one_dtype_each(value, dtype):
    assert signature(one, (value,), aligned=True).parameters == (ScalarConstraint(dtype),)


def test_annotated_constant_is_part_of_the_signature():
    assert signature(constant, (1024,), aligned=True).parameters == (ConstantConstraint(1024),)


def test_shape_of_a_tensor_is_no_constant_until_it_is_a_tuple():
    # A launch says: Could not interpret object of type 'torch.Size' as a constant.
    with pytest.raises(TypeError, match=r"'torch\.Size' as a constant"):
        signature(constant, (torch.Size((2, 3)),), aligned=True)
    expected = TupleConstraint([ConstantConstraint(2), ConstantConstraint(3)])
    assert signature(constant, ((2, 3),), aligned=True).parameters == (expected,)


def test_tuple_is_taken_item_by_item():
    expected = TupleConstraint([ScalarConstraint(ct.int32), ScalarConstraint(ct.float32)])
    assert signature(one, ((1, 2.0),), aligned=True).parameters == (expected,)


def test_list_has_what_holds_for_all_of_its_arrays():
    x = array([empty(4, 16), empty(5, 24)])
    assert x.element.stride_constant == (None, 1)
    assert x.element.stride_divisible_by == (8, 1)
    assert x.element.shape_divisible_by == (1, 1)
    assert not x.element.may_alias_internally


def test_list_of_contiguous_and_transposed_arrays_has_no_constant_stride():
    assert array([empty(4, 16), empty(16, 4).t()]).element.stride_constant == (None, None)


def test_static_axes_of_a_list_must_agree():
    with pytest.raises(ValueError, match=r"vary in the static shape of axis 1: \[100, 101\]"):
        array([empty(4, 100), empty(4, 101)], kernel=static_list)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "empty list"),
        ([1], "holds arrays only, not int"),
        ([empty(4), empty(4, 4)], "vary in rank or dtype"),
        ([empty(4), empty(4, dtype=torch.int8)], "vary in rank or dtype"),
    ],
)
def test_lists_that_a_launch_cannot_pass_are_refused(value, complaint):
    with pytest.raises(TypeError, match=complaint):
        array(value)


@pytest.mark.parametrize("value", ["text", None, torch.float32, ct.float32])
def test_constants_are_numbers(value):
    with pytest.raises(TypeError, match="a constant of a kernel is a bool, int or float"):
        signature(constant, (value,), aligned=True)


def test_annotated_integer_must_fit_64_bits():
    with pytest.raises(OverflowError, match="does not fit int64"):
        signature(wide, (empty(4), 2**63), aligned=True)


def test_tuple_parameter_takes_tuples_only():
    with pytest.raises(TypeError, match="takes a tuple where the launch passes int"):
        signature(pair, (1,), aligned=True)


def test_wrong_number_of_arguments_is_refused():
    with pytest.raises(TypeError, match="takes 1 arguments, the launch passes 2"):
        signature(one, (1, 2), aligned=True)


@pytest.mark.parametrize("value", ["text", None, torch.complex64])
def test_what_a_launch_cannot_pass_is_refused(value):
    with pytest.raises(TypeError):
        signature(one, (value,), aligned=True)


def test_pairs_of_float4_are_refused_in_the_words_of_cuda_tile():
    # tests/support/refused_launches.py has cuda-tile say them.
    with pytest.raises(TypeError, match=r"^Array dtypes with multiple lanes are not supported: .*\npass tensor.view"):
        signature(one, (empty(4, dtype=torch.float4_e2m1fn_x2),), aligned=True)


def test_scalar_beyond_int32_is_refused():
    with pytest.raises(OverflowError, match="ScalarInt64"):
        signature(one, (2**31,), aligned=True)


@pytest.mark.parametrize(
    ("kernel", "argument", "convention"),
    [
        (one, empty(4, 8), CallingConvention.cutile_python_v1()),
        (one, empty(1, 8), CallingConvention.cutile_python_v2()),
        (one, [empty(4), empty(4)], CallingConvention.cutile_python_v1()),
        (one, [empty(1), empty(1)], CallingConvention.cutile_python_v2()),
        (pair, (1, 2), CallingConvention.cutile_python_v2()),
    ],
)
def test_first_convention_that_has_what_is_needed(kernel, argument, convention):
    """As a launch does: only then it finds in the compiler's cache what was compiled before."""
    found = signature(kernel, (argument,), aligned=True)
    assert found.calling_convention == convention
    if convention != CallingConvention.cutile_python_v1():
        with pytest.raises(ValueError, match="convention"):
            KernelSignature(found.parameters, CallingConvention.cutile_python_v1())


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler to build the stand-in of the driver")
def test_same_as_the_compiler_infers(tmp_path):
    """The compiler's own inference needs a driver; one that does nothing is enough for tensors on "meta"."""
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SUPPORT / "stub_libcuda.c"], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    script = SUPPORT / "compare_signatures.py"
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "500 signatures compared\n", done.stdout + done.stderr
