"""Run scikit-learn's tests of its SVR and LinearSVR with ours in their place.

    python -m tests.drop_in.run

Fails where other tests fail than those that docs/from-other-libraries.md lists with a reason. The
tests are of the installed scikit-learn, whichever version that is.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sklearn.svm

import tausvm

DOCUMENTED = Path(__file__).parents[2] / "docs" / "from-other-libraries.md"


class Outcomes:
    """The names of the tests that ran and of those that failed, without their parameters."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.rpartition("::")[2].partition("[")[0]
        if report.when == "call":
            self.ran.append(name)
        if report.failed:
            self.failed.add(name)


def documented() -> set[str]:
    """The tests that may fail, by the table of the page."""
    return set(re.findall(r"^\| `(test_\w+)` \|", DOCUMENTED.read_text(), re.M))


def run() -> Outcomes:
    """Exchange the classes in this process, which is to do nothing else, and run the tests."""
    theirs: Any = sklearn.svm
    theirs.SVR, theirs.LinearSVR = tausvm.SVR, tausvm.LinearSVR
    tests = Path(theirs.__path__[0]) / "tests" / "test_svm.py"
    outcomes = Outcomes()
    quiet: Iterable[str] = ("-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line")
    with tempfile.TemporaryDirectory() as folder:  # our own settings are not for their tests
        pytest.main(
            [str(tests), "-c", "/dev/null", f"--rootdir={folder}", *quiet], plugins=[outcomes]
        )
    return outcomes


def main() -> int:
    outcomes, known = run(), documented()
    new, gone = sorted(outcomes.failed - known), sorted(known - outcomes.failed)
    sys.stdout.write(
        f"\n{len(outcomes.ran)} tests ran; differences documented: {sorted(known)}; "
        f"failed and not documented: {new}; documented and passed: {gone}\n"
    )
    return int(bool(new or gone or not outcomes.ran))


if __name__ == "__main__":
    sys.exit(main())
