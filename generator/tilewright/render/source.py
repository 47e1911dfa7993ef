"""Locate the template: bundled in the wheel, or in the checkout that this package runs from."""

import json
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import MissingError

NAME = "tilewright"  # of the package; as the origin of an operator: nothing but the package is known
PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One copy of the template and of the operators rendered from it."""

    root: Path
    recorded: str | None  # as the origin of operators; None: the root

    @property
    def template(self) -> Path:
        """The folder that copier renders."""
        return self.root / "template"

    @property
    def partials(self) -> Path:
        """Families and what they share."""
        return self.template / "_partials"

    @property
    def reference_operators(self) -> Path:
        """The operators that are shipped as filled-in examples."""
        return self.root / "reference_ops"

    @property
    def changelog(self) -> Path:
        """What changed from version to version."""
        return self.root / "CHANGELOG.md"


def locate() -> Source:
    """The template that belongs to this version of the package."""
    bundled = PACKAGE / "_bundled"
    if bundled.is_dir():
        return Source(root=bundled, recorded=_origin())
    checkout = PACKAGE.parents[1]
    if (checkout / "template" / "copier.yml").is_file():
        return Source(root=checkout, recorded=None)
    raise MissingError(
        f"no template beside {PACKAGE}",
        expected="expected a wheel that carries it, or a checkout of tilewright",
        hint="install again: pip install --force-reinstall tilewright",
    )


def _origin() -> str:
    """The repository that an installed package comes from, as copier and pip name it; else the name of the package.

    pip records what it was told to install in `direct_url.json`: https://packaging.python.org/specifications/direct-url
    """
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution

    try:
        direct = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        direct = {}
    return f"git+{direct['url']}" if direct.get("vcs_info", {}).get("vcs") == "git" else NAME
