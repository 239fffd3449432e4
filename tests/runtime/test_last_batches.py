"""Batches that wait for a loop when a recording ends are neither lost nor late."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from stageprof_runtime.guard import Watches
from stageprof_runtime.membership import Membership
from stageprof_runtime.outbox import Outbox
from stageprof_runtime.relay import Relay
from stageprof_runtime.ring import Ring
from stageprof_runtime.worker_plugin import WorkerProbe


class Stream:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.buffer: list[Any] = []
        self.sent: list[bytes] = []
        self.please_stop = False
        self.comm: Any = SimpleNamespace(stream=SimpleNamespace(_write_buffer=b""))

    def closed(self) -> bool:
        return False

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message["batch"])


#: A loop that runs nothing any more.
LOOP = SimpleNamespace(add_callback=lambda *_: None)


def ending(stream: Stream) -> Any:
    """A probe on a worker: its thread has posted batch 1, and batch 2 is still to be packed."""
    made: Any = WorkerProbe("s")
    made._outbox = Outbox(SimpleNamespace(loop=LOOP, batched_stream=stream), "s-batch")
    made._shipper = SimpleNamespace(stop=lambda: None, drain=lambda: [b"2"], tail=None)
    made._shipper.carry = lambda batches: list(map(made._outbox.send, batches))
    made._ring = Ring()
    made._outbox.send(b"1")
    return made


def test_a_worker_that_closes_sends_what_was_posted_before_what_is_left() -> None:
    stream = Stream()
    ending(stream).teardown(None)
    assert stream.sent == [b"1", b"2"]


def test_what_was_sent_has_left_once_neither_worker_nor_stream_nor_network_has_it() -> None:
    stream = Stream()
    outbox = ending(stream)._outbox
    assert not outbox.left()  # the loop has not had it yet

    outbox.send_all()
    assert outbox.left()

    stream.buffer = [{"op": "heartbeat"}]
    assert outbox.left()
    stream.buffer = [{"op": "s-batch", "batch": b"1"}]
    assert not outbox.left()

    stream.buffer, stream.comm.stream._write_buffer = [], b"1"
    assert not outbox.left()

    stream.comm.stream._write_buffer = b""
    assert outbox.left()
    stream.please_stop = True  # it may have let go of what it had
    assert not outbox.left()


def test_what_a_stream_took_for_its_next_write_has_not_left_before_that_is_over() -> None:
    """A loop that ends cancels the write, and what it had is nowhere any more."""
    stream: Any = Stream()
    stream.comm.peer_address, stream.batch_count, stream.recent_message_log = "tcp://s:1", 0, []
    taken: list[Any] = []
    stream.send = taken.append
    outbox = ending(stream)._outbox
    outbox.send_all()
    stream.batch_count = 1
    assert not outbox.left()
    stream.recent_message_log = [taken]
    assert outbox.left()


def test_nobody_knows_what_became_of_what_a_stream_had_once_there_is_another_one() -> None:
    outbox = ending(Stream())._outbox
    outbox.send_all()
    outbox._worker.batched_stream = Stream()
    assert not outbox.left()


class Kept:
    """What is done with a tail."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def leave(self, batches: list[bytes]) -> None:
        self.done.append(batches)

    def close(self) -> None:
        self.done.append("closed")


def test_what_a_worker_cannot_send_as_it_closes_is_left_to_others_of_its_host() -> None:
    """Dask closes the stream before it tells plugins of a worker that ends by a signal."""
    gone = Stream()
    gone.send = None  # type: ignore[assignment, method-assign]
    made = ending(gone)
    made._shipper.tail = kept = Kept()
    made.teardown(None)
    assert kept.done == [[b"1", b"2"]]


def test_what_a_worker_has_sent_is_left_to_nobody() -> None:
    for drained in (False, True):
        stream = Stream()
        made = ending(stream)
        made._shipper.tail = kept = Kept()
        if drained:
            asyncio.run(made._drain())
        made.teardown(None)
        assert kept.done == ["closed"]


def test_what_a_worker_has_sent_and_may_not_have_left_is_left_to_others() -> None:
    """Its loop may end before the stream writes that."""
    stream = Stream()
    made = ending(stream)
    made._shipper.tail = kept = Kept()
    stream.buffer = [{"op": "s-batch", "batch": b"1"}]
    made.teardown(None)
    assert stream.sent == [b"1", b"2"]
    assert kept.done == [[]]


def test_what_could_not_be_sent_goes_first_when_it_can_be() -> None:
    stream = Stream()
    outbox = ending(stream)._outbox
    send, stream.send = stream.send, None  # type: ignore[assignment, method-assign]
    outbox.send_all()
    stream.send = send  # type: ignore[method-assign]
    outbox.keep([b"2"])
    outbox.send_all()
    assert stream.sent == [b"1", b"2"]


def test_a_worker_that_is_drained_gives_what_was_posted_and_sends_nothing_after() -> None:
    stream = Stream()
    made = ending(stream)
    assert asyncio.run(made._drain()) == [0, b"1", b"2"]
    made._outbox.send_all()
    assert stream.sent == []


def test_a_worker_removes_itself_only_once_no_word_of_the_end_can_be_on_its_way() -> None:
    """Which would find nothing to remove, and log an error on the user's cluster."""
    made: Any = WorkerProbe("s")
    removed: list[str] = []
    loop = SimpleNamespace(add_callback=lambda _, name: removed.append(name))
    rpc = SimpleNamespace(address="tcp://s:1", **{"s-clock": None})
    made._worker = SimpleNamespace(
        loop=loop, scheduler=rpc, plugins={"s": made}, plugin_remove=None, heartbeat_interval=1
    )
    made._outbox = Outbox(made._worker, "s-batch")
    answers: list[int | None] = [None, None, 0, None, None, None]

    async def said(*_: object, **__: object) -> int | None:
        return answers.pop(0)

    made._pings = SimpleNamespace(ask=said)
    seen = []
    while answers:
        asyncio.run(made._ping())
        seen.append(len(removed))
    assert seen == [0, 0, 0, 0, 0, 1]


def test_the_scheduler_sends_what_was_posted_in_its_order() -> None:
    stream = Stream()
    scheduler = SimpleNamespace(loop=LOOP, client_comms={"owner": stream})
    relay = Relay(scheduler, "s", "owner", Watches("scheduler"))
    relay.send(b"1")
    relay.send(b"2")
    relay.send_all()
    assert (stream.sent, relay.passed) == ([b"1", b"2"], 2)


def member(status: str) -> Any:
    made: Any = object.__new__(Membership)
    made.client = SimpleNamespace(status=status)
    made._got = 0
    return made


async def waits(member: Any) -> int:
    """How many batches have come when the wait for two of them ends."""
    asyncio.get_running_loop().call_later(0.02, setattr, member, "_got", 2)
    await member._wait_for(2)
    return int(member._got)


def test_a_client_that_closes_waits_for_batches_that_are_behind_its_answer() -> None:
    """It is "closing" before it says so: nothing was waited for."""
    assert asyncio.run(waits(member("closing"))) == 2
    assert asyncio.run(waits(member("closed"))) == 0
