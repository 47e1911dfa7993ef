"""The nodes of a function, listed once for all rules."""

import ast
import functools


@functools.lru_cache(maxsize=512)
def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node and everything below it, as `ast.walk` gives them."""
    return tuple(ast.walk(node))
