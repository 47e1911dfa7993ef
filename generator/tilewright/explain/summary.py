"""The lines that a failed comparison of tensors is summed up in."""

from collections.abc import Iterator

from tilewright.explain.comparison import Comparison


def lines(found: Comparison) -> Iterator[str]:
    """The verdict first, then how large the errors are, where they are, and the worst elements."""
    yield found.verdict
    count = f"{found.mismatched} of {found.compared} elements differ ({found.dtype} of shape {found.shape})"
    yield count + (f", {found.unexpected} are NaN or inf on one side" if found.unexpected else "")
    yield (
        f"absolute error: largest {found.max_absolute:.3g}, mean {found.mean_absolute:.3g}; "
        f"relative error: largest {found.max_relative:.3g}, mean {found.mean_relative:.3g}"
    )
    for place in found.places:
        yield f"where: {place}"
    for worst in found.worst:
        yield f"worst: {worst.index} is {worst.actual:.6g}, expected {worst.expected:.6g}"
