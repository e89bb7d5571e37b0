"""Running standardisation: by the past only, exact in units, and sound where there is nothing to scale by."""

import numpy as np
import pytest

import thalweg as tw
from tests.estimators.common import refused
from thalweg.errors import InputError
from thalweg.scaling import Standardiser


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_t(2, size=(200, 3)) * [1.0, 1e-6, 1e9] + [0.0, 1.0, 5.0]


@pytest.mark.parametrize("center", [True, False])
def test_by_the_rows_before(rows, center):
    scale = Standardiser(3, center=center)
    z = scale.run(rows)
    for t in (2, 10, 199):
        past = rows[:t]
        mean = past.mean(axis=0) if center else 0.0
        spread = np.sqrt(np.mean((past - mean) ** 2, axis=0))
        assert np.allclose(z[t], np.clip((rows[t] - mean) / spread, -10, 10), rtol=1e-9)
    assert np.allclose(scale.spread, np.sqrt(np.mean((rows - scale.mean) ** 2, axis=0)))
    assert np.array_equal(z[0], [0, 0, 0])
    assert np.abs(z).max() == 10  # heavy tails


def test_row_by_row_and_units_change_no_bit(rows):
    z, scale = Standardiser(3).run(rows), Standardiser(3)
    for t, row in enumerate(rows):
        assert np.array_equal(scale.transform(row[None])[0], z[t])
        scale.update(row)
    assert np.array_equal(Standardiser(3).run(rows * 2.0 ** np.array([-300, 20, 100])), z)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e80, 1e-80])
def test_what_does_not_vary_is_nothing(value):
    z = Standardiser(1).run(np.full((1000, 1), value))
    assert not z.any()
    noisy = np.nextafter(np.full((1000, 1), value), np.arange(1000)[:, None] % 2)
    assert not Standardiser(1).run(noisy).any() or value == 0.0


@pytest.mark.parametrize("bad", [[[np.nan, 1, 2]], [[1, 2]], [1.0, 2.0, 3.0], "text", [[1e200, 0, 0]]])
def test_bad_rows_change_nothing(rows, bad):
    scale = Standardiser(3)
    scale.run(rows)
    with refused(scale):
        scale.run(bad)


def test_bad_arguments():
    for bad in (0, -1, 1.5, "a"):
        with pytest.raises(InputError, match="columns"):
            Standardiser(bad)
    with pytest.raises(InputError, match="center"):
        Standardiser(1, center="yes")
    assert tw.scaling.Standardiser is Standardiser


@pytest.mark.parametrize("row", [[[1.0], [1.0, 2.0]], [[1.0, 2.0]], 1.0, None, "ab", [1.0, np.nan]])
def test_a_row_must_be_numbers(row):
    with pytest.raises(InputError, match="The 'row' parameter of Standardiser"):
        Standardiser(2).update(row)
