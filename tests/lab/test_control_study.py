"""The study of control: its runs are what they say, the same twice, and its report is whole."""

import numpy as np
import pytest
from thalweg.lab.studies.control import runs
from thalweg.lab.studies.control.report import remarks
from thalweg.lab.studies.control.runs import CONTROLLERS, PLANTS
from thalweg.lab.studies.control.study import SIZES, STUDY, plan

from tests.lab.reports import check_report
from thalweg import control as tc

FEW = SIZES["small"]


def test_the_report_is_whole(page, results):
    rows, _, _ = check_report(page, STUDY, results, "costs", "regret", "trajectory", "scaling", "truncation")
    scenes = [job for job in plan(FEW) if job.name.startswith("scene/")]
    assert len(rows) == len(scenes) * len(CONTROLLERS)
    ours = [row for row in rows if row["controller"] == "EfficientControl"]
    assert all(row["projections"] == row["gradients"] != "0" for row in ours)  # one a round, counted
    scream = [row for row in rows if row["controller"] == "ScreamControl"]
    members = int(np.ceil(np.log2(1 + FEW.horizon) / 2)) + 1
    starts = [int(row["projections"]) - members * int(row["gradients"]) for row in scream]
    assert all(1 <= count <= 3 for count in starts)  # it projects where it begins, after a rescale again


def test_a_scene_is_what_one_gets_by_hand():
    T, name = 80, "Boeing 747"
    row = runs.play_scene(plant=name, disturbance="walk", costs="switching", seed=5, horizon=T)
    p = PLANTS[name]
    K = tc.lqr_gain(p.system, p.Q, p.R)
    w = tc.random_walk(T, p.direction, p.bound, rng=5)
    run = tc.simulate(tc.LinearFeedback(p.system, gain=K), p.system, runs.costs_of(p, "switching", T), w)
    assert row["controllers"]["LQR"]["total"] == pytest.approx(run.total_cost, rel=1e-12)
    assert row["controllers"]["EfficientControl"]["curve"][-1] == pytest.approx(
        row["controllers"]["EfficientControl"]["total"], rel=1e-12
    )
    again = runs.play_scene(plant=name, disturbance="walk", costs="switching", seed=5, horizon=T)
    assert row["planted"] == again["planted"]
    for key in CONTROLLERS:
        assert row["controllers"][key] | {"seconds": 0} == again["controllers"][key] | {"seconds": 0}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("kind", ["wave", "walk", "steps", "gusts", "noise", "recorded"])
def test_disturbances_keep_the_bound_of_the_plant(plant, kind):
    if kind == "recorded":
        pytest.importorskip("bokeh_sampledata")
    p = PLANTS[plant]
    w = runs.pushes(p, kind, 300, seed=1)
    assert w.shape == (300, p.system.state_dim)
    assert np.linalg.norm(w, axis=1).max() == pytest.approx(p.bound, rel=1e-2)
    unit = p.direction / np.linalg.norm(p.direction)
    assert np.abs(w - np.outer(w @ unit, unit)).max() < 1e-12


def test_costs_change_as_they_say():
    p = PLANTS["batch reactor"]
    switching = runs.costs_of(p, "switching", 600)
    assert np.array_equal(switching[0].Q, p.Q)
    assert np.array_equal(switching[250].R, 10 * p.R)
    assert switching[500] is switching[0]
    mixed = runs.costs_of(p, "mixed", 900)
    kinds = [tc.QuadraticCost, tc.HuberCost, tc.AbsoluteCost, tc.QuadraticCost]
    assert [type(mixed[t]) for t in (0, 250, 500, 750)] == kinds


def test_decompositions_are_counted_where_they_happen():
    with runs.decompositions() as calls:
        np.linalg.svd(np.zeros((3, 2, 2)))
    assert calls == [3]
    np.linalg.svd(np.zeros((3, 2, 2)))
    assert calls == [3]
    row = runs.time_step(states=4, rounds=40)
    assert row["ScreamControl, tight"]["decompositions"] > row["EfficientControl, tight"]["decompositions"]
    assert row["ScreamControl, tight"]["projections"] == 7
    assert row["EfficientControl, tight"]["projections"] == 1


def test_what_is_said_follows_from_the_numbers():
    def scene(ours, lqr):
        controllers = {name: {"total": lqr} for name in CONTROLLERS}
        controllers["EfficientControl"] = {"total": ours}
        return {"plant": "Boeing 747", "costs": "fixed", "disturbance": "noise", "difference": 0.01,
                "controllers": controllers}  # fmt: skip

    timed = {"states": 9, "ScreamControl, tight": {"us": 50.0}, "EfficientControl, tight": {"us": 10.0}}
    results = {"scene/a": scene(2.0, 1.0), "time/9": timed}
    said = remarks(results)
    assert said["against"]["LQR"] == {"Boeing 747, fixed costs, noise": 2.0}
    assert (said["noise"], said["gain"]) == ([2.0], 5.0)
