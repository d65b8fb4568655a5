"""The harnesses of benchmarks/: what they conclude from seconds, on seconds that are made up."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tausvm
from benchmarks import (
    ablation,
    calibration,
    compare,
    compare_lists,
    machines,
    marks,
    peers,
    places,
    worker,
)
from benchmarks import map as the_map
from benchmarks.marks import Record
from benchmarks.places import Place

HERE = Place("SVR", n=50, d=2)


def ran(*seconds: float, **others: Any) -> dict[str, Any]:
    """A side's record by both clocks."""
    return {"wall": list(seconds), "cpu": list(seconds), **others}


class Pretended:
    """A worker whose seconds are given by a function of place and side."""

    def __init__(self, seconds: Any) -> None:
        self.seconds = seconds
        self.asked: list[tuple[int, str]] = []

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        place, side = places.of_json(request["place"]), request["side"]
        self.asked.append((place.n, side))
        seconds = self.seconds(place, side)
        if seconds > limit:
            raise worker.TooLong
        return {"wall": seconds, "cpu": seconds, "count": 1, "gap": 1e-5, "solved": True}


# ------------------------------------------------------------------------ places


def test_every_estimator_is_on_the_map() -> None:
    drawn = {machines.class_name(name) for name in machines.MACHINES}
    # those of tables are tuned machines of the map behind a preparation
    public = {name for name in tausvm.__all__ if hasattr(getattr(tausvm, name), "predict")}
    assert drawn == public - set(tausvm.tabular.__all__)


def test_a_place_survives_json() -> None:
    place = replace(HERE, params='{"gamma": 0.5}')
    assert places.of_json(json.loads(place.key)) == place
    with pytest.raises(ValueError, match="unknown fields of a place: rows"):
        places.of_json({"estimator": "SVR", "n": 5, "rows": 3})


@pytest.mark.parametrize("estimator", machines.MACHINES)
def test_one_factor_differs_from_the_centre(estimator: str) -> None:
    middle = places.centre(estimator, 50)
    for change in places.profiles(estimator).values():
        (place,) = places.along(estimator, change, 50)
        assert len(change) <= 1
        assert place == replace(middle, **change)


def test_data_are_the_same_everywhere_and_begin_alike() -> None:
    more, fewer = (places.data_of(replace(HERE, n=n)) for n in (60, 50))
    np.testing.assert_array_equal(more[0][:50], fewer[0])
    np.testing.assert_array_equal(more[1][:50], fewer[1])


@pytest.mark.parametrize(
    ("levels", "first", "last"), [(1, 0.5, 0.5), (5, 0.1, 0.9), (19, 0.05, 0.95)]
)
def test_levels_are_spread_evenly(levels: int, first: float, last: float) -> None:
    taus = replace(HERE, levels=levels).taus
    assert (len(taus), taus[0], taus[-1]) == (levels, first, last)
    np.testing.assert_allclose(np.array(taus) + taus[::-1], 1.0)


def test_random_places_can_be_drawn_again() -> None:
    names = list(machines.MACHINES)
    assert places.random_places(20, names, 800) == places.random_places(20, names, 800)
    assert all(place.n <= 800 for place in places.random_places(50, names, 800))


# ------------------------------------------------------------------------- marks


def test_a_ratio_counts_in_each_of_three_rounds() -> None:
    assert marks.exceeds([2.0, 2.1, 2.2], [1.0, 1.0, 1.0], 1.5)
    assert not marks.exceeds([2.0, 1.4, 2.2], [1.0, 1.0, 1.0], 1.5)
    assert not marks.exceeds([2.0, 2.0], [1.0, 1.0], 1.5)


def test_marks_of_one_place() -> None:
    sides = {
        "auto": ran(0.4, 0.3, 0.4, solved=False),
        "block": ran(0.1, 0.1, 0.1),
        "smo": {"over": 1.0},
        "interior_point": ran(0.25, 0.25, 0.25),
        "sklearn SVR": ran(0.2, 0.2, 0.2),
    }
    found = marks.find([Record(HERE, "centre", sides)], "wall")
    assert [(mark.kind, mark.rival) for mark in found] == [
        ("auto", "block"),
        ("peer", "sklearn SVR"),
        ("unsolved", ""),
    ]
    assert found[0].ratio == pytest.approx(3.0)


def test_no_mark_where_all_is_well() -> None:
    sides = {"auto": ran(0.1, 0.1, 0.1, solved=True), "block": ran(0.08, 0.08, 0.08)}
    assert marks.find([Record(HERE, "centre", sides)], "cpu") == []
    assert marks.table([]) == "No marks.\n"


def test_cost_that_falls_with_rows_is_marked_within_a_profile_alone() -> None:
    seconds = {50: 0.1, 100: 20.0, 200: 14.0, 400: 1.0}

    def line(profile: str) -> list[Record]:
        return [
            Record(replace(HERE, n=n), profile, {"auto": ran(*[each] * 3)})
            for n, each in seconds.items()
        ]

    found = marks.find(line("centre"), "wall")
    assert [(mark.kind, mark.place.n, mark.rival) for mark in found] == [
        ("falls", 100, "400 rows"),
        ("falls", 200, "400 rows"),
    ]
    assert marks.find(line("random"), "wall") == []


def test_a_fit_that_does_not_end_is_marked_with_a_bound() -> None:
    sides = {"auto": {"over": 20.0}, "smo": ran(0.1)}
    (mark,) = marks.find([Record(HERE, "random", sides)], "wall")
    assert (mark.kind, mark.rival) == ("over", "smo")
    assert "| > 20 | smo | 0.1 | > 200.00 |" in marks.table([mark])
    # where nobody ended, that is as far as they go; unless more rows do end
    alone = Record(HERE, "centre", {"auto": {"over": 20.0}})
    assert marks.find([alone], "wall") == []
    beyond = Record(replace(HERE, n=400), "centre", {"auto": ran(1.0, 1.0, 1.0)})
    (mark,) = marks.find([alone, beyond], "wall")
    assert (mark.kind, mark.ratio) == ("falls", 20.0)


# --------------------------------------------------------------------------- map


def test_a_survey_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "map.jsonl"
    first = Pretended(lambda place, side: 0.1)
    record = the_map.Survey(file, 20.0).measure(first, "centre", HERE)
    assert len(record.runs("auto", "wall")) == marks.ROUNDS
    again = the_map.Survey(file, 20.0)
    assert again.knows("centre", HERE)
    assert not again.knows("centre", replace(HERE, n=100))
    assert again.records == [record]


def test_sides_take_turns(tmp_path: Path) -> None:
    asked = Pretended(lambda place, side: 0.1)
    the_map.Survey(tmp_path / "map.jsonl", 20.0).measure(asked, "centre", HERE)
    one_round = ["auto", *machines.KERNEL_SOLVERS, "sklearn SVR"]
    assert [side for _, side in asked.asked] == one_round + one_round[::-1] + one_round


def test_long_runs_are_repeated_where_they_look_like_a_mark(tmp_path: Path) -> None:
    survey = the_map.Survey(tmp_path / "map.jsonl", 20.0)
    calm = survey.measure(Pretended(lambda place, side: 3.0), "centre", HERE)
    assert len(calm.runs("auto", "wall")) == 1
    slow = Pretended(lambda place, side: 9.0 if side == "auto" else 2.0)
    suspect = survey.measure(slow, "centre", replace(HERE, n=100))
    assert len(suspect.runs("auto", "wall")) == marks.ROUNDS


def test_a_side_that_is_too_slow_is_not_asked_for_more_rows(tmp_path: Path) -> None:
    survey = the_map.Survey(tmp_path / "map.jsonl", 20.0)
    asked = Pretended(lambda place, side: 99.0 if side == "smo" else 0.1)
    assert survey.measure(asked, "centre", HERE).sides["smo"] == {"over": 1.0}
    assert "smo" not in survey.measure(asked, "centre", replace(HERE, n=100)).sides
    # ours gets a second chance, and so does another profile
    assert "smo" in survey.measure(asked, "hard", replace(HERE, n=100)).sides
    late = Pretended(lambda place, side: 99.0)
    kept = [survey.measure(late, "d = 2", replace(HERE, n=n)).sides for n in (50, 100, 200)]
    assert ["auto" in sides for sides in kept] == [True, True, False]


def test_marks_and_figures_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    survey = the_map.Survey(tmp_path / "map.jsonl", 20.0)
    asked = Pretended(lambda place, side: 1e-3 * place.n / (2 if side == "block" else 1))
    for profile in ("centre", "d = 2"):
        for place in places.along("SVR", places.profiles("SVR")[profile], 200):
            survey.measure(asked, profile, place)
    the_map.report(survey.records, tmp_path, "wall")
    assert "| SVR | auto | n = 50, d = 10, easy, C = 1 |" in (tmp_path / "marks.md").read_text()
    assert (tmp_path / "SVR.png").stat().st_size > 10_000


# ------------------------------------------------------------------------ worker


@pytest.fixture(scope="module")
def process() -> Iterator[worker.Worker]:
    with worker.Worker() as started:
        yield started


def test_a_worker_fits_in_its_own_process(process: worker.Worker) -> None:
    answer = process.ask(worker.request(HERE, least=0.0), limit=600.0)
    assert answer["count"] >= 1 and answer["solved"] and answer["gap"] <= 1e-4
    refused = process.ask(worker.request(HERE, side="no such solver"), limit=600.0)
    assert "no such solver" in refused["refused"]


def test_a_worker_is_ended_when_it_is_late_and_comes_back(process: worker.Worker) -> None:
    with pytest.raises(worker.TooLong):
        process.ask(worker.request(replace(HERE, n=40), least=3600.0), limit=0.1)
    assert process.process is None
    assert "wall" in process.ask(worker.request(HERE, least=0.0), limit=600.0)


def test_settings_objects_are_made_from_json() -> None:
    made = worker.settings({"class": "fractions.Fraction", "numerator": 3, "denominator": 6})
    assert str(made) == "1/2"
    assert worker.settings(7) == 7


@pytest.mark.parametrize("name", [name for name in peers.MODULES if name not in peers.missing()])
def test_peers_fit(name: str) -> None:
    served = [key for key, machine in machines.MACHINES.items() if name in machine.peers]
    assert served
    for estimator in served:
        if not estimator.endswith("CV") and estimator != "TauPathSVC":
            place = replace(places.centre(estimator, 30), d=2)
            assert name in peers.peers_of(place)
            peers.build(name, place, places.data_of(place))()


# ----------------------------------------------------------------------- compare


def test_the_best_of_each_side_makes_the_ratio() -> None:
    old, new = iter([4.0, 3.0, 5.0]), iter([1.0, 2.0, 1.5])
    sides = {"old": Pretended(lambda *_: next(old)), "new": Pretended(lambda *_: next(new))}
    pair = compare.compare(HERE, sides, repeats=3, limit=30.0)
    assert pair.ratio("cpu") == pair.ratio("wall") == 3.0
    assert pair.remark == ""


def test_a_side_that_fails_leaves_no_ratio_and_a_remark() -> None:
    sides = {"old": Pretended(lambda *_: 1.0), "new": Pretended(lambda *_: 99.0)}
    pair = compare.compare(HERE, sides, repeats=2, limit=30.0)
    assert pair.ratio("cpu") is None
    assert pair.remark == "new over 30 s"
    assert math.isnan(compare.geometric_mean([pair], "cpu"))
    assert "–" in compare.row(pair)


def test_geometric_mean_and_worse_gaps() -> None:
    def pair(old: float, new: float, *gaps: float) -> compare.Pair:
        seconds = {clock: {"old": old, "new": new} for clock in compare.CLOCKS}
        return compare.Pair(HERE, seconds, dict(zip(compare.SIDES, gaps, strict=True)))

    pairs = [pair(1.0, 4.0, 1e-6, 9e-5), pair(4.0, 1.0, 1e-6, 1e-2), pair(2.0, 1.0, 1e-2, 1e-2)]
    assert compare.geometric_mean(pairs, "cpu") == pytest.approx(2 ** (1 / 3))
    assert [bool(compare.worse_gap(each)) for each in pairs] == [False, True, False]
    assert "geometric mean of 3: cpu 1.26 (least 0.25, most 4.00)" in compare.summary(pairs, 5)
    assert "2 places left out for time" in compare.summary(pairs, 5)


@pytest.mark.parametrize("name", compare_lists.LISTS)
def test_lists_name_estimators_and_parameters_that_exist(name: str) -> None:
    listed = compare_lists.LISTS[name]()
    assert len(set(listed)) == len(listed) > 0
    for place in listed:
        worker.estimator(place, {}).get_params()


# ---------------------------------------------------------------------- ablation


def outcome(with_: float | None, without: float | None, remark: str = "") -> ablation.Outcome:
    seconds = {"with": with_, "without": without}
    return ablation.Outcome(HERE, seconds, dict.fromkeys(ablation.SIDES), remark)


def test_what_a_part_saves() -> None:
    assert outcome(1.0, 4.0).saved == 0.75
    assert outcome(1.0, None).saved == 1.0
    assert outcome(None, None).saved is None
    assert "75%" in ablation.verdict([outcome(1.0, 0.5), outcome(1.0, 4.0)])
    assert "BELOW A FIFTH EVERYWHERE" in ablation.verdict([outcome(1.0, 1.1), outcome(2.0, 1.0)])
    assert ablation.verdict([outcome(None, None, "not here: no Block")]) == "not here: no Block"


def test_a_part_that_is_not_there_is_named() -> None:
    class Without:
        def ask(self, asked: dict[str, Any], limit: float) -> dict[str, Any]:
            return {"refused": "no such class"} if asked["fields"] else {"cpu": 1.0}

    args = ablation.parser().parse_args([])
    part = ablation.PARTS["direct solves in block"]
    found = list(ablation.measured(part, Without(), args, math.inf))
    assert [(each.saved, each.remark) for each in found] == [(None, "not here: no such class")]


def test_seconds_of_a_fit_that_gave_up_do_not_count() -> None:
    class GivesUp:
        def ask(self, asked: dict[str, Any], limit: float) -> dict[str, Any]:
            return {"cpu": 1.0, "gap": 0.5, "solved": not asked["fields"]}

    args = ablation.parser().parse_args([])
    part = ablation.Part("", {"solver": "smo"}, (HERE,))
    (found,) = ablation.measured(part, GivesUp(), args, math.inf)
    assert (found.saved, found.remark) == (1.0, "without: not solved")


@pytest.mark.parametrize("name", ablation.PARTS)
def test_parts_are_switched_off_by_what_exists(name: str) -> None:
    part = ablation.PARTS[name]
    assert part.places
    for fields in (part.present, part.absent):
        made = {key: worker.settings(value) for key, value in fields.items()}
        worker.estimator(part.places[0], made).get_params()


# ------------------------------------------------------------------------ calibration


def test_what_calibration_costs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made_up = [
        {"table": "mpg", "split": split, "rows": 274, "way": way, **told}
        for split in (0, 1)
        for way, told in {
            "none": {"inside90": 0.8, "inside50": 0.4, "width90": 2.0, "loss": 1.0},
            "oof": {"inside90": 0.9, "inside50": 0.5, "width90": 3.0, "loss": 1.1},
        }.items()
    ]
    out = tmp_path / "rows.jsonl"
    out.write_text("".join(json.dumps(record) + "\n" for record in made_up))
    # nothing is left to be measured
    calibration.main(["--tables", "mpg", "--splits", "2", "--out", str(out)])
    told = capsys.readouterr().out
    assert "oof: inside 90.0 % and 50.0 %, least 90.0 and 50.0, more than three below on 0" in told
    assert "loss +10.00 %, width 1.50" in told
    assert "none: inside 80.0 % and 40.0 %" in told
