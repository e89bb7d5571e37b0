"""Time of a control step against the number of states: N projections a round against one.

    python benchmarks/control.py [--quick]

Random stable plants with half as many inputs as states, memory 5, tuned for 2000 rounds (N = 7). Times are processor
time of act and observe together, the best of three runs, one thread. A projection takes up to 5 matrices apart; those
whose Frobenius norm is below their cap are left alone. So decompositions are counted, not derived. Only the ratio
counts: times depend on the machine.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy comes

from thalweg.lab.studies.control.runs import time_step

SIZES = (2, 4, 8, 16, 32, 50)
KINDS = ("ScreamControl", "GPC", "EfficientControl")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two sizes, few rounds")
    quick = parser.parse_args().quick
    heads = [*(f"{kind}, us" for kind in KINDS), "Scream / ours", "projections", "decompositions"]
    print(f"{'states':>7}  {'caps':<10}" + "".join(f"{head:>26}" for head in heads))
    for states in SIZES[:2] if quick else SIZES:
        row = time_step(states=states, rounds=50 if quick else 300)
        for caps in ("estimated", "tight"):
            found = [row[f"{kind}, {caps}"] for kind in KINDS]
            cells = [f"{one['us']:.0f}" for one in found]
            cells.append(f"{found[0]['us'] / found[2]['us']:.1f}")
            cells += [" / ".join(f"{one[key]:.3g}" for one in found) for key in ("projections", "decompositions")]
            print(f"{states:>7}  {caps:<10}" + "".join(f"{cell:>26}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
