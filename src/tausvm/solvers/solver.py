"""What every solver is: its settings, and a way to solve a problem with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from .problem import Point, Problem
from .result import SolverOptions, SolverResult


@dataclass(frozen=True)
class Solver(ABC):
    """A solver is its settings: each of its numbers is a field, with its unit and its reason.

    ``Block(inner_steps=10)`` is another solver than ``Block()``; both are called ``"block"``.
    """

    #: what it is called by
    name: ClassVar[str]
    #: whether it is for several levels or outputs at once, rather than one; None for both
    groups: ClassVar[bool | None] = False

    @abstractmethod
    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        """Solve a problem, from a feasible point with its values where one is given."""


__all__ = ["Solver"]
