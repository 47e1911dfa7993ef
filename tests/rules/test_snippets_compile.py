"""Valid kernels compile, and invalid ones that the compiler is said to refuse are refused; the others compile too."""

import io
from pathlib import Path
from typing import Any

import pytest

from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule

ct = pytest.importorskip("cuda.tile")
pytest.importorskip("torch")
snippets = pytest.importorskip("tests.support.snippets")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
RULES = [rule for rule in all_rules() if type(rule).__module__.startswith("tilewright.rules.kernel.")]
VALID = [(rule, text) for rule in RULES for text in rule.VALID]
INVALID = [(rule, text) for rule in RULES for text in rule.INVALID]


def cases(found: list[tuple[Rule, Any]]) -> list[Any]:
    return [pytest.param(rule, text, id=f"{rule.code}-{number}") for number, (rule, text) in enumerate(found)]


def compile_for(tmp_path: Path, text: str, architecture: str | None) -> None:
    """Compile the kernel of a snippet; without an architecture by the front end only."""
    from cuda.tile.compilation import export_kernel

    from tilewright.cutile.signature import signature

    name, values = snippets.arguments(text)
    kernel = getattr(snippets.load(tmp_path, text), name)
    kind = "cubin" if architecture else "tileir_bytecode"
    one = signature(kernel, list(values.values()), aligned=True)
    export_kernel(kernel, [one], io.BytesIO(), gpu_code=architecture or ARCHITECTURES[-1], output_format=kind)


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
