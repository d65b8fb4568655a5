"""How a column becomes features: one class a kind of code, learned from some rows.

Every code keeps to one scale: two rows that are drawn at random differ in a column by about √2, as
two draws of a number of variance 1 do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .settings import PreparationSettings
from .values import Array, Values, as_numbers, as_texts, as_times

#: the distance of the quartiles of a normal distribution, in standard deviations
NORMAL_QUARTILES = 1.349
#: beyond this many units of a column all numbers count as equally far: squares stay numbers
FARTHEST = 1e100
#: seconds of a day, a week and a mean year
DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0


class Code(Protocol):
    """What a column is turned into."""

    def encode(self, values: Values) -> Array:
        """The features of a column, (rows, width)."""

    def names(self, name: str) -> list[str]:
        """What these features are called."""


def weighted_quantiles(x: Array, weight: Array, shares: Sequence[float]) -> list[float]:
    """Quantiles in which a row of weight k counts as k rows.

    Where the share falls between two rows it is their mean.
    """
    order = np.argsort(x, kind="stable")
    x, reached = x[order], np.cumsum(weight[order])
    found = []
    for share in shares:
        wanted = share * reached[-1]
        slack = 1e-12 * reached[-1]
        first = min(int(np.searchsorted(reached, wanted - slack)), len(x) - 1)
        last = min(int(np.searchsorted(reached, wanted + slack, side="right")), len(x) - 1)
        found.append(0.5 * float(x[first]) + 0.5 * float(x[last]))
    return found


def _moments(x: Array, weight: Array) -> tuple[float, float]:
    """Mean and standard deviation, a row of weight k counted as k rows."""
    mean = float(np.average(x, weights=weight))
    return mean, float(np.sqrt(np.average((x - mean) ** 2, weights=weight)))


@dataclass(frozen=True)
class NumberCode:
    """A number, scaled to mean 0 and variance 1, with its tails drawn in where they are long.

    Tails are long where a value lies ``far`` standard deviations from the mean. There the number is

        (arcsinh((x − m)/s) − a)/b

    with m the median and s the distance of the quartiles over 1.349, which is the standard
    deviation of a normal distribution, or a quarter of the standard deviation where that is more; a
    and b are mean and standard deviation of arcsinh((x − m)/s) on the rows of the fit. A number
    with two values has them as far apart as two categories.
    """

    low: float
    half_range: float
    centre: float
    scale: float
    #: None for tails that are not long
    drawn_in: tuple[float, float] | None
    fill: float
    indicator: bool
    #: a number that never varies has no feature but the indicator of what is missing
    constant: bool
    distance: float
    #: texts that are no numbers and counted as missing in the fit, which was said there
    words: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls, given: Array, weight: Array, indicator: bool, settings: PreparationSettings
    ) -> Self:
        """From the numbers that are there, at least one."""
        distance = settings.category_distance
        low, high = float(given.min()), float(given.max())
        half = 0.5 * high - 0.5 * low  # whose double may be beyond float64
        if half == 0.0:
            return cls(low, 1.0, 0.0, 1.0, None, low, indicator, True, distance)
        (fill,) = weighted_quantiles(given, weight, [0.5])
        if ((given == low) | (given == high)).all():
            return cls(low, half, 0.5, 1.0 / distance, None, fill, indicator, False, distance)
        v = (0.5 * given - 0.5 * low) / half
        mean, deviation = _moments(v, weight)
        if max(mean, 1.0 - mean) <= settings.far * deviation:
            return cls(low, half, mean, deviation, None, fill, indicator, False, distance)
        below, centre, above = weighted_quantiles(v, weight, [0.25, 0.5, 0.75])
        scale = max((above - below) / NORMAL_QUARTILES, settings.least_spread * deviation)
        drawn_in = _moments(np.arcsinh((v - centre) / scale), weight)
        return cls(low, half, centre, scale, drawn_in, fill, indicator, False, distance)

    def encode(self, values: Values) -> Array:
        numbers, wrong = as_numbers(values)
        _warn_of_words(values.name, wrong, self.words, "a number")
        return self.of_numbers(numbers)

    def of_numbers(self, numbers: Array) -> Array:
        missing = np.isnan(numbers)
        parts = []
        if not self.constant:
            filled = np.where(missing, self.fill, numbers)
            with np.errstate(over="ignore"):
                v = (0.5 * filled - 0.5 * self.low) / self.half_range
                z = np.clip((v - self.centre) / self.scale, -FARTHEST, FARTHEST)
            if self.drawn_in is not None:
                shift, spread = self.drawn_in
                z = (np.arcsinh(z) - shift) / spread
            parts.append(z)
        if self.indicator:
            parts.append(np.where(missing, 0.5, -0.5) * self.distance)
        return _stacked(parts, len(numbers))

    def names(self, name: str) -> list[str]:
        return [name] * (not self.constant) + [f"{name}_missing"] * self.indicator


@dataclass(frozen=True)
class OrderedCode:
    """The place of a category in its order, as a number."""

    order: tuple[str, ...]
    number: NumberCode

    @staticmethod
    def places(values: Values, order: tuple[str, ...]) -> Array:
        """0 for the lowest category, NaN for what is not in the order."""
        place = {category: float(k) for k, category in enumerate(order)}
        return np.array([place.get(text, np.nan) for text in as_texts(values)], dtype=np.float64)

    def encode(self, values: Values) -> Array:
        return self.number.of_numbers(self.places(values, self.order))

    def names(self, name: str) -> list[str]:
        return self.number.names(name)


@dataclass(frozen=True)
class CategoryCode:
    """A feature a category, zeros for one that was not seen.

    The rare ones share a feature, and so do the rows without a value. Two categories are
    ``distance`` apart. Where there are two features they are one, with the two at ± half of it, so
    that what was not seen is in the middle.
    """

    categories: tuple[str, ...]
    pooled: tuple[str, ...]
    missing: bool
    distance: float

    @classmethod
    def learn(cls, text: NDArray[Any], weight: Array, settings: PreparationSettings) -> Self:
        total: dict[str | None, float] = {}
        for category, w in zip(text, weight, strict=True):
            total[category] = total.get(category, 0.0) + float(w)
        missing = total.pop(None, None) is not None
        least = settings.rare_share * float(weight.sum())
        rare = sorted(c for c, w in total.items() if c is not None and w < least)
        if len(rare) < 2:
            rare = []
        kept = sorted(c for c in total if c is not None and c not in rare)
        return cls(tuple(kept), tuple(rare), missing, settings.category_distance)

    @property
    def _count(self) -> int:
        return len(self.categories) + bool(self.pooled) + self.missing

    def table(self) -> tuple[list[str], Array]:
        """The texts that have features, "" for missing values, and a row of features each."""
        texts = [*self.categories, *self.pooled]
        place = [*range(len(self.categories)), *[len(self.categories)] * len(self.pooled)]
        if self.missing:
            texts.append("")
            place.append(self._count - 1)
        hot = np.zeros((len(texts), self._count))
        hot[np.arange(len(texts)), place] = self.distance / 2**0.5
        return texts, (hot[:, 1:] - hot[:, :1]) / 2**0.5 if self._count == 2 else hot

    def encode(self, values: Values) -> Array:
        return _looked_up(as_texts(values), *self.table())

    def names(self, name: str) -> list[str]:
        found = [f"{name}_{category}" for category in self.categories]
        found += [f"{name}_other"] * bool(self.pooled) + [f"{name}_missing"] * self.missing
        return found[1:] if len(found) == 2 else found


@dataclass(frozen=True)
class TargetCode:
    """The mean target of a category, drawn to that of all rows; 0 for one that was not seen.

    A category of total weight w and mean target m has (w·m + k·M)/(w + k), M the mean of all rows
    and k the ``smoothing``; then scaled to mean 0 and variance 1. Without targets it is the
    logarithm of how often the category occurs.
    """

    levels: dict[str, float]
    missing: float
    shift: float
    spread: float
    by_target: bool
    smoothing: float

    @classmethod
    def learn(
        cls, text: NDArray[Any], weight: Array, y: Array | None, settings: PreparationSettings
    ) -> Self:
        found = _levels(text, weight, y, settings.smoothing)
        codes = np.array([found[category] for category in text])
        shift, spread = _moments(codes, weight)
        if y is not None:  # what is not seen has the code 0, that of the mean target
            shift = float(np.average(y, weights=weight))
        missing = found.pop(None, shift)
        levels = {str(category): code for category, code in found.items()}
        known = y is not None
        return cls(levels, missing, shift, spread or 1.0, known, settings.smoothing)

    def table(self) -> tuple[list[str], Array]:
        """The texts that have features, "" for missing values, and a row of features each."""
        texts = [*self.levels, ""]
        return texts, self._scaled(np.array([*self.levels.values(), self.missing]))

    def encode(self, values: Values) -> Array:
        return _looked_up(as_texts(values), *self.table())

    def out_of_fold(self, values: Values, y: Array, weight: Array, folds: NDArray[Any]) -> Array:
        """The codes of the rows of the fit, each from the targets of other folds."""
        text = as_texts(values)
        codes = np.full(len(text), self.shift)
        for fold in np.unique(folds):
            here, there = folds == fold, (folds != fold) & (weight > 0)
            if there.any():
                mean = float(np.average(y[there], weights=weight[there]))
                found = _levels(text[there], weight[there], y[there], self.smoothing)
                codes[here] = [found.get(category, mean) for category in text[here]]
        return self._scaled(codes)

    def _scaled(self, codes: Array) -> Array:
        return ((codes - self.shift) / self.spread)[:, None]

    def names(self, name: str) -> list[str]:
        return [f"{name}_mean" if self.by_target else f"{name}_count"]


def _looked_up(texts: NDArray[Any], known: Sequence[str], features: Array) -> Array:
    """The row of features of each text, zeros for one that is not there."""
    place = {text: k for k, text in enumerate(known)}
    rows = np.array([place.get(text or "", len(known)) for text in texts], dtype=np.int64)
    return np.vstack([features, np.zeros((1, features.shape[1]))])[rows]


def _levels(
    text: NDArray[Any], weight: Array, y: Array | None, smoothing: float
) -> dict[str | None, float]:
    """What each category is coded by, None for missing values."""
    total: dict[str | None, float] = {}
    sums: dict[str | None, float] = {}
    targets = np.zeros(len(text)) if y is None else y
    mean = float(np.average(targets, weights=weight))
    for category, w, t in zip(text, weight, targets - mean, strict=True):
        total[category] = total.get(category, 0.0) + float(w)
        sums[category] = sums.get(category, 0.0) + float(w * t)
    if y is None:
        everything = float(weight.sum())
        return {category: float(np.log(w / everything)) for category, w in total.items()}
    return {category: mean + sums[category] / (w + smoothing) for category, w in total.items()}


@dataclass(frozen=True)
class TimeCode:
    """Points in time: how long ago, and where in the year, in the week and in the day.

    The places are on a circle of radius 1, in two features each: sine and cosine. A circle is there
    where the times of the fit go around it: those of the year for more than a year of dates, of
    the week for more than a week, of the day where times of day differ.
    """

    elapsed: NumberCode
    cycles: tuple[str, ...]
    #: texts that are no dates and counted as missing in the fit, which was said there
    words: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls, times: NDArray[np.datetime64], weight: Array, settings: PreparationSettings
    ) -> Self:
        missing = np.isnat(times)
        seconds = _seconds(times[~missing])
        number = NumberCode.learn(seconds, weight[~missing], bool(missing.any()), settings)
        span = float(seconds.max() - seconds.min())
        long_enough = {"year": span > YEAR, "week": span > WEEK, "day": span > DAY}
        varies = {
            "year": len(np.unique(seconds // DAY)) > 1,
            "week": len(np.unique(seconds // DAY % 7)) > 1,
            "day": len(np.unique(seconds % DAY)) > 1,
        }
        return cls(number, tuple(c for c in varies if varies[c] and long_enough[c]))

    def encode(self, values: Values) -> Array:
        times, wrong = as_times(values)
        _warn_of_words(values.name, wrong, self.words, "a date")
        missing = np.isnat(times)
        seconds = np.full(len(times), np.nan)
        seconds[~missing] = _seconds(times[~missing])
        parts = [self.elapsed.of_numbers(seconds)]
        periods = {"year": YEAR, "week": WEEK, "day": DAY}
        for cycle in self.cycles:
            angle = 2.0 * np.pi * np.remainder(np.where(missing, 0.0, seconds), periods[cycle])
            angle /= periods[cycle]
            circle = np.column_stack([np.sin(angle), np.cos(angle)])
            parts.append(np.where(missing[:, None], 0.0, circle))
        return np.hstack(parts)

    def names(self, name: str) -> list[str]:
        circles = [f"{name}_{cycle}_{part}" for cycle in self.cycles for part in ("sin", "cos")]
        return self.elapsed.names(name) + circles


def _seconds(times: NDArray[np.datetime64]) -> Array:
    """Since a Monday, so that weeks begin with it; 2001-01-01 was one, and a new year."""
    return (times - np.datetime64("2001-01-01", "us")) / np.timedelta64(1, "s")


#: every way to code a column
CODES = (NumberCode, OrderedCode, CategoryCode, TargetCode, TimeCode)


def _stacked(parts: Sequence[Array], n_rows: int) -> Array:
    return np.column_stack(parts) if parts else np.empty((n_rows, 0))


def quoted(words: Sequence[str], count: int) -> str:
    """Some words in quotes, the most frequent first."""
    seen: dict[str, int] = {}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    order = sorted(seen, key=lambda word: (-seen[word], word))
    found = [repr(word) for word in order[:count]]
    if len(order) > count:
        return ", ".join(found) + ", …"
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + f" and {found[-1]}"


def rows_of(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _warn_of_words(name: str, wrong: Sequence[str], known: Sequence[str], wanted: str) -> None:
    """Say that texts which a column cannot read count as missing, unless the fit has said so."""
    new = [word for word in wrong if word not in known]
    if new:
        warnings.warn(
            f"column {name!r}: {quoted(new, 3)} in {rows_of(len(new))} is not {wanted} and counts "
            "as missing",
            UserWarning,
            stacklevel=2,
        )
