"""Thalweg: online convex optimisation when the best decision keeps moving."""

from thalweg import domains

__all__ = ["domains"]
