"""Feasible sets: exact Euclidean projections and the facts that algorithms need."""

from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.domains.box import Box
from thalweg.domains.custom import Custom
from thalweg.domains.ellipsoid import Ellipsoid
from thalweg.domains.fantope import Fantope
from thalweg.domains.half_space import HalfSpace
from thalweg.domains.intersection import Intersection
from thalweg.domains.l1_ball import L1Ball
from thalweg.domains.polytope import Polytope
from thalweg.domains.product_of_balls import ProductOfBalls
from thalweg.domains.simplex import Simplex
from thalweg.domains.spectral_balls import SpectralBalls

__all__ = [
    "Ball",
    "Box",
    "Custom",
    "Domain",
    "Ellipsoid",
    "Fantope",
    "HalfSpace",
    "Intersection",
    "L1Ball",
    "Polytope",
    "ProductOfBalls",
    "Simplex",
    "SpectralBalls",
]
