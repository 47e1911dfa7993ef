"""The repository that operators are added to: its layout, package and paths."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Layout = Literal["standalone", "tilegym"]


@dataclass(frozen=True, kw_only=True)
class Host:
    """One host repository."""

    root: Path
    layout: Layout
    package: str  # folder of the operators below the root: "my_ops", "src/my_ops"; "src/tilegym" for TileGym

    @property
    def import_name(self) -> str:
        """Name under which Python imports the package."""
        return self.package.removeprefix("src/").replace("/", ".")

    @property
    def operators_module(self) -> str:
        """Module from which users import an operator."""
        return "tilegym.ops" if self.layout == "tilegym" else self.import_name
