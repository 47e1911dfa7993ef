"""Read a file as Python would, or say why it cannot be checked."""

import io
import stat
import tokenize
from collections.abc import Iterable
from pathlib import Path

from tilewright.rules.files.source import UncheckedFiles
from tilewright.rules.finding import Finding

LIMIT = 2_000_000  # bytes: no source that a person wrote comes near


def read(path: Path) -> str | Finding:
    """The text of a file, decoded as its first lines say; a finding where it is no source."""
    if path.suffix == ".ipynb":
        return UncheckedFiles().at(path, "is a notebook, which is not checked: move the operator to a .py file")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
            return UncheckedFiles().at(path, "is no regular file: pass one")
        if status.st_size > LIMIT:
            size = status.st_size / 1e6
            return UncheckedFiles().at(path, f"has {size:.0f} MB; files of more than 2 MB are not checked")
        content = path.read_bytes()
        if b"\0" in content:
            return UncheckedFiles().at(path, "is binary, not Python source")
        # Line ends as they are, so that a fix keeps them.
        return content.decode(encoding_of(content))
    except (UnicodeDecodeError, SyntaxError) as error:
        return UncheckedFiles().at(path, f"cannot be decoded: {error}")
    except OSError as error:
        return UncheckedFiles().at(path, f"cannot be read: {error.strerror}")


def readable(paths: Iterable[Path]) -> dict[Path, str]:
    """The texts of those files that can be read."""
    texts = {path: read(path) for path in paths}
    return {path: text for path, text in texts.items() if isinstance(text, str)}


def encoding_of(content: bytes) -> str:
    """The encoding that the first lines of a file declare; UTF-8 with its mark, if there is one, else UTF-8.

    Raises SyntaxError where it is not known.
    """
    return tokenize.detect_encoding(io.BytesIO(content).readline)[0]
