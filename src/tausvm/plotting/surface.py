"""The surface of a selection: the score over C and γ, and the point that was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..inspection import last_step
from .support import HUE, AxesDisplay, place_of

Array = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class CVSurfaceDisplay(AxesDisplay):
    """The mean cross-validated score over (C, γ), points left out hatched, the choice marked.

    A kernel without γ gives a curve over C. Make one with :meth:`from_estimator`.

    Parameters
    ----------
    Cs, gammas : arrays
        The grid; ``gammas`` is empty for a kernel without γ.
    scores : array (n_gammas, n_Cs)
        NaN for points that were left out.
    best : tuple of float
        C and γ of the chosen point; γ is NaN for a kernel without one.
    score_name : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    mesh_ : QuadMesh or None
    line_ : Line2D or None
        The curve, for a kernel without γ.
    best_ : Line2D
        The mark at the chosen point.
    """

    Cs: Array
    gammas: Array
    scores: Array
    best: tuple[float, float]
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, tau: float | None = None, ax: Any = None, **plot_options: Any
    ) -> CVSurfaceDisplay:
        """Draw the selection of a fitted estimator that chose its parameters.

        Parameters
        ----------
        estimator : SVRCV, QuantileSVRCV, ExpectileSVRCV, LinearSVRCV, …
            Or a pipeline that ends with one. Of parameters beside C and γ, such as ε, the chosen
            values are taken.
        tau : float, optional
            Which of its levels; the first by default.
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : CVSurfaceDisplay
        """
        search = last_step(estimator)
        if not hasattr(type(search), "predict") or not hasattr(search, "Cs"):
            raise TypeError(f"a surface needs a selection over C, got {type(search).__name__}")
        check_is_fitted(search, "cv_results_")
        taus = np.atleast_1d(getattr(search, "tau", np.nan)).astype(np.float64)
        level = 0 if tau is None else place_of(tau, taus.tolist())
        chosen = search.best_params_
        point = chosen[level] if isinstance(chosen, list) else chosen
        own = search.scoring is None
        if hasattr(search, "scores_"):
            scores, gammas = search.scores_[level].mean(axis=2), np.asarray(search.gammas_)
        else:
            tables = search.cv_results_
            scores, gammas = _slice(tables[level] if isinstance(tables, list) else tables, point)
        display = cls(
            Cs=np.asarray(search.Cs_),
            gammas=gammas,
            scores=-scores if own else scores,
            best=(float(point["C"]), float(point.get("gamma", np.nan))),
            score_name="mean validation loss" if own else "mean validation score",
        )
        return display.plot(ax=ax, **plot_options)

    def plot(self, ax: Any = None, *, cmap: str = "cividis") -> CVSurfaceDisplay:
        """Draw the surface.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        cmap : str
            A colour map whose lightness rises, so that it reads in grey too.

        Returns
        -------
        self : CVSurfaceDisplay
        """
        ax = self._take_axes(ax)
        self.mesh_ = self.line_ = None
        ax.set_xscale("log")
        ax.set_xlabel("C")
        mark: dict[str, Any] = {
            "marker": "o",
            "markersize": 11,
            "markerfacecolor": "none",
            "markeredgewidth": 2.2,
            "linestyle": "none",
            "label": "chosen",
        }
        if len(self.gammas) == 0:
            (self.line_,) = ax.plot(self.Cs, self.scores[0], "o-", color=HUE, markersize=4)
            height = self.scores[0][np.argmin(np.abs(np.log(self.Cs / self.best[0])))]
            (self.best_,) = ax.plot([self.best[0]], [height], color="black", **mark)
            ax.set_ylabel(self.score_name)
        else:
            self._draw_mesh(cmap)
            (self.best_,) = ax.plot([self.best[0]], [self.best[1]], color="white", **mark)
            ax.set_title(f"chosen: C = {self.best[0]:.3g}, γ = {self.best[1]:.3g}", fontsize=11)
        return self

    def _draw_mesh(self, cmap: str) -> None:
        ax = self.ax_
        ax.set_facecolor("0.92")
        shown = np.ma.masked_invalid(self.scores)
        # a few hopeless corners must not flatten the rest
        shares = [0.25, 1.0] if self.score_name.endswith("score") else [0.0, 0.75]
        low, high = (float(end) for end in np.quantile(shown.compressed(), shares))
        x, y = _edges(self.Cs), _edges(self.gammas)
        self.mesh_ = ax.pcolormesh(x, y, shown, cmap=cmap, vmin=low, vmax=max(high, low + 1e-12))
        ax.set_yscale("log")
        ax.set_ylabel("γ")
        bar = self.figure_.colorbar(self.mesh_, ax=ax, extend="both")
        bar.set_label(self.score_name)
        bar.outline.set_visible(False)
        if np.ma.is_masked(shown):
            ax.annotate(
                "grey: left out",
                (0, 0),
                xycoords="axes fraction",
                xytext=(4, 4),
                textcoords="offset points",
                fontsize="small",
                color="0.3",
            )


def _slice(table: dict[str, Any], best: dict[str, float]) -> tuple[Array, Array]:
    """Mean scores (n_gammas, n_costs), or (1, n_costs) without γ, where all else is as chosen."""
    others = [name for name in best if name not in ("C", "gamma")]
    points = table["params"]
    rows = [k for k, at in enumerate(points) if all(at[name] == best[name] for name in others)]
    gammas = list(dict.fromkeys(points[k]["gamma"] for k in rows if "gamma" in points[k]))
    scores = table["mean_test_score"][rows].reshape(-1, max(len(gammas), 1)).T
    return scores, np.array(gammas)


def _edges(values: Array) -> Array:
    """Between neighbours on a logarithmic axis, and half a step beyond the ends."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.exp(logs[0] + np.array([-0.5, 0.5]))
    middles = 0.5 * (logs[1:] + logs[:-1])
    return np.exp(
        np.concatenate([[2 * logs[0] - middles[0]], middles, [2 * logs[-1] - middles[-1]]])
    )
