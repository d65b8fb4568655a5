"""The experiments of the five papers, and the page that maps every item of them."""

from __future__ import annotations

import ast
import itertools
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks.papers import expectile, joint, linear, note
from benchmarks.papers.__main__ import EXPERIMENTS, PAPERS, main, run, write
from benchmarks.papers.experiment import Experiment, Record, Store, missing, rounded, within
from tausvm import QuantileSVR
from tausvm.losses import SquaredEpsilonInsensitive
from tausvm.solvers import SolverOptions, solve

from ..shared_data import data_file

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"

#: what each paper numbers, by its heading in the page
NUMBERED = {
    "An SVM-like Approach for Expectile Regression": {
        "Figure": range(1, 18),
        "Table": range(1, 6),
        "Procedure": range(1, 4),
        "Algorithm": range(1, 3),
        "Theorem": (1, 2, 3, 7),
        "Lemma": (4, 5, 6),
        "WSS": (1, 2),
    },
    "A Supplement of Kernel-based SMO-SVR Algorithm": {"Table": range(1, 5)},
    "Large-scale Linear Support Vector Regression": {
        "Figure": range(1, 12),
        "Table": range(1, 6),
        "Algorithm": range(1, 5),
        "Theorem": (1,),
    },
    "Data sparse nonparametric regression with ε-insensitive losses": {
        "Figure": range(1, 4),
        "Table": (1, 2),
        "Algorithm": (1,),
        "Proposition": (1, 4, 5),
        "Theorem": (2,),
        "Lemma": (3,),
        "Corollary": (6,),
        "Remark": range(1, 5),
        "Example": (1,),
    },
    "The Entire Quantile Path of a Risk-Agnostic SVM Classifier": {
        "Figure": (1, 2),
        "Table": (1, 2),
        "Algorithm": (1,),
        "Lemma": ("2.1", "2.2"),
        "Proposition": ("3.1",),
    },
}
#: what the texts offer without a number
NAMED = {
    "An SVM-like Approach for Expectile Regression": (
        "Cold start",
        "All pairs",
        "Stopping rule (21) and (27)",
        "Clipped predictions",
        "Grid of λ and γ",
        "ER-Boost",
    ),
    "A Supplement of Kernel-based SMO-SVR Algorithm": (
        "Conditions (30) to (32)",
        "Pseudocode",
        "Heuristics 1 to 4",
        "Initialization",
        "Output",
    ),
    "Large-scale Linear Support Vector Regression": (
        "Stopping rule (25)",
        "Section 4.6",
        "Zero rows, (35)",
        "Selection of C and ε",
        "MSE and R²",
    ),
    "Data sparse nonparametric regression with ε-insensitive losses": (
        "Section 6.3",
        "Section 4.2",
        "Section 4.3",
        "Table 1 of the supplement",
    ),
    "The Entire Quantile Path of a Risk-Agnostic SVM Classifier": (
        "Events 1 to 3",
        "Sets L, M and R",
        "L-BFGS-B for the start",
        "Selection of λ",
    ),
}


def sections() -> dict[str, list[list[str]]]:
    """The cells of the page's tables, by paper."""
    found = {}
    for part in PAGE.read_text("utf-8").split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        found[title] = [[each.strip() for each in row.strip("|").split("|")] for row in rows[1:]]
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_page_has_everything_that_a_paper_numbers(paper: str) -> None:
    rows = sections()[paper]
    first = [row[0] for row in rows]
    wanted = [f"{kind} {number}" for kind, numbers in NUMBERED[paper].items() for number in numbers]
    missing = [item for item in wanted if not any(re.match(rf"{item}\b(?!\.)", c) for c in first)]
    missing += [item for item in NAMED[paper] if not any(c.startswith(item) for c in first)]
    assert not missing
    assert all(len(row) == 4 and all(row) for row in rows), "every item says where, test and result"


def test_the_page_names_tests_modules_files_and_experiments_that_exist() -> None:
    text = PAGE.read_text("utf-8")
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name
    for file in re.findall(r"`((?:tests|benchmarks)/[\w/]+\.(?:py|md))`", text):
        assert (ROOT / file).is_file(), file
    for name in re.findall(r"`(tausvm\.[\w.]+)`", text):
        package, _, last = name.rpartition(".")
        try:
            import_module(name)
        except ImportError:
            assert hasattr(import_module(package), last), name
    anchors = set(re.findall(r"papers-results\.md#([\w-]+)", text))
    assert anchors == {experiment.name for experiment in EXPERIMENTS}


def test_the_results_page_has_every_experiment() -> None:
    text = (ROOT / "docs" / "papers-results.md").read_text("utf-8")
    for experiment in EXPERIMENTS:
        assert f"### {experiment.name}\n" in text
    for picture in re.findall(r"\]\((images/[\w.]+)\)", text):
        assert (ROOT / "docs" / picture).is_file(), picture


# ------------------------------------------------------------------------ the command


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_every_experiment_runs_in_seconds(experiment: Experiment, tmp_path: Path) -> None:
    """The quick size of each: run, kept, told and drawn; a second call has nothing left to run."""
    for needed in ("nc_crime.csv", "ecml2006_spam_a_u00.svm.gz"):
        data_file(needed)
    for package in ("cvxopt", "lightgbm", "liblinear", "matplotlib"):
        pytest.importorskip(package)
    store = Store(tmp_path / "out")
    main(["--quick", "--only", experiment.name, "--out", str(tmp_path / "out")])
    records = store.records(experiment.name)
    assert len(records) == len(experiment.pieces(True)) > 0
    assert not missing(experiment, store, True)
    page = (tmp_path / "out" / "papers-results.md").read_text("utf-8")
    assert f"### {experiment.name}" in page and "| " in page
    if experiment.draw is not None:
        assert (tmp_path / "out" / "images" / experiment.picture).stat().st_size > 5_000


def counting(asked: list[int]) -> Experiment:
    """Three pieces that note that they were run."""

    def run_one(number: int) -> dict[str, float]:
        asked.append(number)
        return {"square": number**2 / 3}

    return Experiment(
        "counting",
        "note",
        "nothing",
        lambda quick: [{"number": k} for k in range(3)],
        run_one,
        lambda records: " ".join(str(record["square"]) for record in records),
    )


def test_a_run_goes_on_where_it_was_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    experiment, store = counting(asked), Store(tmp_path)
    run([experiment], store, True, seconds=0.0)
    assert not asked and "the same command goes on" in capsys.readouterr().out
    store.keep("counting", Record({"number": 1}, {"square": 1 / 3}, 0.1))
    run([experiment], store, True, seconds=np.inf)
    assert asked == [0, 2]
    assert "counting 3/3: number 2" in capsys.readouterr().out
    run([experiment], store, True, seconds=np.inf)
    assert asked == [0, 2]
    page = write([experiment], store, tmp_path / "docs").read_text("utf-8")
    assert "0.333333" in page and PAPERS["note"] in page
    assert rounded({"a": [1 / 3, np.float64(2e-9)]}) == {"a": [0.333333, 2e-9]}


def test_agreement_is_by_the_papers_deviations() -> None:
    assert within(1.1, 1.0, 0.06) == "yes"
    assert within(0.7, 1.0, 0.1) == "-3.0 deviations"
    with pytest.raises(SystemExit):
        main(["--only", "no such experiment"])


# ------------------------------------------------------------------------ the pieces


def test_the_note_stops_early_as_printed() -> None:
    """(30)–(32) hold at the end, and the duality gap is far from closed; a good step is kept."""
    K, y = note.problem_of("generated", 12, 0)
    posed = note.AsPrinted(K, y, C=10.0, epsilon=0.1)
    beta, _steps, end = posed.run()
    assert end == "stop" and posed.pair(beta, K @ beta - y) is None
    assert abs(beta.sum()) < 1e-10 and np.abs(beta).max() <= 10.0
    assert posed.certified(beta).gap > 0.1
    assert solve(posed.problem(), "smo").dual_gap <= 1e-4
    # where C is so small that all variables are at bounds or at 0 in the end, the print is right
    easy = note.AsPrinted(K, y, C=0.01, epsilon=0.1)
    assert easy.certified(easy.run()[0]).gap <= 0.05


def test_the_trust_region_finds_the_optimum() -> None:
    X, y = linear.made("TFIDF-2006", 150, True)
    posed = linear.problem(X, y, SquaredEpsilonInsensitive(0.1), 4.0)
    region = linear.TrustRegion(posed)
    region.run(1e-6, limit=60.0)
    best = solve(posed, "newton", SolverOptions(tol=1e-9)).primal_objective
    assert region.value(region.w) == pytest.approx(best, rel=1e-6)
    assert region.steps > 0 and region.products >= region.steps


@pytest.mark.parametrize("name", linear.VARIANTS)
def test_both_descents_raise_the_dual_to_the_optimum(name: str) -> None:
    X, y = linear.made("KDD2010b", 60, True)
    found = linear.run_dcd("KDD2010b", 60)[name]
    assert found[-1][1] <= 1e-5
    passes = itertools.islice(linear.descent(X, y, *linear.VARIANTS[name]), 5)
    duals = [dual for _, dual in passes]
    assert all(before <= after + 1e-12 for before, after in itertools.pairwise(duals))


@pytest.mark.parametrize("name", linear.SHAPES)
def test_generated_rows_have_the_papers_shapes(name: str) -> None:
    shape = linear.SHAPES[name]
    if name == "MSD":
        data_file("year_msd_1176.csv.gz")
    X, y = linear.made(name, 100, False)
    assert X.shape[0] == len(y) == 100
    low, high = {"TFIDF-2006": (-7.9, -0.52), "LOG1P-2006": (-7.9, -0.52)}.get(name, (0.0, 1.0))
    assert y.min() >= low - 1e-9 and y.max() <= high + 1e-9
    if shape.entries:
        assert linear.entries_of(X) <= 1.5 * shape.entries


def test_lims_coefficients_are_optimal() -> None:
    """K(y − Kc/s − c) is a subgradient of ε Σ‖cᵢ‖, the condition that the paper states."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(25, 2)), rng.normal(size=(25, 2))
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    c = joint.lim_coefficients(K, Y, scale=0.5, epsilon=0.3, sweeps=20_000, tol=1e-12)
    pulled = K @ (Y - K @ c / 0.5 - c)
    size = np.linalg.norm(c, axis=1)
    free = size > 1e-9
    assert 0 < free.sum() < 25
    np.testing.assert_allclose(pulled[free], 0.3 * c[free] / size[free, None], atol=1e-5)
    assert np.linalg.norm(pulled[~free], axis=1).max() <= 0.3 + 1e-6


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.9])
def test_park_and_kims_loss_is_ours_moved(tau: float) -> None:
    """max(0, ρ(r) − ε) is the ε′-insensitive pinball loss of r moved, and so is the machine."""
    epsilon = 0.15
    wide = epsilon / (2 * tau * (1 - tau))
    shift = epsilon * (1 - 2 * tau) / (2 * tau * (1 - tau))
    r = np.linspace(-3, 3, 301)
    theirs = np.maximum(0.0, np.where(r > 0, tau, tau - 1) * r - epsilon)
    moved = r - shift
    ours = np.where(moved > 0, tau, 1 - tau) * np.maximum(np.abs(moved) - wide, 0.0)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    pytest.importorskip("cvxopt")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + rng.normal(size=40)
    assert joint._park_kim_gap(X, y, tau, epsilon) <= 1e-6
    assert QuantileSVR(tau=tau, epsilon=wide).fit(X, y).dual_gap_ <= 1e-4


def test_the_alternating_program_finds_the_optimum() -> None:
    pytest.importorskip("cvxopt")
    problem = joint.build(*joint.sine(20), 0.1)
    alpha = joint.alternating_qp(problem, 1e-3, 60.0)
    assert joint.certify(problem, alpha).gap <= 1e-3


def test_the_boosted_loss_is_the_expectile_loss() -> None:
    y, f = np.array([1.0, -1.0]), np.array([0.5, 0.5])
    gradient, curvature = expectile.expectile_objective(0.8)(y, f)
    step = 1e-6
    for k, weight in enumerate((0.8, 0.2)):
        change = weight * ((y[k] - f[k] - step) ** 2 - (y[k] - f[k]) ** 2) / step
        assert gradient[k] == pytest.approx(change, rel=1e-4)
        assert curvature[k] == pytest.approx(2 * weight)
