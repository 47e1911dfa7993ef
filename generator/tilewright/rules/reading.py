"""Read a file as Python would, or say why it cannot be checked."""

import io
import tokenize
from pathlib import Path

from tilewright.rules.files.source import UncheckedFiles
from tilewright.rules.finding import Finding

LIMIT = 2_000_000  # bytes: no source that a person wrote comes near


def read(path: Path) -> str | Finding:
    """The text of a file, decoded as its first lines say; a finding where it is no source."""
    if path.suffix == ".ipynb":
        return UncheckedFiles().at(path, "is a notebook, which is not checked: move the operator to a .py file")
    try:
        size = path.stat().st_size
        if size > LIMIT:
            return UncheckedFiles().at(path, f"has {size / 1e6:.0f} MB; files of more than 2 MB are not checked")
        content = path.read_bytes()
        if b"\0" in content:
            return UncheckedFiles().at(path, "is binary, not Python source")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        # Line ends as they are, so that a fix keeps them.
        return content.decode(encoding)
    except (UnicodeDecodeError, SyntaxError) as error:
        return UncheckedFiles().at(path, f"cannot be decoded: {error}")
    except OSError as error:
        return UncheckedFiles().at(path, f"cannot be read: {error.strerror}")
