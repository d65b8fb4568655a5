"""A picture on the page of a class: what it makes of the same points that all others get.

``.. portrait:: tausvm.QuantileSVR`` draws it for the light and for the dark theme. A class that
nobody wrote a way to draw for has none, and its page says nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: colours of text and lines that are read on a light and on a dark page
THEMES = {
    "light": {"text": "#3b4252", "points": "#7d8597", "lines": "#1f6feb", "second": "#c2410c"},
    "dark": {"text": "#ced6dd", "points": "#8b95a7", "lines": "#6cb6ff", "second": "#ff9d5c"},
}
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
#: few points of a small grid: a picture is no measurement
SMALL = {"Cs": 4, "gammas": 4, "cv": 3}


def _draw(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """A sine whose noise grows from left to right."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, n))
    return x[:, None], np.sin(5.5 * x) + (0.08 + 0.5 * x) * rng.normal(size=n)


def _line(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """A line whose noise grows from left to right."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, n))
    return x[:, None], 2 * x - 1 + (0.1 + 0.6 * x) * rng.normal(size=n)


def _curves(ax: Any, colours: dict[str, str], X: Any, y: Any, grid: Any, values: Any) -> None:
    ax.scatter(X[:, 0], y, s=9, color=colours["points"], alpha=0.75, linewidths=0)
    values = np.asarray(values).reshape(len(grid), -1)
    middle = (values.shape[1] - 1) / 2
    for k in range(values.shape[1] // 2):
        ax.fill_between(
            grid[:, 0], values[:, k], values[:, -1 - k], color=colours["lines"], alpha=0.16, lw=0
        )
    for k, column in enumerate(values.T):
        ax.plot(grid[:, 0], column, color=colours["lines"], lw=2.2 if k == middle else 1.1)


def _regression(make: Callable[[], Any], data: Callable[..., Any] = _draw) -> Any:
    """Points and the levels fitted to them."""

    def draw(ax: Any, colours: dict[str, str]) -> None:
        X, y = data()
        grid = np.linspace(0, 1, 200)[:, None]
        _curves(ax, colours, X, y, grid, make().fit(X, y).predict(grid))

    return draw


def _table(make: Callable[[], Any]) -> Any:
    def draw(ax: Any, colours: dict[str, str]) -> None:
        import pandas as pd

        X, y = _draw()
        grid = np.linspace(0, 1, 200)[:, None]
        model = make().fit(pd.DataFrame({"x": X[:, 0]}), y)
        _curves(ax, colours, X, y, grid, model.predict(pd.DataFrame({"x": grid[:, 0]})))

    return draw


def _every_level(make: Callable[[], Any]) -> Any:
    def draw(ax: Any, colours: dict[str, str]) -> None:
        X, y = _draw()
        grid = np.linspace(0, 1, 200)[:, None]
        levels = np.linspace(0.05, 0.95, 19)
        _curves(ax, colours, X, y, grid, make().fit(X, y).predict(grid, tau=levels))

    return draw


def _two_targets(make: Callable[[], Any]) -> Any:
    def draw(ax: Any, colours: dict[str, str]) -> None:
        X, y = _draw()
        other = np.cos(5.5 * X[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=len(y))
        grid = np.linspace(0, 1, 200)[:, None]
        values = make().fit(X, np.column_stack([y, other])).predict(grid)
        pairs = ((y, "lines"), (other, "second"))
        for (target, colour), column in zip(pairs, values.T, strict=True):
            ax.scatter(X[:, 0], target, s=9, color=colours[colour], alpha=0.4, linewidths=0)
            ax.plot(grid[:, 0], column, color=colours[colour], lw=2)

    return draw


def _classes(decide: Callable[..., Any], levels: list[float]) -> Any:
    """Two classes in the plane, and the boundary at some levels."""

    def draw(ax: Any, colours: dict[str, str]) -> None:
        from sklearn.datasets import make_moons

        X, label = make_moons(160, noise=0.3, random_state=0)
        u, v = np.meshgrid(np.linspace(-2, 3, 160), np.linspace(-1.6, 2.1, 120))
        points = np.column_stack([u.ravel(), v.ravel()])
        for k, values in enumerate(decide(X, label, points, levels)):
            ax.contour(
                u,
                v,
                values.reshape(u.shape),
                levels=[0],
                colors=colours["text"],
                linewidths=2.2 if k == len(levels) // 2 else 1.0,
            )
        for positive, colour in ((1, "second"), (0, "lines")):
            chosen = X[label == positive]
            ax.scatter(*chosen.T, s=10, color=colours[colour], alpha=0.85, linewidths=0)

    return draw


def _at_levels(X: Any, label: Any, points: Any, levels: list[float]) -> Any:
    from tausvm import TauSVC

    for tau in levels:
        yield TauSVC(tau=tau, gamma=1.0).fit(X, label).decision_function(points)


def _along_a_path(X: Any, label: Any, points: Any, levels: list[float]) -> Any:
    from tausvm import TauPathSVC

    path = TauPathSVC(gamma=1.0).fit(X, label)
    for tau in levels:
        yield path.decision_function(points, tau=tau)


def _along_a_tuned_path(X: Any, label: Any, points: Any, levels: list[float]) -> Any:
    from tausvm import TauPathSVCCV

    path = TauPathSVCCV(Cs=[0.3, 1.0, 3.0], gammas=[0.5, 1.0], cv=3).fit(X, label)
    for tau in levels:
        yield path.best_at(tau).decision_function(points)


def _loss(make: Callable[[], Any]) -> Any:
    def draw(ax: Any, colours: dict[str, str]) -> None:
        r = np.linspace(-2, 2, 401)
        loss = make()
        ax.plot(r, loss.value(r, np.ones_like(r)), color=colours["lines"], lw=2.2)
        ax.set_xlabel("residual")

    return draw


def _ways() -> dict[str, Any]:
    import tausvm
    from tausvm import losses

    sharp = {"C": 8, "gamma": 6}
    ways = {
        "tausvm.SVR": _regression(lambda: tausvm.SVR(C=10, gamma=8, epsilon=0.15)),
        "tausvm.QuantileSVR": _regression(lambda: tausvm.QuantileSVR(tau=LEVELS, **sharp)),
        "tausvm.ExpectileSVR": _regression(lambda: tausvm.ExpectileSVR(tau=LEVELS, **sharp)),
        "tausvm.JointQuantileSVR": _regression(
            lambda: tausvm.JointQuantileSVR(tau=LEVELS, gamma_tau=1.0, **sharp)
        ),
        "tausvm.JointExpectileSVR": _regression(
            lambda: tausvm.JointExpectileSVR(tau=LEVELS, gamma_tau=1.0, **sharp)
        ),
        "tausvm.JointSVR": _two_targets(lambda: tausvm.JointSVR(epsilon=0.1, **sharp)),
        "tausvm.TauPathSVR": _every_level(lambda: tausvm.TauPathSVR(**sharp)),
        "tausvm.TauSVC": _classes(_at_levels, [0.1, 0.5, 0.9]),
        "tausvm.TauPathSVC": _classes(_along_a_path, [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]),
        "tausvm.TauPathSVCCV": _classes(_along_a_tuned_path, [0.05, 0.2, 0.5, 0.8, 0.95]),
        "tausvm.JointSVRCV": _two_targets(
            lambda: tausvm.JointSVRCV(epsilons=[0.1], Cs=[1, 8], gammas=[3, 6], cv=3)
        ),
        "tausvm.TabularQuantileSVR": _table(lambda: tausvm.TabularQuantileSVR(tau=LEVELS, **SMALL)),
        "tausvm.TabularExpectileSVR": _table(
            lambda: tausvm.TabularExpectileSVR(tau=LEVELS, **SMALL)
        ),
        "tausvm.losses.Pinball": _loss(lambda: losses.Pinball(0.75)),
        "tausvm.losses.SquaredPinball": _loss(lambda: losses.SquaredPinball(0.75)),
        "tausvm.losses.EpsilonInsensitive": _loss(lambda: losses.EpsilonInsensitive(0.5)),
        "tausvm.losses.SquaredEpsilonInsensitive": _loss(
            lambda: losses.SquaredEpsilonInsensitive(0.5)
        ),
        "tausvm.losses.Hinge": _loss(lambda: losses.Hinge(0.5)),
    }
    for name in tausvm.__all__:  # machines of a family are drawn alike, new ones too
        full = f"tausvm.{name}"
        made = getattr(tausvm, name)
        if full in ways or not name.endswith(("SVR", "SVRCV")):
            continue
        parameters = made().get_params()
        given: dict[str, Any] = {"tau": LEVELS} if "tau" in parameters else {"epsilon": 0.1}
        given |= {key: value for key, value in SMALL.items() if key in parameters}
        data = _line if name.startswith("Linear") else _draw
        ways[full] = _regression(lambda made=made, given=given: made(**given), data)
    return ways


def _paint(name: str, way: Any, folder: Path) -> bool:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for theme, colours in THEMES.items():
        file = folder / f"{name}-{theme}.svg"
        if file.exists() and file.stat().st_mtime > Path(__file__).stat().st_mtime:
            continue
        style = {
            "svg.hashsalt": name,
            "axes.edgecolor": colours["text"],
            "axes.labelcolor": colours["text"],
            "xtick.color": colours["text"],
            "ytick.color": colours["text"],
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 9,
        }
        with plt.rc_context(style), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            figure, ax = plt.subplots(figsize=(5.4, 2.7), layout="constrained")
            try:
                way(ax, colours)
            except Exception as error:
                logger.warning("no picture of %s: %s", name, error, type="portraits")
                return False
            finally:
                plt.close(figure)
            figure.savefig(file, transparent=True, metadata={"Date": None})
    return True


class Portrait(Directive):
    """The picture of a class, where there is one."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        environment = self.state.document.settings.env
        name = self.arguments[0].replace("tausvm.dask.", "tausvm.")
        ways = _ways()
        if not environment.config.tausvm_pictures or name not in ways:
            return []
        folder = Path(environment.srcdir) / "portraits"
        folder.mkdir(exist_ok=True)
        if not _paint(name, ways[name], folder):
            return []
        last = name.rpartition(".")[2]
        return [
            nodes.image(
                uri=f"/portraits/{name}-{theme}.svg",
                alt=f"{last} fitted to points",
                classes=[f"only-{theme}", "portrait"],
            )
            for theme in THEMES
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("portrait", Portrait)
    app.add_config_value("tausvm_pictures", True, "env", types=[bool])
    return {"parallel_read_safe": True, "parallel_write_safe": True}
