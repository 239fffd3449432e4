"""The vocabulary: the six stages of a Dask computation and the steps inside them.

This is the only place where stages and steps are named. Every recorded span carries a step;
the step says its stage. The order of `STEPS` is part of the recording format: append, never
reorder.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """Where an instant of wall time went, in the order in which a computation meets it."""

    CONSTRUCTION = "construction"
    OPTIMIZATION = "optimization"
    SERIALIZATION = "serialization"
    COMMUNICATION = "communication"
    SCHEDULING = "scheduling"
    EXECUTION = "execution"
    #: the user's own code in the profiled region, neither in Dask nor waiting for it
    OUTSIDE = "outside"
    #: what no step accounts for
    UNEXPLAINED = "unexplained"


#: The six stages of Dask proper, without the two lines that complete the account.
SIX: Final = tuple(Stage)[:6]

_C, _O, _S = Stage.CONSTRUCTION, Stage.OPTIMIZATION, Stage.SERIALIZATION
_M, _P, _X = Stage.COMMUNICATION, Stage.SCHEDULING, Stage.EXECUTION

#: (stage, step) by step code; the code is the index and is what recordings store.
STEPS: Final[tuple[tuple[Stage, str], ...]] = (
    (Stage.UNEXPLAINED, ""),
    (Stage.OUTSIDE, ""),
    (_C, "build"),
    (_C, "tokenize"),
    (_C, "meta"),
    (_C, "materialize"),
    (_C, "import"),
    (_O, "expr"),
    (_O, "lowlevel"),
    (_O, "import"),
    (_S, "graph.dump"),
    (_S, "graph.load"),
    (_S, "task.dump"),
    (_S, "task.load"),
    (_S, "data.dump"),
    (_S, "data.load"),
    (_S, "result.dump"),
    (_S, "result.load"),
    (_S, "compress"),
    (_S, "decompress"),
    (_S, "import"),
    (_M, "graph.send"),
    (_M, "task.send"),
    (_M, "data.transfer"),
    (_M, "result.gather"),
    (_M, "connect"),
    (_M, "import"),
    (_P, "order"),
    (_P, "state"),
    (_P, "transition"),
    (_P, "place"),
    (_P, "local.loop"),
    (_P, "import"),
    (_X, "compute"),
    (_X, "spill.write"),
    (_X, "spill.read"),
    (_X, "wait.thread"),
    (_X, "wait.resource"),
    (_X, "gil.wait"),
    (_X, "idle"),
    (_X, "import"),
)

#: Step code by its full name, "stage/step" ("construction/build").
CODE: Final[dict[str, int]] = {f"{stage}/{step}": i for i, (stage, step) in enumerate(STEPS)}

#: Step code by step name, for the names that occur in one stage only (all but `import`).
STEP: Final[dict[str, int]] = {
    step: i for i, (_, step) in enumerate(STEPS) if step not in ("", "import")
}

#: The code of the step `import` in each of the six stages.
IMPORT: Final[dict[Stage, int]] = {s: i for i, (s, step) in enumerate(STEPS) if step == "import"}

UNEXPLAINED: Final = 0
OUTSIDE: Final = 1


def stage_of(code: int) -> Stage:
    """The stage of a step code."""
    return STEPS[code][0]


def step_name(code: int) -> str:
    """The name of a step code; "" for `outside` and `unexplained`."""
    return STEPS[code][1]
