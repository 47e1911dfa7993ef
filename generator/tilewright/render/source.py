"""Locate the template: bundled in the wheel, or in the checkout that this package runs from."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import MissingError

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One copy of the template and of the operators rendered from it."""

    root: Path
    recorded: str | None  # where `copier update` will find it; None: at the root

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
        return Source(root=bundled, recorded=_published())
    checkout = PACKAGE.parents[1]
    if (checkout / "template" / "copier.yml").is_file():
        return Source(root=checkout, recorded=None)
    raise MissingError(
        f"no template beside {PACKAGE}",
        expected="expected a wheel that carries it, or a checkout of tilewright",
        hint="install again: pip install --force-reinstall tilewright",
    )


def _published() -> str | None:
    """The repository that the wheel names: an installed package has no history that copier could update from."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import metadata

    try:
        urls = metadata("tilewright").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Repository")
