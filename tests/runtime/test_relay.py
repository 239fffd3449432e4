"""The relay sends to the stream that it began with, and to no other of the same client.

An owner in the same process has its batches handed to it. A worker that does not give its last is
named.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client

import clusters
import remains
import stageprof
from stageprof_runtime import inbox, relay
from stageprof_runtime.clock import now_ns
from stageprof_runtime.flight.recorder import Keeping
from stageprof_runtime.guard import Watches
from stageprof_runtime.relay import BACKLOG, Relay


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


def test_a_loop_that_is_busy_has_no_more_than_a_backlog_put_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What another thread had to send while the loop did something long piled up without bound."""
    monkeypatch.setattr(relay, "waiting_in", lambda *_: 0)
    monkeypatch.setattr(relay, "unwritten", lambda *_: 0)
    scheduler: Any = Scheduler(Comm())
    waiting: list[Any] = []
    scheduler.loop = SimpleNamespace(add_callback=waiting.append)
    made = Relay(scheduler, "session", "Client-1", Watches("scheduler"))
    sent = 0
    while made.ready() and sent < 10 * BACKLOG:
        made.send(b"a batch")
        sent += 1
    assert sent == BACKLOG
    for callback in waiting:
        callback()
    assert (made.passed, made.ready()) == (BACKLOG, True)


def test_so_it_is_with_what_a_flight_recorder_keeps() -> None:
    scheduler: Any = Scheduler(Comm())
    scheduler.loop = SimpleNamespace(add_callback=lambda _: None)
    tape: Any = SimpleNamespace(ready=lambda: True)
    made = Keeping(scheduler, "session", tape, Watches("scheduler"))
    for sent in range(BACKLOG + 1):
        assert made.ready() is (sent < BACKLOG)
        made.send(b"a batch")


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


class Asked:
    """A scheduler whose workers answer, do not, or fail when they are asked for what is left."""

    def __init__(self, *workers: str) -> None:
        self.workers = dict.fromkeys(workers)
        self.client_comms: dict[str, Any] = {}

    def rpc(self, worker: str) -> Any:
        async def drain() -> list[Any]:
            if worker == "stuck":
                await asyncio.Event().wait()
            if worker == "left":
                del self.workers[worker]
            if worker != "well":
                raise OSError("the connection is closed")
            return [0, b"its last"]

        return SimpleNamespace(**{"session-drain": drain})


def test_a_worker_is_asked_for_its_last_though_one_of_its_address_could_not_be_observed() -> None:
    """A cluster of fixed ports: its last half second was missing, and nothing said so."""
    made = Relay(Asked("well"), "session", "", Watches("scheduler"))
    left: list[bytes] = []

    made._relay(worker="well", reason="stageprof 0.1 is here, 0.2 at the client")
    asyncio.run(made.drain_workers(left))
    assert left == []

    made._relay(worker="well", batch=b"of the first")
    made.left("well")
    made._relay(worker="well", batch=b"of the second")
    asyncio.run(made.drain_workers(left))
    assert (left, made.relayed) == ([b"its last"], {"well": 1})


def test_who_does_not_give_what_is_left_is_named_unless_it_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing comes after, so that no gap would show it."""
    monkeypatch.setattr(relay, "DRAIN_S", 0.01)
    asked = Relay(Asked("well", "stuck", "left", "fails"), "session", "", Watches("scheduler"))
    named: list[tuple[str, int]] = []
    asked.undrained = lambda worker, t: named.append((worker, t))
    before, batches = now_ns(), list[Any]()
    asyncio.run(asked.drain_workers(batches))
    assert batches == [b"its last"]
    assert sorted(worker for worker, _ in named) == ["fails", "stuck"]
    assert all(before <= t <= now_ns() - 10_000_000 for w, t in named if w == "stuck")


class Told:
    """A scheduler whose workers are told things; one is out of reach, or slow, as long as it is."""

    def __init__(self, *workers: str) -> None:
        self.workers = dict.fromkeys(workers)
        self.client_comms: dict[str, Any] = {}
        self.handlers: dict[str, Any] = {}
        self.stream_handlers: dict[str, Any] = {}
        self.heard: list[tuple[str, str]] = []
        self.tried: list[tuple[str, str]] = []
        self.out_of_reach: set[str] = set()
        self.forbid: set[str] = set()
        self.slow: dict[str, asyncio.Event] = {}

    async def broadcast(self, *, msg: dict[str, Any], workers: list[str], on_error: str) -> Any:
        assert on_error == "return"
        (worker,) = workers
        self.tried.append((worker, msg["op"]))
        await self.slow.get(worker, _set()).wait()
        if worker in self.out_of_reach:
            return {worker: OSError("no connection")}
        if worker in self.forbid:
            return {worker: ValueError("explicitly disallowed")}
        self.heard.append((worker, msg["op"]))
        return {worker: {"status": "OK"}}


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def _until(met: Callable[[], bool]) -> None:
    while not met():  # noqa: ASYNC110 (of fakes, which have no event for it)
        await asyncio.sleep(0)


ADD, REMOVE = "plugin-add", "plugin-remove"


async def ended(mine: Relay) -> None:
    """A session that begins and ends."""
    mine.listen(object())
    await mine.tell_workers(REMOVE, 1)
    await asyncio.wait_for(mine.stop(), 10)


def test_who_has_not_heard_of_the_end_is_told_again_and_may_send_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message without a handler closes a worker's connection, and with it the worker."""
    monkeypatch.setattr(relay, "LINGER_S", 0)
    scheduler = Told("well", "deaf", "goes")
    scheduler.out_of_reach = {"deaf", "goes"}
    mine = Relay(scheduler, "session", "", Watches("scheduler"))

    async def ends() -> None:
        mine.listen(object())
        await mine.tell_workers(REMOVE, 1)
        stopping = asyncio.ensure_future(mine.stop())
        await _until(lambda: scheduler.tried.count(("deaf", ADD)) == 2)
        assert "session-batch" in scheduler.stream_handlers
        del scheduler.workers["goes"]
        scheduler.out_of_reach = set()
        await stopping

    asyncio.run(ends())
    assert scheduler.heard == [("well", REMOVE), ("deaf", ADD), ("deaf", REMOVE)]
    assert scheduler.stream_handlers == {}
    assert scheduler.handlers == {}


def test_who_heard_of_the_end_but_was_not_heard_has_something_to_remove_when_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask logs an error, with a traceback, of a plugin that is not there."""
    monkeypatch.setattr(relay, "LINGER_S", 0)
    scheduler = Told("lost")
    plugins = {"session": "ours"}
    answers = iter([OSError("lost"), {"status": "OK"}, OSError("lost"), {"status": "OK"}])

    async def broadcast(*, msg: dict[str, Any], **_: Any) -> Any:
        if msg["op"] == ADD:
            plugins[msg["name"]] = pickle.loads(msg["plugin"])
            return {"lost": {"status": "OK"}}
        del plugins[msg["name"]]
        return {"lost": next(answers)}

    monkeypatch.setattr(scheduler, "broadcast", broadcast)
    mine = Relay(scheduler, "session", "", Watches("scheduler"))

    asyncio.run(ended(mine))
    assert plugins == {}
    assert mine.watches["task"].failures == 0


def test_one_that_could_not_begin_has_nothing_to_stop() -> None:
    """KeyError was told to the client, and not why it could not begin."""
    scheduler = Told()
    Relay(scheduler, "session", "", Watches("scheduler")).stop_listening()
    assert scheduler.handlers == {}


def test_a_worker_that_answers_with_an_error_would_say_the_same_again() -> None:
    """One whose `distributed.worker.blocked-handlers` names plugins was told for ever."""
    scheduler = Told("well", "forbids")
    scheduler.forbid = {"forbids"}
    mine = Relay(scheduler, "session", "", Watches("scheduler"))

    asyncio.run(ended(mine))
    assert sorted(scheduler.tried) == [("forbids", REMOVE), ("well", REMOVE)]
    assert scheduler.stream_handlers == {}


def test_who_does_not_answer_is_told_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask logs each time as an error."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 12:
            scheduler.workers.clear()

    monkeypatch.setattr(relay, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep}))
    scheduler = Told("deaf")
    scheduler.out_of_reach = {"deaf"}
    mine = Relay(scheduler, "session", "", Watches("scheduler"))

    async def ends() -> None:
        mine.listen(object())
        await mine.tell_workers(REMOVE, 1)
        await mine.stop()

    asyncio.run(ends())
    assert slept == [*(2.0**n for n in range(10)), 512, 512]


def test_nobody_is_told_of_the_end_of_a_session_that_began_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "LINGER_S", 0)
    scheduler = Told("deaf")
    scheduler.out_of_reach = {"deaf"}
    first, second = (Relay(scheduler, "session", "", Watches("scheduler")) for _ in range(2))

    async def ends() -> None:
        first.listen(object())
        await first.tell_workers(REMOVE, 1)
        second.listen(object())
        await first.stop()

    asyncio.run(ends())
    assert scheduler.tried == [("deaf", REMOVE)]
    assert len(scheduler.stream_handlers) == 1


def test_a_worker_that_has_not_begun_yet_hears_of_the_end_after_that() -> None:
    """Sent at once, the shorter message came first: the plugin was added when all was over."""
    scheduler = Told("slow", "quick")
    mine = Relay(scheduler, "session", "", Watches("scheduler"))

    async def begins_and_ends() -> None:
        scheduler.slow["slow"] = asyncio.Event()
        await mine.tell_workers(ADD, 0.01)
        await mine.tell_workers(REMOVE, 0.01)
        assert scheduler.tried == [("slow", ADD), ("quick", ADD), ("quick", REMOVE)]
        scheduler.slow["slow"].set()
        await _until(lambda: len(scheduler.heard) == 4)

    asyncio.run(begins_and_ends())
    assert scheduler.heard[2:] == [("slow", ADD), ("slow", REMOVE)]


def _stands_still(dask_worker: Any, until: str) -> None:
    """Its loop comes to nothing before there is a file."""
    loop = dask_worker.loop.asyncio_loop
    loop.call_soon_threadsafe(clusters.soon, Path(until).exists)


@pytest.mark.cluster
def test_a_recording_says_whose_end_is_missing_as_its_loop_stood_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "DRAIN_S", 0.1)
    with clusters.local(1) as client:
        (worker,) = client.scheduler_info()["workers"]
        with stageprof.profile(client=client) as prof:
            client.gather(client.map(abs, range(50), pure=False))
            clusters.soon(lambda: _has_told(prof, worker))
            client.run(_stands_still, until=str(tmp_path / "over"))
        (tmp_path / "over").touch()
        clusters.soon(lambda: remains.everywhere(client) == [], 15)
    tails = prof.recording.coverage()["tails_lost"]
    assert {name: tail["died"] for name, tail in tails.items()} == {worker: False}


@pytest.mark.cluster
@pytest.mark.parametrize(("waits", "told"), [("1s", {}), ("60s", {"timeout": 2})])
def test_a_client_closes_in_its_own_time_whatever_a_worker_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: str, told: dict[str, float]
) -> None:
    """It raised TimeoutError, and was not closed: the worker was waited for."""
    monkeypatch.setattr(relay, "DRAIN_S", 30)
    with clusters.local(1) as other:
        client = Client(clusters.scheduler_of(other), timeout=waits, set_as_default=False)
        (worker,) = client.scheduler_info()["workers"]
        with stageprof.profile(client=client) as prof:
            client.gather(client.map(abs, range(50), pure=False))
            clusters.soon(lambda: _has_told(prof, worker))
            client.run(_stands_still, until=str(tmp_path / "over"))
            client.close(**told)
        (tmp_path / "over").touch()
        clusters.soon(lambda: remains.everywhere(other) == [], 15)
    assert client.status == "closed"
    assert any("closed before" in why for why in prof.recording.coverage()["problems"])


def _has_told(prof: stageprof.profile, worker: str) -> bool:
    assert prof._collector is not None
    return f"worker {worker}" in prof._collector.live.now
