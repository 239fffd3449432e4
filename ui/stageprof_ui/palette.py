"""The colour of each stage and severity, the same wherever one is drawn.

Those of the stages are from Okabe and Ito's palette, which people who see few colours can tell
apart; lightened where the original is lost on a dark terminal. The two lines that complete the
account are grey.
"""

from __future__ import annotations

from typing import Final

from stageprof_collectors.findings.finding import Severity
from stageprof_runtime.stage import Stage

STAGE_COLOURS: Final[dict[Stage, str]] = {
    Stage.CONSTRUCTION: "#56b4e9",
    Stage.OPTIMIZATION: "#009e73",
    Stage.SERIALIZATION: "#e69f00",
    Stage.COMMUNICATION: "#cc79a7",
    Stage.SCHEDULING: "#4c82d9",
    Stage.EXECUTION: "#d55e00",
    Stage.OUTSIDE: "#999999",
    Stage.UNEXPLAINED: "#777777",
}

#: Colours of the layers with most seconds, most of them from Paul Tol's "bright" and "muted"
#: schemes: people who see few colours can tell all of them apart. The last is all other layers';
#: grey is what is no task.
LAYER_COLOURS: Final = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
    "#6655ee", "#44aa99", "#999933", "#902040", "#ddcc77", "#8a6a52",
)  # fmt: skip

#: What is no task, where tasks are coloured.
OTHER_COLOUR: Final = "#a8a8a8"

#: Share of tasks' time that waited for the GIL: unknown, then from none to all in fifths; and
#: where they hardly held it either.
GIL_COLOURS: Final = (
    "#a8a8a8", "#4575b4", "#91bfdb", "#fee090", "#fc8d59", "#d73027", "#2f8f83",
)  # fmt: skip

#: The colour of each severity on light and on dark ground; each is read on it without effort
#: (a contrast of 4.5 or more).
SEVERITY_COLOURS: Final[dict[Severity, tuple[str, str]]] = {
    Severity.CRITICAL: ("#b3001b", "#ff8a93"),
    Severity.SERIOUS: ("#a04000", "#ffa463"),
    Severity.MODERATE: ("#755800", "#e6c34a"),
    Severity.NOTE: ("#5c5c5c", "#b8b8b8"),
}

#: The same on a terminal, whose ground is unknown: its own colours suit it.
SEVERITY_STYLES: Final[dict[Severity, str]] = {
    Severity.CRITICAL: "bold red",
    Severity.SERIOUS: "red",
    Severity.MODERATE: "yellow",
    Severity.NOTE: "dim",
}
