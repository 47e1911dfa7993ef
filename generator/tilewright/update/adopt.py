"""Find the answers from which the template makes what comes closest to an operator that was written by hand."""

import difflib
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import PurePosixPath
from typing import Any

from tilewright.catalogue.families import Family
from tilewright.catalogue.families import find_family
from tilewright.catalogue.families import read_families
from tilewright.config import ANSWERS
from tilewright.errors import OperatorExistsError
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.host import Host
from tilewright.render import Batch
from tilewright.render import Rendering
from tilewright.render import Source
from tilewright.update.detached import step_of


@dataclass(frozen=True, kw_only=True)
class Closest:
    """The best of the answers that were tried."""

    op: str
    answers: Mapping[str, Any]
    tried: tuple[str, ...]  # questions whose answers were found by trying
    likeness: float  # share of the lines that are the same
    record: bytes


def closest(host: Host, source: Source, given: Mapping[str, Any]) -> Closest:
    """Render the variants of a family, with and without gradient, and compare them with the files that are there.

    Raises:
        OperatorExistsError: It was made with the template already.
        UsageError: There is no kernel at the place where the template would put it.
    """
    op, record = given["op"], PurePosixPath(ANSWERS, f"{given['op']}.yml")
    if (host.root / record).exists():
        raise OperatorExistsError(
            f"{op} was made with the template already",
            expected=f"expected an operator without {record}",
            hint=f"to bring it up to date: tilewright update {op}",
        )
    settled = {**given, "layout": host.layout}
    if host.layout == "standalone":
        settled["package"] = host.package
    family = find_family(given["family"], read_families(source.partials))
    batch, origin = Batch(source.template), source.recorded or str(source.root)
    best: Closest | None = None
    for tried in _candidates(family, settled):
        rendering = batch.render({**settled, **tried}, host.root, source=origin, recorded=False)
        _refuse_without_kernel(host, op, rendering)
        likeness = _likeness(host, rendering)
        if best is None or likeness > best.likeness:
            content = next(file.content for file in rendering.files if file.path == record)
            best = Closest(op=op, answers=rendering.answers, tried=tuple(tried), likeness=likeness, record=content)
    assert best is not None
    return best


def plan_adopt(host: Host, found: Closest) -> ChangeSet:
    """The record of the answers; what differs from what they make is the owner's edit from now on."""
    path = PurePosixPath(ANSWERS, f"{found.op}.yml")
    return ChangeSet(root=host.root, changes=(FileChange(path=path, before=None, after=found.record),))


def _candidates(family: Family, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of the answers that are few enough to be tried."""
    choices: dict[str, Sequence[Any]] = {}
    if family.variants:
        choices["variant"] = [variant.name for variant in family.variants]
    for question in ("backward", "bias"):
        if question in family.questions:
            choices[question] = [False, True]
    open_ = {question: values for question, values in choices.items() if question not in given}
    for values in product(*open_.values()):
        yield dict(zip(open_, values, strict=True))


def _refuse_without_kernel(host: Host, op: str, rendering: Rendering) -> None:
    kernel = next(file.path for file in rendering.files if step_of(file.path, op) == "kernel")
    if not (host.root / kernel).is_file():
        raise UsageError(
            f"there is no {kernel}",
            expected=f"expected the kernel of {op} where the template puts it",
            hint=f"move it there; or have a new operator made: tilewright new {op}",
        )


def _likeness(host: Host, rendering: Rendering) -> float:
    """Share of the lines of the files that both have, which are the same in the same order."""
    same = total = 0
    for file in rendering.files:
        target = host.root / file.path
        if file.shared or not target.is_file():
            continue
        ours, theirs = target.read_bytes().splitlines(), file.content.splitlines()
        blocks = difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
        same += 2 * sum(block.size for block in blocks)
        total += len(ours) + len(theirs)
    return same / total if total else 0.0
