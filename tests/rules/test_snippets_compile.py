"""Valid kernels compile, and invalid ones that the compiler is said to refuse are refused; the others compile too.

The docstring of a snippet's kernel says what is passed: `Y (M, 1) = sums of the rows of X (M, N) of float16`.
"""

import ast
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule

ct = pytest.importorskip("cuda.tile")
torch = pytest.importorskip("torch")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
LENGTHS = {"TILE": 64, "TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "blocks": 8, "N": 100, "M": 100, "K": 100}
RULES = [rule for rule in all_rules() if type(rule).__module__.startswith("tilewright.rules.kernel.")]
VALID = [(rule, text) for rule in RULES for text in rule.VALID]
INVALID = [(rule, text) for rule in RULES for text in rule.INVALID]


def cases(snippets: list[tuple[Rule, Any]]) -> list[Any]:
    return [pytest.param(rule, text, id=f"{rule.code}-{number}") for number, (rule, text) in enumerate(snippets)]


def length(text: str) -> int:
    return int(eval("*".join(str(LENGTHS.get(each, each)) for each in text.split())))


def arrays(docstring: str) -> dict[str, Any]:
    """The arrays that a docstring names, on the CPU."""
    shared = re.search(r"all \(([^)]*)\)(?: of (\w+))?", docstring)
    named = {name: (shape, dtype) for name, shape, dtype in re.findall(r"(\w+) \(([^)]*)\)(?: of (\w+))?", docstring)}
    if shared:
        named |= dict.fromkeys("ABC", (shared[1], shared[2] or ""))
    found = {}
    for name, (shape, dtype) in named.items():
        lengths = [length(each) for each in shape.split(",") if each.strip()]
        found[name] = torch.empty(lengths, dtype=getattr(torch, dtype or "float32", torch.float32))
    return found


def load(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "snippet.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("snippet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(text: str) -> tuple[str, list[Any]]:
    """Name of the kernel, and what to pass for each parameter."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    kernel = next(node for node in functions if any("kernel" in ast.unparse(each) for each in node.decorator_list))
    given = arrays(ast.get_docstring(kernel))
    values = [given[each.arg] if each.arg in given else LENGTHS[each.arg] for each in kernel.args.args]
    return kernel.name, values


def compile_for(tmp_path: Path, text: str, architecture: str | None) -> None:
    """Compile the kernel of a snippet; without an architecture by the front end only."""
    from cuda.tile.compilation import export_kernel

    from tilewright.cutile.signature import signature

    name, values = arguments(text)
    kernel = getattr(load(tmp_path, text), name)
    kind = "cubin" if architecture else "tileir_bytecode"
    one = signature(kernel, values, aligned=True)
    export_kernel(kernel, [one], io.BytesIO(), gpu_code=architecture, output_format=kind)


@pytest.mark.parametrize(("rule", "text"), cases(VALID))
def test_the_front_end_accepts_a_valid_kernel(tmp_path: Path, rule: Rule, text: str) -> None:
    compile_for(tmp_path, text, None)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("rule", "text"), cases(VALID))
def test_a_valid_kernel_compiles(tmp_path: Path, rule: Rule, text: str, architecture: str) -> None:
    compile_for(tmp_path, text, architecture)


@pytest.mark.parametrize(("rule", "text"), cases([each for each in INVALID if each[0].proof is Proof.COMPILER]))
def test_what_the_compiler_is_said_to_refuse_is_refused(tmp_path: Path, rule: Rule, text: str) -> None:
    with pytest.raises((ct.TileError, TypeError)):
        compile_for(tmp_path, text, ARCHITECTURES[-1])


@pytest.mark.parametrize(("rule", "text"), cases([each for each in INVALID if each[0].proof is not Proof.COMPILER]))
def test_the_front_end_accepts_what_is_wrong_otherwise(tmp_path: Path, rule: Rule, text: str) -> None:
    compile_for(tmp_path, text, None)
