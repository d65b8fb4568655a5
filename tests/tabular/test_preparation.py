"""What columns are taken for, and the features that they become."""

from __future__ import annotations

import doctest

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import tausvm.tabular.preparation
from tausvm.tabular import FramePreparation
from tausvm.tabular.codes import weighted_quantiles

from .tables import mixed_table


def told(preparation: FramePreparation) -> dict[str, tuple[str, str]]:
    return {c["name"]: (c["kind"], c["why"]) for c in preparation.columns_}


def test_docstrings() -> None:
    assert doctest.testmod(tausvm.tabular.preparation).failed == 0


def test_what_columns_are_and_why() -> None:
    frame, _ = mixed_table()
    found = told(FramePreparation().fit(frame))
    assert {name: kind for name, (kind, _) in found.items()} == {
        "size": "number",
        "quarter": "category",
        "state": "ordered",
        "age": "number",
        "let": "date",
        "lift": "number",
        "flat": "identifier",
        "country": "constant",
    }
    assert "missing in 2 rows" in found["size"][1]
    assert found["quarter"][1] == "3 categories; missing in 3 rows, a category of its own"
    assert "from 'poor' to 'good'" in found["state"][1]
    assert "stored as text" in found["age"][1]
    assert "'?' and 'n/a' in 2 rows" in found["age"][1]
    assert (
        "2021-04-02 to" in found["let"][1] and "place in the year and the week" in found["let"][1]
    )
    assert found["lift"][1] == "yes or no"
    assert "120 different texts" in found["flat"][1]
    assert "'here' in all rows" in found["country"][1]


def test_features_have_names_and_columns() -> None:
    frame, _ = mixed_table()
    preparation = FramePreparation()
    features = preparation.fit_transform(frame)
    names = list(preparation.get_feature_names_out())
    assert features.shape == (120, len(names)) and features.dtype == np.float64
    assert np.isfinite(features).all()
    assert names[:6] == [
        "size", "size_missing", "quarter_north", "quarter_south", "quarter_west", "quarter_missing",
    ]  # fmt: skip
    assert "let_year_sin" in names and "let_day_sin" not in names
    came_from = np.array(frame.columns)[preparation.feature_groups_]
    assert all(name.startswith(column) for name, column in zip(names, came_from, strict=True))
    assert [name for c in preparation.columns_ for name in c["features"]] == names


def test_a_table_of_pandas_comes_out_where_asked() -> None:
    frame, _ = mixed_table()
    preparation = FramePreparation().set_output(transform="pandas").fit(frame)
    out = preparation.transform(frame)
    assert list(out.columns) == list(preparation.get_feature_names_out())


def test_numbers_are_standard_and_long_tails_are_drawn_in() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 3, 500), rng.lognormal(0, 2.5, 500)])
    features = FramePreparation().fit_transform(X)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), 1.0)
    np.testing.assert_allclose(features[:, 0], (X[:, 0] - X[:, 0].mean()) / X[:, 0].std())
    assert ((X[:, 1] - X[:, 1].mean()) / X[:, 1].std()).max() > 6 > features[:, 1].max()
    # the formula of the docstring
    low, middle, high = weighted_quantiles(X[:, 1], np.ones(500), [0.25, 0.5, 0.75])
    scale = max((high - low) / 1.349, 0.25 * X[:, 1].std())
    bent = np.arcsinh((X[:, 1] - middle) / scale)
    np.testing.assert_allclose(features[:, 1], (bent - bent.mean()) / bent.std())


def test_two_categories_two_values_and_two_draws_of_a_number_are_alike_far_apart() -> None:
    X = np.array([["a", 0, "u"], ["b", 1, "v"], ["c", 0, "u"]] * 10, dtype=object)
    features = FramePreparation().fit_transform(X)
    three, two, text = features[:, :3], features[:, 3], features[:, 4]
    assert np.linalg.norm(three[0] - three[1]) == pytest.approx(2**0.5)
    assert np.linalg.norm(three[1] - three[2]) == pytest.approx(2**0.5)
    assert abs(two[0] - two[1]) == pytest.approx(2**0.5)
    assert abs(text[0] - text[1]) == pytest.approx(2**0.5)


def test_unseen_categories_are_zeros_and_in_the_middle_of_two() -> None:
    X = np.array([["a", "u"], ["b", "v"], ["c", "u"]] * 10, dtype=object)
    preparation = FramePreparation().fit(X)
    np.testing.assert_array_equal(preparation.transform([["z", "w"], [None, None]]), 0.0)


def test_missing_values_are_marked() -> None:
    X = np.array([1.0, 2.0, np.nan, 4.0, 100.0])[:, None]
    preparation = FramePreparation().fit(X)
    features = preparation.transform([[np.nan], [3.0]])
    assert features[0, 0] == features[1, 0]  # the median of 1, 2, 4 and 100
    assert features[0, 1] - features[1, 1] == pytest.approx(2**0.5)


def test_a_column_without_missing_values_takes_its_median_for_one() -> None:
    X = np.arange(9.0)[:, None]
    preparation = FramePreparation().fit(X)
    np.testing.assert_array_equal(preparation.transform([[np.nan]]), preparation.transform([[4.0]]))


def test_rare_categories_are_pooled() -> None:
    text = ["a"] * 300 + ["b"] * 100 + ["c", "d", "e"]
    preparation = FramePreparation().fit(pd.DataFrame({"t": text}))
    assert list(preparation.get_feature_names_out()) == ["t_a", "t_b", "t_other"]
    assert "3 rare ones are one" in preparation.columns_[0]["why"]


def test_numbers_with_many_words_among_them_are_categories_and_it_says_why() -> None:
    text = [str(k % 20) for k in range(60)] + ["?"] * 20 + ["n/a"] * 20
    (column,) = FramePreparation().fit(pd.DataFrame({"hp": text})).columns_
    assert column["kind"] == "category"
    assert column["why"] == "22 categories, because of '?' and 'n/a' in 40 rows"


def test_many_categories_are_coded_by_targets_of_other_rows() -> None:
    rng = np.random.default_rng(0)
    town = rng.integers(0, 100, 1000)
    y = town / 10 + rng.normal(size=1000)
    frame = pd.DataFrame({"town": [f"t{k}" for k in town]})
    preparation = FramePreparation()
    training = preparation.fit_transform(frame, y)
    assert list(preparation.get_feature_names_out()) == ["town_mean"]
    assert "mean targets" in preparation.columns_[0]["why"]
    assert np.corrcoef(training[:, 0], y)[0, 1] > 0.8
    after = preparation.transform(frame)
    assert not np.allclose(training, after)
    # no row is told its own target: noise alone is not explained by out-of-fold codes
    noise = rng.normal(size=1000)
    told_noise = FramePreparation().fit_transform(frame, noise)
    assert abs(np.corrcoef(told_noise[:, 0], noise)[0, 1]) < 0.1
    # nor does a row of weight 0 tell its target, which need not be a number
    weight, holes = np.ones(1000), y.copy()
    weight[:50], holes[:50] = 0.0, np.nan
    weighted = FramePreparation().fit_transform(frame, holes, weight)
    assert np.isfinite(weighted).all()
    unseen = preparation.transform(pd.DataFrame({"town": ["elsewhere"]}))
    assert unseen[0, 0] == 0.0
    counted = FramePreparation().fit(frame)
    assert list(counted.get_feature_names_out()) == ["town_count"]


def test_groups_are_coded_by_other_groups() -> None:
    rng = np.random.default_rng(1)
    house = np.repeat(np.arange(150), 4)
    y = np.repeat(rng.normal(size=150), 4)
    frame = pd.DataFrame({"house": [f"h{k}" for k in house]})
    apart = FramePreparation().fit_transform(frame, y, groups=house)
    assert abs(np.corrcoef(apart[:, 0], y)[0, 1]) < 0.2
    assert np.corrcoef(FramePreparation().fit_transform(frame, y)[:, 0], y)[0, 1] > 0.8


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates(zone: str | None) -> None:
    days = pd.date_range("2020-01-06", periods=900, freq="D", tz=zone)
    frame = pd.DataFrame({"d": days})
    features = FramePreparation().set_output(transform="pandas").fit_transform(frame)
    assert list(features.columns) == [
        "d", "d_year_sin", "d_year_cos", "d_week_sin", "d_week_cos",
    ]  # fmt: skip
    mondays = features.iloc[::7]
    np.testing.assert_allclose(mondays["d_week_sin"], 0.0, atol=1e-9)
    np.testing.assert_allclose(mondays["d_week_cos"], 1.0)
    assert (np.diff(features["d"]) > 0).all()
    radius = features["d_year_sin"] ** 2 + features["d_year_cos"] ** 2
    np.testing.assert_allclose(radius, 1.0)


def test_times_of_day_go_around_where_they_differ() -> None:
    hours = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=50, freq="5h")})
    names = list(FramePreparation().fit(hours).get_feature_names_out())
    assert names == ["d", "d_week_sin", "d_week_cos", "d_day_sin", "d_day_cos"]
    few = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=5, freq="1h")})
    assert list(FramePreparation().fit(few).get_feature_names_out()) == ["d"]


def test_dates_as_text_and_as_objects_are_the_same_dates() -> None:
    days = pd.date_range("2020-01-06", periods=60, freq="11D")
    text = pd.DataFrame({"d": [str(day.date()) for day in days]})
    things = pd.DataFrame({"d": pd.Series([day.date() for day in days], dtype=object)})
    dates = FramePreparation().fit_transform(pd.DataFrame({"d": days}))
    for frame in (text, things):
        preparation = FramePreparation()
        np.testing.assert_array_equal(preparation.fit_transform(frame), dates)
        assert preparation.columns_[0]["kind"] == "date"


@pytest.mark.parametrize(
    "dtype", ["Int64", "Float64", "float32", "int8", "string", "category", object]
)
def test_dtypes_of_numbers(dtype: object) -> None:
    plain = pd.DataFrame({"a": [3, 1, 2, 5, 4] * 6})
    given = plain.astype(str).astype(dtype) if dtype == "string" else plain.astype(dtype)
    preparation = FramePreparation()
    features = preparation.fit_transform(given)
    if dtype == "category":
        assert preparation.columns_[0]["kind"] == "category"
    else:
        np.testing.assert_allclose(features, FramePreparation().fit_transform(plain))


def test_nullable_columns() -> None:
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "yes": pd.array([True, None, False, True], dtype="boolean"),
            "text": pd.array(["a", None, "b", "a"], dtype="string"),
            "long": pd.to_timedelta([1, 2, None, 5], unit="h"),
        }
    )
    preparation = FramePreparation().fit(frame)
    assert list(preparation.get_feature_names_out()) == [
        "whole", "whole_missing", "yes", "yes_missing", "text_a", "text_b", "text_missing",
        "long", "long_missing",
    ]  # fmt: skip


def test_kinds_may_be_said() -> None:
    frame, _ = mixed_table()
    asked = {"size": "drop", "flat": "category", "age": "category", "quarter": "category"}
    found = told(FramePreparation(kinds=asked, max_categories=1000).fit(frame))
    assert found["size"] == ("drop", "left out as asked")
    assert found["flat"][0] == found["age"][0] == "category"
    for kinds, words in (
        ({"price": "number"}, "'price'"),
        ({"size": "colour"}, "kinds\\['size'\\].*'colour'"),
        ({"quarter": "number"}, "'quarter' is to be a number, but has 'north'"),
        ({"quarter": "date"}, "'quarter' is to be a date"),
        ("number", "dict"),
    ):
        with pytest.raises(ValueError, match=words):
            FramePreparation(kinds=kinds).fit(frame)
    with pytest.raises(ValueError, match="sparse"):
        FramePreparation(kinds={0: "number"}).fit(sp.csr_matrix(np.eye(3)))
    with pytest.raises(ValueError, match="max_categories"):
        FramePreparation(max_categories=0).fit(frame)


def test_other_columns_and_another_order_are_refused_as_scikit_learn_does() -> None:
    frame, _ = mixed_table()
    preparation = FramePreparation().fit(frame)
    with pytest.raises(ValueError, match="same order"):
        preparation.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        preparation.transform(frame.rename(columns={"size": "area"}))


def test_infinite_numbers_are_refused_with_column_and_row() -> None:
    frame, _ = mixed_table()
    frame.loc[9, "size"] = np.inf
    with pytest.raises(ValueError, match=r"'size'.*inf in row 9"):
        FramePreparation().fit(frame)
    with pytest.raises(ValueError, match="0 sample"):
        FramePreparation().fit(frame.iloc[:0])
    with pytest.raises(ValueError, match="Complex data"):
        FramePreparation().fit(pd.DataFrame({"a": [1j, 2.0]}))


def test_words_in_a_number_at_prediction_are_missing_and_it_says_so() -> None:
    preparation = FramePreparation().fit(pd.DataFrame({"a": [1.0, 2.0, 4.0]}))
    with pytest.warns(UserWarning, match="column 'a': 'many' in 1 row is not a number"):
        features = preparation.transform(pd.DataFrame({"a": ["1", "many"]}))
    np.testing.assert_array_equal(features[1], preparation.transform(pd.DataFrame({"a": [2.0]}))[0])


def test_extreme_numbers_stay_finite() -> None:
    X = np.array([[1e308, 1.0], [-1e308, 1.0 + 1e-15], [0.0, 1.0], [1e-308, 1.0 + 5e-16]])
    preparation = FramePreparation().fit(X)
    assert np.isfinite(preparation.transform(X)).all()
    assert np.isfinite(preparation.transform(-X)).all()


def test_weights_are_repetitions() -> None:
    frame, y = mixed_table(80)
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, 80)
    repeated = np.repeat(np.arange(80), weight)
    weighted = FramePreparation(kinds={"flat": "drop"}).fit(frame, y, weight)
    plain = FramePreparation(kinds={"flat": "drop"}).fit(frame.iloc[repeated], y.iloc[repeated])
    np.testing.assert_allclose(weighted.transform(frame), plain.transform(frame), atol=1e-12)


def test_rows_of_weight_zero_are_not_looked_at() -> None:
    frame, _ = mixed_table()
    first = np.arange(120) < 60
    apart = FramePreparation().fit(frame[first])
    weighted = FramePreparation().fit(frame, sample_weight=first.astype(float))
    np.testing.assert_array_equal(apart.transform(frame), weighted.transform(frame))
    assert told(apart) == told(weighted)


def test_transform_learns_nothing() -> None:
    frame, _ = mixed_table()
    preparation = FramePreparation().fit(frame.iloc[:60])
    alone = preparation.transform(frame.iloc[60:61])
    np.testing.assert_array_equal(preparation.transform(frame.iloc[60:])[:1], alone)


def test_sparse_stays_sparse() -> None:
    X = 50 * sp.random(30, 6, density=0.3, random_state=0, format="csr")
    preparation = FramePreparation()
    features = preparation.fit_transform(sp.csr_array(X))
    assert sp.issparse(features) and features.nnz == X.nnz
    assert abs(features).max() == 1.0
    assert preparation.columns_[0]["name"] == "x0 … x5"
    np.testing.assert_allclose(preparation.transform(X.toarray()), features.toarray())
    with pytest.raises(ValueError, match="dense"):
        FramePreparation().fit(X.toarray()).transform(X)


def test_nothing_varies() -> None:
    preparation = FramePreparation().fit(np.ones((5, 2)))
    np.testing.assert_array_equal(preparation.transform(np.ones((3, 2))), np.zeros((3, 1)))
    assert len(preparation.get_feature_names_out()) == 1


def test_polars_is_read_as_pandas_is() -> None:
    pl = pytest.importorskip("polars")
    frame, _ = mixed_table()
    frame = frame.drop(columns="state")
    other = pl.DataFrame({name: frame[name].tolist() for name in frame.columns if name != "let"})
    pandas_features = FramePreparation().fit_transform(frame.drop(columns="let"))
    np.testing.assert_allclose(FramePreparation().fit_transform(other), pandas_features)


def test_weighted_quantiles() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=40), rng.integers(1, 5, 40).astype(float)
    shares = [0.25, 0.5, 0.9]
    wanted = np.quantile(np.repeat(x, weight.astype(int)), shares, method="averaged_inverted_cdf")
    np.testing.assert_allclose(weighted_quantiles(x, weight, shares), wanted)
