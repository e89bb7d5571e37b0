"""Problems of `LinearModel` by name: one class a loss."""

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array
from thalweg.errors import InputError
from thalweg.problems.linear_model import LinearModel

__all__ = [
    "AbsoluteRegression",
    "HingeClassification",
    "HuberRegression",
    "LinearLosses",
    "LinearRegression",
    "LogisticRegression",
    "Portfolio",
    "QuantileRegression",
]


class _Labelled(LinearModel):
    """A model whose class names the loss."""

    def __init__(self, features: ArrayLike, labels: ArrayLike, *, comparators: ArrayLike | None = None) -> None:
        super().__init__(features, labels, self.loss, comparators=comparators)


class LinearRegression(_Labelled):
    r"""Regression with half the squared error: :math:`f_t(w) = (\langle x_t, w \rangle - y_t)^2 / 2`.

    `features` x_t, `labels` y_t and `comparators` are those of `LinearModel`.

    Examples
    --------
    >>> from thalweg.domains import Ball
    >>> from thalweg.problems import LinearRegression
    >>> problem = LinearRegression([[3.0, 4.0], [1.0, 0.0]], [0.0, 1.0])
    >>> ball = Ball(2, radius=2.0)
    >>> problem.smoothness, problem.gradient_bound(ball), problem.loss_bound(ball)
    (25.0, 50.0, 50.0)
    """

    loss = "squared"


class LogisticRegression(_Labelled):
    r"""Classification with the logistic loss: :math:`f_t(w) = \log(1 + \exp(-y_t \langle x_t, w \rangle))`.

    `features` x_t, `labels` y_t (-1 or +1) and `comparators` are those of `LinearModel`.

    Examples
    --------
    >>> from thalweg.problems import LogisticRegression
    >>> problem = LogisticRegression([[3.0, 4.0], [1.0, 0.0]], [-1, +1])
    >>> problem.losses_of([0.0, 0.0]).round(3), problem.smoothness
    (array([0.693, 0.693]), 6.25)
    """

    loss = "logistic"


class AbsoluteRegression(_Labelled):
    r"""Regression with the absolute error: :math:`f_t(w) = |\langle x_t, w \rangle - y_t|`. Not smooth.

    `features` x_t, `labels` y_t and `comparators` are those of `LinearModel`.

    Examples
    --------
    >>> from thalweg.problems import AbsoluteRegression
    >>> AbsoluteRegression([[3.0, 4.0], [1.0, 0.0]], [0.0, 1.0]).losses_of([1.0, 1.0])
    array([7., 0.])
    """

    loss = "absolute"


class LinearLosses(LinearModel):
    r"""Linear losses: :math:`f_t(w) = \langle g_t, w \rangle + o_t`. They may be negative.

    Parameters
    ----------
    costs : array (T, d) or (T, \*shape)
        g_t.
    offsets : array (T,), optional
        o_t, 0 when left out.
    comparators
        As for `LinearModel`.

    Examples
    --------
    >>> from thalweg.problems import LinearLosses
    >>> LinearLosses([[3.0, 4.0], [-1.0, 0.0]]).losses_of([1.0, 1.0])
    array([ 7., -1.])
    """

    loss = "linear"
    _arguments = ("costs", "offsets")

    def __init__(
        self, costs: ArrayLike, offsets: ArrayLike | None = None, *, comparators: ArrayLike | None = None
    ) -> None:
        costs = check_array(type(self).__name__, "costs", costs)
        if offsets is None:
            offsets = np.zeros(costs.shape[:1])
        super().__init__(costs, offsets, self.loss, comparators=comparators)

    @property
    def costs(self) -> Floats:
        """g_t, one flat row a round."""
        return self.features

    @property
    def offsets(self) -> Floats:
        """o_t."""
        return self.labels


class HuberRegression(LinearModel):
    r"""Regression that outliers cannot spoil: Huber's loss of :math:`\langle x_t, w \rangle - y_t`. Smooth.

    Parameters
    ----------
    features, labels, comparators
        x_t, y_t and the moving optimum, as for `LinearModel`.
    delta : float
        Up to this error the loss is half its square, from there on linear.

    Examples
    --------
    >>> from thalweg.domains import Ball
    >>> from thalweg.problems import HuberRegression
    >>> problem = HuberRegression([[3.0, 4.0], [1.0, 0.0]], [0.0, 100.0], delta=2.0)
    >>> problem.losses_of([1.0, 0.0]), problem.gradient_bound(Ball(2)), problem.smoothness
    (array([  4., 196.]), 10.0, 25.0)
    """

    def __init__(
        self, features: ArrayLike, labels: ArrayLike, delta: float = 1.0, *, comparators: ArrayLike | None = None
    ) -> None:
        super().__init__(features, labels, "huber", comparators=comparators, delta=delta)


class QuantileRegression(LinearModel):
    r"""Regression for a quantile: an error costs :math:`\tau` below the label, :math:`1 - \tau` above. Not smooth.

    Parameters
    ----------
    features, labels, comparators
        x_t, y_t and the moving optimum, as for `LinearModel`.
    tau : float
        Which quantile, between 0 and 1: 0.9 asks for predictions that nine of ten labels stay below.

    Examples
    --------
    >>> from thalweg.problems import QuantileRegression
    >>> QuantileRegression([[1.0], [1.0]], [0.0, 3.0], tau=0.75).losses_of([1.0])
    array([0.25, 1.5 ])
    """

    def __init__(
        self, features: ArrayLike, labels: ArrayLike, tau: float = 0.5, *, comparators: ArrayLike | None = None
    ) -> None:
        super().__init__(features, labels, "pinball", comparators=comparators, tau=tau)


class HingeClassification(_Labelled):
    r"""Classification with the hinge loss: :math:`f_t(w) = \max(0, 1 - y_t \langle x_t, w \rangle)`. Not smooth.

    `features` x_t, `labels` y_t (-1 or +1) and `comparators` are those of `LinearModel`.

    Examples
    --------
    >>> from thalweg.problems import HingeClassification
    >>> HingeClassification([[3.0, 4.0], [1.0, 0.0]], [-1, +1]).losses_of([0.5, 0.0])
    array([2.5, 0.5])
    """

    loss = "hinge"


class Portfolio(LinearModel):
    r"""Minus the log of the growth of a portfolio: :math:`f_t(w) = -\log \langle r_t, w \rangle`. It may be negative.

    Play it on a `Simplex`. Where some r_t has a zero the loss is unbounded there, and so is `gradient_bound`: mix
    a little of every asset in, or set a floor with a `Polytope`.

    Parameters
    ----------
    returns : array (T, d) or (T, \*shape)
        r_t >= 0, the price relatives: price at the end of the round over price at its start. Not all zero.
    comparators
        As for `LinearModel`.

    Examples
    --------
    >>> from thalweg.domains import Simplex
    >>> from thalweg.problems import Portfolio
    >>> problem = Portfolio([[1.0, 2.0], [1.0, 0.5]])
    >>> problem.losses_of([0.0, 1.0]).round(3), round(problem.gradient_bound(Simplex(2)), 3)
    (array([-0.693,  0.693]), 0.707)
    """

    loss = "log"
    _arguments = ("returns", "labels")

    def __init__(self, returns: ArrayLike, *, comparators: ArrayLike | None = None) -> None:
        relatives = check_array("Portfolio", "returns", returns)
        if (relatives < 0).any():
            raise InputError(
                "The 'returns' parameter of Portfolio must be price relatives >= 0: price at the end of a round over "
                f"price at its start. Got {relatives.min():g}. Pass 1 + r for rates of return r."
            )
        super().__init__(relatives, np.zeros(relatives.shape[:1]), self.loss, comparators=comparators)

    @property
    def returns(self) -> Floats:
        """r_t, one flat row a round."""
        return self.features
