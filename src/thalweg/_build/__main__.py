"""`python -m thalweg._build`."""

import argparse
import json
import os
import sys
from functools import partial

from thalweg._build import catalogue, make
from thalweg._kernels import library


def main() -> None:
    """Make the library beside the package."""
    parser = argparse.ArgumentParser(prog="python -m thalweg._build", description="Make the library of kernels.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)  # a process of the build
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    report = partial(print, flush=True)
    if given.work:
        make.work(sys.stdin, report)
    elif given.record:
        report(json.dumps(catalogue.record()))
    else:
        make.build(library.FOLDER, installed=False, jobs=given.jobs, report=report)


if __name__ == "__main__":
    main()
