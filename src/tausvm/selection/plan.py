"""What a tuned fit is going to do, said beforehand: the way it takes, its time and its memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..solvers.landmarks import Landmarks
from .progress import size, span
from .settings import LargeSettings


@dataclass(frozen=True)
class Plan:
    """The way of a fit, with estimates that are right to about a factor of two.

    Attributes
    ----------
    n, d : int
        Rows and features.
    levels : int
    chosen : int
        Rows that the choice is made on.
    landmarks : int
        0 for the full problem.
    held_out : int
        Rows held out to calibrate by.
    jobs, threads : int
        Of the selection, and of products over all rows.
    megabytes : float
        For kernel values.
    settings : LargeSettings
    gap : float or None
        To the full problem that is asked for: ``landmarks`` are then at most so many.
    """

    n: int
    d: int
    levels: int
    chosen: int
    landmarks: int
    held_out: int
    jobs: int
    threads: int
    megabytes: float
    settings: LargeSettings
    gap: float | None = None

    @property
    def fitted(self) -> int:
        """Rows that the machines are fitted to."""
        return self.n - self.held_out

    @property
    def selection_seconds(self) -> float:
        """Of the choice, by the clock."""
        return self.settings.selection_seconds(self.chosen, self.levels, self.jobs)

    @property
    def landmark_seconds(self) -> float:
        """Of the landmarks on all rows and their certificates, by the clock."""
        if not self.landmarks:
            return 0.0
        n, settings = self.fitted, self.settings
        steps = settings.landmark_pace * self.levels * n * self.landmarks**2
        limits = Landmarks()
        values = n * (0.5 * n if n <= limits.exact_rows else limits.sample_rows)
        return (steps + settings.kernel_pace * values) / self.threads

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return self.selection_seconds + self.landmark_seconds

    @property
    def all_megabytes(self) -> float:
        """What the process has at most, with the libraries and the data."""
        mega = 2.0**20
        matrices = min(4.0 * self.chosen**2 * self.jobs / mega, self.megabytes)
        choice = min(8.0 * self.fitted * self.landmarks / mega, 0.5 * self.megabytes)
        features = min(4.0 * self.fitted * self.landmarks / mega, self.megabytes)
        # X as it is given, checked and turned; some vectors of every level
        data = 8.0 * self.n * (3 * self.d + 12 * self.levels) / mega
        return self.settings.libraries + data + matrices + max(choice, features)

    def __str__(self) -> str:
        estimate = f"about {span(self.seconds)} and {size(self.all_megabytes)} of memory"
        if not self.landmarks:
            return f"{self.n:,} rows: choose and fit on all of them; {estimate}"
        count = f"{self.landmarks:,} landmarks"
        if self.gap is not None:
            count = f"as many landmarks as a gap of {self.gap:g} takes, at most {self.landmarks:,}"
        held = f", {self.held_out:,} held out to calibrate" if self.held_out else ""
        return (
            f"{self.n:,} rows: choose on {self.chosen:,} of them, then fit functions of {count} to "
            f"{self.fitted:,}{held}; {estimate}"
        )
