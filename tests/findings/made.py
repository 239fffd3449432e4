"""Recordings and rules made by hand, for tests of what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import stageprof
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.rule import Limit, Limits, Rule
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import MARK, SPAN, Place
from stageprof_runtime.stage import STEP

CLIENT: Final = Place("client", "laptop", 100, "Client-1", 1)
SECOND: Final = 1_000_000_000
#: Seconds of the region of a made recording.
WALL_S: Final = 20.0


#: The module of a package that brings a rule.
THEIRS: Final = """
from stageprof_collectors.findings.finding import Finding, Fix, Severity
from stageprof_collectors.findings.rule import Limit, Rule

def find(recording, limits):
    yield Finding(
        rule="their-rule", severity=Severity.SERIOUS, headline=f"from {limits['files']:.0f} files",
        stage=None, evidence={}, cost_s=3.0, saving_s=(2.0, 3.0), fix=Fix("Use fewer."),
        documentation="https://their.example/rules",
    )

RULE = Rule("their-rule", None, "There are many files.", find, {"files": Limit(7, "a week")})
"""


def made(path: Path | None = None, **seconds: float) -> stageprof.Recording:
    """A region of 20 s in which each step (its name with _ for a point) took so long."""
    store = Store({"label": "etl.py"})
    now = 0
    rows: list[tuple[Any, ...]] = [(MARK, 0, "region start", "1 1")]
    for step, length in seconds.items():
        stop = now + round(length * SECOND)
        rows.append((SPAN, STEP[step.replace("_", ".")], now, stop, 1, "", 0))
        now = stop
    rows.append((MARK, round(WALL_S * SECOND), "region stop", "1"))
    store.add(pack(CLIENT, 0, 0, rows))
    store.complete = True
    return stageprof.Recording(store, None if path is None else str(path))


def found(rule: str, low: float, high: float | None = None, **fields: Any) -> Finding:
    """A finding that would save so many seconds of 20."""
    saving = low, low if high is None else high
    plain = Finding(
        rule=rule,
        severity=severity(saving, WALL_S),
        headline=f"{rule} is slow",
        stage=stageprof.Stage.SERIALIZATION,
        evidence={"dump_s": 1.25, "object_bytes": 182_000_000, "copies": 400},
        cost_s=saving[1],
        saving_s=saving,
        fix=Fix("Load it in the task.", "import dask\n\n@dask.delayed\ndef load():\n    return 1"),
        where=Where("/home/u/etl.py", 41, "lookup", "map_partitions-1a2b", "map_partitions"),
    )
    return replace(plain, **fields)


def rule(
    id_: str,
    answer: Iterable[Any] | Callable[..., Any] = (),
    limits: Mapping[str, Limit] | None = None,
) -> Rule:
    """A rule that gives this answer, or calls it with the recording and the limits."""
    find = answer if callable(answer) else lambda *_: answer
    return Rule(id_, None, "It is a test.", find, limits or {})


def noting(asked: list[Limits]) -> Callable[..., Iterable[Finding]]:
    """Finds nothing, and notes the limits that it was asked with."""

    def find(recording: object, limits: Limits) -> Iterable[Finding]:
        asked.append(limits)
        return ()

    return find
