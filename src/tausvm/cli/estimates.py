"""How long a fit takes and what memory it needs, roughly, before it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .kinds import Kind
from .settings import Settings


@dataclass(frozen=True)
class Price:
    """Seconds of one level at ``rows`` rows and few features, and how they grow."""

    seconds: float
    rows: int
    #: power of the rows
    power: float
    #: features that double the seconds
    features: float = 40.0

    def at(self, rows: int, features: int) -> float:
        """Seconds of a level."""
        grown: float = (rows / self.rows) ** self.power * (1.0 + features / self.features)
        return self.seconds * grown


def _prices() -> dict[str, Price]:
    """Processor seconds on normal features and a target of two of them, C = 1, one thread.

    Read off single runs of 500 to 4000 rows (joint and path: 250 to 1000, linear: 2000 and 8000) of
    5 and 40 features, powers by eye. Other C, targets and more rows were not measured.
    """
    return {
        "quantile": Price(0.08, 4000, 1.9, 40.0),
        "expectile": Price(0.057, 4000, 1.6, 45.0),
        "svr": Price(0.07, 4000, 1.6, 25.0),
        "svc": Price(0.037, 4000, 1.6, 12.0),
        "path": Price(0.16, 1000, 1.6, 25.0),
        "joint": Price(0.33, 1000, 2.1, 4000.0),
        "linear": Price(0.018, 8000, 1.0, 400.0),
    }


@dataclass(frozen=True)
class CostSettings:
    """Measured prices of fits."""

    prices: dict[str, Price] = field(default_factory=_prices)
    #: rows above which kernel machines that can go by landmarks do, and pay by rows alone
    landmarks_from: int = 20_000
    #: MB that interpreter and libraries take: the peak of a fit of 300 rows was 434, of 6000 rows
    #: of two features 441, where few kernel values were needed
    base: float = 430.0
    #: landmarks that are reckoned with: 250 were taken of 20,050 rows, whose fit peaked at 467 MB
    landmarks: int = 1000
    #: MB of kernel values that are kept at most: cache_size, and as much again on the way
    #: (a fit of 26,000 rows without landmarks was seen at 3.8 GB)
    most_kernel: float = 3800.0
    #: bytes of a kernel value
    value: float = 8.0
    #: copies of the features while a fit goes on
    copies: float = 4.0
    #: fits that a selection pays for at its defaults: about 90 of quantiles and 160 of svr, one run
    #: each at 1000 rows; other grids were not measured. Grid search is reckoned to share nothing
    tuned: float = 100.0


@dataclass(frozen=True)
class Estimate:
    """What a fit will take.

    Attributes
    ----------
    seconds, megabytes : float
    landmarks : bool
        Whether it goes by landmarks.
    """

    seconds: float
    megabytes: float
    landmarks: bool

    def words(self, rows: int) -> str:
        """The estimate as a reader wants it."""
        line = f"expected: {_duration(self.seconds)}, {_memory(self.megabytes)} of memory"
        if self.landmarks:
            line += f"; {rows:,} rows are many, so the fit goes by landmarks (approximation='auto')"
        elif self.seconds > 600:
            line += "; --kind linear is faster, and --time-limit ends a fit early"
        return line


def estimate(
    kind: Kind,
    settings: Settings,
    shape: tuple[int, int],
    *,
    tune: bool,
    costs: CostSettings | None = None,
) -> Estimate:
    """What a fit of a kind will take, from measured prices; rough, and for easy fits."""
    costs = costs or CostSettings()
    rows, features = shape
    price = costs.prices[kind.name]
    levels = max(len(settings.tau), 1)
    landmarks = kind.landmarks and rows > costs.landmarks_from
    if landmarks:
        full = price.at(costs.landmarks_from, features)
        seconds = levels * full * rows / costs.landmarks_from
    else:
        seconds = levels * price.at(rows, features)
    if tune:
        shared = kind.learns
        points = costs.tuned if shared else settings.grid * (settings.grid / 2) * settings.folds
        seconds *= points
    if settings.time_limit is not None:
        seconds = min(seconds, settings.time_limit)
    kernel = 0.0
    if kind.name != "linear":
        across = costs.landmarks if landmarks else rows
        kernel = min(costs.value * rows * across / 1e6, costs.most_kernel)
    data = costs.copies * costs.value * rows * features / 1e6
    return Estimate(seconds, costs.base + kernel + data, landmarks)


def _duration(seconds: float) -> str:
    """Roughly how long."""
    if seconds < 10:
        return "seconds"
    if seconds < 90:
        return "about a minute"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"


def _memory(megabytes: float) -> str:
    """Rounded up: a kernel may need fewer of its values than there are."""
    if megabytes < 1000:
        return f"up to {100 * math.ceil(megabytes / 100)} MB"
    return f"up to {megabytes / 1000:.1f} GB"


def as_json(found: Estimate) -> dict[str, Any]:
    """The estimate for a script."""
    return {
        "seconds": found.seconds,
        "megabytes": found.megabytes,
        "landmarks": found.landmarks,
    }
