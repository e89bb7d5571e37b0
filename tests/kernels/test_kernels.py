"""Small kernels against NumPy."""

import numpy as np
import pytest

from thalweg._kernels.vectors import decay, dot, square_norm

pytestmark = pytest.mark.compiles  # they are only called by other kernels


def test_decay_is_the_exponential():
    x = -np.concatenate([np.linspace(0.0, 39.9, 20_001), np.geomspace(1e-300, 1.0, 500), [np.log(2) / 2, np.log(2)]])
    values = np.array([decay(v) for v in x])
    assert np.abs(values / np.exp(x) - 1).max() < 3e-15
    assert decay(0.0) == 1.0


@pytest.mark.parametrize("x", [-41.0, -45.0, -1e3, -1e300, -np.inf])
def test_what_is_nothing_beside_one_is_zero(x):
    assert decay(x) == 0.0


def test_inner_products():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 37))
    assert dot(a, b) == pytest.approx(a @ b, rel=1e-13)
    assert square_norm(a) == pytest.approx(a @ a, rel=1e-13)
    assert square_norm(np.array([1e200, 0.0])) == np.inf
    assert np.isnan(square_norm(np.array([np.nan, 0.0])))
