"""Recording a running cluster from outside: no region, no program of ours, only its events."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import psutil

from stageprof.recording import Recording
from stageprof_collectors.storage.collector import Collector, Live
from stageprof_runtime.errors import ClusterError, UsageError
from stageprof_runtime.session import Session

if TYPE_CHECKING:
    from distributed import Client

#: Seconds that a scheduler may take to answer.
PATIENCE_S: Final = 4


class Attachment:
    """Records the cluster at an address, from `with` to its end.

    Args:
        address: of the scheduler, as `tcp://10.0.0.1:8786`.
        path: the recording; None keeps it in memory, for `collector.save`.

    Raises:
        RecordingNotWritable: `path` cannot be written.
        ClusterError: no scheduler answers there, or it lets no plugin in.
    """

    def __init__(self, address: str, path: str | os.PathLike[str] | None) -> None:
        self.address = address
        self._path = path
        self._recording: Recording | None = None

    def __enter__(self) -> Self:
        self._client = _connected(self.address)
        try:
            self._begin()
        except BaseException:
            self._client.close()
            raise
        return self

    def _begin(self) -> None:
        self.collector = Collector(self._path, f"Cluster at {self.address}", savable=True)
        self._session = Session(self.collector.take, cost=self.collector.cost)
        try:
            self._session.start(self._client, region=False)
            self._be_let_in()
        except BaseException:
            self.collector.close()
            raise

    def _be_let_in(self) -> None:
        why = self._session.refused
        if why:
            self._session.stop()
            raise ClusterError(
                f"the scheduler at {self.address} does not let stageprof in ({why})",
                expected="one that has this version of stageprof or none, and takes plugins "
                "(its distributed.scheduler.blocked-handlers names no register_scheduler_plugin)",
                do="change what it says, or record it with its flight recorder",
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop recording and leave the cluster; a second call does nothing."""
        if self._recording is not None:
            return
        try:
            self._session.stop()
        finally:
            self._recording = Recording.of(self.collector.close())
            self._client.close()

    @property
    def live(self) -> Live:
        """How far the cluster is."""
        return self.collector.live

    @property
    def alive(self) -> bool:
        """Whether the cluster is still there."""
        return bool(self._client.status == "running")

    @property
    def lost(self) -> bool:
        """Whether it may be there, but cannot be reached."""
        return bool(self._client.status == "connecting")

    @property
    def recording(self) -> Recording:
        """What was recorded; there once the block was left, or `end` called."""
        if self._recording is None:
            raise UsageError("the cluster is still being recorded", do="leave the block first")
        return self._recording


def _connected(address: str) -> Client:
    """A client of the scheduler at an address."""
    from distributed import Client

    greet(address)
    try:
        return Client(address, timeout=PATIENCE_S, set_as_default=False)
    except Exception as error:  # it has just gone, say
        raise _nobody(address, _reason(error)) from None


def greet(address: str) -> None:
    """Ask who is at an address: a client that fails to connect logs and lingers.

    Raises:
        ClusterError: no scheduler is there.
    """
    try:
        kind = asyncio.run(asyncio.wait_for(_kind(address), PATIENCE_S))
        found = "" if kind == "Scheduler" else f"it is a {kind}"
    except Exception as error:  # anything may answer there, with anything
        found = _reason(error)
    if found:
        raise _nobody(address, found)


def _nobody(address: str, found: str) -> ClusterError:
    return ClusterError(
        f"no scheduler at {address} ({found})",
        expected="the address of a running one, as tcp://127.0.0.1:8786",
        do="check the address, and that this machine can reach it",
    )


async def _kind(address: str) -> str:
    """What a Dask server calls itself."""
    from distributed.core import rpc
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    async with rpc(address, timeout=PATIENCE_S, connection_args=arguments) as server:
        return str((await server.identity())["type"])


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE_S} s"
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(" .")[:150]


def warning(address: str) -> str:
    """What to know before speaking to a cluster over an open network; "" if nothing."""
    scheme, _, rest = address.rpartition("://")
    if scheme in ("tls", "wss", "inproc") or ":" not in rest or _is_here(rest):
        return ""
    return (
        f"stageprof: {address} is neither tls:// nor on this machine. Whoever is on the network "
        "between can read the recording and run code on the cluster and here. Use tls:// (Dask "
        "takes its certificates from distributed.comm.tls), or a tunnel: "
        "ssh -L 8786:localhost:8786 HOST. To silence this: --insecure"
    )


def _is_here(rest: str) -> bool:
    host = rest.rpartition(":")[0] or rest
    host = host.strip("[]")
    own = {a.address for found in psutil.net_if_addrs().values() for a in found}
    if host in own | {"localhost", ""}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
