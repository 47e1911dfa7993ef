"""Find faults of kernels that a GPU does not report: `checked` runs a launch, `unwritten` tells of torch.empty."""

from tilewright.interpret.check.findings import CheckError
from tilewright.interpret.check.findings import Finding
from tilewright.interpret.check.findings import Kind
from tilewright.interpret.check.unwritten import fresh
from tilewright.interpret.check.unwritten import written

__all__ = ["CheckError", "Finding", "Kind", "fresh", "written"]
