"""Find the template of any version: in this package, among its archives, or where an operator came from."""

import io
import tarfile
import tempfile
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Self

from tilewright.catalogue.data_file import read_data
from tilewright.config.versions import is_same
from tilewright.config.versions import parsed
from tilewright.config.versions import tag
from tilewright.errors import MissingError
from tilewright.render import Batch
from tilewright.render import Source
from tilewright.update import git

RELEASES = Path(__file__).with_name("releases")


class Templates:
    """The templates that one update needs, each unpacked and read once; a context that removes them again."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._cleanup = ExitStack()
        self._batches: dict[tuple[str, str], Batch] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    @cached_property
    def own_version(self) -> str:
        """The version of the template that belongs to this package."""
        return own_version(self._source)

    def batch(self, version: str, origin: str, host: Path) -> Batch:
        """The template of a version; `origin` is where an operator's record says that it is.

        Raises:
            MissingError: It is neither here nor there.
        """
        is_own = is_same(version, self.own_version)
        key = (version, "" if is_own else origin)
        if key not in self._batches:
            self._batches[key] = Batch(self._source.template if is_own else self._folder(version, origin, host))
        return self._batches[key]

    def _folder(self, version: str, origin: str, host: Path) -> Path:
        for repository in (host / origin, self._source.root) if origin else (self._source.root,):
            for name in dict.fromkeys((version, tag(version))):
                content = _from_history(repository, name)
                if content is not None:
                    return self._unpack(content)
        archive = RELEASES / f"{tag(version)}.tar.xz"
        if archive.is_file():
            return self._unpack(archive.read_bytes())
        content = self._from_remote(origin, tag(version))
        if content is not None:
            return self._unpack(content)
        raise MissingError(
            f"the template {tag(version)} is neither in tilewright {self.own_version} nor in {origin or 'its origin'}",
            expected="expected a released version, or a repository that has the commit",
            hint=f"get the history where it is a checkout: git -C {origin or '.'} fetch --tags --unshallow"
            if parsed(version)
            else "record the last version before it: _commit in .tilewright/ops",
        )

    def _from_remote(self, origin: str, name: str) -> bytes | None:
        from copier._vcs import get_repo

        url = get_repo(origin) or origin  # gh:owner/repository and git+https://... are ways of copier's to name one
        if not git.is_installed() or not ("://" in url or url.startswith("git@")):
            return None
        clone = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="tilewright-")))
        done = git.run(None, "clone", "-q", "--bare", "--depth=1", "--branch", name, "--", url, str(clone), check=False)
        return None if done.returncode else _from_history(clone, name)

    def _unpack(self, content: bytes) -> Path:
        folder = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="tilewright-")))
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(folder, filter="data")
        return folder / "template"


def own_version(source: Source) -> str:
    """The version that a template says it is, as in a record."""
    return tag(str(read_data(source.template / "copier.yml")["template_version"]["default"]))


def _from_history(repository: Path, name: str) -> bytes | None:
    """The template as of a tag or commit of a local repository; None if it has no such commit, or is none."""
    if not git.is_installed() or not repository.is_dir():
        return None
    paths = ("template/copier.yml", "template")  # the first tells it from a folder of another project
    done = git.run(repository, "archive", "--format=tar", name, *paths, check=False)
    return None if done.returncode else done.stdout
