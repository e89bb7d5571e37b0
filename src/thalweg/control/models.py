"""Plants from the literature, sampled in time."""

import numpy as np

from thalweg.control.system import LinearSystem

__all__ = ["batch_reactor", "boeing_747", "double_integrator", "inverted_pendulum"]


def double_integrator(period: float = 0.2) -> LinearSystem:
    """A unit mass on a line: position and speed, pushed by a force."""
    return LinearSystem.sampled([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], period)


def inverted_pendulum(period: float = 0.05) -> LinearSystem:
    """A pendulum balanced on a cart, linearised upright; a force moves the cart. Unstable.

    States: position of the cart and its speed, angle of the pendulum and its speed.

    Cart 0.5 kg, pendulum 0.2 kg, its centre 0.3 m from the pivot, inertia 0.006 kg m^2, friction 0.1 N s/m: the example
    of the Control Tutorials for MATLAB and Simulink (University of Michigan).
    """
    M, m, b, inertia, g, length = 0.5, 0.2, 0.1, 0.006, 9.8, 0.3
    swing = inertia + m * length**2
    p = inertia * (M + m) + M * m * length**2
    A = np.array(
        [
            [0.0, 1.0, 0.0, 0.0],
            [0.0, -swing * b / p, m**2 * g * length**2 / p, 0.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.0, -m * length * b / p, m * g * length * (M + m) / p, 0.0],
        ]
    )
    return LinearSystem.sampled(A, [[0.0], [swing / p], [0.0], [m * length / p]], period)


def boeing_747(period: float = 0.5) -> LinearSystem:
    """The longitudinal motion of a Boeing 747 in level flight at 40 000 ft and 774 ft/s; elevator and thrust.

    States: speed along and down the body's axis (ft/s), pitch rate (0.01 rad/s), pitch angle (0.01 rad). Data of NASA
    CR-2144 (Heffley, Jewell 1972), in the form of S. Boyd's lecture notes on linear dynamical systems (Stanford EE263).
    """
    A = [[-0.003, 0.039, 0.0, -0.322], [-0.065, -0.319, 7.74, 0.0], [0.020, -0.101, -0.429, 0.0], [0.0, 0.0, 1.0, 0.0]]
    B = [[0.01, 1.0], [-0.18, -0.04], [-1.16, 0.598], [0.0, 0.0]]
    return LinearSystem.sampled(A, B, period)


def batch_reactor(period: float = 0.1) -> LinearSystem:
    """The unstable chemical batch reactor of H. H. Rosenbrock (Computer-Aided Control System Design, 1974)."""
    A = [
        [1.38, -0.2077, 6.715, -5.676],
        [-0.5814, -4.29, 0.0, 0.675],
        [1.067, 4.273, -6.654, 5.893],
        [0.048, 4.273, 1.343, -2.104],
    ]
    B = [[0.0, 0.0], [5.679, 0.0], [1.136, -3.146], [1.136, 0.0]]
    return LinearSystem.sampled(A, B, period)
