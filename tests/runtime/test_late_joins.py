"""A scheduler that is too busy to let a session in: the run goes on, it is told, nothing stays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from distributed import Client, LocalCluster

import clusters
import remains
import stageprof
from stageprof_runtime import membership, memberships
from stageprof_runtime.guard import Watches
from stageprof_runtime.membership import Membership
from stageprof_runtime.ring import Ring

pytestmark = pytest.mark.cluster

OP = "register_scheduler_plugin"


def inc(x: int) -> int:
    return x + 1


def computed(client: Client, n: int) -> None:
    assert client.gather(client.map(inc, range(n), pure=False)) == list(range(1, n + 1))


class Busy:
    """A scheduler that lets nobody in before it is told to."""

    def __init__(self, client: Client) -> None:
        self.client = client
        cluster: Any = client.cluster
        self.scheduler: Any = cluster.scheduler
        self._plain = self.scheduler.handlers[OP]
        self._may = asyncio.Event()
        #: set once it has let somebody in
        self.done = threading.Event()
        self.scheduler.handlers[OP] = self._slowly

    async def _slowly(self, *args: Any, **kwargs: Any) -> Any:
        await self._may.wait()
        try:
            return await self._plain(*args, **kwargs)
        finally:
            self.done.set()

    def let_in(self) -> None:
        """From any thread."""
        self.scheduler.loop.add_callback(self._may.set)

    def has_nothing_left(self) -> None:
        clusters.soon(self.done.is_set)
        clusters.soon(lambda: not remains.of_scheduler(self.scheduler), 15)
        clusters.soon(lambda: not remains.everywhere(self.client), 15)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Busy]:
    monkeypatch.setattr(memberships, "PATIENCE_S", 0.2)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield Busy(client)


def test_a_cluster_that_lets_nobody_in_for_long_is_said_not_to_be_recorded_until_it_does(
    busy: Busy,
) -> None:
    with stageprof.profile(client=busy.client) as prof:
        computed(busy.client, 20)
        busy.let_in()
        session: Any = prof._session
        (member,) = session._clusters._joined.values()
        clusters.soon(lambda: member._stream is not None)
        computed(busy.client, 30)
    busy.has_nothing_left()
    (problem,) = prof.recording.coverage()["problems"]
    assert problem.startswith("cluster not joined: no answer from the scheduler in time")
    assert len(prof.recording.timeline.marks("cluster joined")) == 1
    assert len(prof.recording.tasks()) == 30


def test_a_session_that_ends_before_it_is_let_in_leaves_nothing(
    busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Membership.leave

    async def leave(self: Membership) -> None:
        busy.let_in()
        await plain(self)

    monkeypatch.setattr(Membership, "leave", leave)
    with stageprof.profile(client=busy.client) as prof:
        computed(busy.client, 20)
    busy.has_nothing_left()
    (problem,) = prof.recording.coverage()["problems"]
    assert problem.startswith("cluster not joined: ")


def test_a_session_that_is_let_in_when_nobody_waits_any_more_leaves_nothing(
    busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "LEAVE_S", 0.2)
    with stageprof.profile(client=busy.client) as prof:
        computed(busy.client, 20)
    busy.let_in()
    busy.has_nothing_left()
    assert len(prof.recording.coverage()["problems"]) == 1


def test_one_whose_loop_ends_meanwhile_is_no_host_any_more() -> None:
    """Or nobody else would be let in."""

    class Stuck:
        """A client of a scheduler that never answers."""

        id, status, scheduler_comm = "Client-1", "running", None
        _stream_handlers: ClassVar[dict[str, Any]] = {}
        address = "tcp://127.0.0.1:1"

        async def register_scheduler_plugin(self, **_: Any) -> None:
            await asyncio.Event().wait()

        @property
        def scheduler(self) -> Stuck:
            return self

    async def main() -> None:
        member = Membership(Stuck(), "session", Ring(), lambda _: None, Watches("client"))
        joining = asyncio.ensure_future(member.join(watch_gil=False))
        await asyncio.sleep(0)
        assert member.host
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        assert not member.host
        member._undo()

    asyncio.run(main())
