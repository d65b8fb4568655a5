"""The parts that :mod:`benchmarks.ablation` switches off, and how.

A part is one more entry of ``PARTS``: parameters of the estimator with it and without it. A
settings object is written as {"class": its full name, field: value, …}, so that a table without it
can be read and run against any version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .compare_lists import place
from .places import Place

#: up to 300 rows
SMALL = ("mcycle", "birthwt", "engel")
MIDDLE = ("nc_crime", "concrete_comp", "airfoil_noise", "updrs_motor")


@dataclass(frozen=True)
class Part:
    """What is switched off, and the calls that it is judged by."""

    #: what it does, and what stands in without it
    why: str
    absent: dict[str, Any]
    places: tuple[Place, ...]
    #: parameters with it; the defaults unless the part belongs to a solver that is not
    present: dict[str, Any] = field(default_factory=dict)


def solver(name: str, **fields: Any) -> dict[str, Any]:
    """``solver=`` with settings: a class of ``tausvm.solvers`` and its changed fields."""
    return {"solver": settings(name, **fields)}


def settings(name: str, **fields: Any) -> dict[str, Any]:
    """A settings object of ``tausvm.solvers``."""
    return {"class": f"tausvm.solvers.{name}", **fields}


def linear(**fields: Any) -> dict[str, Any]:
    """A linear machine whose coordinate descent has changed settings."""
    return solver("linear.LinearAuto", dual_cd=settings("linear.DualCD", **fields))


def newton(**fields: Any) -> dict[str, Any]:
    """Newton's method of linear machines with changed settings."""
    return settings("linear.LinearNewton", **fields)


def tuned(**fields: Any) -> dict[str, Any]:
    """A selection whose many problems are solved with changed settings."""
    many = settings("many.Many", **fields)
    return {"_settings": {"class": "tausvm.selection.settings.SelectionSettings", "many": many}}


def walked(**fields: Any) -> dict[str, Any]:
    """A path that is followed with changed settings."""
    return {"_settings": settings("path.PathSettings", **fields)}


def kernel(estimator: str, *names: str, **others: Any) -> tuple[Place, ...]:
    """A kernel machine's default call on some data sets, and a hard one each."""
    easy = [place(estimator, name, 3_000, **others) for name in names]
    hard = [place(estimator, name, 3_000, C=100.0, **others) for name in names]
    return (*easy, *hard)


def noise_free(estimator: str, *rows: int) -> tuple[Place, ...]:
    """What takes small steps for ever: a smooth target without noise at a large C."""
    return tuple(place(estimator, "noise_free", n, 2, C=1000.0, gamma=1.0) for n in rows)


QUANTILES = (*kernel("QuantileSVR", *MIDDLE), *noise_free("QuantileSVR", 400, 1_600))
#: large costs, where many variables stay inside their bounds
DEAR = tuple(
    place("QuantileSVR", name, 1_000, C=C)
    for name in ("concrete_comp", "cycle_pp", "cal_housing", "pol")
    for C in (1_000.0, 10_000.0)
)
FEW = (*kernel("ExpectileSVR", *SMALL), *noise_free("ExpectileSVR", 100, 300))


def tunings(estimator: str) -> tuple[Place, ...]:
    """Whole selections of three levels on small and middling data."""
    return tuple(
        place(estimator, name, 800, levels=3)
        for name in ("snowgeese", "mcycle", "engel", "nc_crime", "concrete_comp")
    )


JOINT = tuple(
    place("JointQuantileSVR", target, n, d, levels=3, epsilon=epsilon)
    for target, n, d in (("sine", 300, 1), ("easy", 300, 5), ("mcycle", 133, 0), ("engel", 235, 0))
    for epsilon in (0.0, 0.3)
)
#: the paper's linear paths, with a penalised offset
PATHS = tuple(
    place("TauPathSVC", name, n, C=C, kernel="linear", penalise_intercept=True)
    for name, n, C in (("pima", 668, 1.5), ("u00_raw", 2_500, 400.0), ("splice", 3_175, 0.0315))
)
#: linear machines with many features
LINEAR = tuple(
    place("LinearSVR", target, n, d, loss=loss, C=C)
    for target, n, d in (
        ("counts", 1_500, 5_000),
        ("counts", 3_000, 2_000),
        ("counts", 20_000, 50_000),
    )
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
    for C in (0.01, 0.1)
)
#: unknowns up to which a matrix is written out whatever its rank
DENSE = {"few": 10**9, "dense": 10**9}

PARTS = {
    "newton": Part(
        "a few linear systems for squared losses; block in its place",
        {"solver": "block"},
        (
            *kernel("ExpectileSVR", *SMALL, *MIDDLE),
            *noise_free("ExpectileSVR", 100, 400, 1_600),
            place("ExpectileSVR", "cycle_pp", 9_568),
            place("ExpectileSVR", "airfoil_noise", 1_503, levels=9),
        ),
    ),
    "block": Part(
        "decomposition for many samples; smo in its place",
        {"solver": "smo"},
        QUANTILES,
    ),
    "factors for few samples": Part(
        "auto factorises up to 200 samples of a smooth loss; steps first without it",
        solver("Auto", few_samples=0),
        FEW,
    ),
    "direct solves in block": Part(
        "a block is factorised where its steps have cost as much; steps alone without it",
        solver("Block", factor_cost=1e12),
        QUANTILES,
        solver("Block"),
    ),
    "faces in block": Part(
        "the linear system of the face that steps lead to; steps and interior points without it",
        solver("Block", faces=settings("Faces", pulling=-1.0)),
        QUANTILES,
        solver("Block"),
    ),
    "proximal steps in block": Part(
        "they go on where faces fall apart or are singular; interior points without them",
        solver("Block", faces=settings("Faces", failures=-1)),
        (*QUANTILES, *DEAR),
        solver("Block"),
    ),
    "landmarks of Newton's conjugate gradients": Part(
        "a Nyström preconditioner for large systems; none without it",
        solver("Newton", most_rank=1),
        kernel("ExpectileSVR", "updrs_motor", "cycle_pp"),
        solver("Newton"),
    ),
    "shrinking of smo": Part(
        "settled variables are left out; all take part without it",
        solver("SMO", shrinking=False),
        QUANTILES,
        solver("SMO"),
    ),
    "nearest neighbours of smo": Part(
        "WSS 2 looks at 15 of them; halves of the data (WSS 1) without it",
        solver("SMO", working_set="halves"),
        kernel("ExpectileSVR", *MIDDLE, fit_intercept=False),
        solver("SMO"),
    ),
    "pruning of the selection": Part(
        "a race drops points of the grid that cannot win; all are fitted without it",
        {"prune": False},
        (*tunings("QuantileSVRCV"), *tunings("ExpectileSVRCV")),
    ),
    "shared work of a selection": Part(
        "many C and levels on one matrix at a time; one after the other without it",
        tuned(shared=False),
        (*tunings("QuantileSVRCV"), *tunings("ExpectileSVRCV")),
    ),
    "landmarks of many squared problems": Part(
        "a Nyström preconditioner for all of them; factors or plain steps without it",
        tuned(landmark_share=0.0, landmarks=[1, 1]),
        tunings("ExpectileSVRCV"),
    ),
    "factors of many squared problems": Part(
        "a Cholesky factor where landmarks are not enough; landmarks alone without it",
        tuned(factor_order=0),
        tunings("ExpectileSVRCV"),
    ),
    "linear newton": Part(
        "few systems in w; coordinate descent in its place",
        {"solver": "dual_cd"},
        tuple(
            place("LinearSVR", target, n, d, loss="squared_epsilon_insensitive")
            for target, n, d in (
                ("easy", 30_000, 90),
                ("counts", 3_000, 2_000),
                ("hard", 5_000, 10),
            )
        ),
    ),
    "linear dual coordinate descent": Part(
        "sweeps over the rows; Newton's method in its place",
        {"solver": "newton"},
        tuple(
            place("LinearSVR", target, n, d, loss=loss)
            for target, n, d in (("u00", 5_000, 0), ("counts", 1_500, 5_000), ("easy", 5_000, 10))
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
        ),
    ),
    "visits by gain": Part(
        "rows that gain more are visited more often after some passes; shrinking alone without it",
        linear(adaptive=False),
        LINEAR,
    ),
    "shrinking of dual coordinate descent": Part(
        "settled rows leave during the first passes; all are visited without it",
        linear(shrinking=False),
        LINEAR,
    ),
    "checks by what a pass leaves": Part(
        "the gap is looked at when a pass seems to leave little of it; every eight passes without",
        linear(caution=0.0),
        LINEAR,
    ),
    "blocks of rows": Part(
        "large data are visited in random blocks of neighbours; in a wholly random order without",
        linear(cached_entries=10**15),
        tuple(
            place("LinearSVR", "counts", 100_000, 100_000, loss=loss)
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
        ),
    ),
    "weights fetched early": Part(
        "those of the next row while a row is worked on, where features are many; not without it",
        linear(cached_weights=10**15),
        (place("LinearSVR", "counts", 100_000, 1_000_000, C=0.01),),
    ),
    "rows held at their bounds": Part(
        "proximal steps on the rows near a corner; on all rows without it",
        solver(
            "linear.LinearAuto", newton=newton(proximal=settings("linear.Proximal", most_held=-1.0))
        ),
        tuple(
            place(estimator, target, n, d)
            for estimator in ("LinearSVR", "LinearQuantileSVR")
            for target, n, d in (("easy", 30_000, 90), ("hard", 5_000, 10))
        ),
    ),
    "inner products of active rows": Part(
        "few active rows of many features are factorised; conjugate gradients alone without it",
        solver(
            "linear.LinearAuto", newton=newton(systems=settings("linear.Systems", most_rows=-1))
        ),
        tuple(
            place("LinearSVR", target, n, d, loss=loss, C=C)
            for target, n, d in (("hard", 200, 1_000), ("counts", 1_500, 5_000))
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
            for C in (1.0, 100.0)
        ),
    ),
    "interior point of linear machines": Part(
        "a few factorisations where rows are not many times the features; newton without it",
        solver("linear.LinearAuto", interior_point=settings("linear.LinearInteriorPoint", most=0)),
        tuple(
            place("LinearSVR", target, n, d, loss=loss, C=C)
            for target, n, d in (("hard", 1_000, 500), ("counts", 1_500, 5_000))
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
            for C in (1.0, 100.0)
        ),
    ),
    "joint interior point": Part(
        "a cone program's Newton steps; primal-dual coordinate descent in its place",
        {"solver": "primal_dual_cd"},
        tuple(
            place("JointQuantileSVR", "easy", n, 5, levels=3, epsilon=epsilon)
            for n in (100, 400)
            for epsilon in (0.0, 0.5)
        ),
    ),
    "active set of primal-dual coordinate descent": Part(
        "samples that have settled are left out between checks; all take part without it",
        solver("PrimalDualCD", shrinking=False),
        JOINT,
        solver("PrimalDualCD"),
    ),
    "small rank in joint systems": Part(
        "factors of K where its rank is small; its matrix is written out without them",
        solver("JointInteriorPoint", equations=settings("joint.settings.Equations", **DENSE)),
        JOINT,
        solver("JointInteriorPoint"),
    ),
    "windows of a path": Part(
        "a batch of kinks looks at the points near the margin; at all of them without it",
        walked(whole=10**9),
        PATHS,
    ),
    "all points where K is held": Part(
        "no window up to 4,000 points with a held matrix; one from 1,000 on without it",
        walked(whole_held=0),
        tuple(place("TauPathSVR", name, 1_500) for name in ("airfoil_noise", "concrete_comp")),
    ),
    "the smaller class first": Part(
        "a path without a free offset begins with one class; with both without it",
        walked(begin_at_ends=False),
        PATHS,
    ),
    "few entries to rounding": Part(
        "auto solves small linear problems to rounding; to the tolerance without it",
        solver("linear.LinearAuto", few_entries=0),
        tuple(
            place(estimator, name, 500)
            for estimator in ("LinearSVR", "LinearQuantileSVR")
            for name in ("engel", "bodyfat", "nc_crime")
        ),
    ),
    "others after slow sweeps": Part(
        "auto goes over to others where coordinate descent is slow; it goes on without it",
        solver("linear.DualCD"),
        LINEAR,
    ),
}
