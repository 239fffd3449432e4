"""A session that ends as its worker or scheduler closes: nothing of ours is in the user's log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from distributed import Client, Scheduler, Worker
from distributed.core import Status
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin

from stageprof_runtime.bootstrap import revive
from stageprof_runtime.session import Session
from stageprof_runtime.worker_plugin import WorkerProbe


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing of a session may be there in the end; Dask's own loggers hand nothing on."""
    own = [logging.getLogger(f"distributed.{name}") for name in ("core", "worker", "scheduler")]
    for logger in own:
        logger.addHandler(caplog.handler)
    yield
    for logger in own:
        logger.removeHandler(caplog.handler)
    said = [r for r in caplog.get_records("call") if r.name.startswith("distributed")]
    logged = [r.getMessage() for r in said if r.levelno >= logging.WARNING]
    assert [text for text in logged if "stageprof" in text or "register-worker" in text] == []


class Holding:
    """What holds its server up as it closes."""

    name = "holding"

    def __init__(self) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def _hold(self) -> None:
        self.reached.set()
        await self.go_on.wait()


class Teardown(Holding, WorkerPlugin):
    async def teardown(self, worker: Any) -> None:  # noqa: ARG002 (Dask's name)
        await self._hold()


class BeforeClose(Holding, SchedulerPlugin):
    async def before_close(self) -> None:
        await self._hold()


async def _closes(which: str) -> None:
    """End a session while its worker, or its scheduler, is held up closing."""
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler,
        Worker(scheduler.address, nthreads=1) as worker,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        session = Session(lambda _: None, watch_gil=False)
        await session.start_async(client)
        holding: Any = Teardown() if which == "worker" else BeforeClose()
        if which == "worker":
            await worker.plugin_add(holding)
        else:
            scheduler.add_plugin(holding, name="holding")
        closing = asyncio.ensure_future((worker if which == "worker" else scheduler).close())
        await holding.reached.wait()
        if which == "scheduler":  # a batch, as a worker sends them until it is closed itself
            worker.plugins[session.name]._shipper.hurry()
        await session.stop_async()
        holding.go_on.set()
        await closing


@pytest.mark.cluster
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("which", ["worker", "scheduler"])
def test_a_session_that_ends_as_its_server_closes_leaves_nothing_in_a_log(which: str) -> None:
    asyncio.run(asyncio.wait_for(_closes(which), 60))


class Closing:
    """A worker, as far as its plugins are removed."""

    def __init__(self, status: Status, plugin: Any) -> None:
        self.status = status
        self.plugins = {plugin.name: plugin}
        self.handlers: dict[str, Any] = {}

    def remove(self, name: str) -> None:
        """As `Worker.plugin_remove` does."""
        plugin = self.plugins.pop(name)
        if hasattr(plugin, "teardown"):
            plugin.teardown(worker=self)


@pytest.mark.parametrize("missing", [False, True])
def test_a_plugin_is_removed_twice_from_a_worker_that_closes_and_once_from_others(
    *, missing: bool
) -> None:
    """By Dask as the worker closes, and by the scheduler as the session ends."""
    absent = revive("worker", ("s",), "no such version", b"")
    plugin: Any = absent if missing else WorkerProbe("s")
    closing = Closing(Status.closing, plugin)
    closing.remove("s")
    closing.remove("s")
    running = Closing(Status.running, plugin)
    running.remove("s")
    assert running.plugins == {}
