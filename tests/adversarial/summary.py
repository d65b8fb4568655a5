"""How many cases warned, by estimator, at the end of a run; under xdist too.

``refused`` ended with an error that names a parameter, ``understated`` warned with a gap that is
ten times too good, ``blurred`` have a level whose gap float64 cannot know to the tolerance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .judging import Outcome

#: the name under which a test hands its counts on
PROPERTY = "adversarial"
COLUMNS = ("cases", "warned", "refused", "understated", "blurred", "failed")


def tally(outcomes: list[Outcome]) -> list[list[Any]]:
    """One line a case: its estimator, then a count a column; made of what xdist can carry."""
    return [
        [o.case.name, 1]
        + [int(bool(part)) for part in (o.warned, o.refused, o.understated, o.blurred, o.failures)]
        for o in outcomes
    ]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """pytest's hook: write the table."""
    totals: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, lines in report.user_properties:
                for estimator, *counts in lines if name == PROPERTY else ():
                    known = totals.setdefault(estimator, [0] * len(COLUMNS))
                    totals[estimator] = [a + b for a, b in zip(known, counts, strict=True)]
    if not totals:
        return
    totals = dict(sorted(totals.items()))
    totals["all"] = [sum(column) for column in zip(*totals.values(), strict=True)]
    terminalreporter.section("adversarial cases")
    terminalreporter.write_line(f"{'':22}" + "".join(f"{column:>13}" for column in COLUMNS))
    for estimator, counts in totals.items():
        terminalreporter.write_line(f"{estimator:22}" + "".join(f"{count:13}" for count in counts))
