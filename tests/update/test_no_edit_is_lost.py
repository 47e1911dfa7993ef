"""Random edits, changes of the template and kills: no line that an owner wrote disappears."""

import random
import shutil

import pytest

from tests.support.kills import run_and_kill
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import make_host
from tests.support.tiny_template import write_release
from tests.update.edits import edit
from tests.update.edits import triple
from tilewright.changes import recover
from tilewright.config import find_host
from tilewright.update import abort
from tilewright.update import carry_out
from tilewright.update import continue_
from tilewright.update import plan_update
from tilewright.update import progress

FOLDER = "my_ops/some_op"
FILES = 5
LONGEST = 45  # steps of an update of so few files, about


def files_of_case(generator):
    """Per file what the old template has, what its owner has and what the new template has, under its new name."""
    files = {}
    for number in range(FILES):
        base, _, template = triple(generator)
        owner = None
        if generator.random() < 0.9:
            lines = edit(base.decode().splitlines(), generator, f"mine_{number}")
            owner = "".join(f"{line}\n" for line in lines).encode()
        renamed = generator.random() < 0.2
        files[f"file_{number}.py"] = base, owner, template, f"new_{number}.py" if renamed else f"file_{number}.py"
    return files


def lines_of(owner, number):
    """The lines that only the owner can have written."""
    return [line for line in (owner or b"").splitlines() if line.startswith(f"mine_{number}".encode())]


def unchanged(now, before):
    """Whether a kill came before the first step; a lock that it left is nothing."""
    return {path: content for path, content in now.items() if not path.startswith(".tilewright/.update/")} == before


def run_case(folder, seed):
    generator = random.Random(seed)
    files = files_of_case(generator)
    root = folder / "host"
    source = write_release(folder / "template", "1.0.0", {path: each[0] for path, each in files.items()})
    make_host(root, source, {"op": "some_op"})
    for path, (_, owner, _, _) in files.items():
        target = root / FOLDER / path
        target.write_bytes(owner) if owner is not None else target.unlink()
    (root / "unrelated.txt").write_text("there is something to commit")
    commit(root)
    before = contents(root)
    new = {name: template for _, _, template, name in files.values() if template is not None}
    write_release(folder / "template", "2.0.0", new)
    strategy = generator.choice(("inline", "inline", "rej", "ours"))
    plan = plan_update(find_host(root), source, ["some_op"], strategy=strategy)
    died = run_and_kill(lambda: carry_out(plan), generator.randint(1, LONGEST))
    recover(root)
    begun = progress.read(root)
    way = generator.choice((continue_, abort))
    if begun and not (begun.written and way is continue_):
        way(root)
    elif died and unchanged(contents(root), before):
        carry_out(plan)
    after = contents(root)
    everything = b"\n".join(after.values())
    for number, (path, (_, owner, _, _)) in enumerate(files.items()):
        for line in lines_of(owner, number):
            assert line in everything, f"seed {seed}: {path} lost {line!r}"
    if begun and way is abort:
        assert after == before, f"seed {seed}"
    elif progress.read(root):
        abort(root)
        assert contents(root) == before, f"seed {seed}"


def run_cases(folder, seeds):
    for seed in seeds:
        case = folder / str(seed)
        case.mkdir()
        run_case(case, seed)
        shutil.rmtree(case)


def test_in_a_few_cases(tmp_path):
    run_cases(tmp_path, range(4))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_in_a_thousand_cases(tmp_path, part):
    run_cases(tmp_path, range(1000 + 25 * part, 1025 + 25 * part))  # with 5 files each
