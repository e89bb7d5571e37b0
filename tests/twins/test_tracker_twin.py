"""The Tracker's twin: vectors from an earlier, separate program with other constants, filters, and scaling."""

import math

import numpy as np
import pytest

import thalweg as tw
from tests.twins.tracker import Curved, Fast, Renewed, Slow, Tracker

PLANE = [((3, 4), 5), ((0, 5), 2), ((-1, 2), 0.5)]
FLAT = [((1, 2, 4), 0.5), ((3, -1, 0), 1), ((0, 0, 2), 0.25)]


class Earlier(Tracker):
    """With the constants of the earlier program, and without walkers."""

    below, kinds, share, weak = 4, (Curved, Renewed), 0.3, 1e-3


def tracker(domain, kind=Tracker, **options):
    return kind(domain.project, domain.center, domain.surrogate.radius, domain.directions, **options)


def near(values):
    return pytest.approx(np.array(values), abs=1e-12, rel=1e-12)


def feed(twin, rounds, values=True):
    points = []
    for g, f in rounds:
        twin.update(np.array(g, dtype=float), f if values else None)
        points.append(twin.x)
    return np.array(points)


def residuals(twin, rounds):
    """(t, a, <a, x> - b) of losses whose best decision turns around every 50 rounds."""
    for t in range(1, rounds + 1):
        a = np.array([math.cos(t), math.sin(2 * t)])
        u = np.array([1.0, -0.5]) * (1 if t // 50 % 2 == 0 else -1)
        yield t, a, a @ twin.x - (a @ u + 0.5 * math.sin(3 * t))


def turning(twin, values=True, scale=1.0, rounds=400):
    """Vector E: squared losses."""
    total, points = 0.0, []
    for _, a, residual in residuals(twin, rounds):
        f = residual**2 / 2
        total += f
        twin.update(scale * (residual * a), scale * f if values else None)
        points.append(twin.x)
    return total, np.array(points)


def growing(twin, growth, values=True, scale=1.0, rounds=900):
    """Absolute losses around the same decisions, that grow: markers, newcomers in records, records anchored again."""
    points, newcomers, anchored = [], 0, 0
    for t, a, residual in residuals(twin, rounds):
        size, members, records = scale * growth**t, len(twin.members), len(twin.records)
        twin.update(size * (np.sign(residual) * a), size * abs(residual) if values else None)
        newcomers += len(twin.members) > members and records > 1
        points.append(twin.x)
        anchored = max(anchored, twin.records[0].anchored)
    return np.array(points), newcomers, anchored


VECTORS = {
    "A": (False, True, -4, 10, 3.082590398925715, 1.6820696441637082,
          [[-.137611440161143, -.183481920214857], [-.205632851673842, -.400851821968030],
           [-.177970456287547, -.502410811765705]]),
    "B": (True, True, -4, 12, 1.9266189993285723, 3.610157691861897,
          [[-.311007150100714, -.414676200134286], [-.102504429668560, -.797980298295390],
           [.100185747235509, -.870518881884032]]),
    "C": (True, False, -6, 12, 3.533501192611105, 1.170488097620893,
          [[-.069974821108334, -.093299761477779], [-.086659701848576, -.234271053909579],
           [-.056378840080531, -.316393041628844]]),
}  # fmt: skip


@pytest.mark.parametrize("intervals", [False, True])
@pytest.mark.parametrize("name", VECTORS)
def test_three_rounds_in_the_plane(name, intervals):
    curvature, values, k0, N, B, V, points = VECTORS[name]
    twin = tracker(tw.domains.Ball(2), Earlier, curvature=curvature, intervals=intervals)
    assert feed(twin, PLANE, values) == near(points)
    assert (twin.k0, len(twin.members), twin.S) == (k0, N, 55)
    record = twin.records[0]
    assert np.array([record.B, record.V]) == near([B, V])


def test_three_rounds_on_the_simplex():
    twin = tracker(tw.domains.Simplex(3), Earlier, curvature=False)
    assert feed(twin, FLAT) == near(
        [[.425186005476390, .356296501369098, .218517493154512], [.325695827721331, .384556419449933, .289747752828736],
         [.330214675596800, .431852705080979, .237932619322222]]
    )  # fmt: skip
    assert [len(twin.members), twin.S] == near([10, 16])


@pytest.mark.parametrize(
    ("curvature", "intervals", "values", "total", "last", "N", "m", "weight"),
    [
        (False, False, True, 75.606809022256, [-.393348873816706, -.437868243612752], 13, 0, 1.0),
        (True, False, True, 62.933323333110, [.372128553829078, -.711102625991073], 15, 0, 1.0),
        (True, True, True, 62.933323333110, [.372128553829078, -.711102625991073], 15, 0, 1.0),
        (False, True, True, 75.833053561264, [-.317744951549279, -.516227866320362], 13, 1, .287248115307),
        (False, True, False, 79.920635792872, [-.407285606935598, -.288892071233875], 15, 3, .711234381499),
    ],
)  # fmt: skip
def test_a_turning_stream(curvature, intervals, values, total, last, N, m, weight):
    twin = tracker(tw.domains.Ball(2, radius=2.0), Earlier, curvature=curvature, intervals=intervals)
    paid, points = turning(twin, values)
    assert paid == near(total)
    assert points[-1] == near(last)
    assert (len(twin.members), twin.m) == (N, m)
    assert twin.weights[0] == near(weight)
    for member in twin.members:
        if isinstance(member, Renewed):
            assert member.starts > 0  # the stream makes D restart


@pytest.mark.parametrize(("kind", "q"), [(Curved, 0.0), (Slow, 0.001), (Fast, 0.1)])
def test_on_squared_losses_a_member_with_curvature_is_a_kalman_filter(kind, q):
    """One that sees features and labels, in a ball that nobody leaves: it starts with P = I/(0.03 |a|^2)."""
    twin, rng = tracker(tw.domains.Ball(3, radius=100.0)), np.random.default_rng(0)
    a = rng.normal(size=(150, 3))
    b = a @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=150)
    w, P, losses, squares = np.zeros(3), np.eye(3) / (0.03 * a[0] @ a[0]), 0.0, 0.0
    for t in range(150):
        e = a[t] @ twin.x - b[t]
        twin.update(e * a[t], e**2 / 2)
        gain = P @ a[t] / (1 + a[t] @ P @ a[t])
        w, P = w + gain * (b[t] - a[t] @ w), P - np.outer(gain, P @ a[t])
        share = 1 / min(t + 1, 100)
        losses, squares = losses + share * (e**2 - losses), squares + share * (e**2 * a[t] @ a[t] - squares)
        P = P + 3 * q * losses / squares * np.eye(3)
        (member,) = (member for member in twin.members if type(member) is kind)
        assert member.point == pytest.approx(w, rel=1e-9)


@pytest.mark.parametrize("curvature", [False, True])
@pytest.mark.parametrize("values", [False, True])
def test_scaling_by_a_power_of_two_changes_no_bit(curvature, values):
    one, other = (tracker(tw.domains.Ball(2, radius=2.0), curvature=curvature) for _ in range(2))
    assert np.array_equal(turning(one, values)[1], turning(other, values, 2.0**20)[1])


@pytest.mark.parametrize("growth", [1.0, 1.01])
def test_scaling_with_many_records(growth):
    one, other = (tracker(tw.domains.Ball(2, radius=2.0), curvature=False) for _ in range(2))
    points, newcomers, anchored = growing(one, growth)
    assert one.m > 10
    assert newcomers > 0 if growth == 1 else anchored > 1  # both paths are taken
    assert np.array_equal(points, growing(other, growth, scale=2.0**20)[0])


@pytest.mark.parametrize("scale", [1e-70, 1e70])
@pytest.mark.parametrize("curvature", [False, True])
def test_tiny_and_huge_losses(curvature, scale):
    one, other = (tracker(tw.domains.Ball(2, radius=2.0), curvature=curvature) for _ in range(2))
    assert turning(other, scale=scale)[1] == pytest.approx(turning(one)[1], abs=1e-10)


def test_rounds_without_a_gradient_change_nothing():
    one, other = tracker(tw.domains.Ball(2)), tracker(tw.domains.Ball(2))
    still = [((0, 0), 1.0)]
    points = feed(one, PLANE)
    assert np.array_equal(feed(other, still + PLANE[:1] + still + PLANE[1:] + still)[[1, 3, 5]], points)


def test_records_are_the_bits_of_the_marker_count():
    twin = tracker(tw.domains.Ball(2), curvature=False)
    rng = np.random.default_rng(0)
    for _ in range(600):
        twin.update(rng.normal(size=2), 1.0)
        assert sorted(record.slot for record in twin.records[1:]) == [i for i in range(10) if twin.m >> i & 1]
        assert twin.weights.sum() == pytest.approx(1.0)
        assert twin.p.sum() == pytest.approx(1.0)
    assert twin.m > 10
