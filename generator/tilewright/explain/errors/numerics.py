"""Numbers: results that are not those of the reference."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

NUMERICS = (
    Entry(
        name="not-a-number",
        title="NaN or inf where the reference has a number",
        pattern=r"(Greatest|Absolute|Relative|absolute|relative) difference: (nan|inf)\b|max diff\s*[=:]\s*(nan|inf)"
        r"|Expected \S+ but got (nan|-?inf)\b|unexpected (NaN|inf)",
        causes=(
            Cause(
                what="Padding reaches a reduction or an exponential",
                tell="lengths that are multiples of the tile work: give ct.load a padding_mode",
            ),
            Cause(
                what="A row is masked altogether: exp(-inf - -inf) is NaN",
                tell="the rows with NaN are those whose elements are all masked",
            ),
            Cause(
                what="Half precision overflows at 65504",
                tell="bfloat16 and float32 work, float16 does not: compute in float32",
            ),
            Cause(
                what="The result was never written",
                tell="whole blocks are wrong, and others in the next run: `pytest --tile-check` names them",
            ),
        ),
        wrong="""
        x = ct.load(X, (i, 0), (1, TILE))
        p = ct.exp(x - ct.max(x, axis=1, keepdims=True))
        """,
        right="""
        x = ct.load(X, (i, 0), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        p = ct.exp(x - ct.max(x, axis=1, keepdims=True))
        """,
        rules=("TW210", "TW211", "TW216", "TW230"),
        samples=("Greatest absolute difference: nan at index (0,) (up to 1e-05 allowed)", "max diff = nan"),
    ),
    Entry(
        name="not-close",
        title="Numbers that differ from the reference by more than the tolerance",
        pattern=r"(Tensor-likes|Scalars) are not (close|equal)|Validation (FAIL|ÉCHOUÉE)|max diff\s*[=:]"
        r"|[Mm]ismatched elements",
        causes=(
            Cause(
                what="The algorithm is wrong at a border: padding, or an index of the last tile",
                tell="wrong elements lie in the last tile of an axis, and lengths that are multiples of it work",
            ),
            Cause(
                what="An element's index stands where a tile's belongs, or the grid counts other blocks",
                tell="whole blocks are wrong from the second on, by as much as the values themselves",
            ),
            Cause(
                what="Sums are computed in half precision",
                tell="errors grow with the length of the sum, and are everywhere: accumulate in float32",
            ),
            Cause(
                what="The tolerance is below what rounding costs",
                tell="all errors are a few units in the last place, whatever the length: raise it for this dtype",
            ),
        ),
        wrong="""
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)
        """,
        right="""
        tolerance = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 2e-2}[actual.dtype]
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
        """,
        rules=("TW201", "TW210", "TW230", "TW231", "TW301", "TW412"),
        samples=(
            "AssertionError: Tensor-likes are not close!\n\nMismatched elements: 4 / 4 (100.0%)\n"
            "Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)",
            "Tensor-likes are not equal!",
            "Validation FAIL: max diff = 0.25",
        ),
        general=True,
    ),
    Entry(
        name="shape-of-result",
        title="A result of another shape than the reference",
        pattern=r"The values for attribute 'shape' do not match",
        causes=(
            Cause(
                what="An axis that is reduced was kept, or dropped",
                tell="the shapes differ by an axis of length 1: follow keepdim of the operator",
            ),
            Cause(what="The result was allocated with a padded length", tell="a length is a multiple of the tile"),
        ),
        wrong="""
        out = torch.empty((ct.cdiv(n, TILE) * TILE,), dtype=x.dtype, device=x.device)
        """,
        right="""
        out = torch.empty((n,), dtype=x.dtype, device=x.device)
        """,
        samples=("The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([4]).",),
    ),
    Entry(
        name="dtype-of-result",
        title="A result of another dtype than the reference",
        pattern=r"The values for attribute 'dtype' do not match",
        causes=(
            Cause(
                what="The reference computes in float32 and does not convert back",
                tell="the expected dtype is wider than that of the input: add .to(x.dtype)",
            ),
            Cause(what="The result was allocated without dtype=", tell="the actual one is torch.float32"),
        ),
        wrong="""
        out = torch.empty(x.shape, device=x.device)
        """,
        right="""
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        """,
        samples=("The values for attribute 'dtype' do not match: torch.float32 != torch.float16.",),
    ),
    Entry(
        name="strides-of-result",
        title="A result with other strides than the reference",
        pattern=r"The values for attribute 'stride\(\)' do not match",
        causes=(
            Cause(
                what="PyTorch keeps the order of dimensions of its input, the operator returns a contiguous result",
                tell="the test passes a transposed tensor: say check_stride=False if the operator promises nothing",
            ),
            Cause(
                what="The result should keep the order of dimensions",
                tell="PyTorch's documentation promises it: allocate with torch.empty_like(x)",
            ),
        ),
        wrong="""
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        """,
        right="""
        out = torch.empty_like(x)
        """,
        samples=("The values for attribute 'stride()' do not match: (1, 2) != (2, 1).",),
    ),
)
