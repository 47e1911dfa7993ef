"""Updating takes time and memory in proportion to the number of operators, and little of both."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.support import releases

FAMILIES = ("softmax", "matmul", "elementwise", "reduction", "row_norm", "gated")
CODE = """
    import resource, sys
    from pathlib import Path
    import tilewright.render
    from tilewright.render import Source
    tilewright.render.locate = lambda: Source(root=Path(sys.argv.pop(1)), recorded=None)
    from tilewright.cli.app import app
    app(["update", "--all"], standalone_mode=False)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(sum(each.ru_utime + each.ru_stime for each in used), used[0].ru_maxrss / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seconds"), [(1, 1.5), (50, 10), (500, 90)])
def test_time_and_memory_of_an_update(tmp_path, count, seconds):
    source = releases.check_out_template(tmp_path / "template")
    host = tmp_path / "host"
    answers = ({"op": f"op{i}", "family": FAMILIES[i % len(FAMILIES)], "package": "my_ops"} for i in range(count))
    releases.make_host(host, source, *answers)
    for kernel in sorted(host.glob("my_ops/*/cutile.py"))[::3]:
        kernel.write_text(kernel.read_text() + "# mine\n")
    releases.commit(host)
    releases.release(source, releases.NEXT, {releases.KERNEL: ('"""cuTile backend of', '"""The cuTile kernel of')})
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE), str(source.root)],
        cwd=host,
        env={**os.environ, "PYTHONPATH": str(releases.GENERATOR)},
        check=True,
        capture_output=True,
        text=True,
    )
    processor_seconds, mebibytes = map(float, done.stdout.splitlines()[-1].split())
    print(f"{count} operators: {processor_seconds:.1f} s, {mebibytes:.0f} MiB")
    changed = releases.git(host, "diff", "--cached", "--name-only").splitlines()
    assert len(changed) == 2 * count
    assert processor_seconds < seconds
    assert mebibytes < 500
