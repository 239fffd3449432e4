"""The colour of each stage, the same wherever a stage is drawn.

From Okabe and Ito's palette, which people who see few colours can tell apart; lightened where the
original is lost on a dark terminal. The two lines that complete the account are grey.
"""

from __future__ import annotations

from typing import Final

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
