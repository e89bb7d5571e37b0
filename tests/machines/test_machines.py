"""Every expert works with every meta-learner, compiled and not."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.machines.cases import COMBINATIONS, METHODS, played


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What plain Python plays, in a process where nothing is compiled. It checks each run, too."""
    path = tmp_path_factory.mktemp("plain") / "runs.npz"
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "tests.machines.cases", str(path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(path) as runs:
        return dict(runs)


# Every expert and every meta-learner once (AdaNormalHedge is in SACS), of what other tests compile too; all others take
# as long again to compile, each.
FAST = {
    "Descent on a cover, CoinBetting",
    "AdaGradDescent on a cover, AdaptMLProd",
    "Pool on a cover, AdaptMLProd, observed",
    "AdaGradDescent in a pool, Hedge",
    "Descent in a pool, Hedge",
}


def test_all_combinations_run_in_plain_python(plain):
    assert plain.keys() == (COMBINATIONS | METHODS).keys()
    assert len({decisions.tobytes() for decisions in plain.values()}) == len(plain)  # each plays something of its own


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in COMBINATIONS]
)
def test_compiled_code_plays_what_plain_python_plays(name, plain):
    np.testing.assert_allclose(played(COMBINATIONS[name]), plain[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_methods_play_the_same_where_nothing_is_compiled(name, plain):
    np.testing.assert_allclose(played(METHODS[name]), plain[name], rtol=0, atol=1e-12)
