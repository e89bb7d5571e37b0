"""The forecaster for sktime: all of its checks, the same numbers as `Forecaster`, gaps, updates and intervals."""

import warnings

import numpy as np
import pandas as pd
import pytest

sktime = pytest.importorskip("sktime")

from sktime.forecasting.base import ForecastingHorizon  # noqa: E402
from sktime.forecasting.tests.test_all_forecasters import TestAllForecasters as OfForecasters  # noqa: E402
from sktime.split import ExpandingWindowSplitter  # noqa: E402
from sktime.tests.test_all_estimators import TestAllEstimators as OfEstimators  # noqa: E402
from sktime.tests.test_all_estimators import TestAllObjects as OfObjects  # noqa: E402
from sktime.utils.estimator_checks import check_estimator  # noqa: E402

from thalweg.errors import InputError  # noqa: E402
from thalweg.estimators import Forecaster, ThalwegForecaster  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
CHECKS = sorted(
    {name for kind in (OfObjects, OfEstimators, OfForecasters) for name in dir(kind) if "test_" in name[:5]}
)
LONG = {"test_predict_time_index", "test_predict_time_index_with_X", "test_update_predict_predicted_index"}
del OfForecasters, OfEstimators, OfObjects  # they are not to be collected

MONTHS = pd.period_range("2005-01", periods=160, freq="M")
RNG = np.random.default_rng(0)
SALES = pd.Series(
    50 + 0.1 * np.arange(160) + 10 * np.sin(np.arange(160) * np.pi / 6) + RNG.standard_normal(160), MONTHS, name="sales"
)
STEPS = [1, 2, 5]


@pytest.mark.parametrize(
    "check", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in CHECKS]
)
def test_what_sktime_asks_of_a_forecaster(check):
    """All of `check_estimator`, one test of it at a time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(ThalwegForecaster, tests_to_run=check, raise_exceptions=True, verbose=False)
    assert set(found.values()) <= {"PASSED"}


def test_the_checks_that_take_long_in_part():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LONG:
            every = ThalwegForecaster.get_test_params()
            assert len(every) == 2
            check_estimator(
                ThalwegForecaster(**every[1]),
                fixtures_to_run=[f"{name}[ThalwegForecaster-y:1cols-fh=[2 5]-int-int-True]"],
                raise_exceptions=True,
                verbose=False,
            )


def said(values, horizon, level=0.9, columns=(), rows=None, future=None):
    """Forecasts after these values by `Forecaster`."""
    model = Forecaster(columns, season=12, horizon=horizon, levels=(level,))
    model.run(values, rows)
    return model.forecast(future)


def test_it_is_the_forecaster():
    model = ThalwegForecaster(season=12).fit(SALES[:150], fh=STEPS)
    expected = said(SALES[:150].to_numpy(), 5)
    found = model.predict()
    assert np.array_equal(found, expected.mean[[0, 1, 4]])
    assert found.index.equals(MONTHS[150:155][[0, 1, 4]])
    assert found.name == "sales"
    interval = model.predict_interval()["sales", 0.9]
    assert np.array_equal(interval["lower"], expected.lower[0.9][[0, 1, 4]])
    assert np.array_equal(interval["upper"], expected.upper[0.9][[0, 1, 4]])
    quantiles = model.predict_quantiles(alpha=[0.05, 0.5, 0.95])["sales"]
    assert np.allclose(quantiles[0.5], expected.mean[[0, 1, 4]])
    assert np.allclose(quantiles[0.95], expected.upper[0.9][[0, 1, 4]])
    other = said(SALES[:150].to_numpy(), 5, 0.5)
    assert np.array_equal(model.predict_interval(coverage=0.5)["sales", 0.5]["lower"], other.lower[0.5][[0, 1, 4]])


def test_horizons_that_were_not_told_before():
    model, told = ThalwegForecaster(season=12).fit(SALES), ThalwegForecaster(season=12).fit(SALES, fh=range(1, 14))
    assert np.array_equal(model.predict(fh=range(1, 14)), told.predict())
    prepared = ThalwegForecaster(season=12, horizon=13).fit(SALES)
    assert np.array_equal(prepared.predict(fh=[2, 9]), told.predict().iloc[[1, 8]])
    absolute = ForecastingHorizon(pd.period_range("2018-05", periods=3, freq="M"), is_relative=False)
    assert np.array_equal(prepared.predict(fh=absolute), prepared.predict(fh=[1, 2, 3]))


def test_updates_are_the_same_as_one_fit():
    whole, parts = (ThalwegForecaster(season=12) for _ in range(2))
    whole.fit(SALES, fh=STEPS)
    parts.fit(SALES[:100], fh=STEPS)
    parts.update(SALES[100:101])
    parts.predict()  # changes nothing
    parts.predict_interval()
    parts.update(SALES[95:140])  # some of it is known
    parts.update(SALES[140:])
    assert parts.predict().equals(whole.predict())
    assert parts.predict_interval().equals(whole.predict_interval())


def test_gaps_and_missing_values():
    gaps = SALES.copy()
    gaps.iloc[[20, 60, 61, 62, 140]] = np.nan
    holes = gaps.dropna()
    expected = said(gaps.to_numpy(), 5).mean[[0, 1, 4]]
    assert np.array_equal(ThalwegForecaster(season=12).fit(gaps, fh=STEPS).predict(), expected)
    assert np.array_equal(ThalwegForecaster(season=12).fit(holes, fh=STEPS).predict(), expected)
    parts = ThalwegForecaster(season=12).fit(holes[holes.index < MONTHS[60]], fh=STEPS)
    assert np.array_equal(parts.update(holes[holes.index >= MONTHS[63]]).predict(), expected)
    numbers = pd.Series(SALES.to_numpy(), np.arange(7, 167)).drop([70, 71])
    assert ThalwegForecaster(season=12).fit(numbers, fh=STEPS).predict().index.tolist() == [167, 168, 171]


@pytest.mark.parametrize("freq", ["D", "MS", "ME", "15min", "B", "W-SUN", "QS", "YS", "2D"])
@pytest.mark.parametrize("holes", [False, True])
def test_timestamps(freq, holes):
    gaps = SALES.to_numpy().copy()
    gaps[[60, 61, 62, 140]] = np.nan
    y = pd.Series(gaps, pd.date_range("1820-01-01", periods=160, freq=freq))
    model = ThalwegForecaster(season=12)
    if holes and freq in ("D", "15min", "2D"):
        assert len(model.fit(y.dropna()[:-10])._values) == 150  # a unit that can be told
    elif holes:
        model.fit(y[:-10]).update(y[-10:].dropna())
        assert len(model._values) == 160
    else:
        expected = said(gaps[:150], 5).mean[[0, 1, 4]]
        assert np.array_equal(model.fit(y[:150], fh=STEPS).predict(), expected)
        assert model.predict().index.equals(y.index[150:155][[0, 1, 4]])


def test_time_passes_without_learning():
    still = ThalwegForecaster(season=12).fit(SALES[:150], fh=[1]).update(SALES[150:153], update_params=False)
    missing = SALES[:153].copy()
    missing.iloc[150:] = np.nan
    assert still.predict().equals(ThalwegForecaster(season=12).fit(missing, fh=[1]).predict())


def test_columns():
    X = pd.DataFrame(RNG.standard_normal((165, 2)), pd.period_range("2005-01", periods=165, freq="M"), ["a", "b"])
    y = SALES + 5 * X["a"][:160]
    model = ThalwegForecaster(season=12).fit(y, X=X[:160], fh=STEPS)
    expected = said(y.to_numpy(), 5, columns=("a", "b"), rows=X[:160].to_numpy(), future=X[160:].to_numpy())
    assert np.array_equal(model.predict(X=X[160:]), expected.mean[[0, 1, 4]])
    some = X[160:].iloc[[0, 1, 4]]  # the rounds between are not known
    unknown = X[160:].to_numpy().copy()
    unknown[[2, 3]] = np.nan
    expected = said(y.to_numpy(), 5, columns=("a", "b"), rows=X[:160].to_numpy(), future=unknown)
    assert np.array_equal(model.predict(X=some), expected.mean[[0, 1, 4]])
    assert np.abs(model.predict(X=X[160:]) - model.predict()).max() > 1.0


def test_in_sample_forecasts_are_those_that_were_made_before():
    model = ThalwegForecaster(season=12).fit(SALES, fh=STEPS)
    inside = model.predict(fh=ForecastingHorizon(SALES.index, is_relative=False))
    run = Forecaster(season=12, horizon=5, levels=(0.9,)).run(SALES.to_numpy())
    assert np.array_equal(inside, run.mean[:, 0], equal_nan=True)
    ends = model.predict_interval(fh=[-2, 0, 3], coverage=0.9)["sales", 0.9]
    assert np.array_equal(ends["upper"].iloc[:2], run.upper[0.9][[-3, -1], 0])
    residuals = model.predict_residuals(SALES)
    assert np.allclose(residuals.iloc[1:], (SALES.to_numpy() - run.mean[:, 0])[1:])


def test_rolling_forecasts_look_at_nothing_later():
    model = ThalwegForecaster(season=12).fit(SALES[:100], fh=[1, 2])
    cv = ExpandingWindowSplitter(fh=[1, 2], initial_window=1, step_length=1)
    found = model.update_predict(SALES[100:], cv=cv)
    changed = SALES.copy()
    changed.iloc[130:] = 1e6
    other = ThalwegForecaster(season=12).fit(SALES[:100], fh=[1, 2]).update_predict(changed[100:], cv=cv)
    run = Forecaster(season=12, horizon=2, levels=(0.9,)).run(SALES.to_numpy()).mean
    for made in range(28):  # before row 101 + made
        column = found.iloc[:, made].dropna()
        assert np.array_equal(column, run[101 + made])
        assert np.array_equal(column, other.iloc[:, made].dropna())


@pytest.mark.parametrize(
    "options", [{"season": "month"}, {"lags": 0}, {"horizon": -1}, {"levels": (95,)}, {"loss": "log"}]
)
def test_bad_arguments_are_told(options):
    with pytest.raises(InputError, match="parameter"):
        ThalwegForecaster(**options).fit(SALES)
