"""Where the files of one operator are, and under which names Python imports them."""

from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.model.host import Host


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator of a host; a path is where the file is, or where it belongs if there is none."""

    name: str  # key of `@dispatch`
    function: str  # what `@dispatch` decorates
    host: Host
    stub: PurePosixPath
    kernel: PurePosixPath
    test: PurePosixPath
    benchmark: PurePosixPath
    declared: bool = True  # there is a dispatch stub
    loaded: bool = True  # importing the package imports the kernel module
    template_version: str = ""  # empty: written by hand
    skip: dict[str, str] = field(default_factory=dict)  # steps that do not apply, and why

    def path(self, relative: PurePosixPath) -> Path:
        """Absolute path of one of the operator's files."""
        return self.host.root / relative

    @property
    def import_paths(self) -> tuple[Path, ...]:
        """Folders that Python must search to import the operator and its tests."""
        root = self.host.root
        return (root / "src", root) if self.host.package.startswith("src/") else (root,)

    @staticmethod
    def module(relative: PurePosixPath) -> str:
        """Name under which Python imports a file of the operator."""
        return ".".join(relative.with_suffix("").parts).removeprefix("src.").removesuffix(".__init__")
