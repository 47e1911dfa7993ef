"""Put the template of a release beside this package: python -m tilewright.update.pack v0.1.0 [COMMIT]."""

import io
import lzma
import sys
import tarfile
from pathlib import Path

from tilewright.render import locate
from tilewright.update import git
from tilewright.update.templates import RELEASES


def pack(repository: Path, commit: str) -> bytes:
    """The template as of a commit, the same bytes whoever packs it."""
    exported = git.run(repository, "archive", "--format=tar", commit, "template").stdout
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(exported)) as archive,
        lzma.open(packed, "wb", preset=9) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as target,
    ):
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mode = member.type, member.size, member.mode & 0o755
            target.addfile(plain, archive.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def main() -> None:
    """Pack one release; the commit is that of its tag, unless it is named."""
    version, commit = (*sys.argv[1:], sys.argv[-1])[:2]
    RELEASES.mkdir(exist_ok=True)
    (RELEASES / f"{version}.tar.xz").write_bytes(pack(locate().root, commit))


if __name__ == "__main__":
    main()
