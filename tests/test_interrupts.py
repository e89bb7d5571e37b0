"""Ctrl-C at any line of the package: the object is exactly as before the call or exactly as after it, and plays on."""

import contextlib
import copy
import functools
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import thalweg as tw
from tests import samples
from tests.damage import kernels
from tests.samples import APPLIED, CONTROL, LEARNING, PCA, QUIET, SAMPLES, memory, play, played, same, show

# A file that was being written is closed by the collector.
pytestmark = [QUIET, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
PLACE = tw.__file__.removesuffix("__init__.py")
KERNELS = f"{PLACE}_kernels"
PYTHON = ("_guest_learn",)  # functions of parts that are never compiled
BOTH = ("_place_in_set",)  # those that kernels and Python call
TUNED = {*LEARNING, *PCA, *CONTROL}  # they have `extended`
LATER = 3  # rounds that are played on


class Stop:
    """Raises SIGINT at the n-th line of the package that is run; compiled code has no lines. 0: counts lines only."""

    def __init__(self, at=0):
        self.at, self.count, self.compiled = at, 0, False

    def __enter__(self):
        self.codes, self.usual = _codes(), signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.settrace(self.call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)
        signal.signal(signal.SIGINT, self.usual)

    def call(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(PLACE):
            return None
        in_python = code.co_name in PYTHON  # which kernels call only where everything is Python
        in_python = in_python or (code.co_name in BOTH and not self.compiled)
        if self.compiled and not in_python:
            return None
        if in_python or code in self.codes or code.co_filename.startswith(KERNELS):
            before, self.compiled = self.compiled, not in_python
            return functools.partial(self.leave, before)
        return self.line

    def leave(self, before, frame, event, _):
        if event == "return":
            self.compiled = before
        return self.line(frame, event, _) and functools.partial(self.leave, before)

    def line(self, frame, event, _):
        if event == "line" and not self.compiled:
            self.count += 1
            if self.count == self.at:
                self.where = f"{frame.f_code.co_filename.removeprefix(PLACE)}:{frame.f_lineno}"
                signal.raise_signal(signal.SIGINT)
        return self.line


@functools.cache
def _codes():
    return kernels()


# ---------------------------------------------------------------------------------------------------------------- calls


def _round(name, made, folder):
    SAMPLES[name].rounds(made, 50)


def _restore(name, made, folder):
    made.restore(_other(name))


def _reset(name, made, folder):
    if hasattr(made, "reset"):
        made.reset()


def _extend(name, made, folder):
    if name in TUNED and getattr(made, "horizon", None) is not None and "make_inner" not in made._given:
        made.extended(4 * max(made.horizon, 60))


def _save(name, made, folder):
    made.save(folder / "it.npz")


def _look(name, made, folder):
    made.state()
    copy.copy(made)
    repr(made)


def _run(name, made, folder):
    """A compiled run, or rounds by hand; a first Ctrl-C ends it after a round."""
    if _runs(made):
        tw.play(made, _problem(made))


def _runs(made):
    return isinstance(made, tw.Learner) and len(made.domain.shape) == 1 and not made.values_only


def _problem(made):
    a = np.random.default_rng(0).standard_normal((12, made.domain.dim))
    a *= 0.1 / np.linalg.norm(a, axis=1, keepdims=True)
    return tw.problems.LinearRegression(a, 0.1 * a[:, 0])


def _batch(name, made, folder):
    """Many rows at once."""
    rows, values = samples.ROWS[:20], samples.VALUES[:20]
    if name in PCA:
        made.partial_fit(rows[:, [0, 1, 2, 0]] / 100)
    elif hasattr(made, "partial_fit"):
        made.partial_fit(rows, _labels(name, made))
    elif isinstance(made, tw.estimators.Forecaster):
        made.run(samples.SERIES[:20], rows if made.columns else None)
    elif isinstance(made, tw.estimators.Aggregator) and not made.waiting and made.loss != "log":
        made.run(values[:, None] + rows, values)
    elif name == "Standardiser":
        made.run(rows)


def _fit(name, made, folder):
    """Start over with many rows."""
    if hasattr(made, "fit"):
        made.fit(samples.ROWS[:20], _labels(name, made))


def _labels(name, made):
    labels = samples.THREE if "three" in name or "ball" in name else samples.CLASSES
    return (labels if hasattr(made, "classes_") else samples.VALUES)[:20]


CALLS = {call.__name__[1:]: call for call in (_round, _restore, _reset, _extend, _save, _look, _run, _batch, _fit)}


@functools.cache
def _other(name):
    return played(name, 70).state()


@functools.cache
def _before(name):
    """A state before a round in which it grows, if it ever does; else after 20 rounds. Its decision is made."""
    made, last = samples.make(name), None
    for t in range(64):
        show(name, made)
        state, sizes = made.state(), dict(memory(made).sizes) if memory(made) else None
        if t > 8 and last is not None and sizes != last[1]:
            return last[0]
        if t == 20:
            kept = state
        last = state, sizes
        play(name, made, 50, 51)
    return kept


def at(name, state):
    """One that has played, in a state before the call. Its calls are bound."""
    made = played(name, 3)
    made.restore(state)
    show(name, made)
    return made


def lines(name, call, folder):
    """How many lines a call runs, and the state after it."""
    made = at(name, _before(name))
    with Stop() as counter:
        call(name, made, folder)
    return counter.count, made


def interrupted(name, call, n, after, folder):
    """Interrupt a call at line n; what is wrong then, or nothing."""
    made = at(name, _before(name))
    before = made.state()
    with Stop(n) as stop:
        try:
            call(name, made, folder)
            told = "it went on"
        except KeyboardInterrupt:
            told = "it stopped"
    state = made.state()
    if call is _run and any(same(state, one) for one in after):
        return None
    if not (same(state, before) or any(same(state, one) for one in after)):
        names = [key for key in state if key not in before or not same({"": state[key]}, {"": before[key]})]
        return f"{told} at {stop.where}; between before and after: {names}"
    twin = samples.make(name)
    if name in APPLIED:
        play(name, twin, 0, 3)
    twin.restore(state)
    if not np.array_equal(show(name, made), show(name, twin), equal_nan=True):
        return f"{told} at {stop.where}; its decision is another than that of its state"
    mine, theirs = ([SAMPLES[name].rounds(one, t) for t in range(100, 100 + LATER)] for one in (made, twin))
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, theirs, strict=True)):
        return f"{told} at {stop.where}; it plays on differently"
    return None if same(made.state(), twin.state()) else f"{told} at {stop.where}; its state differs later"


class Watched:
    """An object, and its states after each use: a round may be several calls."""

    def __init__(self, made, states):
        self._made, self._states = made, states

    def __getattr__(self, name):
        found = getattr(self._made, name)
        self._states.append(self._made.state())
        if not callable(found) or isinstance(found, type):
            return found

        def called(*arguments, **options):
            answer = found(*arguments, **options)
            self._states.append(self._made.state())
            return answer

        return called


def stages(name, call, folder):
    """The states after a call: of a run, those after each of its rounds; of a round, those after each of its calls."""
    count, made = lines(name, call, folder)
    found = [made.state()]
    if call is _round:
        call(name, Watched(at(name, _before(name)), found), folder)
    if call is not _run:
        return count, found
    for rounds in range(1, 13):
        one = at(name, _before(name))
        tw.play(one, _problem(one), rounds=rounds)
        found.append(one.state())
    return count, found


def campaign(name, call, folder, share=1.0, seed=0):
    """Interrupt a call at a share of its lines; how often, and what went wrong."""
    count, after = stages(name, CALLS[call], folder) if call != "run" or _runs(samples.make(name)) else (0, [])
    rng = np.random.default_rng([seed, *name.encode()])
    chosen = [n for n in range(1, count + 1) if rng.random() < share]
    wrong = [interrupted(name, CALLS[call], n, after, folder) for n in chosen]
    return len(chosen), [
        f"{name}, {call}, line {n} of {count}: {one}" for n, one in zip(chosen, wrong, strict=True) if one
    ]


# The share of all lines at which a call is interrupted: some 5,000 in all.
SHARE = {"round": 0.015, "restore": 0.0005, "reset": 0.005, "extend": 0.002, "save": 0.004, "look": 0.002, "run": 0.003}
SHARE |= {"batch": 0.05, "fit": 0.01}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("share", [1.0, pytest.param(20.0, marks=pytest.mark.slow)])
def test_an_interrupted_call_was_whole_or_was_not(name, share, tmp_path):
    count, wrong = 0, []
    for call, usual in SHARE.items():
        tried, bad = campaign(name, call, tmp_path, share * usual, seed=int(share))
        count, wrong = count + tried, wrong + bad
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:20])


# ------------------------------------------------------------------------------ made of others, without a state to save


def _conformal(model):
    """A loop of intervals around a model; an answer waits, so that each call has something to do."""
    return tw.estimators.ConformalForecaster(model, tw.estimators.ConformalTracker(windows=(8, 30), halflives=(1, 5)))


def _months(t, count):
    index = pd.period_range("2000-01", periods=t + count, freq="M")
    return pd.Series(samples.SERIES[: t + count], index)[t:], pd.DataFrame(samples.ROWS[: t + count, :1], index)[t:]


def _experts(t, count):
    return samples.VALUES[t : t + count, None] + samples.ROWS[t : t + count], samples.VALUES[t : t + count]


def _features(t):
    return dict(zip(samples.NAMES, samples.ROWS[t].tolist(), strict=True))


def _of_conformal(made):
    model = copy.deepcopy(made.model)
    if isinstance(model, tw.estimators.Forecaster):
        model.predict()  # asked again, it says the same
    model = model.state() if hasattr(model, "state") else {}
    return made.tracker.state() | {f"model.{key}": value for key, value in model.items()}


def _of_series(made):
    said = [made.predict().to_numpy(), made.predict_interval().to_numpy()] if made.is_fitted else []
    return dict(enumerate([*said, str(made.cutoff if made.is_fitted else None), str(vars(made).get("_last"))]))


COMPOSED = {  # how one is made, its calls in round t, and everything that can be seen of it
    "around a function": (
        lambda: _conformal(lambda x: 0.5 * x["a"]),
        [lambda made, t: made.predict_interval(_features(t)), lambda made, t: made.update(samples.VALUES[t])],
        _of_conformal,
    ),
    "around a regression": (
        lambda: _conformal(tw.estimators.TrackingRegression()),
        [lambda made, t: made.predict_interval(_features(t)), lambda made, t: made.update(samples.VALUES[t])],
        _of_conformal,
    ),
    "around a forecaster": (
        lambda: _conformal(tw.estimators.Forecaster(season=6)),
        [lambda made, t: made.predict_interval(), lambda made, t: made.update(samples.SERIES[t])],
        _of_conformal,
    ),
    "mixture": (
        lambda: tw.estimators.Mixture(*_experts(0, 5)[::-1], model="combined"),
        [lambda made, t: made.update(*_experts(t, 5))],
        lambda made: made.aggregator.state() | {"predictions": made.predictions},
    ),
    "sktime": (
        lambda: tw.estimators.ThalwegForecaster(season=6, lags=2),
        [lambda made, t: made.fit(*_months(0, 20), fh=[1, 2]), lambda made, t: made.update(*_months(20 + t, 1))],
        _of_series,
    ),
    "late, in batches": (
        lambda: tw.estimators.Aggregator(horizon=2),
        [lambda made, t: made.predict(_experts(t, 2)[0]), lambda made, t: made.update(_experts(t, 2)[1])],
        lambda made: made.state(),
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupted_call_of_one_made_of_others_was_whole_or_was_not(name, step):
    make, calls, seen = COMPOSED[name]
    made, tried = make(), 0
    for t in range(40):
        for call in calls:
            if t in (0, 1, 7, 31):
                after = copy.deepcopy(made)
                with Stop() as counter:
                    call(after, t)
                before, states = seen(made), (seen(made), seen(after))
                for n in range(1 + tried % step, counter.count + 1, step):
                    one, tried = copy.deepcopy(made), tried + 1
                    with contextlib.suppress(KeyboardInterrupt), Stop(n) as stop:
                        call(one, t)
                    state = seen(one)
                    assert any(same(state, whole) for whole in states), stop.where
                    if same(state, before):
                        call(one, t)
                    assert same(seen(one), states[1]), stop.where
            call(made, t)
    assert tried > 10
