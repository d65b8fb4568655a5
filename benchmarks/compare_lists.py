"""Lists of places for comparing two versions: those of the other benchmarks, and the map's.

All are meant for one run of a quarter of an hour on an idle machine, so the largest data of those
benchmarks are cut. The longest fits of a list stand last: they are what time may not suffice for.
"""

from __future__ import annotations

import json
from typing import Any

from . import places
from .machines import MACHINES
from .places import Place

#: data sets and how many of their rows are taken
SPEED_SETS = {
    "concrete_comp": 1_030,
    "airfoil_noise": 1_503,
    "updrs_motor": 5_875,
    "cycle_pp": 9_568,
    "cal_housing": 10_000,
}
#: (C, γ) of easy, medium and hard problems on standardised columns
SPEED_SETTINGS = ((1.0, 0.1), (10.0, 0.3), (100.0, 0.5))
LINEAR_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def place(estimator: str, target: str, n: int, d: int = 0, **others: Any) -> Place:
    """A place; what is not one of its own fields is a parameter of the estimator."""
    own = {name: others.pop(name) for name in ("C", "levels", "task") if name in others}
    return Place(estimator, n, d, target, **own, params=json.dumps(others))


def speed() -> list[Place]:
    """Kernel machines on the data of ``benchmarks.speed``, up to 10,000 rows."""
    levels = ("QuantileSVR", "ExpectileSVR")
    found = [place("TauSVC", "pima", 768, C=C) for C in (0.1, 1.0, 100.0)]
    found += [
        place(estimator, name, rows, C=C, gamma=gamma, tau=0.25, fit_intercept=offset)
        for name, rows in (("concrete_comp", 1_030), ("updrs_motor", 3_000))
        for estimator in levels
        for C, gamma in SPEED_SETTINGS
        for offset in (True, False)
    ]
    found += [place(estimator, "airfoil_noise", 1_503, levels=9, C=10.0) for estimator in levels]
    found += [
        place("SVR", name, rows, C=C, gamma=gamma)
        for name, rows in SPEED_SETS.items()
        for C, gamma in SPEED_SETTINGS
    ]
    return found


def selection() -> list[Place]:
    """Whole selections with the default grid, from 45 to 1,500 rows, three levels."""
    small = ("snowgeese", "mcycle", "birthwt", "engel", "GAGurine")
    found = [
        place(estimator, name, 1_500, levels=3)
        for estimator in ("QuantileSVRCV", "ExpectileSVRCV")
        for name in (*small, "nc_crime", "concrete_comp", "airfoil_noise")
    ]
    found += [place("SVRCV", name, 1_500) for name in ("engel", "nc_crime", "concrete_comp")]
    found += [place("LinearSVRCV", name, 10_000) for name in ("engel", "updrs_motor")]
    return found


def linear() -> list[Place]:
    """Linear machines: inboxes, sparse counts, tall and wide dense data, one level and many."""
    found = [
        place(estimator, target, n, d, levels=levels)
        for estimator in ("LinearQuantileSVR", "LinearExpectileSVR")
        for target, n, d, levels in (("easy", 100, 50, 19), ("hard", 2_000, 10, 5))
    ]
    found += [
        place("LinearSVR", target, n, d, loss=loss)
        for target, n, d in (
            ("hard", 200, 1_000),
            ("hard", 5_000, 10),
            ("easy", 30_000, 90),
            ("counts", 1_500, 5_000),
            ("counts", 20_000, 50_000),
            ("counts", 3_000, 2_000),
        )
        for loss in LINEAR_LOSSES[::-1]
    ]
    found += [
        place("LinearSVR", name, 5_000, loss=loss, C=C)
        for loss in LINEAR_LOSSES[::-1]
        for C in (0.1, 10.0)
        for name in ("u00", "u01")
    ]
    return found


def joint() -> list[Place]:
    """Joint levels: a Gram matrix of small rank, one of full rank, three and nine levels."""
    found = [
        place("JointQuantileSVR", "sine", n, 1, C=100.0, levels=3, gamma=0.5, epsilon=epsilon)
        for n in (50, 500, 2_000)
        for epsilon in (0.1, 1.0)
    ]
    found += [
        place(estimator, "easy", n, 5, levels=levels, epsilon=epsilon)
        for estimator in ("JointQuantileSVR", "JointExpectileSVR")
        for n, levels in ((200, 3), (500, 3), (500, 9), (1_000, 3))
        for epsilon in (0.0, 0.5)
    ]
    found += [place("JointSVR", "easy", n, 5, levels=3) for n in (200, 800)]
    return found


def path() -> list[Place]:
    """Whole τ paths: linear with a penalised offset as in the paper, and RBF."""
    found = [place("TauPathSVC", "easy", n, 10) for n in (100, 400)]
    found += [place("TauPathSVR", target, 200, 2) for target in places.TARGETS]
    found += [place("TauPathSVR", "easy", 400, 10, C=10.0)]
    found += [
        place("TauPathSVC", name, rows, C=C, kernel="linear", penalise_intercept=True)
        for name, rows, C in (
            ("pima", 668, 1.5),
            ("u00_raw", 2_500, 400.0),
            ("splice", 3_175, 0.0315),
            ("splice_sites", 3_000, 0.033),
        )
    ]
    return found


def map_places() -> list[Place]:
    """Every estimator at 100, 400 and 1,600 rows of the map: the centre and its other targets."""
    changes: list[dict[str, Any]] = [{}, {"target": "hard"}, {"target": "noise_free"}]
    listed = [
        found
        for estimator in MACHINES
        for change in changes
        for found in places.along(estimator, change, 1_600)
        if found.n in (100, 400, 1_600) and not (estimator.endswith("CV") and found.n > 400)
    ]
    return sorted(listed, key=lambda found: found.n)


LISTS = {
    "speed": speed,
    "linear": linear,
    "joint": joint,
    "path": path,
    "selection": selection,
    "map": map_places,
}
