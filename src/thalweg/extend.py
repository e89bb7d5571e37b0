"""Everything that parts, learners and estimators of your own import, in one place.

Declared state: `field`, `part`, `scratch`, `Plan`, and rules such as `inside` and `within`. Kernels: `kernel`, `inner`,
`implement`, and the functions that experts (`start`, `move`, ...) and meta-learners (`admit`, `feed`, ...) implement.
Sets and losses: `pointer` and `of_kernels` make their kernels callable from compiled loops.
Learners: `InPython`, a machine in plain Python. Estimators: `Memory`, `Fixed`, and `Kept` with `Recorded`.

CONTRIBUTING has a complete example of each.
"""

from thalweg._core.memory import Fixed, Memory
from thalweg._core.recorded import Recorded
from thalweg._core.rules import counter_field, counters, inside, magnitude, simplex, within
from thalweg._core.saving import Kept
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_array, check_number, check_positive
from thalweg._kernels.handle import parts
from thalweg._kernels.jit import implement, inner, kernel
from thalweg._kernels.parts import (
    admit,
    after_projection,
    alive,
    clear,
    feed,
    fits,
    member_decision,
    move,
    move_own,
    point_count,
    projected_points,
    start,
    weigh,
)
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.projections import PYTHON, onto_ball, pointer
from thalweg._kernels.vectors import copy, dot, square_norm
from thalweg.learners.in_python import InPython
from thalweg.losses._phi import of_kernels

__all__ = [
    "PYTHON",
    "Fixed",
    "Floats",
    "InPython",
    "Ints",
    "Kept",
    "Memory",
    "Past",
    "Plan",
    "Pointer",
    "Recorded",
    "admit",
    "after_projection",
    "alive",
    "call",
    "check_array",
    "check_number",
    "check_positive",
    "clear",
    "copy",
    "counter_field",
    "counters",
    "dot",
    "feed",
    "field",
    "fits",
    "implement",
    "inner",
    "inside",
    "kernel",
    "magnitude",
    "member_decision",
    "move",
    "move_own",
    "of_kernels",
    "onto_ball",
    "part",
    "parts",
    "point_count",
    "pointer",
    "projected_points",
    "scratch",
    "simplex",
    "square_norm",
    "start",
    "weigh",
    "within",
]
