"""Linear models that learn row by row, with nothing to tune: the engine under the estimators that users call."""

from thalweg.estimators._linear.engine import LinearEngine

__all__ = ["LinearEngine"]
