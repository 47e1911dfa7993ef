"""Step 3: importing the package loads the cuTile backend of the operator."""

from collections.abc import Iterator

from tilewright.cutile.toolchain import INSTALL
from tilewright.cutile.toolchain import is_installed
from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.verify.outcomes import failed
from tilewright.verify.outcomes import ok
from tilewright.verify.outcomes import skipped
from tilewright.verify.session import Session


def problems(operator: Operator) -> Iterator[str]:
    """What is wrong with it, as far as the files show."""
    if operator.declared and operator.loaded:
        return
    remedy = f"run: tilewright register {operator.name}"
    if operator.host.layout == "standalone":
        remedy = f"import {operator.kernel.stem} in {operator.kernel.parent}/__init__.py"
    if operator.declared:
        yield f"importing {operator.host.import_name} does not load {operator.kernel}: {remedy}"
    else:
        yield f"{operator.stub} does not declare {operator.name}: {remedy}"


def run(operator: Operator, session: Session) -> StepOutcome:
    """Ask the imported package."""
    if not is_installed("cuda.tile"):
        return skipped("registration", f"cuda-tile is not installed: {INSTALL}", missing="compiler")
    host, found = operator.host, session.registered(operator)
    if isinstance(found, str):
        return failed("registration", [f"import {host.operators_module} {found}"])
    if "cutile" not in found.backends:
        backends = list(found.backends)
        return failed("registration", [f"the backends of {operator.name} are {backends}: cutile is missing"])
    if operator.template_version and not found.exported:
        return failed("registration", [f"{host.operators_module} does not export {operator.function}: import it there"])
    backends = [backend for backend in found.backends if backend != "default"]  # TileGym's name for the stub
    return ok("registration", ", ".join(backends), backends=backends)
