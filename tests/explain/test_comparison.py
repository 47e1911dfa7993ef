"""What is said of tensors that differ."""

import pytest

torch = pytest.importorskip("torch")

from tilewright.explain.comparison import compare  # noqa: E402
from tilewright.explain.summary import lines  # noqa: E402


def values(*shape, dtype=torch.float32):
    """Numbers between 1 and 2, the same in each run."""
    count = torch.Size(shape).numel()
    return (1 + torch.arange(count, dtype=torch.float64).mul(0.7548776662).frac()).reshape(shape).to(dtype)


def compared(actual, expected, rtol=1e-5, atol=1e-5):
    return compare(actual, expected, rtol=rtol, atol=atol)


def test_errors_are_those_of_arithmetic_by_hand():
    found = compared(torch.tensor([1.0, 2.5, 4.0, 7.0]), torch.tensor([1.0, 2.0, 4.0, 8.0]))
    assert (found.mismatched, found.compared, found.unexpected) == (2, 4, 0)
    assert (found.max_absolute, found.mean_absolute) == (1.0, 0.375)
    assert (found.max_relative, found.mean_relative) == (0.25, 0.09375)
    assert [(w.index, w.actual, w.expected) for w in found.worst] == [((3,), 7.0, 8.0), ((1,), 2.5, 2.0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_few_units_in_the_last_place_are_rounding(dtype):
    expected = values(100, 30, dtype=dtype)
    found = compared(expected * (1 + 3 * torch.finfo(dtype).eps), expected, rtol=0, atol=0)
    assert found.mismatched == 3000
    assert found.verdict.startswith("rounding: at most")


@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "float16 or tfloat32"), (torch.bfloat16, "bfloat16")])
def test_errors_of_a_lower_precision_are_named(dtype, name):
    expected = values(100, 30)
    assert compared(expected.to(dtype).float(), expected).verdict.endswith(f"as if a step were computed in {name}")


def test_values_near_zero_do_not_make_rounding_an_error_of_the_algorithm():
    expected = values(1000) - 1.5
    actual = expected + 3e-7
    assert compared(actual, expected, rtol=1e-6, atol=0).verdict.startswith("rounding: ")


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (
            lambda x: x.index_fill(0, torch.tensor(5), torch.nan),
            "algorithm: NaN or inf where the reference has a number",
        ),
        (lambda x: x.index_fill(0, torch.tensor([5, 6]), 0.0), "algorithm: the wrong elements are all 0"),
        (lambda x: x * 0.5, "algorithm: the wrong elements are 0.5 times the reference"),
        (lambda x: x.mT, "algorithm: the result is the transpose of the reference"),
        (lambda x: x.roll(1, 0), "algorithm: errors of"),
    ],
)
def test_errors_of_the_algorithm(change, verdict):
    expected = values(40, 40)
    assert compared(change(expected), expected).verdict.startswith(verdict)


def test_a_number_where_the_reference_has_none():
    expected = torch.tensor([torch.nan, 1.0])
    found = compared(torch.tensor([1.0, 1.0]), expected)
    assert (found.unexpected, found.mismatched) == (1, 1)
    assert found.verdict == "algorithm: the reference has NaN or inf where the result has another value"


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        (
            (slice(None), slice(1024, None)),
            "only at indices 1024 to 1336 of axis 1 (length 1337): the last tile, which hangs over",
        ),
        ((slice(None), slice(1000, None)), "only at indices 1000 to 1336 of axis 1 (length 1337): its end"),
        ((slice(None), slice(0, 64)), "only at indices 0 to 63 of axis 1 (length 1337): its beginning"),
        ((slice(None), 17), "only at index 17 of axis 1 (length 1337)"),
        ((5,), "only at index 5 of axis 0 (length 8)"),
        ((slice(None), slice(0, None, 128)), "only at the first index of blocks of 128 along axis 1: their edges"),
        ((slice(None), slice(127, None, 128)), "only at the last index of blocks of 128 along axis 1: their edges"),
    ],
)
def test_where_wrong_elements_are(wrong, place):
    expected = values(8, 1337)
    actual = expected.clone()
    actual[wrong] += values(8, 1337)[wrong].sqrt()
    assert compared(actual, expected).places == (place,)


def test_whole_blocks_that_are_wrong():
    expected = values(1337)
    actual = expected.clone()
    actual[128:256] += 1
    actual[512:640] += 1
    (place,) = compared(actual, expected).places
    assert place == "in whole blocks of 128 along axis 0: 2 of 10 are wrong"


def test_a_part_of_a_tensor_that_was_read_as_one_row():
    expected = values(3, 700)
    actual = expected.clone()
    actual.view(-1)[600:1500] += actual.view(-1)[600:1500].sqrt()
    assert compared(actual, expected).places == (
        "only at indices 600 to 1499 of the tensor read as one row (length 2100)",
    )


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_small_tensors(shape):
    found = compared(torch.full(shape, 2.0), torch.ones(shape))
    assert found.mismatched == torch.Size(shape).numel()
    assert found.compared == torch.Size(shape).numel()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool])
def test_dtypes_without_rounding(dtype):
    expected = torch.zeros(9, dtype=dtype)
    actual = expected.clone()
    actual[3] = 1
    found = compared(actual, expected, rtol=0, atol=0)
    assert (found.mismatched, found.verdict) == (1, "algorithm: the values differ")


def test_shapes_that_differ():
    with pytest.raises(ValueError, match=r"shapes differ: \(2,\) and \(3,\)"):
        compared(torch.zeros(2), torch.zeros(3))


def test_the_summary_is_short_however_large_the_tensors_are():
    text = "\n".join(lines(compared(torch.zeros(500, 500), values(500, 500))))
    assert len(text) < 600
    assert text.splitlines()[1] == "250000 of 250000 elements differ (float32 of shape (500, 500))"
    assert text.count("worst: ") == 3
