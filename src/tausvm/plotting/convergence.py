"""Convergence: the duality gap on its way to the tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..inspection import certificates, last_step, levels
from ..solvers import Progress
from .support import HUE, AxesDisplay

AXES = {"seconds": "seconds", "n_iter": "iterations"}
#: told apart without colour
STYLES = ("-", "--", "-.", ":")


@dataclass(kw_only=True, eq=False, repr=False)
class ConvergenceDisplay(AxesDisplay):
    """The relative duality gap at every check, one line a solve, on a logarithmic axis.

    Make one with :meth:`from_estimator` or :meth:`from_results`.

    Parameters
    ----------
    traces : list of list of Progress
    labels : list of str
    tol : float, optional
        A line to reach.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
    tol_line_ : Line2D or None
    """

    traces: list[list[Progress]]
    labels: list[str]
    tol: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, **plot_options: Any
    ) -> ConvergenceDisplay:
        """Draw how the solves of a fitted estimator went.

        Parameters
        ----------
        estimator : fitted estimator
            Or a pipeline that ends with one.
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        results = certificates(estimator)
        if not results:
            raise ValueError(
                f"{type(estimator).__name__} has no certificate, so no trace of how it converged"
            )
        taus = levels(estimator)
        named = len(taus) == len(results) and len(taus) > 1
        labels = (
            [f"τ = {tau:g}" for tau in taus] if named else [result.solver for result in results]
        )
        tol = getattr(last_step(estimator), "tol", None)
        return cls.from_results(results, labels=labels, tol=tol, ax=ax, **plot_options)

    @classmethod
    def from_results(
        cls,
        results: Any,
        *,
        labels: list[str] | None = None,
        tol: float | None = None,
        ax: Any = None,
        **plot_options: Any,
    ) -> ConvergenceDisplay:
        """Draw the traces of solver results, for example of several solvers of one problem.

        Parameters
        ----------
        results : SolverResult or list of them
        labels : list of str, optional
            By default the names of the solvers.
        tol : float, optional
            A line to reach.
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        given = list(results) if isinstance(results, list | tuple) else [results]
        names = [result.solver for result in given] if labels is None else list(labels)
        if len(names) != len(given):
            raise ValueError(f"labels must name {len(given)} results, got {len(names)}")
        display = cls(traces=[list(result.trace) for result in given], labels=names, tol=tol)
        return display.plot(ax=ax, **plot_options)

    def plot(
        self, ax: Any = None, *, against: str = "seconds", colour: str = HUE
    ) -> ConvergenceDisplay:
        """Draw the traces.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        against : {"seconds", "n_iter"}
            The horizontal axis.
        colour : str

        Returns
        -------
        self : ConvergenceDisplay
        """
        if against not in AXES:
            raise ValueError(f"against must be one of {', '.join(AXES)}, got {against!r}")
        ax = self._take_axes(ax)
        shades = np.linspace(1.0, 0.45, max(len(self.traces), 1))
        self.lines_ = []
        for k, (trace, label) in enumerate(zip(self.traces, self.labels, strict=True)):
            shown = [check for check in trace if check.gap > 0]
            (line,) = ax.plot(
                [getattr(check, against) for check in shown],
                [check.gap for check in shown],
                linestyle=STYLES[k % len(STYLES)],
                marker="o",
                markersize=3,
                linewidth=1.3,
                color=colour,
                alpha=shades[k],
                label=label,
            )
            self.lines_.append(line)
        self.tol_line_ = None
        if self.tol is not None:
            self.tol_line_ = ax.axhline(self.tol, color="0.5", linewidth=1, linestyle=(0, (2, 2)))
            ax.annotate(
                f"tol = {self.tol:g}",
                (1, self.tol),
                xycoords=("axes fraction", "data"),
                xytext=(-2, 3),
                textcoords="offset points",
                ha="right",
                fontsize="small",
                color="0.4",
            )
        ax.set_yscale("log")
        ax.set(xlabel=AXES[against], ylabel="relative duality gap")
        if len(self.traces) > 1:
            ax.legend(frameon=False, fontsize="small")
        return self
