"""The events that probes emit, as rows of a few tables.

A probe appends one tuple `(table, *fields)` to a ring; nothing else happens in a hook. This is
the only place that says which tables exist and what their fields mean. All times are integer
nanoseconds of the emitting process's own `time.perf_counter_ns`; sizes are bytes.

A field is a number, or (`*_s` in `TEXT`) a text, or (`key`) a Dask key. In a batch a text becomes
an index into the batch's own list of strings; keys travel as they are in a list of their own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SPAN: Final = 0
ASSIGN: Final = 1
FINISH: Final = 2
RUN: Final = 3
WANT: Final = 4
ARRIVE: Final = 5
SAMPLE: Final = 6
MARK: Final = 7
PING: Final = 8
BLOCK: Final = 9
GRAPH: Final = 10
SUBMIT: Final = 11
LINE: Final = 12
SUM: Final = 13
SHARE: Final = 14
DEPEND: Final = 15
OBJECT: Final = 16

#: Field names of each table, in order.
FIELDS: Final[dict[int, tuple[str, ...]]] = {
    # Something took from start to stop on a thread. `label` says what: a layer, module, worker.
    SPAN: ("step", "start", "stop", "thread", "label", "nbytes"),
    # The scheduler gave a task to a worker. `run` identifies this attempt; `cause` is the run
    # whose end led to it, or -1 - g for graph g, or NO_CAUSE.
    ASSIGN: ("run", "t", "worker", "cause", "key"),
    # The scheduler heard that a run ended; status as in STATUS.
    FINISH: ("run", "t", "status", "nbytes", "type"),
    # What a worker saw of a run: told of it, dependencies here, function began, function ended.
    RUN: ("run", "received", "ready", "start", "stop", "thread", "cpu", "worker"),
    # A run that ended produced a key that a client had asked for.
    WANT: ("run", "t", "key"),
    # The client learnt that a key that it holds is in memory (or has failed).
    ARRIVE: ("t", "key"),
    # A number at an instant; `value` is stored as a float.
    SAMPLE: ("t", "name", "value"),
    # A named instant.
    MARK: ("t", "name", "label"),
    # One round trip to the process that `peer` names: sent, its clock then, received.
    PING: ("sent", "peer_clock", "received", "peer"),
    # A thread (or async task) of the user's waited inside Dask; `gather` to `gathered` is the
    # part that fetched results (0, 0 if none); `awaited` is when the last key it needed arrived.
    BLOCK: ("start", "stop", "thread", "call", "awaited", "gather", "gathered", "key"),
    # The scheduler (or a local scheduler) took a graph: number, arrived, state ready, tasks in
    # it, keys wanted, who sent it, and the run of the task that submitted it (or -1).
    GRAPH: ("graph", "start", "stop", "tasks", "wanted", "client", "parent"),
    # The client handed over a graph: its running number at that client, keys wanted, bytes.
    SUBMIT: ("graph", "t", "wanted", "nbytes", "thread", "file", "line"),
    # A layer or key (or, with `prefix` 1, every name "<name>-...") was made at file:line.
    LINE: ("name", "file", "line", "prefix"),
    # Many spans too short to keep one by one: how many, their seconds and bytes together.
    SUM: ("t", "step", "count", "total", "nbytes"),
    # What of a step was for the tasks of one layer (`name`: its name, or the prefix of its keys):
    # how many times, seconds and bytes together. The step's spans hold this time already.
    SHARE: ("t", "step", "name", "count", "total", "nbytes"),
    # Run `run` needed the result of run `on`. Left out where its cause is all that it needed, or
    # where a graph led to it and it needed nothing; `on` is -1 if a run led to it and it needed
    # nothing (it waited for a free thread).
    DEPEND: ("run", "on"),
    # An object that travels inside a graph. `name` is the layer (or expression, or key) that holds
    # it, `how` the way from there to it; `variable`, `file`, `line`: where the user has it from.
    # `nbytes` of one copy; `copies` of it in the graph; `tasks` of the graph seen to hold it (0:
    # all of the layer); `dump` ns of pickling it for the scheduler, all copies.
    OBJECT: (
        "t", "number", "graph", "type", "name", "how", "variable", "file", "line",
        "nbytes", "copies", "tasks", "dump",
    ),
}  # fmt: skip

#: Fields that hold text; each becomes an index into the batch's strings.
TEXT: Final = frozenset(
    {"label", "worker", "type", "name", "peer", "call", "client", "file", "how", "variable"}
)

#: Fields that hold a Dask key (str, bytes, number or nested tuple of them).
KEYS: Final = frozenset({"key"})

#: Table name by number, as stored in a batch.
TABLES: Final[dict[int, str]] = {
    SPAN: "span",
    ASSIGN: "assign",
    FINISH: "finish",
    RUN: "run",
    WANT: "want",
    ARRIVE: "arrive",
    SAMPLE: "sample",
    MARK: "mark",
    PING: "ping",
    BLOCK: "block",
    GRAPH: "graph",
    SUBMIT: "submit",
    LINE: "line",
    SUM: "sum",
    SHARE: "share",
    DEPEND: "depend",
    OBJECT: "object",
}

#: How a run ended, by status code.
STATUS: Final = ("memory", "erred", "lost", "released", "other")

NO_CAUSE: Final = -(2**62)

#: `nbytes` of a span that was seen from outside by the sampler: its ends are as sharp as the
#: sampler's period, and exact spans on the same thread go before it.
SAMPLED: Final = -1


class Place(NamedTuple):
    """A process (or the part of one) that plays a role in the computation."""

    #: "client", "scheduler" or "worker"
    role: str
    host: str
    pid: int
    #: the address for scheduler and workers, the client id for a client, "local" otherwise
    name: str
    #: differs between two lives of the same name (a worker that its nanny restarted)
    life: int
