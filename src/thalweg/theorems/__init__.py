"""Theorems with every constant: their base class, and the bounds they are made of.

The theorem of a method is in the file of that method.
"""

from thalweg.theorems import bounds
from thalweg.theorems._base import CoverTheorem, Marked, Theorem, path_length, pool_bound, step_sizes

__all__ = ["CoverTheorem", "Marked", "Theorem", "bounds", "path_length", "pool_bound", "step_sizes"]
