"""A comparison as one JSON object, for programs; docs/compare.md says what its fields mean."""

from __future__ import annotations

import json
from typing import Any, Final

from stageprof.renderers.document import plain
from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.blame import Blame, Part
from stageprof_collectors.comparison.comparison import Compared, Side
from stageprof_collectors.comparison.measured import NOBODY, Cell, Held
from stageprof_collectors.comparison.times import TimeChange
from stageprof_runtime.stage import Stage

#: The name of the form and its version; a new version may take fields away or change them.
SCHEMA: Final = "stageprof.compare/1"


def text(found: Compared) -> str:
    """The object as strict JSON in ASCII."""
    return json.dumps(document(found), indent=2, allow_nan=False) + "\n"


def document(found: Compared) -> dict[str, Any]:
    """The object: plain dicts, lists, texts and finite numbers; null is not known or infinite."""
    whole = {
        "schema": SCHEMA,
        "verdict": "regression" if found.regressions else "ok",
        "said": sentences.verdict(found),
        "regressions": found.regressions,
        "improvements": found.improvements,
        "program": found.program,
        "baseline": _side(found.baseline),
        "candidate": _side(found.candidate),
        "options": {
            "paired": found.options.paired,
            "floor": found.options.floor,
            "force": found.options.force,
        },
        "differences": [each._asdict() for each in found.differences],
        "times_judged": not found.unjudged,
        "times_not_judged": sentences.unjudged(found),
        "in_turn": found.in_turn,
        "times": [_time(each) for each in found.times],
        "counts": [
            {
                "name": c.what.name, "unit": c.what.unit, "varies": c.what.varies,
                "before": c.before, "after": c.after, "judged": str(c.judged),
                "why": str(c.why),
            }
            for c in found.counts
        ],
        "findings": [
            {
                "rule": f.rule, "severity": str(f.severity), "headline": f.headline,
                "cost_s": f.cost_s, "before": f.before, "after": f.after,
                "change": "came" if f.came else "went", "judged": str(f.judged),
            }
            for f in found.findings
        ],
        "blame": [_blame(each) for each in found.blames],
    }  # fmt: skip
    made: dict[str, Any] = plain(whole)
    return made


def _side(side: Side) -> dict[str, Any]:
    out = [{"file": file, "why": why} for file, why in side.left_out]
    return {"files": side.files, "left_out": out}


def _time(change: TimeChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "before_s": change.before_s,
        "after_s": change.after_s,
        "change_s": change.change_s,
        **change.effect._asdict(),
        "p": change.p,
        "floor": change.floor,
        "tested": change.tested,
        "judged": str(change.judged),
        "parts": [
            {
                **_what(part.what),
                "before_s": part.before_s, "after_s": part.after_s, **part.effect._asdict(),
            }
            for part in change.parts
        ],
    }  # fmt: skip


def _what(what: Cell | Stage) -> dict[str, Any]:
    if isinstance(what, Stage):
        return {"step": "", "waiting": True, **NOBODY._asdict()}
    return {"step": what.step, "waiting": False, **what.group._asdict()}


def _blame(blame: Blame) -> dict[str, Any]:
    return {
        "stage": str(blame.stage),
        "said": sentences.blamed(blame),
        "before_s": blame.before_s,
        "after_s": blame.after_s,
        "change_s": blame.change_s,
        "steps": [_part(part) for part in blame.steps],
        "layers": [_part(part) for part in blame.layers],
        "lines": [_part(part) for part in blame.lines],
        "objects": [
            {**m.thing._asdict(), "before": _held(m.before), "after": _held(m.after)}
            for m in blame.objects
        ],
        "tasks": blame.tasks,
        "waiting_s": blame.waiting_s,
    }


def _part(part: Part) -> dict[str, Any]:
    # what is new was at no line: there it stands for who it is
    return part._asdict() | ({"was": 0} if not part.before_s else {})


def _held(held: Held | None) -> dict[str, Any] | None:
    return None if held is None else held._asdict()
