"""Every learner the shared checks run on: add a line here and all of them apply to it."""

import numpy as np

import thalweg as tw


def ball():
    return tw.domains.Ball(3, radius=2.0, center=[1.0, 0.0, -1.0])


def ellipsoid():
    return tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=4.0)


def slow_box():
    """A set that only Python can project onto."""
    return tw.domains.Custom(lambda x: np.clip(x, -1.0, 2.0), 3, center=np.full(3, 0.5), radius=1.5 * np.sqrt(3))


T, G, L = 50, 6.0, 2.0

LEARNERS = {
    "OGD fixed": lambda: tw.OGD(ball(), step_size=0.1),
    "OGD horizon": lambda: tw.OGD(ball(), horizon=T, gradient_bound=G),
    "OGD anytime, line": lambda: tw.OGD(tw.domains.Box([-1.0], [3.0]), gradient_bound=G),
    "OGD custom": lambda: tw.OGD(slow_box(), step_size=0.1),
    "SOGD": lambda: tw.SOGD(tw.domains.Simplex(4)),
    "SOGD matrix": lambda: tw.SOGD(tw.domains.Ball((2, 3))),
    "Ader": lambda: tw.Ader(ellipsoid(), T, G),
    "Ader T=1": lambda: tw.Ader(ellipsoid(), 1, G),
    "Ader own": lambda: tw.Ader(ellipsoid(), T, G, gradients="own"),
    "Ader own, custom": lambda: tw.Ader(slow_box(), T, G, gradients="own"),
    "Sword": lambda: tw.Sword(ellipsoid(), T, G, L),
    "Sword shared": lambda: tw.Sword(ellipsoid(), T, G, L, gradients="shared"),
    "Sword custom": lambda: tw.Sword(slow_box(), T, G, L),
    "EfficientDynamic Thm 2": lambda: tw.EfficientDynamic(ellipsoid(), T, G),
    "EfficientDynamic Thm 3": lambda: tw.EfficientDynamic(ellipsoid(), T, G, L),
    "EfficientDynamic clip": lambda: tw.EfficientDynamic(ellipsoid(), T, G, L, on_violation="clip"),
    "EfficientDynamic simplex": lambda: tw.EfficientDynamic(tw.domains.Simplex(5, total=2.0), T, G),
    "EfficientDynamic line": lambda: tw.EfficientDynamic(tw.domains.Box([2.0], [3.0]), 1, G, L),
    "EfficientDynamic custom": lambda: tw.EfficientDynamic(slow_box(), T, G),
    "EfficientDynamic spectral": lambda: tw.EfficientDynamic(tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]), T, G),
    "OneProjection SOGD": lambda: tw.OneProjection(ellipsoid(), lambda Y: tw.SOGD(Y)),
    "OneProjection Ader": lambda: tw.OneProjection(ellipsoid(), lambda Y: tw.Ader(Y, T, G)),
    "OneProjection twice": lambda: tw.OneProjection(ellipsoid(), lambda Y: tw.EfficientDynamic(Y, T, G)),
}
