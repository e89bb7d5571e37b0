"""Problems and sets that the tests of comparators and of measures share."""

import numpy as np

from thalweg import domains, problems

KINDS = {
    "squared": problems.LinearRegression,
    "logistic": problems.LogisticRegression,
    "absolute": problems.AbsoluteRegression,
    "linear": problems.LinearLosses,
}
FINE = problems.LinearRegression(np.ones((6, 2)), np.arange(6.0))
DISC = domains.Ball(2)
ENDLESS = problems.FromFunctions(lambda t, x: 0.0, lambda t, x: 0 * x, 2)


def wrapped(domain):
    """The same set, known by its projection alone: nothing is compiled, and no sums of rounds are kept."""
    return domains.Custom(domain.project, domain.shape, domain.center, domain.radius, tolerance=1e-12)
