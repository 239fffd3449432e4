"""The one place that touches private names of dask, distributed and CPython.

Every name was seen, with the meaning given here, in dask and distributed 2025.4.0 to 2026.8.0 on
CPython 3.11 to 3.13. A name that is missing makes one probe fail; the program goes on and
`coverage()` names the probe.
"""

from __future__ import annotations

import importlib
import inspect
import weakref
from types import ModuleType
from typing import Any, Final

import cloudpickle as cloudpickle  # type: ignore[import-untyped]
import dask.local

from stageprof_runtime.standstill import NEEDED


def _task_kinds() -> tuple[type, ...]:
    """The classes of a task's description; none where this version has none."""
    try:
        module: ModuleType = importlib.import_module("dask._task_spec")
        base = module.GraphNode
    except (ImportError, AttributeError):
        return ()
    return tuple(k for k in vars(module).values() if isinstance(k, type) and issubclass(k, base))


#: What a local scheduler dumps and loads with in the process itself.
identity: Final = getattr(dask.local, "identity", lambda x: x)
#: Executors that run a task in the thread that submits it.
INLINE: Final = tuple(filter(None, [getattr(dask.local, "SynchronousExecutor", None)]))
TASK_KINDS: Final = _task_kinds()

#: where -> (module, path of the owner inside it, attribute)
_PLACES: Final[dict[str, tuple[str, str, str]]] = {
    # client
    "client.serialize": ("distributed.client", "", "serialize"),
    "client.submit": ("distributed.client", "Client", "_graph_to_futures"),
    "client.send": ("distributed.client", "Client", "_send_to_scheduler"),
    "client.gather": ("distributed.client", "Client", "_gather"),
    "client.gather_remote": ("distributed.client", "Client", "_gather_remote"),
    "client.start": ("distributed.client", "Client", "_start"),
    "client.close": ("distributed.client", "Client", "_close"),
    "client.shutdown": ("distributed.client", "Client", "_shutdown"),
    "cluster.close": ("distributed.deploy.spec", "SpecCluster", "_close"),
    "client.wait": ("distributed.client", "", "_wait"),
    "client.result": ("distributed.client", "Future", "_result"),
    "client.next": ("distributed.client", "as_completed", "__next__"),
    "client.next_by_name": ("distributed.client", "as_completed", "next"),
    "client.anext": ("distributed.client", "as_completed", "__anext__"),
    "actor.result": ("distributed.actor", "ActorFuture", "result"),
    "actor.awaited": ("distributed.actor", "ActorFuture", "_result"),
    "client.scatter": ("distributed.client", "Client", "scatter"),
    "client.tokenize": ("distributed.client", "", "tokenize"),
    "client.sync": ("distributed.utils", "SyncMethodMixin", "sync"),
    # any process: locks, and bytes
    "lock.acquire": ("dask.utils", "SerializableLock", "acquire"),
    "lock.enter": ("dask.utils", "SerializableLock", "__enter__"),
    "protocol.dumps": ("distributed.protocol", "", "dumps"),
    "protocol.loads": ("distributed.protocol", "", "loads"),
    "protocol.compressions": ("distributed.protocol.compression", "", "compressions"),
    "protocol.pickle": ("distributed.protocol.pickle", "", "dumps"),
    "protocol.unpickle": ("distributed.protocol.pickle", "", "loads"),
    "pickle.function": ("cloudpickle.cloudpickle", "", "_make_function"),
    "protocol.dump_data": ("distributed.protocol.core", "", "serialize_and_split"),
    "protocol.load_data": ("distributed.protocol.core", "", "merge_and_deserialize"),
    "core.connect": ("distributed.core", "", "connect"),
    # scheduler
    "scheduler.deserialize": ("distributed.scheduler", "", "deserialize"),
    "scheduler.materialize": ("distributed.scheduler", "", "_materialize_graph"),
    "scheduler.cull": ("distributed.scheduler", "", "_cull"),
    "scheduler.state": ("distributed.scheduler", "Scheduler", "_create_taskstate_from_graph"),
    "scheduler.send_task": ("distributed.scheduler", "Scheduler", "send_task_to_worker"),
    "scheduler.finished": ("distributed.scheduler", "Scheduler", "stimulus_task_finished"),
    "scheduler.erred": ("distributed.scheduler", "Scheduler", "stimulus_task_erred"),
    "scheduler.transitions": ("distributed.scheduler", "Scheduler", "_transitions"),
    "order": ("dask.order", "", "order"),
    "order.local": ("dask.local", "", "order"),
    # graphs and expressions
    "expr.new": ("dask._expr", "Expr", "__new__"),
    "expr.optimize": ("dask._expr", "Expr", "optimize"),
    "expr.hlg": ("dask._expr", "HLGExpr", "_optimized_dsk"),
    "expr.hlg_sequence": ("dask._expr", "_HLGExprSequence", "_optimized_dsk"),
    "expr.hlg_keys": ("dask._expr", "HLGExpr", "__dask_keys__"),
    "graph.new": ("dask.highlevelgraph", "HighLevelGraph", "from_collections"),
    "graph.init": ("dask.highlevelgraph", "HighLevelGraph", "__init__"),
    # worker
    "worker.run": ("distributed.worker", "", "_run_task"),
    "worker.run_async": ("distributed.worker", "", "_run_task_async"),
    "worker.gather_dep": ("distributed.worker", "Worker", "gather_dep"),
    "p2p.partition": ("distributed.shuffle._core", "", "sync"),
    "p2p.barrier": ("distributed.shuffle._worker_plugin", "", "sync"),
    "spill.write": ("distributed.spill", "Slow", "__setitem__"),
    "spill.read": ("distributed.spill", "Slow", "__getitem__"),
    # local schedulers
    "local.get_async": ("dask.local", "", "get_async"),
    "threads.get_async": ("dask.threaded", "", "get_async"),
    "processes.get_async": ("dask.multiprocessing", "", "get_async"),
    "local.queue_get": ("dask.local", "", "queue_get"),
    "local.state": ("dask.local", "", "start_state_from_dask"),
    "processes.cull": ("dask.multiprocessing", "", "cull"),
    "processes.fuse": ("dask.multiprocessing", "", "fuse"),
    "traceback.shorten": ("dask.utils", "shorten_traceback", "shorten"),
    # CPython: called by the import statement for modules that are not in sys.modules
    "python.import": ("importlib._bootstrap", "", "_find_and_load"),
}
if NEEDED:  # CPython: what Dask's profiler and ours look at threads with
    _PLACES["python.frames"] = ("sys", "", "_current_frames")


def place(where: str) -> tuple[Any, str]:
    """The owner and the attribute's name of a private place.

    Raises:
        ImportError, AttributeError: this version does not have it.
    """
    module, path, name = _PLACES[where]
    owner: Any = importlib.import_module(module)
    owner = getattr(owner, path) if path else owner
    getattr(owner, name)
    return owner, name


def address(server: Any) -> str:
    """The contact address of a scheduler or worker; "" before it listens."""
    try:
        return str(getattr(server, "contact_address", None) or server.address)
    except (ValueError, AttributeError):
        return ""


def run_id(worker: Any, key: object) -> int:
    """The number of the attempt that a worker is making at a key; -1 if it does not know it."""
    task = worker.state.tasks.get(key)
    return -1 if task is None else task.run_id


def resources(worker: Any, key: object) -> str:
    """What a task needs of its worker's resources: their names, "" if none."""
    return ", ".join(sorted(map(str, worker.state.tasks[key].resource_restrictions)))


def ran_ns(worker: Any, key: object) -> int:
    """How long a worker says the run of a key took that has just ended; 0 if it does not."""
    parts = getattr(worker.state.tasks.get(key), "startstops", ())
    took = [part["stop"] - part["start"] for part in parts if part["action"] == "compute"]
    return round(took[-1] * 1e9) if took else 0


def heartbeat_s(worker: Any) -> float:
    """Seconds between a worker's heartbeats, which its scheduler makes longer the more there are.

    2 from 50 workers on, n / 200 + 1 from 200 on; 0 if that cannot be told.
    """
    try:
        return float(worker.periodic_callbacks["heartbeat"].callback_time) / 1000
    except (AttributeError, KeyError, TypeError, ValueError):
        return 0.0


#: Milliseconds between two ticks, at most, that say how late a loop was.
_TICK_MS = 50


def tick(server: Any) -> Any:
    """The timer with which a scheduler or worker watches its own loop; None if it hardly does."""
    timer = getattr(server, "periodic_callbacks", {}).get("tick")
    often = getattr(timer, "callback_time", _TICK_MS + 1) <= _TICK_MS
    return timer if often and "callback" in vars(timer) else None


def underway(scheduler: Any) -> tuple[int, int]:
    """How many tasks workers have, and how many more wait for a thread on any worker."""
    workers = list(scheduler.workers.values())
    return sum(len(worker.processing) for worker in workers), len(scheduler.queued)


def saturation(scheduler: Any) -> float:
    """Tasks that a worker is given for each of its threads; 0 if there is no bound."""
    bound = float(scheduler.WORKER_SATURATION)
    return bound if bound < float("inf") else 0.0


def client_handlers(client: Any) -> dict[str, Any]:
    """What a client does with each message of the scheduler's stream."""
    handlers: dict[str, Any] = client._stream_handlers
    return handlers


def scheduler_id(client: Any) -> str:
    """The identifier of a client's scheduler; its address where the client was not told."""
    known = getattr(client, "_scheduler_identity", None) or {}
    return str(known.get("id") or client.scheduler.address)


def client_loop(client: Any) -> Any:
    """The asyncio loop that a client lives on."""
    return client.loop.asyncio_loop


def patience_s(client: Any) -> float:
    """Seconds that a client waits for answers; it has twice that to close. 30 if it cannot tell."""
    known = getattr(client, "_timeout", None)
    return float(known) if isinstance(known, int | float) and known > 0 else 30.0


def forgettable(method: Any) -> Any:
    """A handler of a server that keeps nothing alive: Dask never forgets whom it has called.

    `distributed.core._expects_comm` is a cache of all handlers, and `Server.handle_stream` keeps
    the one that the last message was for until the next comes, as `Client._handle_report` does.
    """
    known = weakref.WeakMethod(method)

    def handler(**kwargs: Any) -> Any:
        found = known()
        return None if found is None else found(**kwargs)

    async def waiting(**kwargs: Any) -> Any:
        found = known()
        return None if found is None else await found(**kwargs)

    return waiting if inspect.iscoroutinefunction(method) else handler


def batched_stream(worker: Any) -> Any:
    """The worker's stream of messages to its scheduler."""
    return worker.batched_stream


def waiting_in(stream: Any, op: str) -> int:
    """Messages of one operation that a stream has not written yet; it has no bound of its own."""
    return sum(type(message) is dict and message.get("op") == op for message in stream.buffer[:])


def unwritten(stream: Any) -> int:
    """Bytes that a stream has written and the other side has not taken; 0 where nobody can tell.

    Dask hands all to Tornado, which keeps whatever the network does not take, without a bound.
    """
    buffer = getattr(getattr(stream.comm, "stream", None), "_write_buffer", None)
    return 0 if buffer is None else len(buffer)


def is_open(stream: Any) -> bool:
    """Whether a stream goes on to write what it has."""
    return not (getattr(stream, "please_stop", False) or stream.closed())


def copies(stream: Any) -> bool:
    """Whether what a stream sends is copied; within a process its receiver gets the same object."""
    address = str(getattr(getattr(stream, "comm", None), "peer_address", ""))
    return bool(address) and not address.startswith("inproc")


def next_write(stream: Any) -> int:
    """The number, from 1, of the write that what is sent now is part of; 0: it does not count.

    A stream writes one by one.
    """
    return int(getattr(stream, "batch_count", -1)) + 1


def written(stream: Any, number: int, message: Any) -> bool:
    """Whether a message has been, that is part of the write of a number."""
    if next_write(stream) > number + 1:
        return True
    log = getattr(stream, "recent_message_log", ())
    latest = log[-1] if log else ()
    return next_write(stream) > number and any(each is message for each in latest)


def reducers(pickler: Any) -> dict[Any, Any]:
    """What a pickler of cloudpickle's makes of objects of each type."""
    table: dict[Any, Any] = pickler._dispatch_table
    return table


def wanted(client: Any) -> dict[Any, Any]:
    """What a client holds futures of: key -> its state, whose `status` is "pending" at first."""
    futures: dict[Any, Any] = client.futures
    return futures


def asked_of(client: Any, question: str, *args: Any, timeout_s: float, **kwargs: Any) -> Any:
    """What a cluster answers to a coroutine of its client, waited for no longer than a time.

    Raises:
        RuntimeError: the client belongs to a loop that is running here and cannot be waited for.
        TimeoutError: there was no answer in time.
    """
    if client.asynchronous:
        raise RuntimeError("the client is asynchronous")
    coroutine = getattr(client, question)
    return client.sync(coroutine, *args, callback_timeout=timeout_s, asynchronous=False, **kwargs)
