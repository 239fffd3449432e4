"""Incidents: Dask's events of workers, and anything else that somebody logs."""

from __future__ import annotations

from typing import Any

import pytest

from stageprof_runtime.incident import incident

WORKER = "tcp://10.0.0.1:4000"


class Touchy:
    """An object that must not be asked anything."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    def __hash__(self) -> int:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


def changed(before: Any, now: Any) -> dict[str, Any]:
    return {"action": "worker-status-change", "prev-status": before, "status": now}


@pytest.mark.parametrize(
    ("topic", "event", "found"),
    [
        (WORKER, changed("running", "paused"), ("worker paused", WORKER)),
        (WORKER, changed("paused", "running"), ("worker resumed", WORKER)),
        (WORKER, changed("init", "running"), None),
        (WORKER, changed("running", "closing"), None),
        (
            "worker-restart-memory",
            {"worker": WORKER, "pid": 1, "rss": 970},
            ("worker killed", f"{WORKER} 970"),
        ),
        (
            WORKER,
            {
                "action": "remove-worker",
                "processing-tasks": {"a"},
                "lost-computed-tasks": {"b", "c"},
                "expected": False,
            },
            ("worker lost", f"{WORKER} 2 1 0"),
        ),
        ("all", {"action": "remove-worker", "worker": WORKER, "expected": True}, None),
        ("all", {"action": "add-worker", "worker": WORKER}, None),
    ],
)
def test_what_befalls_workers_is_a_mark(
    topic: str, event: dict[str, Any], found: tuple[str, str] | None
) -> None:
    assert incident(topic, event) == found


@pytest.mark.parametrize(
    ("topic", "event"),
    [
        ("mine", None),
        ("mine", 3),
        ("mine", Touchy()),
        (Touchy(), {"action": "remove-worker"}),
        ("mine", {"action": Touchy()}),
        ("mine", {"action": ["worker-status-change"]}),
        (WORKER, changed(Touchy(), "paused")),
        (WORKER, changed("running", Touchy())),
        (WORKER, changed("running", ["paused"])),
    ],
)
def test_anything_may_be_logged_and_nothing_is_asked_of_it(topic: Any, event: Any) -> None:
    assert incident(topic, event) is None


def test_numbers_that_are_none_are_nothing() -> None:
    event = {"action": "remove-worker", "lost-computed-tasks": Touchy(), "expected": 1}
    assert incident(WORKER, event) == ("worker lost", f"{WORKER} 0 0 0")
    killed = incident("worker-restart-memory", {"worker": WORKER, "rss": "970"})
    assert killed == ("worker killed", f"{WORKER} 0")
