"""Numbers worked out by hand from the formulas: pools, priors, rates and two steps of SOGD."""

import math

import numpy as np
import pytest

import thalweg as tw
from tests.twins import dynamic as ref

T, D, G = 1000, 2.0, 4.0


def near(values):
    return pytest.approx(values, rel=1e-6)


@pytest.fixture
def domain():
    return tw.domains.Ball(2, radius=D / 2)


@pytest.fixture
def literal():
    """The paper's surrogate: radius R = D, twice as wide as it has to be."""
    return tw.domains.Ball(2, radius=D)


def test_ader_pool_and_prior(domain):
    learner = tw.Ader(domain, T, G)
    assert len(learner.step_sizes) == 6
    assert learner.step_sizes[[0, 5]] == near([0.0295803989, 0.946572765])
    assert learner.step_sizes[1:] / learner.step_sizes[:-1] == near([2.0] * 5)
    assert learner.prior[[0, 1, 5]] == near([0.583333333, 0.194444444, 0.0277777778])
    assert learner.prior.sum() == pytest.approx(1.0, abs=1e-14)
    assert learner.weights == near(learner.prior)


def test_ader_rates(domain):
    assert tw.Ader(domain, T, G).meta_rate == near(0.00559016994)  # sqrt(2 / (T G^2 D^2))
    assert tw.Ader(domain, T, G, gradients="own").meta_rate == near(0.0111803399)  # c = GD = 8
    assert tw.Ader(domain, T, G, gradients="own", loss_bound=1.0).meta_rate == near(0.0894427191)  # sqrt(8 / T)


def test_theorem_2(domain, literal):
    inner = tw.EfficientDynamic(domain, T, G, surrogate=literal).inner
    assert len(inner.step_sizes) == 6
    assert inner.step_sizes[0] == near(0.025)
    assert inner.meta_rate == near(0.00529110615)
    assert inner.prior == near([1 / 6] * 6)


def test_theorem_3(domain, literal):
    inner = tw.EfficientDynamic(domain, T, G, 1.0, surrogate=literal).inner  # B = G D = 8
    assert len(inner.step_sizes) == 14
    assert inner.step_sizes[[0, 13]] == near([0.0176775314, 144.814337])
    assert inner.meta_rate == near(math.sqrt(math.log(14)))  # eps_1: no gradient seen yet
    assert inner.prior == near([1 / 14] * 14)
    stated = tw.EfficientDynamic(domain, T, G, 1.0, loss_bound=8.0, surrogate=literal).inner
    assert stated.step_sizes == near(inner.step_sizes)


def test_theorem_3_rate_uses_the_gradients_before_this_round(domain):
    learner = tw.EfficientDynamic(domain, T, G, 1.0)  # R = 1
    learner.update(np.array([0.6, 0.8]))
    assert learner.inner.meta_rate == near(math.sqrt(math.log(len(learner.inner.step_sizes)) / 2))


def test_sword_with_one_gradient_is_theorem_3_with_every_length_equal_to_the_diameter(domain):
    learner = tw.Sword(domain, T, G, 1.0, gradients="shared")
    assert learner.step_sizes[[0, 13]] == near([0.0176775314, 144.814337])


def test_sword_with_own_gradients(domain):
    learner = tw.Sword(domain, T, G, 1.0, gradients="own")
    # GT/(DL) = 2000: N = ceil(5.48) + 1 = 7; sqrt(2 / 64000) doubles until the cap 1/4
    assert learner.step_sizes == near([0.00559016994 * 2**i for i in range(6)] + [0.25])
    assert learner.prior == near([1 / 7] * 7)
    assert learner.meta_rate == near(math.sqrt(math.log(7)))


def test_sogd_takes_two_steps():
    learner = tw.SOGD(tw.domains.Ball(2), scale=1.0, delta=1.0)
    assert learner.decision == pytest.approx([0.0, 0.0])
    learner.update(np.array([3.0, 4.0]))
    assert learner.decision == near([-0.58834841, -0.78446454])
    learner.update(np.array([0.0, 5.0]))
    assert learner.decision == near([-0.36842328, -0.92965815])


def test_sogd_default_scale_is_the_diameter_over_root_two():
    learner = tw.SOGD(tw.domains.Ball(2, radius=3.0))
    learner.update(np.array([0.3, 0.4]))
    assert learner.decision == near(-6 / math.sqrt(2) / math.sqrt(1.25) * np.array([0.3, 0.4]))


@pytest.mark.parametrize("horizon", [1, 2, 7, 100, 12345])
@pytest.mark.parametrize(
    ("radius", "gradient_bound", "smoothness"), [(1.0, 1.0, 1.0), (3.0, 54.3, 9.0), (0.1, 1e3, 0.01)]
)
def test_pools_equal_the_formulas_and_reach_the_largest_step_they_must_cover(
    horizon, radius, gradient_bound, smoothness
):
    domain, diameter = tw.domains.Ball(2, radius=radius), 2 * radius
    args = (domain, horizon, gradient_bound)
    ader = tw.Ader(*args).step_sizes
    own = tw.Sword(*args, smoothness, gradients="own").step_sizes
    shared = tw.Sword(*args, smoothness, gradients="shared").step_sizes
    minimax = tw.EfficientDynamic(*args).inner.step_sizes
    small = tw.EfficientDynamic(*args, smoothness).inner.step_sizes
    bound = gradient_bound * diameter
    np.testing.assert_allclose(ader, ref.ader_pool(horizon, diameter, gradient_bound), rtol=1e-12)
    np.testing.assert_allclose(own, ref.sword_pool(horizon, diameter, gradient_bound, smoothness), rtol=1e-12)
    np.testing.assert_allclose(shared, ref.small_loss_pool(horizon, diameter, diameter, smoothness, bound), rtol=1e-12)
    np.testing.assert_allclose(minimax, ref.minimax_pool(horizon, radius, diameter, gradient_bound), rtol=1e-12)
    np.testing.assert_allclose(small, ref.small_loss_pool(horizon, radius, diameter, smoothness, bound), rtol=1e-12)

    longest = diameter * horizon  # P_T is at most this
    squares = 2 * horizon * gradient_bound**2
    assert ader[-1] >= math.sqrt((7 * diameter**2 + 4 * diameter * longest) / squares) * (1 - 1e-12)
    assert minimax[-1] >= math.sqrt((5 * radius**2 + 2 * radius * longest) / squares) * (1 - 1e-12)
    assert small[-1] >= math.sqrt(5 * radius**2 + 2 * radius * longest) * (1 - 1e-12)
    assert shared[-1] >= math.sqrt(5 * diameter**2 + 2 * diameter * longest) * (1 - 1e-12)
    assert own[-1] <= 1 / (4 * smoothness) * (1 + 1e-12)
    # And no member is wasted: the last but one does not reach that far.
    assert minimax[-2] < math.sqrt((5 * radius**2 + 2 * radius * longest) / squares)
    assert small[-2] < math.sqrt(5 * radius**2 + 2 * radius * longest)
