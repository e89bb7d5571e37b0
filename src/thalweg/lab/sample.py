"""A sample file: a year of hourly demand, synthetic, always the same.

    demand = 500 + 100 sin(day) + 40 on working days + c max(16 - degrees, 0) + noise          in MW             (1)
    degrees = 10 - 12 cos(year) - 4 cos(day) + noise                                                             (2)

c is 2 until hour 5000 and 10 from then on: heat pumps have arrived.
"""

import datetime
import functools

import numpy as np

HOURS, CHANGE = 24 * 365, 5000
SEED = 20250101


@functools.cache
def demand() -> bytes:
    """The file: columns hour, demand, degrees and workday."""
    rng, t = np.random.default_rng(SEED), np.arange(HOURS)
    day, year = 2 * np.pi * t / 24, 2 * np.pi * t / HOURS
    degrees = 10 - 12 * np.cos(year) - 4 * np.cos(day) + _drifting(rng, 2.0, 0.95)  # (2)
    begin = datetime.datetime(2025, 1, 1)
    hours = [begin + datetime.timedelta(hours=int(hour)) for hour in t]
    workday = np.array([hour.weekday() < 5 for hour in hours])
    cold = np.where(t < CHANGE, 2.0, 10.0) * np.maximum(16 - degrees, 0.0)
    load = 500 + 100 * np.sin(day) + 40 * workday + cold + _drifting(rng, 8.0, 0.7)  # (1)
    lines = [
        f"{hour:%Y-%m-%d %H:%M},{value:.1f},{temperature:.1f},{int(works)}"
        for hour, value, temperature, works in zip(hours, load, degrees, workday, strict=True)
    ]
    return "\n".join(["hour,demand,degrees,workday", *lines, ""]).encode()


def _drifting(rng: np.random.Generator, size: float, memory: float) -> np.ndarray:
    """Noise of this standard deviation that remembers itself."""
    steps = rng.standard_normal(HOURS) * size * np.sqrt(1 - memory**2)
    noise = np.empty(HOURS)
    noise[0] = size * rng.standard_normal()
    for t in range(1, HOURS):
        noise[t] = memory * noise[t - 1] + steps[t]
    return noise
