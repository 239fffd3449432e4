"""What of a run is missing, in words: what was dropped, lost or not watched, by `coverage()`."""

from __future__ import annotations

from typing import Any

from stageprof_collectors.storage.store import DAMAGED
from stageprof_runtime.measured import ASKED


def missing(c: dict[str, Any]) -> tuple[str, ...]:
    """What was dropped by reason, most first; whose batches are missing; what was not watched."""
    drops = sorted(c["dropped"].items(), key=lambda drop: -drop[1])
    parts = [f"{n:,} {reason}" for reason, n in drops if n]
    for what, names in (
        ("batches of", c["sources_lost"]),
        ("end of", c["tails_lost"]),
        ("not seen:", c["not_instrumented"]),
        ("off:", dict.fromkeys(map(_off, c["disabled"]))),
    ):
        parts += [f"{what} {name}" for name in names]
    if c["unmeasured"]:
        parts.append(f"not measured: {', '.join(c['unmeasured'])}")
    return tuple(parts)


def _off(disabled: str) -> str:
    """A hook that is off; of one that was asked for, why."""
    hook, _, why = disabled.partition(": ")
    return f"{hook} ({why})" if hook in ASKED else hook


def lost(c: dict[str, Any]) -> str:
    """How much is missing, for the line of coverage."""
    frames = c["dropped"].get(DAMAGED, 0)
    died = sum(tail["died"] for tail in c["tails_lost"].values())
    parts = [
        (frames, "damaged frame left out", "damaged frames left out"),
        (sum(c["dropped"].values()) - frames, "event dropped", "events dropped"),
        (c["batches_lost"], "batch lost", "batches lost"),
        (died, "dead worker's end lost", "dead workers' ends lost"),
        (len(c["tails_lost"]) - died, "silent worker's end lost", "silent workers' ends lost"),
        (len(c["disabled"]), "hook disabled", "hooks disabled"),
        (len(c["problems"]), "problem", "problems"),
    ]
    found = [f"{n:,} {one if n == 1 else many}" for n, one, many in parts if n]
    return ", ".join(found) or "nothing lost"
