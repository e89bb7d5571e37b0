"""ConformalTracker and ConformalForecaster in use: saved, refused, around models, with data frames, in pictures."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import linear_model, time_series
from sklearn.linear_model import LinearRegression, SGDRegressor

from tests.estimators.common import in_turn, refused
from tests.samples import same
from thalweg.errors import InputError
from thalweg.estimators import (
    ConformalForecaster,
    ConformalTracker,
    Forecaster,
    TrackingForecaster,
    interval_plots,
)

SMALL = {"windows": (8, 30), "halflives": (1, 5)}
KINDS = {
    "plain": {},
    "two sides": {"asymmetric": True},
    "late": {"horizon": 3},
    "all": {"asymmetric": True, "horizon": 2},
}


def rounds(tracker, count, seed=0, late=0):
    """Play on; what is asked and answered. `late` predictions wait when it is over."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        forecast = rng.normal()
        found.append(tracker.predict_interval(forecast))
        if tracker.waiting > late:
            tracker.update(forecast + rng.standard_t(3))
    return found


# ------------------------------------------------------------------------------------------------- stop and resume


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_small(kind):
    tracker = ConformalTracker(0.9, **KINDS[kind])
    rounds(tracker, 450)
    assert tracker._memory.block.memory.nbytes <= 60_000 * (1 + tracker.asymmetric)


@pytest.mark.parametrize("kind", KINDS)
def test_capacity_is_that_of_the_rounds_and_the_same_in_a_run(kind):
    """And so are the intervals: a run knows nothing of later answers."""
    rng = np.random.default_rng(5)
    y = rng.standard_t(3, 300) * np.where(np.arange(300) < 150, 1.0, 30.0)
    whole, rows = (ConformalTracker(0.8, **SMALL, **KINDS[kind]) for _ in range(2))
    band = whole.run(np.zeros(300), y)
    said = in_turn(lambda t: rows.predict_interval(0.0), lambda t: rows.update(y[t]), 300, rows.horizon - 1)
    assert np.array_equal(said, band)
    state = whole.state() | {"kinds": rows.state()["kinds"]}
    assert same(state, rows.state())
    young = ConformalTracker(0.8, **SMALL, **KINDS[kind])._memory
    assert rows._memory.sizes["N"] < young.sizes["N"]
    assert (young.sizes["C"], rows._memory.sizes["C"]) == (32, 512)  # the first capacity above the number of scores


def test_memory_grows_with_the_scores_until_all_that_are_kept_fit():
    scores = np.abs(np.random.default_rng(0).standard_normal(1100))
    tracker, sizes = ConformalTracker(0.9), {}
    for t, score in enumerate(scores):
        tracker.threshold()
        tracker.update(score)
        sizes.setdefault(tracker._memory.sizes["C"], t)
    assert sizes == {32: 0, 128: 32, 512: 128, 1000: 512}
    assert tracker._memory.state.above.recent.size == 400


def test_how_long_it_plays_is_not_its_horizon():
    with pytest.raises(InputError, match="it can go on as it is"):
        ConformalTracker().extended(100)


# ------------------------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.0}, "between 0.0001 and 0.9999"),
        ({"coverage": 0}, "between 0.0001 and 0.9999"),
        ({"coverage": np.nan}, "between"),
        ({"coverage": "0.9"}, "between"),
        ({"coverage": True}, "between"),
        ({"windows": 100}, "a list of lengths"),
        ({"windows": ()}, "at least one window"),
        ({"windows": (1,)}, "a whole number >= 2"),
        ({"windows": (2**40,)}, "an array of"),
        ({"halflives": ()}, "at least one window and one half-life"),
        ({"halflives": (0,)}, "half-life"),
        ({"halflives": ("a",)}, "a finite number"),
        ({"halflives": "12"}, "a list of numbers"),
        ({"correction": 0}, "from 1e-6 to 1"),
        ({"correction": 2}, "from 1e-6 to 1"),
        ({"asymmetric": "yes"}, "True or False"),
        ({"horizon": 0}, "a whole number >= 1"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        ConformalTracker(**options)


def test_all_but_the_coverage_go_by_name():
    with pytest.raises(TypeError, match="by name"):
        ConformalTracker(0.9, (100, 400))


BAD = [np.nan, np.inf, -np.inf, 1e101, None, "1", 1j, [1.0], np.array([1.0]), True, np.datetime64("2020-01-01")]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_numbers_are_refused_and_change_nothing(bad):
    tracker = ConformalTracker(**SMALL)
    rounds(tracker, 10)
    with refused(tracker, "y_hat must be a number"):
        tracker.predict_interval(bad)
    tracker.predict_interval(1.0)
    with refused(tracker, "round 11: y must be a number"):
        tracker.update(bad)
    tracker.update(1.0)
    tracker.threshold()
    with pytest.raises(InputError, match="score must be a number"):
        tracker.update(bad)


def test_a_score_below_zero_is_refused():
    tracker = ConformalTracker(**SMALL)
    tracker.threshold()
    with refused(tracker, r"must be >= 0. Got -0.5. Pass \|y - y_hat\|"):
        tracker.update(-0.5)
    with pytest.raises(InputError, match="Got -1 in row 1"):
        ConformalTracker().run_scores([1.0, -1.0])
    signed = ConformalTracker(asymmetric=True, **SMALL)
    signed.threshold()
    signed.update(-0.5)
    assert signed.candidates[0].min() > 0 == signed.candidates[1].max()


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_order_of_calls_is_checked(horizon):
    tracker = ConformalTracker(horizon=horizon, **SMALL)
    with pytest.raises(InputError, match="nothing waits for an answer"):
        tracker.update(1.0)
    for _ in range(horizon):
        tracker.threshold()
    for ask in (tracker.threshold, lambda: tracker.predict_interval(0.0)):
        with refused(tracker, rf"{horizon} prediction\(s\) wait"):
            ask()
    with refused(tracker, "Call update first"):
        tracker.run([1.0], [1.0])
    for _ in range(horizon):
        tracker.update(1.0)
    assert tracker.rounds == horizon
    with pytest.raises(InputError, match="nothing waits"):
        tracker.update(1.0)


def test_scores_and_intervals_may_take_turns():
    """Each answer is what its own prediction asked for, also where it is late."""
    tracker = ConformalTracker(horizon=2, **SMALL)
    tracker.predict_interval(10.0)
    tracker.threshold()
    tracker.update(11.0)  # an error of 1
    tracker.update(3.0)  # a score
    other = ConformalTracker(horizon=2, **SMALL)
    other.threshold()
    other.threshold()
    other.update(1.0)
    other.update(3.0)
    assert (tracker.candidates == other.candidates).all()


@pytest.mark.parametrize(
    ("y_hat", "y", "message"),
    [
        ([1.0, 2.0], [1.0], "y_hat has 2 rows and y 1"),
        ([1.0, np.nan], [1.0, 2.0], "y_hat has nan in row 1"),
        ([1.0, 2.0], [np.inf, 2.0], "y has inf in row 0"),
        ([[1.0], [2.0]], [1.0, 2.0], "one number a row"),
        (["a", "b"], [1.0, 2.0], "array of real numbers"),
        ([1.0, 1e200], [1.0, 2.0], "y_hat has 1e\\+200 in row 1"),
        (pd.DataFrame({"a": [1.0], "b": [2.0]}), [1.0], "one column"),
    ],
)
def test_bad_series_are_refused(y_hat, y, message):
    tracker = ConformalTracker(**SMALL)
    with pytest.raises(InputError, match=message):
        tracker.run(y_hat, y)
    assert tracker.rounds == 0


# --------------------------------------------------------------------------------------------------------- data frames


def test_frames_come_back_as_they_went_in():
    rng = np.random.default_rng(0)
    y_hat, y = rng.standard_normal((2, 60))
    band = ConformalTracker(**SMALL).run(y_hat, y)
    days = pd.date_range("2024-01-01", periods=60)
    indexed = ConformalTracker(**SMALL).run(pd.Series(y_hat, index=days, name="load"), pd.Series(y, index=days))
    assert isinstance(indexed, pd.DataFrame)
    assert list(indexed.columns) == ["low", "high"]
    assert (indexed.index == days).all()
    assert (indexed.to_numpy() == band).all()
    frame = pl.DataFrame({"day": range(60), "load": y_hat})
    timed = ConformalTracker(**SMALL).run(frame, pl.Series("y", y), time="day")
    assert isinstance(timed, pl.DataFrame)
    assert timed.columns == ["day", "low", "high"]
    assert (timed.select("low", "high").to_numpy() == band).all()
    scores = ConformalTracker(**SMALL).run_scores(pd.Series(np.abs(y)))
    assert list(scores.columns) == ["threshold"]


# -------------------------------------------------------------------------------------------------------- around models


def stream(count=400, seed=3):
    rng = np.random.default_rng(seed)
    for t in range(count):
        x = rng.standard_normal(2)
        yield x, float(x[0] - 2 * x[1] + rng.standard_normal() * (1 + (t > count / 2)))


MODELS = {  # how one is made, its rows, and how it is asked and told by hand
    "river": (
        linear_model.LinearRegression,
        lambda x: {"a": x[0], "b": x[1]},
        lambda model, x: model.predict_one(x),
        lambda model, x, y: model.learn_one(x, y),
    ),
    "sklearn": (
        lambda: SGDRegressor(random_state=0).partial_fit([[0.0, 0.0]], [0.0]),
        lambda x: x,
        lambda model, x: float(model.predict([x])[0]),
        lambda model, x, y: model.partial_fit([x], [y]),
    ),
    "function": (lambda: lambda x: x[0] - 2 * x[1], lambda x: x, lambda model, x: float(model(x)), lambda *_: None),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("horizon", [1, 4])
def test_models_of_three_kinds(kind, horizon):
    """The same as a loop that asks the model, the tracker, and lets the model learn."""
    make, form, ask, learn = MODELS[kind]
    forecaster, alone = ConformalForecaster(make(), ConformalTracker(0.8, horizon=horizon)), make()
    tracker, rows = ConformalTracker(0.8, horizon=horizon), [(form(x), y) for x, y in stream()]

    def predict(t):
        found = forecaster.predict_interval(rows[t][0])
        assert found == tracker.predict_interval(ask(alone, rows[t][0]))
        return found[0] <= rows[t][1] <= found[1]

    def answer(t):
        forecaster.update(rows[t][1])
        tracker.update(rows[t][1])
        learn(alone, *rows[t])

    assert np.mean(in_turn(predict, answer, 400, horizon - 1)) == pytest.approx(0.8, abs=0.03)


WAVE = 10 + 3 * np.sin(np.arange(300) * np.pi / 6) + 0.3 * np.random.default_rng(9).standard_normal(300)


@pytest.mark.parametrize("columns", [(), ("a",)])
def test_a_forecaster_of_a_series(columns):
    """The same as a loop that asks the forecaster and the tracker; a value that is missing goes to neither."""
    alone, tracker = Forecaster(columns, season=12), ConformalTracker(0.8)
    forecaster, inside = ConformalForecaster(Forecaster(columns, season=12), ConformalTracker(0.8)), []
    before = copy.deepcopy(tracker)
    for t, y in enumerate(WAVE):
        x = [float(t % 5)] if columns else None
        said, found = alone.predict(x), forecaster.predict_interval(x)
        assert found == (tracker.predict_interval(said) if t else (-np.inf, np.inf))
        assert forecaster.predict(x) == said or t == 0
        missing = 100 <= t < 130 or t % 9 == 5
        forecaster.update((None, np.nan)[t % 2] if missing else y)
        alone.update(None if missing else y)
        if missing:
            tracker = copy.deepcopy(before)
        elif t:
            tracker.update(y)
        before = copy.deepcopy(tracker)
        inside.append(found[0] <= y <= found[1])
    assert np.mean(inside[20:100] + inside[140:]) == pytest.approx(0.8, abs=0.05)
    again = pickle.loads(pickle.dumps(forecaster))
    assert again.predict_interval(x) == forecaster.predict_interval(x)


def test_forecasters_of_river():
    forecaster, inside = ConformalForecaster(TrackingForecaster(season=12), ConformalTracker(0.8)), []
    other = ConformalForecaster(Forecaster(season=12, horizon=12), ConformalTracker(0.8))
    smooth = ConformalForecaster(time_series.HoltWinters(alpha=0.3), ConformalTracker(0.8))
    for y in WAVE[:3]:
        smooth.model.learn_one(y)
    for y in WAVE:
        low, high = forecaster.predict_interval()
        assert (low, high) == other.predict_interval()
        inside.append([low <= y <= high, np.less_equal(*smooth.predict_interval())])
        for one in (forecaster, other, smooth):
            one.update(y)
    assert np.mean(inside, axis=0) == pytest.approx([0.8, 1.0], abs=0.05)


def test_a_forecaster_of_a_series_takes_answers_one_by_one():
    with pytest.raises(InputError, match=r"needs a tracker with horizon=1.*levels"):
        ConformalForecaster(Forecaster(), ConformalTracker(horizon=2))
    forecaster = ConformalForecaster(Forecaster())
    for y in (1.0, 2.0):
        forecaster.predict_interval()
        forecaster.update(y)
    before = forecaster.model.state()
    with pytest.raises(InputError, match="nothing waits"):
        forecaster.update(3.0)
    forecaster.predict_interval()
    with pytest.raises(InputError, match="y must be a number"):
        forecaster.update(np.inf)
    assert forecaster.model.rounds == before["clock"][0] == 2
    forecaster.update(3.0)
    assert forecaster.model.rounds == 3


def test_a_model_that_is_not_to_learn_does_not():
    model = SGDRegressor(random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
    before = model.coef_.copy()
    for learn in (False, True):
        forecaster = ConformalForecaster(model, learn=learn)
        forecaster.predict_interval([1.0])
        forecaster.update(3.0)
        assert (model.coef_ == before).all() != learn
    fixed = ConformalForecaster(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]))
    fixed.predict_interval(pd.DataFrame([[2.0]]).to_numpy())
    fixed.update(3.0)  # a model without partial_fit only predicts
    assert fixed.tracker.rounds == 1


def test_bad_answers_reach_no_model():
    forecaster = ConformalForecaster(linear_model.LinearRegression())
    forecaster.predict_interval({"a": 1.0})
    with pytest.raises(InputError, match="y must be a number"):
        forecaster.update(np.nan)
    assert not forecaster.model.weights
    forecaster.update(1.0)
    assert forecaster.model.weights
    with pytest.raises(InputError, match="nothing waits"):
        forecaster.update(1.0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3, "a function of x, or an object with predict_one or predict"),
        (lambda x: "much", "must forecast one finite number"),
        (lambda x: np.nan, "must forecast one finite number"),
        (lambda x: [1.0, 2.0], "must forecast one finite number"),
        (lambda x: 1 / 0, "failed with ZeroDivisionError"),
        (SGDRegressor(), "failed with NotFittedError"),
    ],
)
def test_models_that_cannot_be_used(model, message):
    with pytest.raises(InputError, match=message):
        ConformalForecaster(model).predict_interval([1.0])


def test_what_the_forecaster_takes():
    with pytest.raises(InputError, match="a ConformalTracker"):
        ConformalForecaster(abs, 0.9)
    busy = ConformalTracker()
    busy.threshold()
    with pytest.raises(InputError, match="none of whose predictions waits"):
        ConformalForecaster(abs, busy)


class Halting:
    """A model that learns, and stops in the middle of a call once."""

    def __init__(self, where):
        self.where, self.seen = where, []

    def predict_one(self, x):
        return 0.1 * len(self.seen)

    def learn_one(self, x, y):
        if self.where == "before":
            self.where = ""
            raise KeyboardInterrupt
        self.seen.append((x, y))


def test_a_model_that_stops_is_told_again_and_no_row_is_lost():
    forecaster, twin = (ConformalForecaster(Halting(""), ConformalTracker(horizon=2, **SMALL)) for _ in range(2))
    for t in range(30):
        assert forecaster.predict_interval(t) == twin.predict_interval(t)
        if t >= 1:
            if t % 7 == 0:
                forecaster.model.where = "before"
                with pytest.raises(KeyboardInterrupt):
                    forecaster.update(float(t))
            forecaster.update(float(t))
            twin.update(float(t))
    assert forecaster.model.seen == twin.model.seen
    assert same(forecaster.tracker.state(), twin.tracker.state())


@pytest.mark.parametrize("copied", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_is_its_own(copied):
    """With its model, and the rows whose answers are late."""
    forecaster = ConformalForecaster(linear_model.LinearRegression(), ConformalTracker(0.8, horizon=2))
    rows = [({"a": x[0], "b": x[1]}, y) for x, y in stream(80)]

    def play(one, first, last):
        return in_turn(
            lambda t: one.predict_interval(rows[first + t][0]), lambda t: one.update(rows[first + t][1]), last - first
        )

    play(forecaster, 0, 40)
    forecaster.predict_interval(rows[40][0])
    other = copied(forecaster)
    found = play(forecaster, 41, 80)
    assert (other.tracker.rounds, other.tracker.waiting) == (40, 1)
    assert play(other, 41, 80) == found


def test_a_prediction_that_the_forecaster_did_not_make_is_not_learned_from():
    forecaster = ConformalForecaster(linear_model.LinearRegression(), ConformalTracker(**SMALL))
    forecaster.tracker.predict_interval(1.0)
    with pytest.raises(InputError, match="made without it"):
        forecaster.update(1.0)


# ------------------------------------------------------------------------------------------------------------ pictures


def test_pictures_show_what_there_is():
    rng = np.random.default_rng(4)
    y = rng.standard_normal(500)
    wide, narrow = np.tile([-3.0, 3.0], (500, 1)), np.tile([-1.0, 1.0], (500, 1))
    ax = interval_plots.coverage_over_time(y, {"wide": wide, "narrow": narrow}, coverage=0.8, window=50)
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    inside = np.abs(y) <= 1
    assert drawn["narrow"] == pytest.approx([inside[t - 50 : t].mean() for t in range(50, 501)])
    assert list(drawn["asked for: 0.8"]) == [0.8, 0.8]
    ax = interval_plots.width_over_time({"wide": wide, "narrow": narrow / 100})
    assert ax.get_yscale() == "log"
    assert (ax.get_lines()[0].get_ydata() == 6).all()
    ax = interval_plots.band(y, pd.DataFrame(narrow, columns=["low", "high"]), first=100, last=200)
    missed = int((~inside[100:200]).sum())
    assert f"missed: {missed} of 100" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(ax.get_lines()[1].get_xdata()) == missed


def test_bad_pictures_are_refused():
    y, band = np.zeros(5), np.zeros((5, 2))
    for call, message in (
        (lambda: interval_plots.coverage_over_time(y[:4], band), "has 5 intervals, and y has 4 rows"),
        (lambda: interval_plots.width_over_time(np.zeros((5, 3))), "low and high"),
        (lambda: interval_plots.band(y, {"a": band, "b": band}), "one array"),
        (lambda: interval_plots.coverage_over_time(y, band, coverage=90, window=2), "coverage"),
        (lambda: interval_plots.width_over_time({}), "empty mapping"),
    ):
        with pytest.raises(InputError, match=message):
            call()
