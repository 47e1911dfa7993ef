"""Comments of a file: `ast` drops them."""

import io
import tokenize
from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """One comment with its `#`."""

    line: int
    column: int  # from 1, in characters
    text: str
    alone: bool  # nothing but white space before it


def comments(text: str) -> list[Comment]:
    """All comments of a text that parses."""
    if "#" not in text:
        return []
    return [
        Comment(
            line=token.start[0],
            column=token.start[1] + 1,
            text=token.string,
            alone=not token.line[: token.start[1]].strip(),
        )
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
