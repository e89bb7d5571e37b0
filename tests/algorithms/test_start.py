"""A point to begin at. Where nothing is projected, beginning at s is beginning at 0 in a world moved by s."""

import numpy as np
import pytest

import thalweg as tw
from thalweg.errors import InputError, StateError
from thalweg.theorems import path_length

T, D, S = 60, 3, np.array([1.0, -2.0, 0.5])
LEARNERS = {
    "OGD": lambda X, **o: tw.OGD(X, step_size=0.01, **o),
    "SOGD": lambda X, **o: tw.SOGD(X, scale=0.3, **o),
    "Ensemble": lambda X, **o: tw.Ensemble(X, [0.001, 0.01], meta_radius=1.0, **o),
    "Ader": lambda X, **o: tw.Ader(X, T, 1e4, **o),
    "Ader, own": lambda X, **o: tw.Ader(X, T, 1e4, gradients="own", loss_bound=50.0, **o),
    "Sword": lambda X, **o: tw.Sword(X, T, 1e4, 1e3, **o),
    "EfficientDynamic": lambda X, **o: tw.EfficientDynamic(X, T, 1e4, 1e3, **o),
    "Theorem 2": lambda X, **o: tw.EfficientDynamic(X, T, 1e4, **o),
    "Tracker": lambda X, **o: tw.Tracker(X, curvature=False, **o),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_the_start_moves_the_world(name):
    """<a, x> - b at x = s + z is <a, z> - (b - <a, s>). The ball around the start is the ball, so all else is equal."""
    rng = np.random.default_rng(1)
    steep = 0.001 if name.startswith(("Sword", "Efficient", "Theorem")) else 1.0  # long steps must not reach the sphere
    a, b = steep * rng.normal(size=(T, D)), rng.normal(size=T)
    ball = tw.domains.Ball(D, radius=1e3)
    moved = tw.play(LEARNERS[name](ball, start=S), tw.problems.LinearRegression(a, b), decisions=True)
    centred = tw.play(LEARNERS[name](ball), tw.problems.LinearRegression(a, b - a @ S), decisions=True)
    assert 1e-4 < np.abs(centred.decisions).max() < 500.0
    np.testing.assert_allclose(moved.decisions, centred.decisions + S, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", LEARNERS)
def test_it_is_kept_and_checked(name):
    box = tw.domains.Box(-3.0, 3.0, shape=D)
    make = LEARNERS[name]
    learner = make(box, start=S.tolist())
    np.testing.assert_array_equal(learner.decision, S)
    learner.step(tw.losses.Squared(np.ones(D), 4.0))
    assert not np.array_equal(learner.decision, S)
    saved = learner.state()
    learner.reset()
    np.testing.assert_array_equal(learner.decision, S)
    np.testing.assert_array_equal(learner.clone().decision, S)
    with pytest.raises(StateError):
        make(box).restore(saved)
    for wrong in ([4.0, 0.0, 0.0], [0.0, 0.0], np.nan):
        with pytest.raises(InputError, match=f"'start' parameter of {type(learner).__name__}"):
            make(box, start=wrong)


def test_a_theorem_counts_from_the_start():
    """A short step along a slope loses what the start is away; counted from the centre the theorem would be wrong."""
    ball, problem = tw.domains.Ball(1), tw.problems.LinearLosses(np.ones((50, 1)))
    learner = tw.OGD(ball, 50, 1.0, step_size=1e-3, start=[1.0])
    run = tw.play(learner, problem, decisions=True)
    certificate = tw.regret.certify(learner, problem, run, comparators=np.zeros((50, 1)))
    assert certificate.holds
    assert run.losses.sum() > 40.0  # and eta T/2 is 0.025


@pytest.mark.parametrize("smoothness", [None, 1.0])
def test_the_pools_theorem_sees_only_the_distance(smoothness):
    ball = tw.domains.Ball(D, radius=5.0)
    u = S + 0.001 * np.arange(T)[:, None]
    assert path_length(u) > 0
    bounds = []
    for start, way in ((None, u - S), (S, u)):
        learner = tw.EfficientDynamic(ball, T, 10.0, smoothness, start=start)
        theorem = type(learner).card.theorem(learner, np.ones(T), np.ones(T))
        bounds.append(theorem.bound(0, T, way, np.ones(T)))
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)
