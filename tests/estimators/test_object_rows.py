"""A callable kernel may know rows that are no vectors of numbers: these stay as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn import svm
from sklearn.model_selection import GridSearchCV

from tausvm import SVR, JointQuantileSVR, QuantileSVR, TauPathSVR, TauSVC
from tausvm.exceptions import SmallCWarning

WORDS = ["ab", "abc", "b", "bcc", "aab", "ca", "cab", "bb", "acb", "ccc", "aa", "cba"]
Y = np.array([word.count("a") + 0.5 * len(word) for word in WORDS])


def letters(a, b) -> np.ndarray:
    """How many letters two words share, each as often as it occurs."""
    counts = [np.array([[word.count(c) for c in "abc"] for word in words]) for words in (a, b)]
    return counts[0] @ counts[1].T + 1.0


def sizes(a, b) -> np.ndarray:
    """Of graphs, as sets of edges."""
    return np.array([[len(g.edges & h.edges) + 1.0 for h in b] for g in a])


class Graph:
    def __init__(self, *edges: tuple[int, int]) -> None:
        self.edges = frozenset(edges)


GRAPHS = [Graph(*((i, j) for j in range(i % 4 + 1))) for i in range(12)]


def traces(a, b) -> np.ndarray:
    """Of matrices: their inner products."""
    return np.array([[float(np.sum(g * h)) for h in b] for g in a])


MATRICES = np.random.default_rng(0).normal(size=(12, 2, 3))


@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        (WORDS, letters),
        (np.array(WORDS), letters),
        (np.array(WORDS, dtype=object), letters),
        ([list(word) for word in WORDS], letters),
        (GRAPHS, sizes),
        (MATRICES, traces),
    ],
    ids=["list", "array", "objects", "lists", "graphs", "matrices"],
)
def test_predictions_are_those_of_the_matrix_and_of_scikit_learn(rows, kernel) -> None:
    K = kernel(rows, rows)
    own = SVR(kernel=kernel, C=2.0, tol=1e-8).fit(rows, Y)
    given = SVR(kernel="precomputed", C=2.0, tol=1e-8).fit(K, Y)
    theirs = svm.SVR(kernel=kernel, C=2.0, tol=1e-8).fit(rows, Y)
    np.testing.assert_allclose(own.predict(rows), given.predict(K), atol=1e-6)
    np.testing.assert_allclose(own.predict(rows), theirs.predict(rows), atol=1e-3)
    np.testing.assert_allclose(own.predict(rows[:3]), own.predict(rows)[:3])
    assert own.dual_gap_ <= 1e-8
    assert not hasattr(own, "n_features_in_")
    label = np.median(Y) < Y
    classifier = TauSVC(kernel=kernel, tol=1e-8).fit(rows, label)
    values = classifier.decision_function(rows)
    np.testing.assert_array_equal(classifier.predict(rows), values > 0)
    np.testing.assert_allclose(
        values, TauSVC(kernel="precomputed", tol=1e-8).fit(K, label).decision_function(K), atol=1e-5
    )


def test_weights_levels_landmarks_and_searches() -> None:
    weight = np.arange(12) % 3
    twice = [i for i in range(12) for _ in range(weight[i])]
    model = QuantileSVR(tau=[0.2, 0.8], kernel=letters, tol=1e-8)
    by_weight = model.fit(WORDS, Y, weight).predict(WORDS)
    copied = model.fit([WORDS[i] for i in twice], Y[twice]).predict(WORDS)
    np.testing.assert_allclose(by_weight, copied, atol=1e-4)
    few = SVR(kernel=letters, approximation="landmarks", landmarks=6).fit(WORDS, Y)
    assert len(few.support_) <= 4  # letters and a constant: a kernel of rank 4
    assert np.isfinite(few.predict(WORDS)).all()
    search = GridSearchCV(SVR(kernel=letters), {"C": [0.1, 10.0]}, cv=2).fit(WORDS, Y)
    assert search.predict(["abba"]).shape == (1,)


def test_a_machine_may_go_from_words_to_numbers_and_back() -> None:
    def either(a, b):
        return (
            letters(a, b) if np.asarray(a).dtype.kind in "UO" else np.asarray(a) @ np.asarray(b).T
        )

    model = SVR(kernel=either)
    X = np.random.default_rng(0).normal(size=(12, 3))
    words = model.fit(WORDS, Y).predict(WORDS)
    assert model.fit(X, Y).n_features_in_ == 3
    with pytest.raises(ValueError, match="convert string"):
        model.predict([["a", "b", "c"]])
    np.testing.assert_array_equal(model.fit(WORDS, Y).predict(WORDS), words)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.filterwarnings("ignore", category=SmallCWarning)
def test_numbers_are_checked_as_ever() -> None:
    model = SVR(kernel=lambda a, b: a @ b.T)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(np.arange(12.0), Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((12, 2), np.nan), Y)
    numbers = np.arange(24.0).reshape(12, 2).astype(object)
    assert model.fit(numbers, Y).support_vectors_.dtype == np.float64


def test_errors_say_what_is_missing() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVR(kernel=letters).fit(WORDS, Y[:-1])
    with pytest.raises(ValueError, match="X must have 2 rows at least, got 1"):
        SVR(kernel=letters).fit(WORDS[:1], Y[:1])
    with pytest.raises(ValueError, match="NaN"):
        SVR(kernel=letters).fit(WORDS, np.full(12, np.nan))
    with pytest.raises(ValueError, match="string"):
        SVR().fit(np.array(WORDS)[:, None], Y)
    for machine in (JointQuantileSVR(tau=[0.2, 0.8], kernel=letters), TauPathSVR(kernel=letters)):
        with pytest.raises(ValueError, match="X must hold numbers, got rows of <U3"):
            machine.fit(WORDS, Y)


def test_such_a_machine_is_saved_by_trust(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    from tausvm.persistence import load, save

    model = SVR(kernel=letters).fit(WORDS, Y)
    save(model, tmp_path / "model.skops", trusted=[letters])
    same = load(tmp_path / "model.skops", trusted=[letters])
    np.testing.assert_array_equal(same.predict(WORDS), model.predict(WORDS))
