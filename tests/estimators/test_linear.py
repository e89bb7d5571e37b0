"""Linear models of one target: their twin, units, order, what is not seen, and streams that mean harm."""

import pickle

import numpy as np
import pytest

from tests.samples import same
from tests.twins.linear import Column, Linear, believed
from thalweg._core.state import Block
from thalweg.errors import StateError
from thalweg.estimators import TrackingRegressor
from thalweg.estimators._linear import FreeModel
from thalweg.parts.jury import judge, jury_plan
from thalweg.parts.linear import LinearLayout
from thalweg.parts.linear.rows import UNCUT
from thalweg.parts.records import MOST_SLOTS
from thalweg.parts.shares import begin_shares, share, shares_plan

LOSSES = {"squared_error": 0.5, "huber": 1.35, "quantile": 0.8, "log_loss": 0.5, "hinge": 0.5}


def rows(loss="squared_error", n=300, d=4, seed=0, drift=True):
    """Rows with units from 1e-6 to 1e6 and one feature with heavy tails; the model turns round half-way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 0] = rng.standard_t(1.5, size=n)
    w = rng.normal(size=d)
    signs = np.where(np.arange(n) < n // 2, 1.0, -1.0) if drift else 1.0
    score = (X @ w) * signs + 0.5 * rng.normal(size=n)
    y = np.sign(score) if loss in ("log_loss", "hinge") else 7.0 + score
    return X * 10.0 ** np.linspace(-6, 6, d), y, np.ones(n)


def play(X, y, weights=None, loss="squared_error", **options):
    model = make(X.shape[1], loss, **options)
    return model.learn(X, y, np.ones(len(y)) if weights is None else weights), model


def make(features, loss="squared_error", **options):
    return FreeModel(LinearLayout(features, loss, LOSSES[loss], **options))


def arrays(model):
    return {name: array.copy() for name, array in model.memory.block.arrays.items()}


def restored(model, saved):
    return FreeModel.restored(TrackingRegressor(), model.layout, saved)


def weigher(loss, guests=True, last=False):
    """The jury and the shares in plain Python, whose own tests are elsewhere."""
    priors = believed(guests, last)
    jury = Block.fresh(jury_plan(priors, MOST_SLOTS))
    shares, weights = Block(shares_plan(priors.size)).state, priors.copy()
    begin_shares(shares, priors)

    def weigh(costs, paid):
        if loss == "log_loss":
            share(shares, priors, np.exp(-costs), 1.0, weights)
            return weights.copy()
        judge(jury.state, jury.settings, paid - costs)
        return jury.state.weights.copy()

    return weigh


REAL = ["squared_error", "huber", "quantile"]
TWINS = [(loss, intercept, False) for loss in LOSSES for intercept in (True, False)]
TWINS += [(loss, True, True) for loss in REAL]


@pytest.mark.parametrize(("loss", "intercept", "last"), TWINS)
def test_twin(loss, intercept, last):
    X, y, _ = rows(loss, n=120)
    if last:
        y += np.cumsum(np.random.default_rng(3).normal(size=120))  # so that the last label is worth something
    weights = np.where(np.arange(120) % 7 == 3, 2.5, 1.0)
    twin = Linear(4, loss, par=LOSSES[loss], intercept=intercept, last=last, weigh=weigher(loss, last=last))
    expected = np.array([twin.learn(*row) for row in zip(X, y, weights, strict=True)])
    ahead, model = play(X, y, weights, loss, intercept=intercept, last=last)
    assert np.abs(ahead - expected).max() <= 1e-6 * np.abs(expected).max()
    assert np.allclose(model.weights, twin.weights, atol=1e-5)
    coefficients, constant = model.coefficients()
    mine, level = twin.coefficients()
    assert np.allclose(coefficients, mine, rtol=1e-4)
    assert np.isclose(constant, level, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_row_after_the_other_is_the_batch_to_the_last_bit(loss):
    X, y, w = rows(loss)
    ahead, model = play(X, y, loss=loss)
    other = make(4, loss)
    for t in range(len(y)):
        row = slice(t, t + 1)
        assert other.predict(X[row])[0] == ahead[t]
        assert other.learn(X[row], y[row], w[row])[0] == ahead[t]
    assert same(arrays(other), arrays(model))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [-30, 1, 40])
def test_units_of_powers_of_two_change_no_bit(loss, k):
    X, y, _ = rows(loss)
    ahead, model = play(X, y, loss=loss)
    scales = 2.0 ** np.array([k, -k, 0, 3 * k])
    unit = 1.0 if loss in ("log_loss", "hinge") else 2.0 ** (2 * k)
    scaled, other = play(X * scales, y * unit, loss=loss)
    assert np.array_equal(scaled, ahead * unit)
    assert np.array_equal(other.weights, model.weights)
    assert np.array_equal(other.coefficients()[0], model.coefficients()[0] * unit / scales)


def test_rows_of_weight_nothing_are_predicted_and_not_learned():
    X, y, w = rows()
    w[::3] = 0.0
    ahead, model = play(X, y, w)
    some, other = play(X[w > 0], y[w > 0])
    assert np.array_equal(ahead[w > 0], some)
    assert model.rounds == other.rounds == 200


def test_absent_features_cost_nothing_and_say_nothing():
    X, y, w = rows()
    model = make(50, open=True)
    assert model.used == 0
    at = np.array([2, 9, 4, 1])
    ahead = model.learn(X, y, w, at, used=9)
    assert model.used == 9
    plain, _ = play(X, y)
    assert np.allclose(ahead, plain, rtol=1e-7, atol=1e-7)
    assert np.flatnonzero(model.memory.state.features.seen).tolist() == [1, 2, 4, 9]
    assert np.array_equal(model.coefficients()[0][[2, 4, 5, 6, 7, 9, 20]], np.zeros(7))
    before = model.predict(X[:1, :2], at[:2])
    model.learn(X[:0], y[:0], w[:0], at, used=30)
    assert model.used == 30
    assert np.allclose(model.predict(X[:1, :2], at[:2]), before, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_more_room_and_guests_that_leave(loss):
    X, y, w = rows(loss)
    _, model = play(X, y, loss=loss)
    wide, plain = (pickle.loads(pickle.dumps(model)) for _ in range(2))
    wide.move(9, guests=True)
    plain.move(4, guests=False)
    at = np.arange(1, 5)
    assert np.allclose(wide.predict(X, at), model.predict(X), rtol=1e-12)
    assert np.isclose(plain.weights.sum(), 1.0)
    share = model.weights[5:]
    assert np.allclose(plain.weights, share / share.sum())
    assert np.array_equal(plain.memory.state.members.W, model.memory.state.members.W)
    again = model.learn(X, y, w)
    assert np.allclose(wide.learn(X, y, w, at), again, rtol=1e-6, atol=1e-6)
    assert np.isfinite(plain.learn(X, y, w)).all()


def test_too_few_slots_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.choice([-1.0, 1.0], size=(400, 2)), rng.choice([-1.0, 1.0], size=400)
    _, model = play(X, y)
    records = model.memory.state.jury.records
    saved, J, needed = arrays(model), records.V.size, int(records.counts[0]).bit_length()
    assert 1 < needed <= J - 2
    for slots, fine in ((needed, True), (needed - 1, False)):
        cut = dict(saved)
        for name, array in saved.items():
            if name.startswith("jury.records.") and array.shape[0] in (J, J - 1):
                cut[name] = array[: array.shape[0] - (J - 2 - slots)].copy()
        if fine:
            assert np.array_equal(restored(model, cut).learn(X, y, np.ones(400)), model.learn(X, y, np.ones(400)))
        else:
            with pytest.raises(StateError, match="jury"):
                restored(model, cut)


# --------------------------------------------------------------------------------------------- streams that mean harm


def constant(rng, n, d):
    return np.ones((n, d)) * 3.7, np.full(n, -2.0)


def duplicated(rng, n, d):
    X = np.repeat(rng.normal(size=(n, 1)), d, axis=1)
    return X, X[:, 0] * 2 + 1e-9 * rng.normal(size=n)


def units(rng, n, d):
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 8, size=d)
    return X, X @ (1 / np.abs(X).mean(axis=0)) * 1e8


def outliers(rng, n, d):
    X = rng.normal(size=(n, d))
    y = X.sum(axis=1)
    X[rng.random((n, d)) < 0.02] *= 1e12
    y[rng.random(n) < 0.02] *= -1e12
    return X, y


def jumps(rng, n, d):
    X = rng.normal(size=(n, d))
    return X, X.sum(axis=1) + 1e6 * (np.arange(n) // 50 % 2)


def wakes(rng, n, d):
    X = rng.normal(size=(n, d)) * (np.arange(n) > n // 2)[:, None]
    return X, X.sum(axis=1)


def explodes(rng, n, d):
    return rng.normal(size=(n, d)) * 1.5 ** np.arange(n)[:, None], rng.normal(size=n) * 1.5 ** np.arange(n)


def vanishes(rng, n, d):
    return rng.normal(size=(n, d)) * 0.5 ** np.arange(n)[:, None], rng.normal(size=n) * 0.5 ** np.arange(n)


def trend(rng, n, d):
    X = 1e9 + np.arange(n)[:, None] + rng.normal(size=(n, d))
    return X, X[:, 0] - 1e9


def rounding(rng, n, d):
    X = np.nextafter(np.full((n, d), 0.1), rng.integers(0, 2, size=(n, d)))
    return X, rng.normal(size=n)


def farthest(rng, n, d):
    X = rng.normal(size=(n, d)) * 1e-140
    X[n // 2 :: 7] = 1e99 * rng.choice([-1.0, 1.0], size=X[n // 2 :: 7].shape)
    return X, rng.normal(size=n) + 1e140 * X[:, 0].clip(-1e-139, 1e-139)


def highest(rng, n, d):
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * np.where(np.arange(n) % 20 == 5, 1e99, 1e-140)


HOSTILE = [farthest, highest, constant, duplicated, units, outliers, jumps, wakes, explodes, vanishes, trend, rounding]


def reaches(X, y, most):
    """As many spreads from the mean of the labels as a feature is from its own, or `most`: for every row but one."""
    columns, labels, found = [Column(True) for _ in X.T], Column(True), []
    for row, label in zip(X, y, strict=True):
        far = max(abs(column.standard(value)) for column, value in zip(columns, row, strict=True))
        wide = min(far, most, 2.0**60) * labels.spread * (1 + 1e-6)
        found.append((labels.mean - wide, labels.mean + wide))
        for column, value in zip([*columns, labels], [*row, label], strict=True):
            column.see(value)
    return np.array(found)[1:]


def test_an_accurate_model_is_believed_where_a_feature_is_far_out():
    """Half the range of targets beyond them, unless a feature is that far out and errors are small."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    X[300, 1] = 9.0
    for noise, loss, trusted in ((0.05, "squared_error", True), (0.05, "huber", True), (0.05, "quantile", False),
                                 (2.0, "squared_error", False)):  # fmt: skip
        y = X @ [0.2, 1.0, 0.0] + noise * rng.normal(size=400)
        ahead, _ = play(X, y, loss=loss)
        top = 1.5 * y[:300].max() - 0.5 * y[:300].min()
        assert (ahead[300] > 1.05 * top) == trusted
        assert ahead[300] < 10 * np.std(y[:300])


@pytest.mark.parametrize("d", [1, 3, 60])
@pytest.mark.parametrize("stream", HOSTILE)
@pytest.mark.parametrize("loss", LOSSES)
def test_never_diverges(stream, loss, d):
    n = 300 if d < 60 else 40  # then fewer rows than features
    X, y = stream(np.random.default_rng(7), n, d)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss in ("log_loss", "hinge") else y
    ahead, model = play(X, y, loss=loss)
    assert np.isfinite(ahead).all()
    assert np.isfinite(model.coefficients()[0]).all()
    restored(model, arrays(model))  # what a run has left is never refused
    if loss not in ("log_loss", "hinge"):
        low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
        wide = (high - low)[:-1] * (0.5 + 1e-9) + 1e-9 * np.abs(y).max()
        low, high, reach = low[:-1] - wide, high[:-1] + wide, np.zeros((n - 1, 2))
        if loss in ("squared_error", "huber"):  # a z is cut to 10 spreads unless that has lost more
            reach = reaches(X, y, 10.0 if model.memory.state.target[UNCUT] == 0 else np.inf)
        assert (ahead[1:] >= np.minimum(low, reach[:, 0])).all()
        assert (ahead[1:] <= np.maximum(high, reach[:, 1])).all()
    if stream is units and loss == "squared_error" and d == 3:
        assert np.std((ahead - y)[100:]) < 0.05 * np.std(y)
    if stream is jumps and loss == "squared_error" and d == 3:
        assert np.abs((ahead - y)[51:]).mean() < 2e5  # 5e5 for their mean


def test_smooth_series_do_not_break_short_memories():
    """The last values of a smooth series are nearly dependent; a covariance that is not kept as a root fails here."""
    t = np.arange(3000.0)
    z = np.sin(t / 40) + np.sin(t / 97) + 1e-4 * np.random.default_rng(0).normal(size=t.size)
    X = np.stack([z[8 - k : len(z) - k] for k in range(1, 9)], axis=1)
    model = make(8)
    errors = []
    for k in range(0, len(X), 100):
        rows, y = X[k : k + 100].copy(), z[8:][k : k + 100].copy()
        model.predict(rows[-1:])
        errors.append(np.abs(model.memory.settings.p[:4] - y[-1]))
        model.learn(rows, y, np.ones(len(y)))
    assert np.median(errors[6:], axis=0).max() < 0.01
    assert np.max(errors[6:]) < 0.2
