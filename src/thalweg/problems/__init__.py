"""Problems: sequences of losses, one a round."""

from thalweg.problems._base import Problem
from thalweg.problems.functions import FromFunctions, FromLosses
from thalweg.problems.generators import gradual, paper_ellipsoid, piecewise_stationary
from thalweg.problems.linear_model import LinearModel
from thalweg.problems.models import (
    AbsoluteRegression,
    HingeClassification,
    HuberRegression,
    LinearLosses,
    LinearRegression,
    LogisticRegression,
    Portfolio,
    QuantileRegression,
)

__all__ = [
    "AbsoluteRegression",
    "FromFunctions",
    "FromLosses",
    "HingeClassification",
    "HuberRegression",
    "LinearLosses",
    "LinearModel",
    "LinearRegression",
    "LogisticRegression",
    "Portfolio",
    "Problem",
    "QuantileRegression",
    "gradual",
    "paper_ellipsoid",
    "piecewise_stationary",
]
