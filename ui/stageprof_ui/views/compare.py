"""Several recordings side by side: bars of stages, layers with their change, findings."""

from __future__ import annotations

from collections.abc import Sequence

import panel as pn

from stageprof_collectors.comparison.comparison import Compared
from stageprof_ui.columns import comparison, judgement
from stageprof_ui.columns.comparison import Side
from stageprof_ui.store import Store
from stageprof_ui.views.html import html


def view(stores: Sequence[Store], shown: int = 0, judged: Compared | None = None) -> pn.Column:
    """The page.

    Args:
        stores: the recordings; the first is what the others are compared with.
        shown: which of them the other pages show.
        judged: what was found of the sides that each of two stands for; such a page has no
            server to show the pages of the others.
    """
    sides = comparison.sides([(store.recording, store.summary) for store in stores])
    first = [] if judged is None else [html("compare_judged", judgement.facts(judged))]
    facts = comparison.stages(sides, alone=judged is None) | {"shown": shown}
    return pn.Column(
        *first,
        html("compare_stages", facts),
        html("compare_findings", _findings(sides)),
        html("compare_layers", _layers(sides)),
        sizing_mode="stretch_width",
    )


def _findings(sides: Sequence[Side]) -> dict[str, object]:
    rows = comparison.finding_rows(comparison.findings(sides))
    return {"letters": [side.letter for side in sides], "rows": rows}


def _layers(sides: Sequence[Side]) -> dict[str, object]:
    frame = comparison.layers(sides)
    rows = comparison.layer_rows(frame, len(sides))
    left_out = len(frame) - len(rows)
    return {"letters": [side.letter for side in sides], "rows": rows, "left_out": left_out}
