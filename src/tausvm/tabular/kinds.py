"""What a column is: a number, a category, a date, or nothing to learn from; and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .codes import (
    CategoryCode,
    Code,
    NumberCode,
    OrderedCode,
    TargetCode,
    TimeCode,
    quoted,
    rows_of,
)
from .settings import PreparationSettings
from .values import NUMBERS, TEXT, TIMES, Array, Values, as_numbers, as_texts, as_times

NUMBER, CATEGORY, ORDERED, DATE = "number", "category", "ordered", "date"
CONSTANT, IDENTIFIER, DROP = "constant", "identifier", "drop"
#: what a user may say that a column is
CHOICES = (NUMBER, CATEGORY, DATE, DROP)


@dataclass(frozen=True)
class Decision:
    """What a column is taken for.

    Attributes
    ----------
    kind : str
    why : str
        In words.
    code : Code or None
        None for a column without features.
    """

    kind: str
    why: str
    code: Code | None = None


@dataclass(frozen=True)
class Judge:
    """Decides about columns at the rows of a fit, all of positive weight."""

    weight: Array
    y: Array | None
    max_categories: int
    settings: PreparationSettings

    def decide(self, values: Values, asked: str | None) -> Decision:
        """The kind of a column, which may be asked for."""
        if asked == DROP:
            return Decision(DROP, "left out as asked")
        missing = values.missing
        if missing.all():
            return Decision(CONSTANT, "left out: no row has a value")
        if asked is not None:
            return self._asked(values, asked)
        if values.type == NUMBERS:
            return self._number(values)
        if values.type == TIMES:
            return self._date(values)
        if values.order is not None:
            return self._ordered(values, values.order)
        if values.categorical:
            return self._category(values)
        return self._text(values)

    def _asked(self, values: Values, asked: str) -> Decision:
        if asked == NUMBER and values.order is not None:
            return self._ordered(values, values.order)
        make = {NUMBER: self._number, DATE: self._date, CATEGORY: self._category}[asked]
        return make(values)

    def _number(self, values: Values) -> Decision:
        numbers, wrong = as_numbers(values)
        missing = np.isnan(numbers)
        if missing.all():
            raise ValueError(
                f"kinds: column {values.name!r} is to be a number, but has {quoted(wrong, 3)}"
            )
        given = numbers[~missing]
        code = NumberCode.learn(given, self.weight[~missing], bool(missing.any()), self.settings)
        code = replace(code, words=tuple(sorted(set(wrong))))
        how = []
        if values.type == TEXT:
            how.append("numbers stored as text")
        if wrong:
            words = quoted(wrong, self.settings.quoted)
            how.append(f"{words} in {rows_of(len(wrong))} counts as missing")
        gone = int(missing.sum()) - len(wrong)
        return self._told(NUMBER, code, given, how, gone, "yes or no" if values.boolean else "")

    def _told(
        self, kind: str, code: Any, given: Array, how: list[str], gone: int, first: str
    ) -> Decision:
        """A number's decision, in words."""
        distinct = len(np.unique(given))
        if code.constant and not code.indicator:
            return Decision(CONSTANT, f"left out: {given[0]:g} in all rows")
        many = f"{given[0]:g} wherever it is given" if code.constant else f"{distinct} values"
        words = [first or many, *how]
        if gone:
            words.append(f"missing in {rows_of(gone)}, where it is the median and marked")
        return Decision(kind, "; ".join(words), code)

    def _ordered(self, values: Values, order: tuple[str, ...]) -> Decision:
        places = OrderedCode.places(values, order)
        missing = np.isnan(places)
        given = places[~missing]
        number = NumberCode.learn(given, self.weight[~missing], bool(missing.any()), self.settings)
        if number.constant and not number.indicator:
            return Decision(CONSTANT, f"left out: {order[int(given[0])]!r} in all rows")
        why = f"{len(order)} categories in order, from {order[0]!r} to {order[-1]!r}"
        if missing.any():
            why += f"; missing in {rows_of(int(missing.sum()))}, where it is the median and marked"
        return Decision(ORDERED, why, OrderedCode(order, number))

    def _date(self, values: Values) -> Decision:
        times, wrong = as_times(values)
        missing = np.isnat(times)
        if missing.all():
            raise ValueError(
                f"kinds: column {values.name!r} is to be a date, but has {quoted(wrong, 3)}"
            )
        code = TimeCode.learn(times, self.weight, self.settings)
        code = replace(code, words=tuple(sorted(set(wrong))))
        first, last = times[~missing].min(), times[~missing].max()
        if not code.names(""):
            return Decision(CONSTANT, f"left out: {str(first)[:10]} in all rows")
        words = [f"{str(first)[:10]} to {str(last)[:10]}"]
        if code.cycles:
            words.append("with the place in the " + " and the ".join(code.cycles))
        if values.type == TEXT:
            words.append("dates stored as text")
        if wrong:
            text = quoted(wrong, self.settings.quoted)
            words.append(f"{text} in {rows_of(len(wrong))} counts as missing")
        gone = int(missing.sum()) - len(wrong)
        if gone:
            words.append(f"missing in {rows_of(gone)}, where it is the median and marked")
        return Decision(DATE, "; ".join(words), code)

    def _text(self, values: Values) -> Decision:
        """Text: numbers or dates that are stored so, names of rows, or categories."""
        text = values.data[~values.missing]
        enough = self.settings.read_share * len(text)
        numbers, wrong = as_numbers(values)
        if len(text) - len(wrong) >= enough:
            return self._number(values)
        if len(text) - len(as_times(values)[1]) >= enough:
            return self._date(values)
        distinct = len(set(text))
        names = distinct >= self.settings.identifier_share * len(text)
        if names and len(text) >= self.settings.identifier_rows:
            return Decision(
                IDENTIFIER,
                f"left out: {distinct} different texts in {rows_of(len(text))}, as a name or a "
                "number of rows is",
            )
        numeric = int(np.isfinite(numbers).sum())
        because = ""
        if numeric > len(wrong):  # numbers for the most part: say why they are not taken so
            words = quoted(wrong, self.settings.quoted)
            because = f", because of {words} in {rows_of(len(wrong))}"
        return self._category(values, because)

    def _category(self, values: Values, because: str = "") -> Decision:
        text = as_texts(values)
        gone = int(sum(value is None for value in text))
        distinct = len({value for value in text if value is not None})
        if distinct == 1 and not gone:
            return Decision(CONSTANT, f"left out: {text[0]!r} in all rows")
        why = f"{distinct} categories{because}"
        if gone:
            why += f"; missing in {rows_of(gone)}, a category of its own"
        if distinct > self.max_categories:
            return self._many(text, why)
        code = CategoryCode.learn(text, self.weight, self.settings)
        if code.pooled:
            why += f"; {len(code.pooled)} rare ones are one"
        return Decision(CATEGORY, why, code)

    def _many(self, text: NDArray[Any], why: str) -> Decision:
        """More categories than have a feature each."""
        code = TargetCode.learn(text, self.weight, self.y, self.settings)
        by = "their mean targets" if self.y is not None else "how often they occur"
        more = f"; more than max_categories={self.max_categories}, so coded by {by}"
        return Decision(CATEGORY, why + more, code)
