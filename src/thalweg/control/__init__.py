"""Control of a known linear system under arbitrary disturbances and changing costs.

A controller acts on the state and observes the outcome; `simulate` runs one on a `LinearSystem`. `EfficientControl`
(Algorithm 4) follows the best changing disturbance-action policy with one projection a round; `TrackingControl` follows
the best of LQR and several previews, and is the one to begin with.
"""

from thalweg.control.constants import Constants, estimated_constants, theory_constants
from thalweg.control.controller import Controller
from thalweg.control.costs import AbsoluteCost, Cost, HuberCost, QuadraticCost, stages
from thalweg.control.disturbances import BangBang, piecewise, random_walk, recorded, sinusoid
from thalweg.control.efficient import EfficientControl
from thalweg.control.gains import StrongStability, lqr_gain, strong_stability
from thalweg.control.gpc import GPC
from thalweg.control.h_infinity import closed_loop_norm, h_infinity_gain
from thalweg.control.hindsight import best_policies
from thalweg.control.integral import IntegralLQR
from thalweg.control.learned import LearnedController
from thalweg.control.lqr import LQR, LinearFeedback
from thalweg.control.models import batch_reactor, boeing_747, double_integrator, inverted_pendulum
from thalweg.control.planted import Planted
from thalweg.control.policy import DAC, TruncatedLoss
from thalweg.control.preview import Preview
from thalweg.control.scream_control import ScreamControl
from thalweg.control.simulate import Simulation, simulate
from thalweg.control.system import LinearSystem
from thalweg.control.tracking import TrackingControl

__all__ = [
    "DAC",
    "GPC",
    "LQR",
    "AbsoluteCost",
    "BangBang",
    "Constants",
    "Controller",
    "Cost",
    "EfficientControl",
    "HuberCost",
    "IntegralLQR",
    "LearnedController",
    "LinearFeedback",
    "LinearSystem",
    "Planted",
    "Preview",
    "QuadraticCost",
    "ScreamControl",
    "Simulation",
    "StrongStability",
    "TrackingControl",
    "TruncatedLoss",
    "batch_reactor",
    "best_policies",
    "boeing_747",
    "closed_loop_norm",
    "double_integrator",
    "estimated_constants",
    "h_infinity_gain",
    "inverted_pendulum",
    "lqr_gain",
    "piecewise",
    "random_walk",
    "recorded",
    "simulate",
    "sinusoid",
    "stages",
    "strong_stability",
    "theory_constants",
]
