"""Dask's streams log their latest messages: our batches do not stay there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client

import clusters
import stageprof
from stageprof_runtime.sent import Sent


class Stream:
    """Dask's, as far as it matters: what is sent waits, and is logged once it is written."""

    def __init__(self, address: str = "tcp://1.2.3.4:5") -> None:
        self.comm = SimpleNamespace(peer_address=address)
        self.buffer: list[Any] = []
        self.batch_count = 0
        self.recent_message_log: deque[Any] = deque(maxlen=1_000)
        self.kept: list[Any] = []

    def send(self, message: dict[str, Any]) -> None:
        self.buffer.append(message)
        self.kept.append(message)

    def begin(self) -> list[Any]:
        """Take what waits to write it."""
        payload, self.buffer = self.buffer, []
        self.batch_count += 1
        return payload

    def write(self) -> None:
        self.recent_message_log.append(self.begin())

    @property
    def batches(self) -> list[bytes]:
        return [message["batch"] for message in self.kept]


def test_a_batch_is_forgotten_once_it_is_written_and_not_before() -> None:
    stream = Stream()
    sent = Sent(stream, "op")
    sent.send(b"1")
    sent.forget()
    payload = stream.begin()
    sent.forget()
    assert stream.batches == [b"1"]  # it may be half-way
    stream.recent_message_log.append(payload)
    sent.forget()
    assert stream.batches == [b""]


def test_the_next_one_has_those_before_forgotten() -> None:
    stream = Stream()
    sent = Sent(stream, "op")
    for batch in (b"1", b"2"):
        sent.send(batch)
    stream.write()
    sent.send(b"3")
    assert stream.batches == [b"", b"", b"3"]


def test_one_of_a_large_message_is_forgotten_when_the_next_is_written() -> None:
    """Of which Dask logs nothing."""
    stream = Stream()
    sent = Sent(stream, "op")
    sent.send(b"1")
    stream.begin()
    stream.recent_message_log.append("large-message")
    sent.forget()
    assert stream.batches == [b"1"]
    sent.send(b"2")
    stream.write()
    sent.forget()
    assert stream.batches == [b"", b""]


@pytest.mark.parametrize("address", ["inproc://1.2.3.4/5", ""])
def test_within_a_process_the_receiver_has_the_same_message_which_stays_whole(
    address: str,
) -> None:
    stream = Stream(address)
    sent = Sent(stream, "op")
    for batch in (b"1", b"2"):
        sent.send(batch)
        stream.write()
    sent.forget()
    assert stream.batches == [b"1", b"2"]


def _logged(stream: Any) -> int:
    """Bytes of batches in the log of a stream."""
    messages = [m for payload in stream.recent_message_log for m in payload if type(m) is dict]
    return sum(len(message.get("batch", b"")) for message in messages)


def _on_scheduler(dask_scheduler: Any) -> int:
    return sum(map(_logged, dask_scheduler.client_comms.values()))


def _on_worker(dask_worker: Any) -> int:
    return _logged(dask_worker.batched_stream)


def inc(x: int) -> int:
    return x + 1


@pytest.fixture
def client() -> Iterator[Client]:
    with clusters.separate(1) as client:
        yield client


@pytest.mark.cluster
def test_after_a_recording_neither_scheduler_nor_workers_have_much_of_it(
    client: Client, tmp_path: Path
) -> None:
    """It was all of it: some 100 bytes a task on the scheduler, up to a thousand messages."""
    file = tmp_path / "r.stageprof"
    with stageprof.profile(file) as prof:
        for _ in range(2):
            client.gather(client.map(inc, range(500), pure=False))
    assert prof.recording.coverage()["batches_lost"] == 0
    assert prof.recording.store.rows("run") == 1_000
    clusters.soon(lambda: client.run_on_scheduler(_on_scheduler) == 0, 10)
    (kept,) = client.run(_on_worker).values()
    assert kept < 5_000
