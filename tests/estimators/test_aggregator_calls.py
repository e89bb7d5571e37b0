"""Aggregator: how it is called, what it refuses, how it is saved, hindsight, and pictures."""

import copy
import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import thalweg as tw
from tests.estimators.common import in_turn, refused
from tests.estimators.test_aggregator import binary, stream
from tests.hostile import Rude
from tests.samples import same
from thalweg.errors import InputError, StateError
from thalweg.estimators import Aggregator, ConformalTracker, Mixture, oracle
from thalweg.estimators.aggregator.result import costs

SLOW = pytest.mark.slow
NAMES = ["gam", "ar", "gbm", "naive"]


# --------------------------------------------------------------------------------------------------------------- frames


def test_a_frame_comes_back_as_the_same_kind():
    X, y, _ = stream(T=40)
    whole = Aggregator().run(X, y)
    index = pd.date_range("2026-01-01", periods=40)
    run = Aggregator().run(pd.DataFrame(X, columns=NAMES, index=index), pd.Series(y, index=index))
    assert isinstance(run.predictions, pd.DataFrame)
    assert run.predictions.index.equals(index)
    assert list(run.weights.columns) == NAMES
    np.testing.assert_array_equal(run.predictions["prediction"], whole.said)
    frame = pl.DataFrame(X, schema=NAMES).with_columns(when=pl.Series(np.arange(40)))
    run = Aggregator().run(frame, pl.Series(y), time="when")
    assert run.predictions.columns == ["when", "prediction"]
    np.testing.assert_array_equal(run.weights.select(NAMES).to_numpy(), whole.played)
    assert whole.predictions is whole.said
    said = Aggregator().predict(pd.DataFrame(X[:1], columns=NAMES, index=["monday"]))
    assert said.loc["monday", "prediction"] == whole.said[0]


def test_columns_go_by_name_and_who_is_missing_sleeps():
    X, y, _ = stream(T=40)
    one, two = Aggregator(), Aggregator()
    one.run(pd.DataFrame(X[:30], columns=NAMES), y[:30])
    two.run(pd.DataFrame(X[:30], columns=NAMES), y[:30])
    mixed = one.run(pd.DataFrame(X[30:], columns=NAMES)[["gbm", "naive", "gam"]], y[30:])
    X[30:, 1] = np.nan
    plain = two.run(pd.DataFrame(X[30:], columns=NAMES), y[30:])
    np.testing.assert_array_equal(mixed.said, plain.said)
    assert (mixed.played[:, 1] == 0).all()
    with pytest.raises(InputError, match="has a column 'lstm', but the experts are gam, ar, gbm, naive"):
        one.run(pd.DataFrame({"gam": [1.0], "lstm": [2.0]}), [1.0])
    assert list(one.expert_names_) == NAMES
    assert one.rounds == 40


def test_awake_by_name_and_by_place_are_nan():
    X, y, awake = stream(T=40, asleep=0.3)
    hidden = np.where(awake > 0, X, np.nan)
    expected = Aggregator().run(hidden, y).said
    np.testing.assert_array_equal(Aggregator().run(X, y, awake).said, expected)
    frame = pd.DataFrame(X, columns=NAMES)
    by_name = pd.DataFrame(awake, columns=NAMES)[NAMES[::-1]]
    np.testing.assert_array_equal(Aggregator().run(frame, y, by_name).said, expected)
    half = Aggregator(rule="BOA").run(X[:1], y[:1], np.array([[1.0, 0.5, 0.0, 0.5]]))
    np.testing.assert_allclose(half.played, [[0.5, 0.25, 0.0, 0.25]])


ZONE = {"tz": "Europe/Berlin"}


@pytest.mark.parametrize(
    "when",
    [
        pd.date_range("2026-01-01", periods=6),
        pd.date_range("2026-10-25", periods=6, freq="h", **ZONE),  # the clock goes back, time does not
        pd.to_timedelta(range(6), unit="h"),
        pl.date_range(pl.date(2026, 1, 1), pl.date(2026, 1, 6), eager=True),
        pl.datetime_range(pl.datetime(2026, 1, 1), pl.datetime(2026, 1, 6), eager=True, time_zone="UTC"),
        pl.Series([1, 2, 3, 4, 5, 6]).cast(pl.Duration),
        range(6),
        np.arange(6.0),
    ],
    ids=str,
)
def test_times_of_several_kinds(when):
    X, y, _ = stream(T=6)
    cells = {"when": when, **dict(zip(NAMES, X.T, strict=True))}
    frame = pl.DataFrame(cells) if isinstance(when, pl.Series) else pd.DataFrame(cells)
    one = Aggregator(horizon=4)
    assert np.array_equal(one.run(frame[2:], y[2:], time="when").said, Aggregator(horizon=4).run(X[2:], y[2:]).said)
    with refused(one, r"experts\['when'\] goes backwards from the call before"):
        one.run(frame[:2], y[:2], time="when")
    with refused(one, "goes backwards in row 1"):
        one.predict(frame[::-1][:2], time="when")


@pytest.mark.parametrize(
    "when",
    [
        list("abcdef"),
        [*map(str, range(6))],
        pd.Categorical(list("abcdef"), ordered=True),
        [1, "a", 2.0, None, 3, 4],
        [pd.Timestamp("2026"), *pd.date_range("2027", periods=5, **ZONE)],
        pd.period_range("2026", periods=6),
        pd.interval_range(0, 6),
        [True] * 6,
    ],
    ids=str,
)
def test_what_is_no_time_is_refused(when):
    X, y, _ = stream(T=6)
    one = Aggregator()
    for kind in (Aggregator, lambda: ConformalTracker(0.9)):
        data = pd.DataFrame({"when": when, **dict(zip(NAMES, X.T, strict=True))})
        data = data[["when", NAMES[0]]] if kind is not Aggregator else data
        with pytest.raises(InputError, match=r"\['when'\] must hold numbers, dates or durations. Its type is"):
            kind().run(data, y, time="when")
    assert one.rounds == 0
    with pytest.raises(InputError, match=r"\['when'\] has an empty cell in row 1"):
        one.run(pd.DataFrame({"when": [1.0, np.nan, 3.0], "a": [1.0, 2, 3]}), y[:3], time="when")


def test_names_of_columns():
    X, y, _ = stream(T=6)
    frame = pd.DataFrame(X, columns=[*range(X.shape[1])])
    found = Aggregator().run(frame, y)
    assert found.names == tuple(map(str, range(X.shape[1])))
    assert [*found.weights.columns] == [*found.names]
    named = Aggregator()
    named.run(frame[1:], y[1:])
    with pytest.raises(InputError, match="has a column '9', but the experts are 0, 1"):
        named.run(frame.rename(columns={0: 9}), y)
    when = frame.rename(columns={0: "a"}).assign(**{"t": range(6)}).rename(columns={"t": 7})
    assert [*Aggregator().run(when, y, time=7).predictions.columns] == [7, "prediction"]
    for names, words in (
        ([("a", "b"), ("a", "c"), *"de"][: X.shape[1]], "must be named by text or whole numbers. Got ('a', 'b')"),
        ([*"aabc"][: X.shape[1]], "has two columns called 'a'"),
        ([0, "0", *"ab"][: X.shape[1]], "two columns of experts have one name, as text"),
    ):
        bad = pd.DataFrame(X)
        bad.columns = names
        with pytest.raises(InputError, match=re.escape(words)):
            Aggregator().run(bad, y)


def test_frames_without_columns_and_lazy_ones():
    X, y, _ = stream(T=6)
    with pytest.raises(InputError, match="experts must have a column for each expert"):
        Aggregator().run(pd.DataFrame(), [])
    one = Aggregator()
    one.run(pd.DataFrame(X, columns=NAMES), y)
    assert len(one.predict(pd.DataFrame())) == 0
    lazy = pl.DataFrame(X, schema=NAMES).lazy()
    for call in (lambda: one.predict(lazy), lambda: ConformalTracker(0.9).run(lazy, y)):
        with pytest.raises(InputError, match="array of real numbers or a data frame"):  # and no warning
            call()


def test_a_run_of_no_rounds():
    found = Aggregator().run(np.zeros((0, 2)), [])
    assert np.isnan(found.loss())
    assert found.losses.shape == (0,)
    assert found.expert_losses().shape == (0, 2)
    for kind in ("weights", "box", "cumulative", "average", "contributions", "oracle"):
        with pytest.raises(InputError, match="at least one round"):
            found.plot(kind)


def test_dollars_in_names_are_no_formula():
    X, y, _ = stream(T=20)
    found = Aggregator().run(pd.DataFrame(X, columns=[r"$\frac{1$", "US$", "$x$", "d"][: X.shape[1]]), y)
    for kind in ("weights", "box", "cumulative", "average", "contributions"):
        ax = found.plot(kind)
        ax.figure.canvas.draw()
    assert [text.get_text() for text in found.plot("weights").get_legend().get_texts()][2] == r"\$x\$"


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "cubic"}, "'loss' parameter of Aggregator must be one of 'square'"),
        ({"loss": 3}, "'loss' parameter"),
        ({"tau": 1.0}, "between 0 and 1"),
        ({"tau": "a"}, "between 0 and 1"),
        ({"gradient": 1}, "True or False"),
        ({"horizon": 0}, "'horizon'"),
        ({"rule": "boost"}, "'rule' parameter of Aggregator must be one of 'BOA'"),
        ({"guests": ["BOB"]}, "'guests' parameter of Aggregator must be one of 'BOA'"),
        ({"guests": [3]}, "weights() and update()"),
        ({"guests": 3}, "'guests'"),
    ],
)
def test_arguments_that_cannot_be_used(options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Aggregator(**options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: a.predict(np.full(4, np.nan)), "no expert is awake in row 0"),
        (lambda a: a.run(np.ones((2, 4)), [1.0, 2.0], [[1, 1, 1, 1], [0, 0, 0, 0]]), "no expert is awake in row 1"),
        (lambda a: a.predict(np.ones(3)), "there are 4 experts since the first call. Got 3 columns"),
        (lambda a: a.predict(np.ones((1, 4, 1))), "array of two axes"),
        (lambda a: a.predict([1.0, np.inf, 1.0, 1.0]), "inf in row 0, column 1"),
        (lambda a: a.predict(np.full(4, 1e61)), "larger than 1e+60"),
        (lambda a: a.predict(np.ones(4), awake=[1, 1, 1, 2.0]), "from 0 to 1"),
        (lambda a: a.predict(np.ones(4), awake=[1.0, 1.0]), "awake has shape (1, 2), experts (1, 4)"),
        (
            lambda a: a.predict(np.ones((3, 4))),
            "0 forecasts wait for an answer and 3 more were asked for, but horizon = 1",
        ),
        (lambda a: a.update(1.0), "1 answers came, but 0 forecasts wait"),
        (lambda a: a.run(np.ones((2, 4)), [1.0]), "experts have 2 rows, y has 1"),
        (lambda a: a.run(np.ones((2, 4)), [1.0, np.nan]), "y has nan in row 1"),
        (lambda a: a.run(np.ones((2, 4)), [1.0, 1e61]), "an answer is larger"),
        (lambda a: a.run(np.ones((0, 0)), []), "a column for each expert"),
        (lambda a: a.predict(np.ones(4), time="when"), "no data frame"),
        (lambda a: a.predict(np.ones(4), awake=[10**400, 1, 1, 1]), "awake must be an array of real numbers"),
        (lambda a: a.predict([Rude(), Rude()]), "experts must be an array of real numbers"),
        (lambda a: a.update(Rude()), "y must be an array of real numbers"),
    ],
)
def test_calls_that_are_refused_change_nothing(call, words):
    X, y, _ = stream(T=20)
    aggregator = Aggregator()
    aggregator.run(X, y)
    with refused(aggregator, re.escape(words)):
        call(aggregator)
    fresh = Aggregator()
    if "since" not in words and "wait" not in words:
        with pytest.raises(InputError):
            call(fresh)
        assert fresh.rounds == 0
        assert not hasattr(fresh, "n_experts_")


def test_answers_and_forecasts_keep_their_order():
    X, y, _ = stream(T=20)
    one = Aggregator(horizon=3)
    said = one.predict(X[:3])
    assert said.shape == (3,)
    with pytest.raises(InputError, match=re.escape("3 forecasts wait for an answer and 1 more were asked for")):
        one.predict(X[3])
    with pytest.raises(InputError, match="still wait"):
        one.run(X, y)
    one.update(y[:2])
    assert one.predict(X[3]).is_integer() is False
    with pytest.raises(InputError, match="3 answers came, but 2 forecasts wait"):
        one.update(y[:3])
    one.update(y[2:4])
    assert one.rounds == 4
    with pytest.raises(AttributeError, match="before the first call"):
        _ = Aggregator().weights_


@pytest.mark.parametrize("options", [{}, {"rule": "BOA"}, {"horizon": 3}, {"guests": ["MLpol"], "loss": "absolute"}])
def test_between_a_forecast_and_its_answer_anything_may_happen(options):
    """`update` uses the weights that `predict` made, where they are still the right ones."""
    X, y, _ = stream(T=60)
    X[3::3, 1] = np.nan
    expected = Aggregator(**options).run(X, y).said
    aggregator, got, h = Aggregator(**options), [], options.get("horizon", 1)
    for t in range(60 + h - 1):
        if t < 60:
            got.append(aggregator.predict(X[t] if t % 2 else list(X[t])))
        saved = aggregator.state()
        if t % 5 == 1:
            _ = aggregator.weights_  # of everybody, with other forecasts
        elif t % 5 == 2:
            aggregator = copy.deepcopy(aggregator)
        elif t % 5 == 3:  # another answer, and undone
            aggregator.update(-float(y[max(t - h + 1, 0)]))
            aggregator.restore(saved)
        elif t % 5 == 4:
            fresh = Aggregator(**options)
            fresh.predict(X[0])
            fresh.restore(saved)
            aggregator = fresh
        if t >= h - 1:
            aggregator.update(float(y[t - h + 1]))
    np.testing.assert_array_equal(got, expected)


def test_losses_with_their_own_needs():
    X = stream(T=5)[0]
    with pytest.raises(InputError, match="y is 0 in row 2"):
        Aggregator("mape").run(X, np.array([1.0, 2.0, 0.0, 1.0, 1.0]))
    with pytest.raises(InputError, match="probabilities"):
        Aggregator("log").run(X, np.ones(5))
    with pytest.raises(InputError, match=re.escape("y must be 0 or 1. Got 0.5")):
        Aggregator("log").run(np.full((1, 2), 0.5), [0.5])
    sure = Aggregator("log").run(np.array([[0.0, 1.0]] * 5), np.ones(5))
    assert np.isfinite(sure.losses).all()
    assert sure.said[-1] > 0.9


# --------------------------------------------------------------------------------------------------------------- guests


class Follow:
    """All weight on who erred least so far."""

    def __init__(self, K=4):
        self.lost = np.zeros(K)

    def weights(self, experts, awake):
        w = np.zeros(len(self.lost))
        w[np.argmin(np.where(awake > 0, self.lost, np.inf))] = 1.0
        return w

    def update(self, experts, awake, y):
        self.lost += awake * (experts - y) ** 2

    def state(self):
        return {"lost": self.lost.copy()}

    def restore(self, saved):
        self.lost[:] = saved["lost"]


class Mute:
    """A guest that cannot be saved."""

    def __init__(self):
        self.lost = np.zeros(4)

    weights, update = Follow.weights, Follow.update


class Counted(Follow):
    """Counts how often it is asked and told, and fails once at each."""

    def __init__(self, asked=0, told=0):
        super().__init__()
        self.fails, self.asked, self.told = [asked, told], 0, 0

    def weights(self, experts, awake):
        self.asked += 1
        if self.asked == self.fails[0]:
            raise RuntimeError("a guest is out")
        return super().weights(experts, awake)

    def update(self, experts, awake, y):
        self.told += 1
        if self.told == self.fails[1]:
            raise RuntimeError("a guest falls ill")
        super().update(experts, awake, y)


def test_a_guest_of_ones_own_is_judged_and_saved(tmp_path):
    X, y, awake = stream(T=200, asleep=0.2)
    guest = Follow()
    one = Aggregator(guests=["BOA", guest], horizon=2)
    run = one.run(X, y, awake)
    assert guest.lost.sum() == 0  # it was copied
    rows = Aggregator(guests=["BOA", Follow()], horizon=2)
    for t in range(0, 200, 2):
        said = rows.predict(X[t : t + 2], awake[t : t + 2])
        np.testing.assert_array_equal(said, run.said[t : t + 2])
        rows.update(y[t : t + 2])
    again = Aggregator(guests=["BOA", Follow()], horizon=2)
    again.restore(one.state())
    np.testing.assert_array_equal(again.run(X, y, awake).said, one.run(X, y, awake).said)
    again.reset()
    np.testing.assert_array_equal(again.run(X, y, awake).said, run.said)


class Turns(Follow):
    """The first two experts in turn."""

    def weights(self, experts, awake):
        return np.eye(4)[int(self.lost[0]) % 2]

    def update(self, experts, awake, y):
        self.lost[0] += 1


def test_a_guest_that_knows_more_is_believed():
    X, y, _ = stream(T=300)
    even = np.arange(300) % 2 == 0
    X[even, 0], X[~even, 1] = y[even], y[~even]  # right in turn
    X[even, 1], X[~even, 0] = y[even] + 3, y[~even] - 3
    one = Aggregator(guests=["BOA", "MLpol", Turns()])
    run = one.run(X, y)
    assert one.state()["copies.0.jury.weights"][-1] > 0.9
    assert run.losses[100:].mean() < 0.1 * Aggregator().run(X, y).losses[100:].mean()


def test_guests_that_cannot_be_used_or_saved():
    X, y, _ = stream(T=20)
    with pytest.raises(InputError, match="must give 4 weights >= 0"):
        Aggregator(guests=[type("Bad", (Follow,), {"weights": lambda self, x, a: -np.ones(4)})()]).run(X, y)
    silent = Aggregator(guests=[Mute()])
    silent.run(X[:3], y[:3])
    with pytest.raises(InputError, match=re.escape("cannot be saved. Give it state() and restore()")):
        silent.state()


# ---------------------------------------------------------------------------------------------------------------- saved


@pytest.mark.parametrize("small", [0.0, 1e-300, 1e-160, 1e-9])
def test_states_of_errors_of_any_size_are_read(small):
    """Also where the square of an error underflows, and its product with another one does not."""
    X = np.tile([small, 1.0, 1e50], (40, 1))
    one, other = Aggregator(), Aggregator()
    one.run(X, np.zeros(40))
    other.restore(one.state())
    assert one.predict(X[0]) == other.predict(X[0])


def test_names_are_saved_too(tmp_path):
    X, y, _ = stream(T=10)
    one = Aggregator()
    one.run(pd.DataFrame(X, columns=NAMES), y)
    one.save(tmp_path / "a.npz")
    two = tw.load(tmp_path / "a.npz")
    assert list(two.expert_names_) == NAMES
    with pytest.raises(InputError, match="'lstm'"):
        two.predict(pd.DataFrame({"lstm": [1.0]}))
    Aggregator().save(tmp_path / "fresh.npz")
    assert tw.load(tmp_path / "fresh.npz").rounds == 0
    two.reset()
    assert two.rounds == 0
    assert two.clone().run(X[:, :2], y).played.shape == (10, 2)
    assert repr(Aggregator("mae", rule="boa")) == "Aggregator('absolute', rule='BOA'; 0 rounds played)"


def test_a_state_with_names_of_others_is_refused():
    X, y, _ = stream(T=30)
    one = Aggregator(horizon=2)
    one.run(X, y)
    with refused(one, "2 names of 4 experts", StateError):
        one.restore(one.state() | {"facts.expert_names_": ["gam", "ar"]})


# -------------------------------------------------------------------------------------------------- capacity that grows


def bytes_of(one):
    return one._memory.block.memory.nbytes


def by_hand(one, X, y):
    return in_turn(lambda t: one.predict(X[t]), lambda t: one.update(float(y[t])), len(X), one.horizon - 1)


@pytest.mark.parametrize("options", [{}, {"horizon": 3}, {"rule": "Tracker"}, {"guests": ["BOA", "FS"]}])
def test_capacity_is_that_of_the_rounds_whoever_plays_them(options):
    X, y, _ = stream(T=700)
    X[300:, 1] *= 100.0
    whole, rows, parts = (Aggregator(**options) for _ in range(3))
    run = whole.run(X, y)
    assert by_hand(rows, X, y) == run.said.tolist()
    for part in np.split(np.arange(700), [1, 2, 5, 100]):
        np.testing.assert_array_equal(parts.run(X[part], y[part]).said, run.said[part])
    assert same(parts.state(), whole.state())
    kept = {
        key: value for key, value in rows.state().items() if not key.endswith((".held", ".tracker.x", ".tracker.clock"))
    }
    assert all(np.array_equal(value, whole.state()[key]) for key, value in kept.items())
    np.testing.assert_array_equal(rows.weights_, whole.weights_)


@pytest.mark.parametrize(("rounds", "most"), [(128, 7_000), pytest.param(16_384, 12_000, marks=SLOW)])
def test_bytes_of_a_stream(rounds, most):
    X, y, _ = stream(T=rounds, K=5)
    one = Aggregator()
    one.run(X, y)
    assert bytes_of(one) <= most


def test_who_has_nothing_to_learn_keeps_the_first_capacity():
    """A copy that has seen no gradient may still begin with as many members as there can be."""
    X, y, _ = stream(T=40)
    X[1::2] = X[1::2, :1]  # all agree in the rounds of copy 1
    whole, rows = Aggregator(horizon=2), Aggregator(horizon=2)
    run = whole.run(X, y)
    assert by_hand(rows, X, y) == run.said.tolist()
    more, answers, _ = stream(T=60, seed=4)
    assert by_hand(rows, more, answers) == whole.run(more, answers).said.tolist()
    assert bytes_of(rows) == bytes_of(whole)


# ---------------------------------------------------------------------------------------- calls that fail have not been


def test_a_run_that_failed_can_be_made_again():
    X, y, _ = stream(T=30)
    frame = pd.DataFrame(X, columns=NAMES).assign(when=pd.date_range("2026-01-01", periods=30))
    one, twin = (Aggregator(guests=["BOA", Counted(told=when)], horizon=2) for when in (8, 0))
    with refused(one, "ill", RuntimeError):
        one.run(frame, y, time="when")
    assert not hasattr(one, "n_experts_")
    assert not hasattr(one, "expert_names_")
    for hosted in one._hosted:
        hosted[0].guest.fails = [0, 0]  # it is well again
    np.testing.assert_array_equal(one.run(frame, y, time="when").said, twin.run(frame, y, time="when").said)


@pytest.mark.parametrize("call", ["predict", "update", "run", "rows"])
def test_guests_leave_no_call_half_done(call):
    X, y, _ = stream(T=30)
    one, twin = (Aggregator(guests=[Counted(), Counted()], horizon=2) for _ in range(2))
    for each in one, twin:
        each.run(X[:8], y[:8])  # 4 questions to each copy
        if call == "update":
            each.predict(X[8:10])
    play = {
        "predict": lambda each: each.predict(X[8]),
        "update": lambda each: each.update(y[8:10]),
        "run": lambda each: each.run(X[8:], y[8:]),
        "rows": lambda each: each.predict(X[8:10]),
    }[call]
    one._hosted[int(call in ("update", "rows"))][1].guest.fails[0] = 6 if call in ("update", "run") else 5
    asked = [guest.guest.asked for some in one._hosted for guest in some]
    with refused(one, "out", RuntimeError):
        play(one)
    assert [guest.guest.asked for some in one._hosted for guest in some] == asked
    for some in one._hosted:
        some[1].guest.fails = [0, 0]
    play(one)
    play(twin)
    assert same(one.state(), twin.state())


def test_a_copy_is_its_own():
    X, y, _ = stream(T=20)
    for guests in (["BOA", Follow()], [Mute()]):
        one = Aggregator(guests=guests)
        one.run(X[:10], y[:10])
        other = copy.copy(one)
        expected = one.run(X[10:], y[10:]).said
        assert other.rounds == 10
        np.testing.assert_array_equal(other.run(X[10:], y[10:]).said, expected)


# ------------------------------------------------------------------------------------------------------------ hindsight


@pytest.mark.parametrize("loss", ["square", "absolute", "pinball", "percentage", "log"])
def test_no_weights_are_better_than_the_best(loss):
    X, y = binary(T=60) if loss == "log" else stream(T=60)[:2]
    K = X.shape[1]
    best = oracle(X, y, "convex", loss=loss, tau=0.8)
    assert best.weights.sum() == pytest.approx(1)
    assert (best.weights >= 0).all()
    rng = np.random.default_rng(0)
    for w in [*rng.dirichlet(np.ones(K), 300), *(0.999 * best.weights + 0.001 * np.eye(K))]:
        assert costs(loss, 0.8, X @ w, y).mean() >= best.loss - 1e-9
    if loss == "square":
        free = oracle(X, y, "linear")
        np.testing.assert_allclose(X.T @ (X @ free.weights - y), 0, atol=1e-7)
        assert free.loss <= best.loss
    elif loss != "log":
        free = oracle(X, y, "linear", loss=loss, tau=0.8)
        assert free.loss <= best.loss + 1e-12
        for w in free.weights + 0.01 * rng.normal(size=(100, K)):
            assert costs(loss, 0.8, X @ w, y).mean() >= free.loss - 1e-9


def test_one_expert_and_sequences_of_them():
    X, y, _ = stream(T=7, K=3)
    paid = (X - y[:, None]) ** 2
    assert oracle(X, y, "expert").loss == pytest.approx(paid.mean(axis=0).min())
    shifting = oracle(X, y, "shifting")
    for m in range(7):
        best = min(
            paid[np.arange(7), path].mean()
            for path in itertools.product(range(3), repeat=7)
            if np.count_nonzero(np.diff(path)) <= m
        )
        assert shifting.losses[m] == pytest.approx(best)
    assert Aggregator().oracle(X, y, "shifting").loss == shifting.loss
    assert len(oracle(X, y, "shifting", changes=2).losses) == 3
    half = X.copy()
    half[3, 1] = np.nan
    filled = X.copy()
    filled[3, 1] = X[3, [0, 2]].mean()
    assert oracle(half, y, "convex").loss == pytest.approx(oracle(filled, y, "convex").loss)
    with pytest.raises(InputError, match="must sum to 1"):
        oracle(*binary(T=5), "linear", loss="log")
    with pytest.raises(InputError, match="'model'"):
        oracle(X, y, "best")
    with pytest.raises(InputError, match="at least one round"):
        oracle(np.ones((0, 2)), [], "expert")


# ---------------------------------------------------------------------------------------------- pictures, OPERA's names


@pytest.mark.parametrize("kind", ["weights", "box", "cumulative", "average", "contributions", "oracle"])
def test_pictures_show_what_they_say(kind):
    X, y, awake = stream(T=50, K=4, asleep=0.2)
    run = Aggregator().run(X - 6, y - 6, awake)
    ax = run.plot(kind, most=2)
    names = {"expert 1", "expert 2", "expert 3", "expert 4", "2 others"}
    ticks = [label.get_text() for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]]
    words = ticks if kind in ("box", "average") else ax.get_legend_handles_labels()[1]
    assert len(names & set(words)) == {"cumulative": 2, "average": 2, "oracle": 0}.get(kind, 3)
    assert ax.get_title()
    ax.figure.canvas.draw()
    if kind == "average":
        widths = {name: bar.get_width() for name, bar in zip(ticks[-len(ax.patches) :], ax.patches, strict=True)}
        assert widths["combined"] == pytest.approx(run.loss())
    if kind == "oracle":
        lowest = ax.get_lines()[0].get_ydata()
        assert (np.diff(lowest) <= 1e-12).all()
    other = run.plot(kind, ax=ax.figure.add_subplot())
    assert other is not ax
    with pytest.raises(InputError, match="'kind'"):
        run.plot("pie")


def test_operas_names_and_calls():
    X, y, awake = stream(T=60, asleep=0.2)
    one = Mixture(y[:50], pd.DataFrame(X[:50], columns=NAMES), awake[:50], model="MLPOL", loss_type="mae")
    one.update(pd.DataFrame(X[50:], columns=NAMES), y[50:], awake[50:])
    run = Aggregator("absolute", rule="MLpol").run(X, y, awake)
    np.testing.assert_array_equal(one.predictions, run.said)
    np.testing.assert_array_equal(one.weights, run.played)
    np.testing.assert_allclose(one.predict(X[:3]), X[:3] @ one.w)
    np.testing.assert_allclose(one.predict(X[:3]), one.predict(X[:3]))  # nothing was learned
    assert one.plot_mixture("avg_loss").get_title()
    both = Mixture(y, X, model="combined", loss_gradient=False)
    np.testing.assert_array_equal(both.predictions, Aggregator(gradient=False).run(X, y).said)


def test_arrays_of_any_layout_give_the_same():
    X, y, _ = stream(T=30)
    expected = Aggregator().run(X, y).said
    wide = np.zeros((30, 8), order="F")
    wide[:, ::2] = X
    quiet = y.copy()
    quiet.flags.writeable = False
    np.testing.assert_array_equal(Aggregator().run(wide[:, ::2], quiet).said, expected)
    np.testing.assert_array_equal(Aggregator().run(X.tolist(), y.tolist()).said, expected)
    one = Aggregator()
    said = in_turn(
        lambda t: one.predict(wide[t, ::2] if t % 2 else X[t].tolist()),
        lambda t: one.update(y[t] if t % 2 else float(y[t])),
        30,
    )
    np.testing.assert_array_equal(said, expected)
    assert np.array_equal(wide[:, ::2], X)  # what was given is untouched
