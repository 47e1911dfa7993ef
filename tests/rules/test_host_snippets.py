"""Host functions of valid snippets double their argument on the CPU; those said to give wrong numbers do not."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright.interpret import enabled
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule

torch = pytest.importorskip("torch")
pytest.importorskip("cuda.tile")
load = pytest.importorskip("tests.support.snippets").load

DOUBLING = "def double(x"
RULES = [rule for rule in all_rules() if type(rule).__module__.startswith("tilewright.rules.hosts.")]
VALID = [(rule, number, text) for rule in RULES for number, text in enumerate(rule.VALID) if DOUBLING in text]
INVALID = [
    (rule, number, text)
    for rule in RULES
    if rule.proof is Proof.NUMBERS and rule.code != "TW312"  # which needs a result of another shape
    for number, text in enumerate(rule.INVALID)
    if DOUBLING in text
]


def cases(snippets: list[tuple[Rule, int, Any]]) -> list[Any]:
    return [pytest.param(text, id=f"{rule.code}-{number}") for rule, number, text in snippets]


def tensors() -> list[Any]:
    """Flat, a matrix, transposed, a multiple of every tile, and of half precision; never the same values twice."""
    shapes = [(1500,), (30, 50), (30, 50), (2048,), (1500,)]
    flat, matrix, other, large, half = (torch.rand(shape).cuda() + 1 for shape in shapes)
    return [flat, matrix, other.mT, large, half.half()]


def is_doubled(double: Callable[..., Any], x: Any) -> bool:
    """Whether the function gives 2 * x, as its result or in the tensor that it is given; False where it raises."""
    more = list(inspect.signature(double).parameters.values())[1:]
    given = torch.zeros_like(x) if more and more[0].default is inspect.Parameter.empty else None
    expected = 2 * x  # kept, so that its memory is not what a result is allocated in
    try:
        result = double(x) if given is None else double(x, given)
    except Exception:
        return False
    result = result if given is None else given
    return result.numel() == x.numel() and torch.equal(result.flatten(), expected.flatten())


@pytest.mark.parametrize("text", cases(VALID))
def test_a_valid_host_function_computes_what_it_should(tmp_path: Path, text: str) -> None:
    with enabled():
        double = load(tmp_path, text).double
        assert any(is_doubled(double, x) for x in tensors())


@pytest.mark.parametrize("text", cases(INVALID))
def test_an_invalid_host_function_fails_for_some_tensor(tmp_path: Path, text: str) -> None:
    with enabled():
        double = load(tmp_path, text).double
        assert not all(is_doubled(double, x) for x in tensors())


def test_a_result_of_another_shape_is_filled_in_part_where_nothing_checks_it(tmp_path: Path) -> None:
    rule = next(each for each in RULES if each.code == "TW312")
    with enabled():
        x, out = torch.rand(1500).cuda(), torch.zeros(700).cuda()
        assert torch.equal(load(tmp_path, rule.INVALID[0]).double(x, out), 2 * x[:700])
        for text in rule.VALID:
            with pytest.raises((ValueError, AssertionError)):
                load(tmp_path, text).double(x, out)


def test_an_empty_grid_is_refused(tmp_path: Path) -> None:
    rule = next(each for each in RULES if each.code == "TW308")
    with enabled():
        for text in rule.INVALID:
            with pytest.raises(Exception, match="not 0"):
                load(tmp_path, text).double(torch.rand(0).cuda())
        for text in rule.VALID:
            if "max(1" not in text:
                assert load(tmp_path, text).double(torch.rand(0).cuda()).numel() == 0


def gradients(tmp_path: Path, text: str) -> list[Any]:
    """Gradients of the sum of `x * weight + bias` with regard to its inputs."""
    inputs = [torch.tensor([value], requires_grad=True) for value in (2.0, 3.0, 5.0)]
    load(tmp_path, text).Affine.apply(*inputs).sum().backward()
    return [each.grad.item() for each in inputs]


def test_gradients_in_another_order_are_those_of_other_inputs(tmp_path: Path) -> None:
    rule = next(each for each in RULES if each.code == "TW327")
    assert gradients(tmp_path, rule.VALID[0]) == [3.0, 2.0, 1.0]
    assert gradients(tmp_path, rule.INVALID[0]) == [3.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        gradients(tmp_path, rule.INVALID[1])
