"""What the map knows about each estimator: how far it goes, its solvers and its peers.

A new estimator is one more line of ``MACHINES``, a new solver one more name in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

KERNEL_SOLVERS = ("block", "smo", "interior_point")
LINEAR_SOLVERS = ("dual_cd", "newton", "interior_point")
JOINT_SOLVERS = ("interior_point", "primal_dual_cd")


@dataclass(frozen=True)
class Machine:
    """One line of the map."""

    #: the most rows it is asked for
    largest: int
    #: names that its ``solver=`` takes beside "auto"; one that refuses a problem is left out there
    solvers: tuple[str, ...] = ()
    #: names in ``benchmarks.peers``
    peers: tuple[str, ...] = ()
    #: how many τ, or outputs, it is asked for, the centre's first
    levels: tuple[int, ...] = (1,)
    #: whether C is a parameter (else it is chosen, or does not matter)
    takes_C: bool = True
    #: y = ±1
    classifies: bool = False
    #: y has ``levels`` columns
    outputs: bool = False
    #: "fit" or "predict"
    task: str = "fit"
    #: the class, where the line's name is not one of tausvm's
    of: str | None = None
    #: how data of a file are scaled
    scaling: str = "standard"


MANY = (1, 5, 19)

#: a selection of C and γ alone, which is what liquidSVM and earlier versions do
PLAIN = {"feature_metric": None, "kernel": "rbf", "calibrate": None}

MACHINES = {
    "SVR": Machine(12_800, KERNEL_SOLVERS, ("sklearn SVR",)),
    "QuantileSVR": Machine(12_800, KERNEL_SOLVERS, ("liquidSVM", "cvxopt"), MANY),
    "ExpectileSVR": Machine(12_800, (*KERNEL_SOLVERS, "newton"), ("liquidSVM",), MANY),
    "TauSVC": Machine(12_800, KERNEL_SOLVERS, ("sklearn SVC",), classifies=True),
    "LinearSVR": Machine(102_400, LINEAR_SOLVERS, ("sklearn LinearSVR", "liblinear")),
    "LinearQuantileSVR": Machine(
        102_400, LINEAR_SOLVERS, ("sklearn QuantileRegressor",), levels=MANY
    ),
    "LinearExpectileSVR": Machine(102_400, LINEAR_SOLVERS, ("sklearn LinearSVR",), levels=MANY),
    "JointQuantileSVR": Machine(3_200, JOINT_SOLVERS, ("cvxopt",), levels=(3, 9)),
    "JointExpectileSVR": Machine(3_200, JOINT_SOLVERS, levels=(3, 9)),
    "JointSVR": Machine(3_200, JOINT_SOLVERS, levels=(3, 9), outputs=True),
    "TauPathSVC": Machine(1_600, peers=("sklearn SVC",), classifies=True, scaling="unit"),
    "TauPathSVR": Machine(1_600),
    "SVRCV": Machine(6_400, peers=("sklearn SVR",), takes_C=False),
    "QuantileSVRCV": Machine(6_400, peers=("liquidSVM",), levels=MANY, takes_C=False),
    "ExpectileSVRCV": Machine(6_400, peers=("liquidSVM",), levels=MANY, takes_C=False),
    "LinearSVRCV": Machine(25_600, peers=("sklearn LinearSVR",), takes_C=False),
    "LinearQuantileSVRCV": Machine(25_600, levels=MANY, takes_C=False),
    "LinearExpectileSVRCV": Machine(25_600, levels=MANY, takes_C=False),
    "JointQuantileSVRCV": Machine(400, levels=(3, 9), takes_C=False),
    "JointExpectileSVRCV": Machine(400, levels=(3, 9), takes_C=False),
    "JointSVRCV": Machine(400, levels=(3, 9), takes_C=False, outputs=True),
    "TauPathSVCCV": Machine(400, takes_C=False, classifies=True, scaling="unit"),
    "SVR.predict": Machine(6_400, peers=("sklearn SVR",), task="predict", of="SVR"),
    "QuantileSVR.predict": Machine(6_400, levels=MANY, task="predict", of="QuantileSVR"),
    "TauSVC.predict": Machine(
        6_400, peers=("sklearn SVC",), classifies=True, task="predict", of="TauSVC"
    ),
}


def plain_parameters(made: type) -> dict[str, object]:
    """Those of a selection of C and γ alone, as far as a class has them; earlier ones have none."""
    known = signature(made).parameters
    return {name: value for name, value in PLAIN.items() if "Cs" in known and name in known}


def class_name(estimator: str) -> str:
    """The public class behind a line."""
    return MACHINES[estimator].of or estimator
