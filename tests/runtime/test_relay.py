"""The relay sends to the stream that it began with, and to no other of the same client.

An owner in the same process has its batches handed to it.
"""

from __future__ import annotations

from typing import Any

import pytest

from stageprof_runtime import inbox
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


def test_an_owner_in_the_same_process_has_it_at_once_and_no_message_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[bytes] = []
    monkeypatch.setitem(inbox.sinks, "session", taken.append)
    comm = Comm()
    relay = Relay(Scheduler(comm), "session", "Client-1", Watches("scheduler"))
    relay.send(b"from a thread")
    relay.send_now(b"on the loop")
    assert taken == [b"from a thread", b"on the loop"]
    assert (comm.sent, relay.passed, relay.ready()) == ([], 0, True)


def test_an_owner_that_has_all_it_waited_for_is_handed_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[bytes] = []
    monkeypatch.setitem(inbox.sinks, "session", taken.append)
    comm = Comm()
    relay = Relay(Scheduler(comm), "session", "Client-1", Watches("scheduler"))
    relay.over = True
    relay.send(b"late")
    relay.send_now(b"later")
    assert (taken, comm.sent) == ([], [])
