"""The clusters that a session records: joined and left by the clients that use them.

They are those of the active client, or of a given one, and of all clients that start while the
session is on. Where several use one cluster it is recorded through the first of them; when that one
leaves, through another.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, Final

from distributed.utils import sync

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import client_loop
from stageprof_runtime.coroutines import Coroutines
from stageprof_runtime.event import MARK, SAMPLE
from stageprof_runtime.guard import Watches, hook, quietly
from stageprof_runtime.inbox import Sink
from stageprof_runtime.membership import LEAVE_S, Membership
from stageprof_runtime.probes.clients import PATIENCE_S
from stageprof_runtime.ring import Ring

logger = logging.getLogger("stageprof")

#: What a client is to do.
Doing = Callable[[Any], Coroutine[Any, Any, None]]

#: Seconds that a client which closes waits for another to go on with its cluster.
HAND_OVER_S: Final = 2.0
#: Why a cluster is lost whose scheduler was restarted, or could not be reached for a while.
_CUT_OFF: Final = "the client lost its connection to the scheduler; what came after is not recorded"
#: Why the end of a recording is missing that was ended without `async with`.
_UNAWAITED: Final = "stop() in the loop's own thread cannot wait for the cluster; use `async with`"


class Memberships:
    """Of the session `name`, by client; `watching` is how its clusters are watched.

    It follows clients that start and close, see `probes.clients`.
    """

    def __init__(
        self, name: str, ring: Ring, sink: Sink, watches: Watches, watching: dict[str, bool]
    ) -> None:
        self.watches = watches
        #: whether the session is ending: no cluster is joined any more
        self.over = False
        #: called, on a client's loop, before a cluster is joined
        self.coming: Callable[[], None] = lambda: None
        self._name = name
        self._ring = ring
        self._sink = sink
        self._watching = watching
        self._pid = os.getpid()
        self._joined: dict[Any, Membership] = {}
        #: what the session does on clients' loops
        self._doing = Coroutines(watches["task"])

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._joined)

    @property
    def refused(self) -> str:
        """Why a cluster could not be joined; "" if all could."""
        return next((each.why for each in list(self._joined.values()) if each.failed), "")

    # -- from the program's thread ----------------------------------------------------------

    def join(self, client: Any) -> None:
        """Join the cluster of a client that runs already; returns when it has."""
        self._sync(client, self.started, client)

    def leave(self) -> None:
        """Leave all; returns when what they had to tell has gone to the sink."""
        for client in list(self._joined):
            self._sync(client, self.closing, client)
            self._abandon(client)

    async def join_async(self, client: Any) -> None:
        """Join in a coroutine, on whatever loop it runs."""
        await quietly(self._on_its_loop(client, self.started), self.watches["start"])

    async def leave_async(self) -> None:
        """Leave all in a coroutine."""
        for client in list(self._joined):
            await quietly(self._on_its_loop(client, self.closing), self.watches["stop"])
            self._abandon(client)

    async def _on_its_loop(self, client: Any, function: Doing) -> None:
        """Have a client do something on its own loop, where its streams are: it may be another."""
        loop, doing = client_loop(client), function(client)
        if loop is asyncio.get_running_loop():
            await asyncio.wait_for(doing, PATIENCE_S + LEAVE_S * self.over)
            return
        try:
            there = asyncio.run_coroutine_threadsafe(doing, loop)
        except RuntimeError:  # its loop has ended
            doing.close()
            return
        await asyncio.wait_for(asyncio.wrap_future(there), PATIENCE_S + LEAVE_S * self.over)

    def abort(self) -> None:
        """Have those left of which nobody could wait for the end."""
        self.over = True
        for client in list(self._joined):
            leaving = functools.partial(self._leave_later, client)
            with contextlib.suppress(RuntimeError):  # its loop has ended
                client_loop(client).call_soon_threadsafe(leaving)

    @hook
    def _leave_later(self, client: Any) -> None:
        self._doing.later(functools.partial(self.closing, client))

    def _abandon(self, client: Any) -> None:
        """Let go of a client that could not be asked to leave: its cluster is gone or stuck.

        One of a loop that runs in this thread is asked, but cannot be waited for.
        """
        if not client.asynchronous or not _in_loop():
            self._let_go(client, f"client is {client.status}")
        elif client in self._joined:
            self._ring.emit((MARK, now_ns(), "cluster lost", _UNAWAITED))

    def _let_go(self, client: Any, why: str) -> None:
        membership = self._joined.pop(client, None)
        if membership is not None:
            membership.abandon(why)

    def _sync(self, client: Any, function: Any, *args: Any) -> None:
        if client.asynchronous:
            # Its loop is this thread's: nothing can be awaited here; or it is that of no thread.
            if _in_loop():
                self._doing.later(functools.partial(function, *args))
            return
        if client.status != "running":
            return
        try:
            watch = self.watches[function.__name__]
            sync(
                client.loop,
                lambda: quietly(function(*args), watch),
                callback_timeout=PATIENCE_S + LEAVE_S * self.over,
            )
        except Exception as error:
            logger.warning("stageprof: %s of %r failed: %r", function.__name__, client, error)

    # -- on clients' loops ------------------------------------------------------------------

    async def started(self, client: Any) -> None:
        """Join a client's cluster."""
        if self.forked() or self.over or client in self._joined:
            return
        if getattr(client, "scheduler", None) is None:
            return
        membership = Membership(client, self._name, self._ring, self._sink, self.watches)
        there = self._members_of(membership.cluster)
        self._joined[client] = membership
        self.coming()
        if any(each.host for each in there):
            membership.visit()
        else:
            await self._through(membership)

    async def _through(self, membership: Membership) -> None:
        """Join a cluster through this one.

        Who waits for that may have to go on with the run. It goes on as well: only who knows that
        the scheduler has begun can ask it to end.
        """
        joining = self._doing.later(functools.partial(self._join, membership))
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError:
            membership.late()
            raise

    async def _join(self, membership: Membership) -> None:
        await membership.join(**self._watching)
        if membership.failed:  # another may be let in, or have come meanwhile
            await self._stay(membership.cluster)

    async def closing(self, client: Any) -> None:
        """Leave a client's cluster."""
        membership = None if self.forked() else self._joined.pop(client, None)
        if membership is None:
            return
        if membership.forgotten:
            membership.abandon(_CUT_OFF)
        else:
            try:
                await membership.leave()
            except asyncio.CancelledError:  # who closes it waits no longer; others go on
                self._doing.later(functools.partial(self._stay, membership.cluster))
                raise
        await self._stay(membership.cluster)

    async def ending(self, cluster: Any) -> None:
        """Leave a cluster that is to close, last of all through whom it is recorded: no heir."""
        for client, _ in sorted(self._joined.items(), key=lambda each: each[1].host):
            if client.cluster is cluster:
                await self._on_its_loop(client, self.closing)

    def forked(self) -> bool:
        """Whether this is a child of the process that began; the session is its parent's."""
        return os.getpid() != self._pid

    def _members_of(self, cluster: str) -> list[Membership]:
        # Copied at once: clients live on loops of their own.
        return [each for each in list(self._joined.values()) if each.cluster == cluster]

    async def _stay(self, cluster: str) -> None:
        """If the client through which a cluster was recorded has left, go on through another.

        It joins on its own loop. One whose loop may be this program's own thread is not waited for.
        """
        members = self._members_of(cluster)
        heir = next((each for each in members if each.guest), None)
        if heir is None or self.over or any(each.host for each in members):
            return
        heir.inherit()
        loop, inherited = client_loop(heir.client), self._through(heir)
        try:
            joining = asyncio.run_coroutine_threadsafe(inherited, loop)
        except RuntimeError:  # its loop has ended
            inherited.close()
            heir.give_up()
            return
        if not heir.client.asynchronous or loop is asyncio.get_running_loop():
            await asyncio.wait([asyncio.wrap_future(joining)], timeout=HAND_OVER_S)

    # -- every half second ------------------------------------------------------------------

    def ask_loops(self) -> None:
        """Ask each client's loop how late it is, and for the time of its scheduler."""
        for client in list(self._joined):
            if client.status == "running":
                with contextlib.suppress(RuntimeError):  # its loop has ended
                    client_loop(client).call_soon_threadsafe(self._on_loop, client, now_ns())

    @hook
    def _on_loop(self, client: Any, asked: int) -> None:
        self._ring.emit((SAMPLE, now_ns(), "loop.lag_s", (now_ns() - asked) / 1e9))
        membership = self._joined.get(client)
        if membership is None:
            return
        if membership.forgotten:
            self._let_go(client, _CUT_OFF)
            self._doing.later(functools.partial(self._stay, membership.cluster))
        elif len(self._doing) <= len(self._joined):
            self._doing.later(membership.ping)


def _in_loop() -> bool:
    """Whether an event loop runs in this thread."""
    return asyncio._get_running_loop() is not None
