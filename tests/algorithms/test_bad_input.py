"""Nonsense gets an error that says who, what was expected, what came and what to do, and changes nothing."""

import warnings

import numpy as np
import pytest

import thalweg as tw
from tests.samples import refused, same
from tests.worlds import LEARNERS, ellipsoid
from thalweg.errors import ClippingWarning, InputError, ProjectionError, StateError

X = ellipsoid()
GOOD = np.array([1.0, -0.5, 0.25])


def learner(**settings):
    return tw.EfficientDynamic(X, 50, 6.0, 2.0, **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.update([1.0, np.nan, 0.0]), "round 2: gradient has entries that are nan or infinite"),
        (lambda m: m.update([np.inf, 0.0, 0.0]), "round 2: gradient has entries that are nan or infinite"),
        (lambda m: m.update([1.0, 2.0]), r"gradient has shape \(2,\), the domain has shape \(3,\)"),
        (lambda m: m.update([[1.0, 2.0, 3.0]]), r"gradient has shape \(1, 3\)"),
        (lambda m: m.update(["a", "b", "c"]), "gradient must be an array of real numbers"),
        (lambda m: m.update([1j, 0, 0]), "gradient must be an array of real numbers. Got \\[1j, 0, 0\\]"),
        (lambda m: m.update([9.0, 0.0, 0.0]), "norm 9, above gradient_bound = 6.*on_violation='clip'"),
        (lambda m: m.update([1e200, 0.0, 0.0]), "above gradient_bound"),
        (lambda m: m.update(GOOD, -1.0), "loss is -1, but the guarantee of EfficientDynamic needs losses >= 0"),
        (lambda m: m.update(GOOD, np.nan), "loss must be finite"),
        (lambda m: m.update(GOOD, "cheap"), "loss must be a number. Got 'cheap'"),
        (lambda m: m.step(tw.losses.Squared([1.0, 1.0], 1.0)), "shape"),
        (lambda m: m.step(tw.losses.Linear(GOOD, offset=-9.0)), "needs losses >= 0"),
        (lambda m: m.restore(tw.SOGD(X).state()), "cannot restore the state of another learner, SOGD"),
        (lambda m: m.restore(tw.EfficientDynamic(X, 51, 6.0, 2.0).state()), "saved with horizon = 51"),
        (lambda m: m.restore(tw.EfficientDynamic(X, 50, 6.0, 2.1).state()), "saved with smoothness = 2.1"),
        (lambda m: m.restore(tw.EfficientDynamic(X, 50, 6.0).state()), "cannot restore this state"),
        (lambda m: m.restore([1, 2, 3]), r"needs a mapping made by EfficientDynamic.state\(\). Got list"),
        (lambda m: m.restore(m.state() | {"schema": 99}), "reads states of schema 4. Got schema 99"),
        (lambda m: m.restore(m.state() | {"x": np.full(3, np.nan)}), "'x' has entries that are nan"),
        (lambda m: m.restore(m.state() | {"x": np.zeros(4)}), r"'x' must be float64 of shape \(3,\). Got .* \(4,\)"),
        (
            lambda m: m.restore(m.state() | {"inner.experts.y": np.full((1, 3), np.inf)}),
            "'inner.experts.y' has entries that are nan",
        ),
    ],
)
def test_a_refused_call_says_why_and_changes_nothing(call, message):
    m = learner()
    m.update(GOOD, 1.0)
    for read_first in (False, True):
        if read_first:
            _ = m.decision
        before = m.state()
        with pytest.raises((InputError, StateError), match=message):
            call(m)
        if read_first:
            assert same(m.state(), before)
        else:  # `step` reads the decision, which projects; nothing else may have moved
            assert m.rounds == 1
            assert np.array_equal(m.state()["inner.experts.members.points"], before["inner.experts.members.points"])


def test_update_refuses_without_projecting():
    m = learner()
    with refused(m):
        m.update([9.0, 0.0, 0.0])


def test_clipping_scales_to_the_bound_and_counts():
    clipped, exact = learner(on_violation="clip"), learner()
    clipped.update([60.0, 0.0, 80.0])
    exact.update([3.6, 0.0, 4.8])
    np.testing.assert_allclose(clipped.decision, exact.decision, rtol=1e-14)
    assert (clipped.clipped, exact.clipped) == (1, 0)


def test_clipping_still_refuses_nan():
    m = learner(on_violation="clip")
    with refused(m, "nan"):
        m.update([np.nan, 0.0, 0.0])
    with refused(m, "needs losses >= 0"):
        m.update([60.0, 0.0, 0.0], -1.0)


def test_rounding_does_not_break_a_tight_bound():
    m = learner()
    g = np.full(3, 6.0 / np.sqrt(3)) * (1 + 1e-15)
    m.update(g)
    assert m.rounds == 1


@pytest.mark.parametrize("name", [name for name, make in LEARNERS.items() if make()._asks])
def test_members_with_their_own_gradients_refuse_update(name):
    m = LEARNERS[name]()
    with pytest.raises(InputError, match=r"asks for the gradient at the points of all its \d members.*Call step\(f\)"):
        m.update(GOOD)


def test_own_gradients_are_collected_before_anything_moves():
    class Late:
        calls = 0

        def value(self, x):
            return 0.5 * float(x @ x)

        def gradient(self, x):
            self.calls += 1
            if self.calls == 3:
                raise RuntimeError("no more gradients")
            return x

    m = tw.Sword(X, 50, 6.0, 2.0, gradients="own")
    _ = m.decision
    with refused(m, "no more gradients", RuntimeError):
        m.step(Late())


# ------------------------------------------------------------------ projections that go wrong


class Moody:
    """A projection onto the unit ball that misbehaves when told to."""

    def __init__(self):
        self.mood = "good"

    def __call__(self, x):
        if self.mood == "raise":
            raise RuntimeError("solver ran out of steps")
        if self.mood == "nan":
            return np.full_like(x, np.nan)
        if self.mood == "outside":
            return np.full_like(x, 9.0)
        if self.mood == "shape":
            return np.zeros(7)
        return x / max(1.0, np.linalg.norm(x))


@pytest.mark.parametrize("mood", ["raise", "nan", "outside", "shape"])
@pytest.mark.parametrize(
    "make",
    [
        lambda Z: tw.EfficientDynamic(Z, 50, 6.0),
        lambda Z: tw.Ader(Z, 50, 6.0),
        lambda Z: tw.Sword(Z, 50, 6.0, 2.0, gradients="own"),
        lambda Z: tw.CutkoskyAdaptive(Z, 50, 6.0),
        lambda Z: tw.CutkoskyPrintedVariant(Z, 50, 6.0),
        lambda Z: tw.EfficientCutkosky(Z, 50, 6.0),
    ],
    ids=["EfficientDynamic", "Ader", "Sword", "published levels", "printed levels", "EfficientCutkosky"],
)
def test_a_bad_projection_is_refused_and_can_be_tried_again(make, mood):
    moody = Moody()
    m = make(tw.domains.Custom(moody, 3, center=np.zeros(3), radius=1.0))
    f = tw.losses.Squared(GOOD, 3.0)
    m.step(f)
    moody.mood = mood
    with refused(m, error=ProjectionError):
        m.step(f)
    moody.mood = "good"
    m.step(f)
    assert m.rounds == 2


# ------------------------------------------------------------------ constructors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tw.OGD(X), "OGD needs a step"),
        (lambda: tw.OGD(X, step_size=-1), "'step_size' parameter of OGD must be a finite number > 0. Got -1"),
        (lambda: tw.OGD("ball", step_size=1.0), "'domain' parameter of OGD must be a thalweg Domain.*Custom"),
        (lambda: tw.OGD(tw.domains.HalfSpace([1.0, 0.0], 1.0), step_size=1.0), "needs a bounded domain"),
        (lambda: tw.SOGD(X, delta=0.0), "'delta' parameter of SOGD must be a finite number > 0"),
        (lambda: tw.SOGD("ball"), "'domain' parameter of SOGD must be a thalweg Domain"),
        (lambda: tw.Ader(X, 0, 1.0), "'horizon' parameter of Ader must be a whole number >= 1. Got 0"),
        (lambda: tw.Ader(X, 10.5, 1.0), "'horizon' parameter of Ader"),
        (lambda: tw.Ader(X, 10, np.inf), "'gradient_bound' parameter of Ader"),
        (lambda: tw.Ader(X, 10, 1.0, gradients="both"), "must be one of 'shared', 'own'. Got 'both'"),
        (lambda: tw.Ader("ball", 10, 1.0), "'domain' parameter of Ader must be a thalweg Domain"),
        (lambda: tw.Sword(X, 10, 1.0, 0.0, gradients="own"), "'smoothness' parameter of Sword"),
        (lambda: tw.Scream(X, 10, -1.0, switching_cost=1.0), "'gradient_bound' parameter of Scream"),
        (lambda: tw.Scream(X, 10, 1.0, switching_cost=np.nan), "'switching_cost' parameter of Scream"),
        (lambda: tw.EfficientScream(X, 10, 1.0, switching_cost=-1.0), "'switching_cost' parameter of EfficientScream"),
        (lambda: tw.CutkoskyAdaptive("ball", 10, 1.0), "'domain' parameter of CutkoskyAdaptive must be"),
        (lambda: tw.CutkoskyPrintedVariant(X, 0, 1.0), "'horizon' parameter of CutkoskyPrintedVariant"),
        (lambda: tw.EfficientCutkosky(X, 10, 1.0, epsilon=0.0), "'epsilon' parameter of EfficientCutkosky"),
        (lambda: tw.EfficientDynamic(X, 10, 1.0, loss_bound=-1.0), "'loss_bound' parameter of EfficientDynamic"),
        (lambda: tw.EfficientDynamic(X, 10, 1.0, on_violation="ignore"), "one of 'raise', 'clip'. Got 'ignore'"),
        (lambda: tw.EfficientDynamic("ball", 10, 1.0), "'domain' parameter of EfficientDynamic must be"),
        (lambda: tw.EfficientDynamic(X, 10, 1.0, surrogate=3.0), "'surrogate' parameter of EfficientDynamic must be"),
        (lambda: tw.EfficientDynamic(X, 10, 1.0, surrogate=tw.domains.Ball(2)), r"must hold points of shape \(3,\)"),
        (lambda: tw.EfficientDynamic(X, 10, 1.0, surrogate=tw.domains.Ball(3, 0.1)), "must contain the domain"),
        (lambda: tw.OneProjection(X, lambda Y: None), "make_inner must return a learner, and it lacks decision"),
        (lambda: tw.OneProjection(X, lambda Y: tw.Ader(Y, 9, 1.0, gradients="own")), "Use gradients='shared'"),
        (lambda: tw.Ensemble(X, []), "'step_sizes' parameter of Ensemble must be one or more numbers > 0"),
        (lambda: tw.Ensemble(X, [1.0, 2.0], prior=[1.0]), r"'prior' parameter of Hedge must have shape \(2,\)"),
        (lambda: tw.Ensemble(X, [1.0, 2.0], prior=[1.0, -1.0]), "'prior' parameter of Hedge must be numbers > 0"),
        (lambda: tw.Ensemble(X, [1.0], step_rule="wild"), "'step_rule' parameter of Ensemble must be one of"),
        (lambda: tw.Ensemble(X, [1.0], judge="value"), "gradients='own'"),
    ],
)
def test_constructors_refuse_nonsense(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_users_own_learner_inside_the_reduction():
    """Any object with the five names will do, and its refusals stop the round."""

    class Own:
        def __init__(self, Y):
            self.Y, self.y, self.fussy = Y, np.array(Y.center), False

        @property
        def decision(self):
            return self.y

        def update(self, gradient, loss=None):
            if self.fussy:
                raise InputError("not today")
            self.y = self.Y.project(self.y - 0.1 * gradient)

        def state(self):
            return {"y": self.y.copy()}

        def restore(self, saved):
            self.y = saved["y"].copy()

        def reset(self):
            self.y = np.array(self.Y.center)

    m = tw.OneProjection(X, Own)
    twin = tw.OneProjection(X, lambda Y: tw.OGD(Y, step_size=0.1))
    rng = np.random.default_rng(0)
    for _ in range(30):
        g = rng.standard_normal(3) * 5
        m.update(g)
        twin.update(g)
        np.testing.assert_allclose(m.decision, twin.decision, atol=1e-13)
    m.inner.fussy = True
    with refused(m, "not today"):
        m.update(GOOD)


@pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")
def test_many_clipped_gradients_are_said_once():
    m = learner(on_violation="clip")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClippingWarning)
        for _ in range(99):
            m.update([60.0, 0.0, 0.0])
    with pytest.warns(ClippingWarning, match=r"scaled 100 of 100 gradients down to gradient_bound = 6.*Tracker"):
        m.update([60.0, 0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClippingWarning)
        for _ in range(200):
            m.update([60.0, 0.0, 0.0])
    few = learner(on_violation="clip")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClippingWarning)
        for t in range(3000):
            few.update([60.0 if t % 20 == 0 else 1.0, 0.0, 0.0])
    assert few.clipped == 150
