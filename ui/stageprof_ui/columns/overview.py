"""What the first page says: wall time by stage, time to the first task, what to change."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from stageprof_collectors.account.first_task import FirstTask
from stageprof_collectors.findings.evidence import places, shown
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.innocence import TITLE
from stageprof_collectors.findings.phrase import worth
from stageprof_collectors.findings.quantity import seconds, share
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import OWN, Summary
from stageprof_runtime.stage import Stage
from stageprof_ui.words import code, text

#: What each line of the account means, for those who do not know it.
MEANINGS: Final[dict[Stage, str]] = {
    Stage.CONSTRUCTION: "Dask builds expressions and graphs",
    Stage.OPTIMIZATION: "Dask rewrites and shrinks the graph",
    Stage.SERIALIZATION: "objects are turned into bytes and back",
    Stage.COMMUNICATION: "bytes are on the wire, or waited for",
    Stage.SCHEDULING: "the scheduler decides",
    Stage.EXECUTION: "task functions run, or wait for a thread",
    Stage.OUTSIDE: "your own code, neither in Dask nor waiting for it",
    Stage.UNEXPLAINED: "no step accounts for this",
}

#: How the time to the first task is chosen where there are several.
_AMONG: Final = " (the longest of {of:,} computations, but for waiting behind others' tasks)"

#: Cards that are shown at once; more are as many clicks as a reader has patience for.
TOP: Final = 20


def stages(summary: Summary) -> dict[str, Any]:
    """Facts for `templates/stages.html`."""
    return {
        "wall": seconds(summary.wall_s),
        "failures": text(" · ".join(summary.failures)),
        "first": _first(summary.first),
        "stages": [
            {
                "name": str(line.stage),
                "wall": seconds(line.wall_s),
                "share": share(line.share),
                "width": round(max(line.share, 0.0), 6),
                "meaning": _meaning(line.stage, summary),
            }
            for line in summary.stages
        ],
    }


def _meaning(stage: Stage, summary: Summary) -> str:
    """What a stage is; of what is outside all of them also the line that took most."""
    own = next((s for s in summary.steps if (s.stage, s.step) == (stage, OWN)), None)
    return MEANINGS[stage] + (f": {seconds(own.wall_s)} at {text(own.where)}" if own else "")


def _first(first: FirstTask | None) -> dict[str, str] | None:
    if first is None:
        return None
    where = f" of {first.line}" if first.line else ""
    where += _AMONG.format(of=first.of) if first.of > 1 else ""
    split = ", ".join(f"{stage} {seconds(s)}" for stage, s in first.split)
    return {"seconds": seconds(first.seconds), "where": text(where), "split": split}


def findings(recording: Recording, summary: Summary) -> dict[str, Any]:
    """Facts for `templates/cards.html`."""
    changes = summary.changes
    notes = [f for f in summary.findings if f not in changes and f.fix.text]
    return {
        "cards": [_card(recording, f, summary.wall_s) for f in changes[:TOP]],
        "more": max(len(changes) - TOP, 0),
        "notes": [_card(recording, f, summary.wall_s) for f in notes[:TOP]],
        "count": len(notes),
        "verdict": text(summary.verdict),
        "innocent_title": TITLE,
        "innocents": [text(sentence) for sentence in summary.innocents],
    }


def _card(recording: Recording, found: Finding, wall_s: float) -> dict[str, Any]:
    return {
        "severity": str(found.severity),
        "stage": str(found.stage or ""),
        "headline": text(found.headline),
        "worth": [text(part) for part in worth(found, wall_s).sentence],
        "fix": text(found.fix.text),
        "code": code(found.fix.code) if found.fix.code.strip() else "",
        "evidence": [
            *((name, text(value)) for name, value in places(found)),
            *shown(found.evidence, "terminal"),
        ],
        "rule": text(found.rule),
        "link": found.link if found.link.startswith("https://") else "",
        "show": json.dumps(where(recording, found)),
    }


def where(recording: Recording, found: Finding) -> dict[str, Any]:
    """What "show me" selects: numbers of layers (as in `Boxes.layers`), and seconds from and to.

    The layers of the finding's layer, prefix or line; the time in which their tasks ran. A finding
    about none of them shows the whole run.
    """
    groups, runs = recording.groups, recording.timeline.runs
    of = found.where
    layers = [i for i, row in enumerate(groups.rows) if i and _matches(row, of)]
    mine = np.isin(groups.of_run, layers)
    origin = recording.timeline.region.start
    if not mine.any():
        return {"layers": [], "start": 0.0, "stop": max(recording.wall, 1e-6)}
    start, stop = runs["start"][mine].min(), runs["stop"][mine].max()
    margin = 0.02 * max(int(stop - start), 1)
    return {
        "layers": layers,
        "start": (float(start) - margin - origin) / 1e9,
        "stop": (float(stop) + margin - origin) / 1e9,
    }


def _matches(row: Any, of: Any) -> bool:
    if of.layer:
        return of.layer in (row.layer, row.prefix)
    if of.prefix:
        return bool(row.prefix == of.prefix)
    return bool(of.file) and (row.file, row.line) == (of.file, of.line)
