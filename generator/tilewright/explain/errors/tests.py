"""Tests: what keeps them from testing."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

TESTS = (
    Entry(
        name="not-implemented",
        title="No implementation for the backend that is set",
        pattern=r"is not implemented for \w+",
        causes=(
            Cause(
                what="The module that registers the implementation is not imported",
                tell="`tilewright verify` fails at registration, `tilewright check` with TW113",
            ),
            Cause(
                what="Key of register_impl and key of the stub differ",
                tell="`tilewright check` finds TW110",
            ),
            Cause(what="The backend is not cutile", tell="the message names it: set_backend('cutile') in the test"),
        ),
        wrong="""
        @register_impl("my_opp", backend="cutile")
        """,
        right="""
        @register_impl("my_op", backend="cutile")
        """,
        rules=("TW110", "TW111", "TW113", "TW404"),
        samples=("NotImplementedError: softmax is not implemented for cutile",),
    ),
    Entry(
        name="backend-not-available",
        title="The backend is not available",
        pattern=r"[Bb]ackend '?\w+'? is not available",
        causes=(
            Cause(what="cuda-tile is not installed", tell="`tilewright doctor` says so"),
            Cause(what="An import of an operator failed", tell="`python -c 'import my_ops'` shows the exception"),
        ),
        wrong="""
        set_backend(backend)
        """,
        right="""
        if not is_backend_available(backend):
            pytest.skip(f"backend {backend} is not available")
        set_backend(backend)
        """,
        rules=("TW403",),
        samples=("ValueError: backend 'cutile' is not available; installed: torch",),
    ),
    Entry(
        name="nothing-tested",
        title="No test ran",
        pattern=r"no tests ran|collected 0 items|no test ran, \d+ skipped|\d+ deselected in",
        causes=(
            Cause(
                what="All were skipped, as there is no GPU",
                tell="`pytest -rs` says why: pytest --tile-device=interpret runs them on the CPU",
            ),
            Cause(
                what="Their names do not begin with test_op, and pytest was run with -k test_op",
                tell="`tilewright check` finds TW401",
            ),
        ),
        wrong="""
        def test_softmax(shape): ...
        """,
        right="""
        def test_op_softmax(shape): ...
        """,
        rules=("TW401",),
        samples=("no tests ran in 0.01s", "0 of 6 tests: no test ran, 6 skipped: no CUDA device"),
    ),
    Entry(
        name="unexpected-argument",
        title="The implementation does not take an argument of the stub",
        pattern=r"TypeError: \w+\(\) (got an unexpected keyword argument|missing \d+ required)",
        causes=(
            Cause(
                what="Stub and implementation have different parameters",
                tell="`tilewright check --select TW1` shows both",
            ),
        ),
        wrong="""
        def my_op(x, scale=1.0, **kwargs): ...            # stub
        def my_op_cutile(x, alpha=1.0): ...               # implementation
        """,
        right="""
        def my_op(x, scale=1.0, **kwargs): ...            # stub
        def my_op_cutile(x, scale=1.0, **kwargs): ...     # implementation
        """,
        rules=("TW101", "TW102", "TW105", "TW106"),
        samples=("TypeError: my_op_cutile() got an unexpected keyword argument 'scale'",),
    ),
    Entry(
        name="fixture-not-found",
        title="A fixture that is not there",
        pattern=r"fixture '\w+' not found",
        causes=(
            Cause(
                what="The conftest.py of the tests was not collected",
                tell="pytest was started in another folder: start it at the root of the repository",
            ),
        ),
        wrong="""
        cd tests/ops && pytest --noconftest test_my_op.py
        """,
        right="""
        pytest tests/ops/test_my_op.py
        """,
        samples=("fixture 'arch' not found",),
    ),
)
