"""Plugin of pytest: sums up failed comparisons of tensors, and keeps failures for `tilewright explain --last`."""

import sys
from collections.abc import Generator
from types import TracebackType

import pytest

from tilewright.explain.failures import FAILURES
from tilewright.explain.failures import TITLE

_MOST = 50
_LONGEST = 8000  # characters of one failure, from its end: that is where the message is


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the summary to the report of a failed comparison."""
    report = yield
    if call.excinfo is not None and report.failed and "torch" in sys.modules:
        text = _summed_up(call.excinfo.tb)
        if text:
            report.sections.append((TITLE, text))
            item.user_properties.append((TITLE, text))
    return report


def _summed_up(trace: TracebackType) -> str:
    from tilewright.explain.compared import summed_up

    try:
        return summed_up(trace)
    except Exception as error:  # as on a GPU after a fault: the test is reported all the same
        return f"the tensors cannot be summed up: {type(error).__name__}: {error}".splitlines()[0]


def pytest_configure(config: pytest.Config) -> None:
    """Keep failures, in the process that collects the reports of all others."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(), "tilewright-failures")


class _Failures:
    """The failures of one run."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a failed test said."""
        self._keep(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file could not be collected."""
        self._keep(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write them where pytest keeps the names of the tests that failed."""
        cache = getattr(session.config, "cache", None)  # of a plugin that can be switched off
        if cache is not None and not session.config.option.collectonly:
            cache.set(FAILURES, self._kept)

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and len(self._kept) < _MOST:
            self._kept.append((report.nodeid, report.longreprtext[-_LONGEST:]))
