"""Feasible sets: exact Euclidean projections and the facts that algorithms need."""

from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball

__all__ = ["Ball", "Domain"]
