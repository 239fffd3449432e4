"""The relay sends to the stream that it began with, and to no other of the same client."""

from __future__ import annotations

from typing import Any

from stageprof_runtime.guard import Watches
from stageprof_runtime.relay import Relay


class Comm:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def closed(self) -> bool:
        return False

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


class Scheduler:
    def __init__(self, comm: Comm) -> None:
        self.client_comms = {"Client-1": comm}
        self.workers: dict[str, Any] = {}


def test_a_client_that_came_back_is_sent_nothing_of_before() -> None:
    """It has no handler for it any more: each batch would be an error in its log."""
    first, second = Comm(), Comm()
    scheduler = Scheduler(first)
    relay = Relay(scheduler, "session", "Client-1", Watches("scheduler"))
    relay.send_now(b"one")
    scheduler.client_comms["Client-1"] = second
    relay.send_now(b"two")
    assert first.sent == [{"op": "session-batch", "batch": b"one"}]
    assert second.sent == []
    assert relay.passed == 1
    assert relay.ready()
