"""ConformalBands: nested intervals, the sides it chooses, and that it is made of trackers."""

import numpy as np
import pytest

from tests.estimators.common import in_turn, refused
from tests.samples import same
from thalweg.errors import InputError
from thalweg.estimators import ConformalBands, ConformalTracker

SMALL = {"windows": (8, 30), "halflives": (1, 5)}


def drawn(T=600, seed=0, skewed=True):
    rng = np.random.default_rng(seed)
    errors = rng.exponential(size=T) - 0.3 if skewed else rng.standard_normal(T)
    y_hat = np.cumsum(rng.standard_normal(T))
    return y_hat, y_hat + errors * np.where(np.arange(T) < T // 2, 1.0, 5.0)


def covered(band, y):
    return ((band[..., 0] <= y[:, None]) & (y[:, None] <= band[..., 1])).mean(axis=0)


@pytest.mark.parametrize("sides", ["one", "two"])
@pytest.mark.parametrize("horizon", [1, 3])
def test_a_single_level_is_a_tracker(sides, horizon):
    y_hat, y = drawn(200)
    options = {"horizon": horizon, "correction": 0.1, **SMALL}
    found = ConformalBands((0.8,), sides=sides, **options).run(y_hat, y)[:, 0]
    usual = ConformalTracker(0.8, asymmetric=sides == "two", **options).run(y_hat, y)
    assert np.allclose(found, usual, rtol=0, atol=1e-12 * np.abs(y).max())


def test_intervals_of_all_levels_are_nested():
    """Those of trackers on their own are not; sorting changes neither the sum of thresholds nor that of misses."""
    levels = (0.5, 0.55, 0.6, 0.9)
    y_hat, y = drawn(400, skewed=False)
    found = ConformalBands(levels, sides="one", **SMALL).run(y_hat, y)
    alone = np.stack([ConformalTracker(c, **SMALL).run(y_hat, y) for c in levels], axis=1)
    assert (np.diff(alone[:, :, 1], axis=1) < 0).any()
    assert (np.diff(found[:, :, 1], axis=1) >= 0).all()
    assert (np.diff(found[:, :, 0], axis=1) <= 0).all()
    assert np.allclose(np.sort(alone, axis=1)[:, :, 1], found[:, :, 1])
    assert covered(found, y).sum() == pytest.approx(covered(alone, y).sum())

    def pinball(band):
        scores, q, alpha = np.abs(y - y_hat)[:, None], band[:, :, 1] - y_hat[:, None], 1 - np.array(levels)
        return np.maximum((1 - alpha) * (scores - q), alpha * (q - scores)).sum(axis=1)

    assert (pinball(found) <= pinball(alone) + 1e-9).all()


def test_the_sides_are_those_with_the_smaller_interval_score():
    """After 128, 256, .. rounds, by the rounds since the decision before; one side until then."""
    y_hat, y = drawn(700)
    y[300:] = y_hat[300:] + np.random.default_rng(1).standard_normal(400)  # the skew goes
    bands, chosen = ConformalBands((0.8,), **SMALL), []
    for f, came in zip(y_hat, y, strict=True):
        chosen.append(bands.chosen[0])
        bands.predict_intervals(f)
        bands.update(came)
    paid = []
    for asymmetric in (False, True):
        low, high = ConformalTracker(0.8, asymmetric=asymmetric, **SMALL).run(y_hat, y).T
        paid.append(high - low + 2 / 0.2 * (np.maximum(low - y, 0) + np.maximum(y - high, 0)))
    last = 0
    assert set(chosen[:128]) == {"one"}
    for n in (128, 256, 512):
        best = "two" if paid[1][last:n].sum() < paid[0][last:n].sum() else "one"
        assert set(chosen[n : min(2 * n, 700)]) == {best}
        last = n
    assert {"one", "two"} == set(chosen)


def test_skewed_errors_get_shorter_intervals_and_keep_their_coverage():
    y_hat, y = drawn(5000)
    bands = ConformalBands((0.5, 0.9))
    found = bands.run(y_hat, y)
    usual = ConformalBands((0.5, 0.9), sides="one").run(y_hat, y)
    assert bands.chosen == ("two", "two")
    assert np.abs(covered(found, y) - [0.5, 0.9]).max() < 0.015
    widths = [np.diff(band[200:], axis=2).mean() for band in (found, usual)]
    assert widths[0] < 0.95 * widths[1]


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_run_is_the_loop(horizon):
    y_hat, y = drawn(300)
    made, other = (ConformalBands((0.5, 0.9), horizon=horizon, **SMALL) for _ in range(2))
    whole = made.run(y_hat, y)
    rows = in_turn(lambda t: other.predict_intervals(y_hat[t]), lambda t: other.update(y[t]), 300, horizon - 1)
    assert np.array_equal(whole, rows)
    assert same(made.state(), other.state())


def test_units_do_not_matter():
    y_hat, y = drawn(300)
    a, b = (ConformalBands((0.5, 0.9)).run(scale * y_hat, scale * y) for scale in (1.0, 2.0**-30))
    assert np.allclose(a, b * 2.0**30, rtol=1e-12, atol=1e-12 * np.abs(y).max())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"coverages": ()}, "coverages"),
        ({"coverages": (0.9, 0.5)}, "that grow"),
        ({"coverages": (0.5, 1.0)}, "between 0 and 1"),
        ({"coverages": (0.5,), "sides": "both"}, "sides"),
        ({"coverages": (0.5,), "horizon": 0}, "horizon"),
    ],
)
def test_bad_arguments_are_told(options, told):
    with pytest.raises(InputError, match=told):
        ConformalBands(**options)


def test_bad_rounds_change_nothing():
    bands = ConformalBands((0.5, 0.9), **SMALL)
    with pytest.raises(InputError, match="nothing waits"):
        bands.update(1.0)
    bands.predict_intervals(0.0)
    with refused(bands, "wait for an answer"):
        bands.predict_intervals(0.0)
    with refused(bands, "wait for an answer"):
        bands.run([0.0], [1.0])
    for bad in (np.nan, "one"):
        with refused(bands, "y must be a number"):
            bands.update(bad)
    bands.update(1.0)
    with pytest.raises(InputError, match="as many"):
        bands.run([0.0, 1.0], [1.0])
    with pytest.raises(InputError, match="in row 1"):
        bands.run([0.0, 1e101], [1.0, 1.0])
