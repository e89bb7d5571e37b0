"""Control of plants that engineers know: the plants, their disturbances and costs, and the measurements of one run.

Eight controllers meet the same disturbances; for quadratic costs so do the best policies in hindsight. Beside that:
time of a step against the number of states, the truncated loss against the real cost, and the effect of
the choices of `thalweg.control.estimated_constants`. Every function returns values that JSON can hold.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from thalweg import control as tc
from thalweg._core.types import Floats
from thalweg.lab.jobs import seed_of
from thalweg.lab.report import Row
from thalweg.lab.runs import best_time, curve_rounds
from thalweg.lab.streams import draw
from thalweg.regret import path_length

STAGE = 250  # rounds between two changes of the costs
SHOWN = 500  # rounds of a drawn trajectory


@dataclass(frozen=True)
class Plant:
    """A plant with the costs it is judged by and the disturbance it meets."""

    about: str
    system: tc.LinearSystem
    Q: Floats  # weights, of the costs and of the LQR and H-infinity designs
    R: Floats
    direction: Floats  # which states are pushed
    bound: float  # how much
    outputs: dict[str, Floats]  # curves in pictures: a name and its row of weights of the states
    inputs: tuple[str, ...]

    @functools.cached_property
    def gain(self) -> Floats:
        """K of LQR."""
        return tc.lqr_gain(self.system, self.Q, self.R)


def _plants() -> dict[str, Plant]:
    pendulum, plane = tc.inverted_pendulum(), tc.boeing_747()
    climb, each = np.array([0.0, -1.0, 0.0, 7.74]), np.eye(4)
    return {
        "double integrator": Plant(
            "a unit mass on a line, sampled every 0.2 s; a force pushes it",
            tc.double_integrator(), np.eye(2), np.eye(1), np.array([0.0, 1.0]), 0.2,
            {"position": np.array([1.0, 0.0])}, ("force",),
        ),
        "inverted pendulum": Plant(
            "a pendulum upright on a cart, every 0.05 s; a force pushes the cart",
            pendulum, np.diag([10.0, 1.0, 10.0, 1.0]), 0.1 * np.eye(1), pendulum.B[:, 0], 0.05,
            {"cart (m)": each[0], "angle (rad)": each[2]}, ("force (N)",),
        ),
        "Boeing 747": Plant(
            "longitudinal motion in level flight, every 0.5 s; vertical wind; speed and climb rate are paid for",
            plane, np.diag([1.0, 0.0, 0.01, 0.01]) + np.outer(climb, climb), np.eye(2), (each - plane.A)[:, 1], 1.0,
            {"speed (ft/s)": each[0], "climb rate (ft/s)": climb}, ("elevator", "thrust"),
        ),
        "batch reactor": Plant(
            "an unstable chemical reactor, every 0.1 s; two of its four states are pushed",
            tc.batch_reactor(), np.eye(4), np.eye(2), np.array([1.0, 1.0, 0.0, 0.0]), 0.1,
            {"state 1": each[0], "state 2": each[1]}, ("input 1", "input 2"),
        ),
        "room": Plant(
            "air and walls of a room, every hour; the weather pushes the air and, less, the walls; slow",
            tc.LinearSystem.sampled([[-0.7, 0.5], [0.05, -0.06]], [[1.0], [0.0]], 1.0),
            np.diag([1.0, 0.0]), 0.1 * np.eye(1), np.array([1.0, 0.05]), 0.3,
            {"air (K)": np.array([1.0, 0.0]), "walls (K)": np.array([0.0, 1.0])}, ("heating",),
        ),
    }  # fmt: skip


PLANTS = _plants()
CONTROLLERS: dict[str, Callable[[Plant, Floats, int], tc.Controller]] = {
    "LQR": lambda p, K, T: tc.LinearFeedback(p.system, gain=K),
    "IntegralLQR": lambda p, K, T: tc.IntegralLQR(p.system, Q=p.Q, R=p.R),
    "Preview": lambda p, K, T: tc.Preview(p.system, Q=p.Q, R=p.R),
    "H-infinity": lambda p, K, T: tc.LinearFeedback(p.system, gain=tc.h_infinity_gain(p.system, p.Q, p.R)[0]),
    "GPC": lambda p, K, T: tc.GPC(p.system, T, gain=K),
    "ScreamControl": lambda p, K, T: tc.ScreamControl(p.system, T, gain=K),
    "EfficientControl": lambda p, K, T: tc.EfficientControl(p.system, T, gain=K),
    "TrackingControl": lambda p, K, T: tc.TrackingControl(p.system, Q=p.Q, R=p.R),
}
# Random disturbances get several seeds.
DISTURBANCES = {
    "wave": "a sine with a period of 40 rounds",
    "walk": "a reflected random walk",
    "steps": "a constant push, its sign drawn again every 200 rounds",
    "gusts": "an autoregression of order 2, twice as strong in every other 500 rounds",
    "recorded": "blood sugar readings, centred and scaled: a real series, slow and irregular",
    "bang-bang": "an adversary that takes the dearer of two signs in every round",
    "noise": "independent and uniform: unpredictable",
}
RANDOM = ("walk", "steps", "gusts", "noise")
COSTS = {
    "fixed": "the quadratic cost that LQR and H-infinity were designed for",
    "switching": f"that one, and every other {STAGE} rounds states/10, inputs × 10",
    "mixed": f"every {STAGE} rounds the next of: quadratic, Huber, absolute",
}


# --------------------------------------------------------------------------------------------------------------- scenes


def pushes(plant: Plant, kind: str, horizon: int, seed: int) -> Any:
    """The disturbances of a run: an array, or an adversary."""
    d, W, rng = plant.direction, plant.bound, np.random.default_rng(seed)
    if kind == "wave":
        return tc.sinusoid(horizon, d, W, period=40)
    if kind == "walk":
        return tc.random_walk(horizon, d, W, rng=rng)
    if kind == "steps":
        return tc.recorded(np.r_[0.0, tc.piecewise(horizon - 1, 1, 1.0, length=200, rng=rng)[:, 0]], W, direction=d)
    if kind == "gusts":
        series, strength = np.zeros(horizon + 2), 1.0 + np.arange(horizon + 2) // 500 % 2
        for t in range(2, horizon + 2):
            series[t] = 1.6 * series[t - 1] - 0.7 * series[t - 2] + strength[t] * rng.standard_normal()
        return tc.recorded(series[2:], W, direction=d)
    if kind == "recorded":
        return tc.recorded(draw("glucose", horizon=horizon).problem.labels, W, direction=d)
    if kind == "noise":
        return tc.recorded(rng.uniform(-1, 1, horizon), W, direction=d)
    return tc.BangBang(plant.system, W, direction=d, Q=plant.Q, R=plant.R)


def costs_of(plant: Plant, kind: str, horizon: int) -> list[tc.Cost]:
    """The costs of all rounds."""
    usual = tc.QuadraticCost(plant.Q, plant.R)
    if kind == "fixed":
        return tc.stages([usual], horizon, STAGE)
    if kind == "switching":
        return tc.stages([usual, tc.QuadraticCost(plant.Q / 10, 10 * plant.R)], horizon, STAGE)
    q, r, wide = np.diag(plant.Q), np.diag(plant.R), 5 * plant.bound
    return tc.stages([usual, tc.HuberCost(2 * q, 2 * r, wide), tc.AbsoluteCost(wide * q, wide * r)], horizon, STAGE)


def _so_far(costs: Floats) -> list[float]:
    """Cumulative costs at about 200 rounds."""
    curve: list[float] = np.cumsum(costs)[curve_rounds(len(costs)) - 1].tolist()
    return curve


def play_scene(*, plant: str, disturbance: str, costs: str, seed: int, horizon: int) -> Row:
    """Every controller in the same scene, and the best policies in hindsight where the costs are quadratic."""
    p, K, T = PLANTS[plant], PLANTS[plant].gain, horizon
    each, w = costs_of(p, costs, T), pushes(p, disturbance, T, seed)
    played: dict[str, Row] = {}
    policies = {}
    for name, make in CONTROLLERS.items():
        controller = make(p, K, T)
        run = tc.simulate(controller, p.system, each, w, rounds=T, policies=True)
        played[name] = {"total": run.total_cost, "largest_input": float(np.abs(run.inputs).max())}
        played[name] |= {"projections": run.queries.projections, "gradients": run.queries.gradients}
        played[name] |= {"clipped": run.clipped, "seconds": run.seconds, "curve": _so_far(run.costs)}
        if isinstance(controller, tc.LearnedController):
            policies[name] = run.policies
            played[name] |= {"gradient_bound": controller.gradient_bound, "switching_cost": controller.switching_cost}
    result: Row = {"plant": plant, "disturbance": disturbance, "costs": costs, "seed": seed, "rounds": T}
    a, b = (np.asarray(policies[name]).reshape(T, -1) for name in ("ScreamControl", "EfficientControl"))
    size = float(np.linalg.norm(a, axis=1).mean()) or 1.0
    result["difference"] = float(np.linalg.norm(a - b, axis=1).mean()) / size
    result["planted"] = None if costs == "mixed" or callable(w) else _planted(p, K, each, w, T)
    return result | {"controllers": played}


def _planted(p: Plant, K: Floats, costs: list[tc.Cost], w: Floats, T: int) -> Row:
    """The best policy that may change every 250 rounds, and the best that never does, on the same disturbances."""
    learner = tc.EfficientControl(p.system, T, gain=K)
    found: Row = {}
    for name, starts in (("changing", range(0, T, STAGE)), ("fixed", (0,))):
        best, gap = tc.best_policies(learner.policy, learner.domain, costs, w, list(starts))
        run = tc.simulate(tc.Planted(p.system, policies=best, gain=K), p.system, costs, w)
        found[name] = {"total": run.total_cost, "gap": gap, "path": path_length(best), "curve": _so_far(run.costs)}
    return found


# ------------------------------------------------------------------------------------------------------ other questions


def trajectory(*, plant: str, horizon: int) -> Row:
    """States, inputs and costs of three controllers in the last rounds of a wave with switching costs."""
    p, T = PLANTS[plant], horizon
    costs, w = costs_of(p, "switching", T), pushes(p, "wave", T, 0)
    first = max(0, T - SHOWN)
    drawn: Row = {"plant": plant, "first": first}
    for name in ("LQR", "EfficientControl", "TrackingControl"):
        run = tc.simulate(CONTROLLERS[name](p, p.gain, T), p.system, costs, w)
        drawn[name] = {
            "outputs": {key: (run.states[first:T] @ row).tolist() for key, row in p.outputs.items()},
            "inputs": {key: run.inputs[first:, k].tolist() for k, key in enumerate(p.inputs)},
            "costs": run.costs[first:].tolist(),
        }
    return drawn


def truncation(*, plant: str, memories: list[int], horizon: int) -> Row:
    """How far the truncated loss is from the real cost, on average and relative to it, as the memory grows.

    The policy: the first 5 matrices (or H) of another linear controller, for inputs four times as dear.
    """
    p, T = PLANTS[plant], horizon
    K, other = p.gain, tc.lqr_gain(p.system, p.Q, 4 * p.R)
    loop = p.system.A - p.system.B @ other
    few = np.array([(K - other) @ np.linalg.matrix_power(loop, i) for i in range(5)])
    cost, w = tc.QuadraticCost(p.Q, p.R), pushes(p, "walk", T, seed_of(f"truncation/{plant}"))
    errors = []
    for H in memories:
        policy = tc.DAC(p.system, gain=K, memory=H)
        M = np.zeros(policy.shape)
        M[:5] = few[:H]
        real = tc.simulate(tc.Planted(p.system, policies=M, gain=K), p.system, cost, w).costs
        ours = np.array([policy.loss(cost, policy.past_of(w, t)).value(M) for t in range(T)])
        errors.append(float(np.abs(ours - real).mean() / real.mean()))
    chosen = tc.estimated_constants(p.system, K).memory
    return {"plant": plant, "memories": memories, "errors": errors, "chosen": chosen}


def sensitivity(*, plant: str, disturbance: str, costs: str, seed: int, horizon: int) -> Row:
    """EfficientControl with other choices than those of `estimated_constants`, in one scene; cost relative to LQR."""
    p, K, T = PLANTS[plant], PLANTS[plant].gain, horizon
    each, w = costs_of(p, costs, T), pushes(p, disturbance, T, seed)
    usual = tc.estimated_constants(p.system, K).memory
    choices: dict[str, Row] = {"as it is": {}}
    choices |= {f"margin {m:g}": {"margin": m} for m in (2.0, 4.0, 16.0)}
    choices |= {f"strength {s:g}": {"strength": s} for s in (0.5, 2.0)}
    choices |= {"memory / 2": {"memory": max(1, usual // 2)}, "memory × 2": {"memory": 2 * usual}}
    lqr = tc.simulate(tc.LinearFeedback(p.system, gain=K), p.system, each, w, rounds=T).total_cost
    paid = {}
    for name, options in choices.items():
        constants = tc.estimated_constants(p.system, K, **options)
        controller = tc.EfficientControl(p.system, T, gain=K, constants=constants)
        paid[name] = tc.simulate(controller, p.system, each, w, rounds=T).total_cost / lqr
    return {"plant": plant, "disturbance": disturbance, "costs": costs, "relative": paid}


def stability(*, plant: str, horizon: int) -> Row:
    """Constants of theory and estimates for a plant."""
    p, K = PLANTS[plant], PLANTS[plant].gain
    cost, w = tc.QuadraticCost(p.Q, p.R), pushes(p, "wave", horizon, 0)
    certificate, ours = tc.strong_stability(p.system, K), tc.estimated_constants(p.system, K)
    theory = tc.theory_constants(p.system, K, horizon=horizon, disturbance_bound=p.bound, growth=cost.growth)
    H, level = tc.h_infinity_gain(p.system, p.Q, p.R)
    as_proved = tc.EfficientControl(p.system, horizon, gain=K, constants=theory, on_violation="raise")
    paid = [tc.simulate(c, p.system, cost, w).total_cost for c in (as_proved, tc.LinearFeedback(p.system, gain=K))]
    row: Row = {"plant": plant, "theory_cost": paid[0] / paid[1] - 1}
    row["radius"] = float(np.abs(np.linalg.eigvals(p.system.A - p.system.B @ K)).max())
    row |= {"kappa": certificate.kappa, "gamma": certificate.gamma, "method": certificate.method}
    row["theory"] = [theory.memory, float(theory.caps[0]), theory.gradient_bound, theory.switching_cost]
    row["ours"] = [ours.memory, float(ours.caps[0])]
    norms = [tc.closed_loop_norm(p.system, gain, p.Q, p.R) for gain in (K, H)]
    return row | {"worst_gain": {"LQR": norms[0], "H-infinity": norms[1], "level": level}}


@contextlib.contextmanager
def decompositions() -> Iterator[list[int]]:
    """Count singular value decompositions: the list grows by how many matrices each call takes apart."""
    real, calls = np.linalg.svd, list[int]()

    def counted(a: Any, *args: Any, **options: Any) -> Any:
        calls.append(len(a))
        return real(a, *args, **options)

    with mock.patch.object(np.linalg, "svd", counted):
        yield calls


def time_step(*, states: int, rounds: int, memory: int = 5) -> Row:
    """Microseconds a round and decompositions a round, on a random stable plant with states/2 inputs.

    Processor time of the whole loop, the best of three runs. The disturbance is a random walk. "estimated": caps of
    `estimated_constants`; "tight": 100 times smaller, so that the members press against them.
    """
    rng = np.random.default_rng(seed_of(f"time/{states}"))
    inputs = max(1, states // 2)
    A, B = rng.standard_normal((states, states)), rng.standard_normal((states, inputs))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    system = tc.LinearSystem(A, B)
    cost = tc.QuadraticCost(np.ones(states), np.ones(inputs))
    w = tc.random_walk(rounds, rng.standard_normal(states), 1.0, rng=rng)
    K = tc.lqr_gain(system)
    result: Row = {"states": states, "inputs": inputs, "memory": memory, "rounds": rounds}
    probe = tc.GPC(system, 2_000, gain=K, memory=memory)
    tc.simulate(probe, system, cost, w, rounds=4 * memory)
    for name, scale in (("estimated", 1.0), ("tight", 0.01)):
        constants = tc.Constants(scale * probe.constants.caps, probe.gradient_bound, probe.switching_cost)
        for kind in (tc.GPC, tc.ScreamControl, tc.EfficientControl):
            controller = kind(system, 2_000, gain=K, constants=constants)
            with decompositions() as calls:
                run = tc.simulate(controller, system, cost, w)

            def loop(controller: tc.Controller = controller) -> None:
                x = np.zeros(states)
                for t in range(rounds):
                    x = A @ x + B @ controller.act(x) + w[t]
                    controller.observe(cost, x)

            best = best_time(loop, 3, controller.reset)
            result[f"{kind.__name__}, {name}"] = {
                "us": 1e6 * best / rounds,
                "decompositions": sum(calls) / rounds,
                "projections": run.queries.projections / rounds,
            }
    return result
