import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.domains import Ball, Box, HalfSpace, Simplex
from thalweg.errors import InputError
from thalweg.losses import KINDS as NAMES
from thalweg.losses import Absolute, Hinge, Huber, Linear, Log, Logistic, Loss, Pinball, Squared
from thalweg.losses._phi import Phi, each
from thalweg.problems import LinearModel
from thalweg.testing import check_loss

KINDS = [Squared, Logistic, Absolute, Linear, Huber, Pinball, Hinge, Log]
SEEDS = st.integers(0, 2**32 - 1)


HALF_LINE = HalfSpace([-1.0], 0.0)


def draw(kind, rng, shape=(4,)):
    """A random loss. That of `Log` is finite for decisions of length 8 and less."""
    label = rng.choice([-1.0, 1.0]) if kind in (Logistic, Hinge) else rng.normal()
    features = rng.normal(size=shape)
    if kind is Log:
        label = 8 * np.linalg.norm(features) + rng.uniform(0.1, 3)
    given = {Huber: {"delta": rng.uniform(0.1, 3)}, Pinball: {"tau": rng.uniform(0.05, 0.95)}}.get(kind, {})
    return kind(features, label, **given)


def closed_form(loss, x):
    """Value and gradient of a loss, written out."""
    a, b, par = loss.features, loss.label, loss.parameter
    z = np.sum(a * x)
    e = z - b
    return {
        Squared: lambda: ((z - b) ** 2 / 2, (z - b) * a),
        Logistic: lambda: (np.logaddexp(0, -b * z), -b * a / (1 + np.exp(b * z))),
        Absolute: lambda: (abs(z - b), np.sign(z - b) * a),
        Linear: lambda: (z + b, a),
        Huber: lambda: (np.where(abs(e) < par, e**2 / 2, par * abs(e) - par**2 / 2), np.clip(e, -par, par) * a),
        Pinball: lambda: (max((1 - par) * e, -par * e), (np.heaviside(e, par) - par) * a),
        Hinge: lambda: (max(0, 1 - b * z), -b * a * (b * z < 1)),
        Log: lambda: (-np.log(z + b), -a / (z + b)),
    }[type(loss)]()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3)])
def test_values_and_gradients(kind, shape):
    rng = np.random.default_rng(1)
    for _ in range(20):
        loss, x = draw(kind, rng, shape), rng.normal(size=shape)
        value, gradient = closed_form(loss, x)
        assert loss.value(x) == pytest.approx(value, rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(loss.gradient(x), gradient, rtol=1e-12, atol=1e-14)
        assert isinstance(loss.value(x), float)
        assert loss.gradient(x).shape == shape == loss.shape
        assert isinstance(loss, Loss)
        check_loss(loss, x, rng)


def test_losses_are_known_by_name():
    assert set(NAMES.values()) >= set(KINDS)
    assert all(NAMES[kind.name] is kind for kind in KINDS)


@pytest.mark.parametrize(
    ("z", "label", "value", "slope"),
    [(1e4, 1, 0.0, 0.0), (-1e4, 1, 1e4, -1.0), (1e4, -1, 1e4, 1.0), (-1e4, -1, 0.0, 0.0), (0.0, 1, math.log(2), -0.5)],
)
def test_logistic_does_not_overflow(z, label, value, slope):
    loss = Logistic([1.0], label)
    assert loss.value([z]) == value
    assert loss.gradient([z]) == slope


def test_logistic_keeps_small_values():
    assert Logistic([1.0], 1).value([40.0]) == pytest.approx(math.exp(-40.0), rel=1e-12)
    assert Logistic([1.0], 1).gradient([40.0])[0] == pytest.approx(-math.exp(-40.0), rel=1e-12)


def test_gradients_at_the_kink_are_zero():
    a = [1.0, 2.0]
    for loss, z in ((Absolute(a, 3.0), 3.0), (Pinball(a, 3.0, tau=0.9), 3.0), (Hinge(a, 1), 1.0), (Hinge(a, -1), -1.0)):
        np.testing.assert_array_equal(loss.gradient([z, 0.0]), [0.0, 0.0])


def test_the_log_loss_is_infinite_where_nothing_is_left():
    for f, x in ((Log([1.0, 0.0]), [0.0, 1.0]), (Log([1.0, 0.0], offset=-1.0), [0.5, 0.0])):
        assert f.value(x) == np.inf
        assert not np.isfinite(f.gradient(x)).all()
        assert f.gradient_bound(Ball(2)) == f.loss_bound(Ball(2)) == np.inf


def test_smoothness():
    assert Squared([3.0, 4.0], 1.0).smoothness == 25.0
    assert Logistic([3.0, 4.0], 1.0).smoothness == 6.25
    assert Absolute([3.0, 4.0], 1.0).smoothness is None
    assert Linear([3.0, 4.0]).smoothness == 0.0
    assert Huber([3.0, 4.0], 1.0, delta=7.0).smoothness == 25.0
    assert [kind([3.0, 4.0], 1.0).smoothness for kind in (Pinball, Hinge, Log)] == [None, None, None]


def test_sign_of_the_losses():
    assert [kind for kind in KINDS if not kind.nonnegative] == [Linear, Log]
    assert Log([1.0]).value([3.0]) < 0


@pytest.mark.parametrize("kind", KINDS)
def test_tangents_of_all_slopes_lie_below_and_touch(kind):
    """The largest line of a slope below the loss is the least over a fine grid of phi(x) - s x, plus s z."""
    rng = np.random.default_rng(3)
    loss = draw(kind, rng)
    b, par = loss.label, loss.parameter
    grid = np.linspace(-b - 30, b + 30, 200_001) if kind is not Log else -b + np.geomspace(1e-3, 1e3, 200_001)
    values, slopes = np.empty_like(grid), np.empty_like(grid)
    each(kind.phi.value, grid, np.full_like(grid, b), par, values)
    each(kind.phi.slope, grid, np.full_like(grid, b), par, slopes)
    for s in np.linspace(slopes.min(), slopes.max(), 7)[1:-1] if kind is not Linear else [1.0]:
        for z in rng.normal(scale=5, size=3):
            expected = (values - s * grid).min() + s * z
            assert kind.phi.tangent(z, b, par, s) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("make", [tw.SOGD, lambda X: tw.EfficientDynamic(X, 60, 1e3)], ids=["SOGD", "EfficientDynamic"])
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_play_equals_steps(kind, make):
    """With a parameter that is not the default, on a set where the log loss is finite."""
    rng = np.random.default_rng(4)
    domain = Box([0.2, 0.1, 0.3], [1.0, 2.0, 1.5])
    signed = kind in (Logistic, Hinge)
    labels = rng.choice([-1.0, 1.0], 60) if signed else rng.uniform(0.0, 3.0, 60) + 5 * (kind is Log)
    given = {Huber: {"delta": 0.2}, Pinball: {"tau": 0.8}}.get(kind, {})
    problem = LinearModel(rng.uniform(-1.0, 2.0 if kind is not Log else 1.0, (60, 3)), labels, kind.name, **given)
    run = tw.play(make(domain), problem, decisions=True)
    learner = make(domain)
    for t, loss in enumerate(problem):
        np.testing.assert_allclose(learner.decision, run.decisions[t], rtol=1e-10, atol=1e-12)
        paid, _ = closed_form(loss, learner.decision)
        assert learner.step(loss) == pytest.approx(paid, rel=1e-10, abs=1e-12)
        assert run.losses[t] == pytest.approx(paid, rel=1e-10, abs=1e-12)
    assert len(np.unique(run.decisions.round(9), axis=0)) > 20  # it moved


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
def test_bounds_are_attained_on_a_ball(kind, seed):
    rng = np.random.default_rng(seed)
    loss = draw(kind, rng)
    ball = Ball(4, radius=rng.uniform(0.1, 3), center=rng.normal(size=4))
    toward = ball.radius * loss.features / np.linalg.norm(loss.features)
    ends = [ball.center - toward, ball.center + toward]
    assert loss.gradient_bound(ball) == pytest.approx(max(np.linalg.norm(loss.gradient(x)) for x in ends), rel=1e-9)
    assert loss.loss_bound(ball) == pytest.approx(max(loss.value(x) for x in ends), rel=1e-9, abs=1e-12)


@given(seed=SEEDS)
def test_bounds_of_the_log_loss_are_attained(seed):
    """The least growth of a convex set is at an extreme point: a corner."""
    rng = np.random.default_rng(seed)
    loss = Log(rng.uniform(0.1, 2.0, size=3), offset=rng.uniform(0.0, 1.0))
    for domain, corners in (
        (Simplex(3, 2.0), 2 * np.eye(3)),
        (Box(0.5, [1.0, 2.0, 3.0]), np.stack(np.meshgrid([0.5, 1.0], [0.5, 2.0], [0.5, 3.0]), -1).reshape(-1, 3)),
    ):
        longest = max(np.linalg.norm(domain.directions(loss.gradient(x))) for x in corners)
        assert loss.gradient_bound(domain) == pytest.approx(longest)
        assert loss.loss_bound(domain) == pytest.approx(max(loss.value(x) for x in corners))


def test_bounds_of_a_matrix_loss():
    loss = Squared([[3.0, 0.0], [0.0, 4.0]], 0.0)
    ball = Ball((2, 2), radius=2.0)
    assert loss.gradient_bound(ball) == 50.0
    assert loss.loss_bound(ball) == 50.0


def test_bounds_on_an_unbounded_domain():
    bounds = [f.gradient_bound(HALF_LINE) for f in (Squared([2.0], 1), Logistic([2.0], 1), Absolute([2.0], 1))]
    assert bounds == [math.inf, 2.0, 2.0]
    assert Squared([2.0], 1).loss_bound(HALF_LINE) == math.inf
    assert Squared([0.0], 1).loss_bound(HALF_LINE) == 0.5
    assert Squared([0.0], 1).gradient_bound(HALF_LINE) == 0.0


def test_input_is_copied_and_left_alone():
    a, x = np.array([1.0, 2.0]), np.array([1.0, 1.0])
    loss = Linear(a)
    a[0] = 9.0
    loss.gradient(x)[0] = 9.0
    np.testing.assert_array_equal(loss.gradient(x), [1.0, 2.0])
    np.testing.assert_array_equal(x, [1.0, 1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_layout_give_the_same(kind):
    rng = np.random.default_rng(4)
    loss = draw(kind, rng, (2, 3))
    x = rng.uniform(-1, 1, (2, 3))
    wide, odd = np.zeros((2, 6)), np.zeros(49, dtype=np.uint8)[1:].view(np.float64).reshape(2, 3)
    wide[:, ::2], odd[:] = x, x
    fixed = x.copy()
    fixed.flags.writeable = False
    other = kind.trusted(np.asfortranarray(loss.features), loss.label, loss.parameter)
    for f in (loss, other):
        for same in (x.tolist(), wide[:, ::2], np.asfortranarray(x), odd, fixed, x.astype(">f8")):
            assert f.value(same) == loss.value(x)
            assert np.array_equal(f.gradient(same), loss.gradient(x))


def test_linear_names_its_parts():
    loss = Linear([1.0, 2.0], offset=3.0)
    np.testing.assert_array_equal(loss.cost, [1.0, 2.0])
    assert loss.offset == 3.0
    assert loss.value([0.0, 0.0]) == 3.0
    assert repr(loss) == "Linear([1.0, 2.0], 3)"
    assert repr(Linear(np.ones(9))) == "Linear(<array (9,)>, 0)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Squared([1.0, np.nan], 0.0), "'features' parameter of Squared must be finite"),
        (lambda: Squared(["a"], 0.0), "'features' parameter of Squared must be an array of real numbers"),
        (lambda: Squared([1.0], np.inf), "'label' parameter of Squared must be a finite number"),
        (lambda: Squared(1.0, 0.0), r"features of Squared must be a non-empty array.*Got shape \(\)"),
        (lambda: Absolute([], 0.0), r"features of Absolute must be a non-empty array.*Got shape \(0,\)"),
        (lambda: Logistic([1.0], 0), r"labels of Logistic must be -1 or \+1. Got 0. Convert.*2 \* y - 1"),
        (lambda: Hinge([1.0], 0), r"labels of Hinge must be -1 or \+1. Got 0. Convert.*2 \* y - 1"),
        (lambda: Huber([1.0], 0.0, delta=0.0), "'delta' parameter of Huber must be a finite number > 0. Got 0"),
        (lambda: Pinball([1.0], 0.0, tau=1.0), "'tau' parameter of Pinball must lie between 0 and 1. Got 1"),
        (lambda: Pinball([1.0], 0.0, tau=-0.1), "'tau' parameter of Pinball must be a finite number > 0. Got -0.1"),
        (lambda: Log([0.0, 0.0]), "features of Log must not all be zero"),
        (lambda: Log([1.0], "x"), "'offset' parameter of Log must be a finite number"),
        (lambda: Linear([np.inf]), "'cost' parameter of Linear must be finite"),
        (lambda: Linear([1.0], "x"), "'offset' parameter of Linear must be a finite number"),
        (lambda: Squared([1.0], 0.0).value([1.0, 2.0]), r"features of shape \(1,\).*Got shape \(2,\)"),
        (lambda: Squared([1.0], 0.0).gradient(1.0), r"features of shape \(1,\).*Got shape \(\)"),
        (lambda: Hinge([1.0, 2.0], 1.0).value([1.0, np.inf]), r"Hinge: a decision must be finite.*Got \[1.0, inf\]"),
        (lambda: Hinge([1.0, 2.0], 1.0).gradient(np.array([1.0, np.nan])), "Hinge: a decision must be finite"),
        (lambda: Linear([1e100, 0.0]).value(np.array([1e300, 0.0])), "must be finite, and so must <a, x>"),
        (lambda: Squared([1.0], 0.0).value("one"), "must be an array of real numbers. Got 'one'"),
        (lambda: Squared([1.0], 0.0).gradient_bound(Ball(2)), r"features of shape \(1,\).*Got shape \(2,\)"),
        (lambda: Squared([1.0], 0.0).loss_bound(Ball(2)), r"features of shape \(1,\).*Got shape \(2,\)"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


class Handmade:
    """A loss of a user, with room for mistakes."""

    def __init__(self, value, gradient):
        self.value, self.gradient = value, gradient


def test_check_loss_accepts_a_users_loss():
    check_loss(Handmade(lambda x: np.sum(x**4), lambda x: 4 * x**3), np.array([[0.3, -1.0]]), 0)


@pytest.mark.parametrize(
    ("value", "gradient", "message"),
    [
        (lambda x: np.sum(x**2), lambda x: x, "entry 1 of the gradient at .* is 2, but the values there have slope 4"),
        (lambda x: -np.sum(x**2), lambda x: -2 * x, "not convex"),
        (lambda x: np.nan, lambda x: x, "value must return a finite number"),
        (lambda x: x, lambda x: x, "value must return a finite number"),
        (lambda x: 0.0, lambda x: 0.0, r"gradient must return a finite array of shape \(2,\)"),
        (lambda x: float(x.fill(0.0) or 0.0), lambda x: x, "changes the point it is given"),
    ],
)
def test_check_loss_finds_mistakes(value, gradient, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(Handmade(value, gradient), [1.0, 2.0], 0)


class Shadow(tw.losses.PredictionLoss):
    """Huber's loss with a hole to fill: a plain function in the place of a kernel, or another fact."""

    name = "shadow of huber"
    phi = Huber.phi
    curvature = 1.0
    parameter_name = "delta"
    default = 1.0

    def __init__(self, features, label, delta=1.0, **changed):
        super().__init__(features, label, delta=delta)
        kernels = {key: changed.pop(key) for key in Phi._fields if key in changed}
        self.phi = Huber.phi._replace(**kernels)
        self.__dict__.update(changed)
        if "curvature" in changed:
            self.curvature_from = lambda low, labels: np.full(labels.shape, changed["curvature"])


del NAMES[Shadow.name]


def test_check_loss_accepts_the_unchanged_shadow():
    check_loss(Shadow([1.0, -2.0], 0.5), [0.5, 0.2], 0)


@pytest.mark.parametrize("at", [{"x": [0.5, 0.2]}, {"domain": tw.domains.Ball(2)}])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tangent": lambda z, b, par, m: 1.0}, "`tangent` at .* It must be the value there"),
        ({"tangent": lambda z, b, par, m: m * (z - b) + 0.5 * m * m}, "`tangent` at .* It must be the value there"),
        ({"tangent": lambda z, b, par, m: Huber.phi.value(z, b, par)}, "not on a line of slope"),
        ({"tangent": lambda z, b, par, m: np.nan}, "`tangent` at"),
        ({"prox_slope": lambda z, b, par, step: Huber.phi.slope(z, b, par)}, "`prox_slope` at .* argmin"),
        ({"prox_slope": lambda z, b, par, step: (z - b) / (1 + step)}, "`prox_slope` at .* argmin"),
        ({"prox_slope": lambda z, b, par, step: z - step * Huber.phi.prox_slope(z, b, par, step)}, "`prox_slope` at"),
        ({"prox_slope": lambda z, b, par, step: np.nan}, "`prox_slope` at"),
        ({"curvature": 0.9}, "the slope grows by 1 per unit"),
        ({"value": lambda z, b, par: Huber.phi.value(z, b, par) - 1.0}, "Set nonnegative = False"),
        ({"value": lambda z, b, par: Huber.phi.value(z, b, par) - 1e-16}, "Set nonnegative = False"),
        ({"value": lambda z, b, par: np.inf if z > b + 20 else Huber.phi.value(z, b, par)}, "barrier = True"),
        ({"slope": lambda z, b, par: -Huber.phi.slope(z, b, par)}, "`prox_slope` at"),
    ],
)
def test_check_loss_finds_mistakes_of_kernels(changed, message, at):
    loss = Shadow([1.0, -2.0], 0.5, **changed)
    loss.value = Huber([1.0, -2.0], 0.5).value  # right, so that only the kernels are wrong
    loss.gradient = Huber([1.0, -2.0], 0.5).gradient
    with pytest.raises(AssertionError, match=message):
        check_loss(loss, rng=0, **at)


def test_check_loss_finds_a_curvature_that_depends_on_the_place():
    class Flatter(Log):
        name = "flatter log"

        @classmethod
        def curvature_from(cls, low, labels):
            return 0.5 / (low + labels) ** 2

    del NAMES[Flatter.name]
    with pytest.raises(AssertionError, match="the class states a curvature"):
        check_loss(Flatter([1.0, -2.0], 9.0), [0.5, 0.2], 0)


def test_check_loss_stays_in_the_domain():
    simplex = tw.domains.Simplex(3)
    asked = []

    def value(x):
        asked.append(x)
        return -np.log(x @ [1.1, 0.9, 1.0])

    check_loss(Handmade(value, lambda x: -np.array([1.1, 0.9, 1.0]) / (x @ [1.1, 0.9, 1.0])), rng=0, domain=simplex)
    assert len(asked) > 40
    assert all(simplex.contains(x, tol=1e-12) for x in asked)


@pytest.mark.parametrize(
    ("value", "gradient", "message"),
    [
        (
            lambda x: x[0] ** 2 + 3 * x[1] ** 2,
            lambda x: np.array([2.2, 6.6]) * x,
            "by the gradient at .* but the values there have slope",
        ),
        (lambda x: -np.sum(x**2), lambda x: -2 * x, "not convex"),
        (lambda x: np.sum(x**2), lambda x: x[:1], "gradient must return a finite array"),
    ],
)
@pytest.mark.parametrize("x", [None, [0.9, 0.1]])
def test_check_loss_finds_mistakes_in_the_domain(value, gradient, message, x):
    with pytest.raises(AssertionError, match=message):
        check_loss(Handmade(value, gradient), x, 0, domain=tw.domains.Simplex(2))


def test_check_loss_needs_a_point_or_a_domain():
    with pytest.raises(InputError, match="needs a point x to look around, or a domain"):
        check_loss(Squared([1.0], 1.0))
    with pytest.raises(InputError, match="must be a point of"):
        check_loss(Squared([1.0], 1.0), [3.0], domain=tw.domains.Ball(1))


def test_the_parameter_of_a_loss_of_ones_own_reaches_it():
    class Wide(tw.losses.PredictionLoss):
        name, phi, curvature = "wide", Huber.phi, 1.0
        parameter_name, default = "width", 1.0

    assert Wide([1.0], 2.0).parameter == 1.0
    assert Wide([1.0], 2.0, width=0.5).parameter == 0.5
    check_loss(Wide([1.0], 2.0), [0.0])

    class Deaf(Wide):
        name = "deaf"

        def __init__(self, features, label, width=1.0):
            super().__init__(features, label)
            self.width = width

    with pytest.raises(
        AssertionError, match=r"Deaf\(\.\.\., width=0\.5\) has `parameter` 1\. Its constructor must call"
    ):
        check_loss(Deaf([1.0], 2.0), [0.0])
