"""Load the snippets of rules, and make what is passed to their kernels.

The docstring of a snippet's kernel says what that is: `Y (M, 1) = sums of the rows of X (M, N) of float16`.
"""

import ast
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

import torch

LENGTHS = {"TILE": 64, "TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "blocks": 8, "N": 100, "M": 100, "K": 100}


def load(tmp_path: Path, text: str) -> ModuleType:
    """Import a snippet that is one file."""
    # In a folder of its own: Python takes a file of the same second and size for the one that it has compiled.
    path = Path(mkdtemp(dir=tmp_path), "snippet.py")
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("snippet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_of(text: str) -> ast.FunctionDef:
    """The kernel of a snippet."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return next(node for node in functions if any("kernel" in ast.unparse(each) for each in node.decorator_list))


def arrays(docstring: str, lengths: Mapping[str, int] = LENGTHS) -> dict[str, torch.Tensor]:
    """The arrays that a docstring names, on the CPU."""
    shared = re.search(r"all \(([^)]*)\)(?: of (\w+))?", docstring)
    named = {name: (shape, dtype) for name, shape, dtype in re.findall(r"(\w+) \(([^)]*)\)(?: of (\w+))?", docstring)}
    if shared:
        named |= dict.fromkeys("ABC", (shared[1], shared[2] or ""))
    found = {}
    for name, (shape, dtype) in named.items():
        sizes = [_length(each, lengths) for each in shape.split(",") if each.strip()]
        found[name] = torch.empty(sizes, dtype=getattr(torch, dtype or "float32", torch.float32))
    return found


def arguments(text: str, lengths: Mapping[str, int] = LENGTHS) -> tuple[str, dict[str, Any]]:
    """Name of the kernel, and what to pass for each parameter, in order."""
    kernel = kernel_of(text)
    given = {**lengths, **arrays(ast.get_docstring(kernel), lengths)}
    return kernel.name, {each.arg: given[each.arg] for each in kernel.args.args}


def _length(text: str, lengths: Mapping[str, int]) -> int:
    return int(eval("*".join(str(lengths.get(each, each)) for each in text.split())))
