"""Where there was no time to see a graph whole, what was seen tells of the rest of its kind."""

from __future__ import annotations

from typing import Any

import pytest

from findings.crowded import CLIENT, Program, calls, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import MARK

TASKS, NBYTES = 60, 1_600_000


def program(seen: int, *, message: int = NBYTES, cut: bool = True, others: int = 0) -> Recording:
    """Calls of one line, each a layer; some were seen to hold one array, others another."""
    made, keys = Program(), calls(TASKS, "score")
    made.made("score", 40)
    for i, key in enumerate(keys[: seen + others]):
        made.embedded(key, number=1 + (i >= seen), nbytes=NBYTES)
    if cut:
        why = "graph 0: looking took too long, it was not seen whole"
        made.rows[CLIENT].append((MARK, ns(0), "objects not examined", why))
    made.tasks(keys, work=1.0)
    made.sent("score", TASKS, TASKS * message)
    return made.recording()


def test_calls_that_were_not_seen_hold_what_those_that_were_hold() -> None:
    (found,) = program(20).objects().to_dict("records")
    assert found["tasks"] == len(set(found["layers"])) == TASKS
    assert found["sent_bytes"] == TASKS * NBYTES


@pytest.mark.parametrize(
    ("seen", "changed"),
    [
        (20, {"cut": False}),
        (20, {"message": NBYTES // 4}),
        (9, {}),
        (20, {"others": 20}),
    ],
    ids=["seen whole", "messages have no room", "few were seen", "others hold another"],
)
def test_else_only_those_count_that_were_seen(seen: int, changed: dict[str, Any]) -> None:
    assert set(program(seen, **changed).objects()["tasks"]) == {seen}
