"""Where the files of one operator are, and under which names Python imports them."""

from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.model.host import Host


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator of a host; paths are relative to the host's root and need not exist."""

    name: str
    host: Host
    stub: PurePosixPath
    kernel: PurePosixPath
    test: PurePosixPath
    benchmark: PurePosixPath
    registered: bool = True  # in TileGym: the shared files know it
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
