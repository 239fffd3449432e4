"""The events that probes emit, as rows of a few tables.

A probe appends one tuple `(table, *fields)` to a ring; nothing else happens in a hook. This is
the only place that says which tables exist and what their fields mean. All times are integer
nanoseconds of the emitting process's own `time.perf_counter_ns`; sizes are bytes.

A field is a number, or (`*_s` in `TEXT`) a text, or (`key`) a Dask key. In a batch a text becomes
an index into the batch's own list of strings; keys travel as they are in a list of their own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: The `call` of a thread that waits for other threads, of which Dask's loop may be one.
LOCK: Final = "lock"
#: The `call` of a task that waits for the other workers of a P2P exchange.
EXCHANGE: Final = "p2p"

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
MEMORY: Final = 17
TRAIN: Final = 18
STACK: Final = 19
COLUMN: Final = 20
UNUSED: Final = 21
NODE: Final = 22
FLAME: Final = 23
CALLED: Final = 24
HOLD: Final = 25
STOOD: Final = 26
CPU: Final = 27
RESULT: Final = 28
NATIVE: Final = 29
OWNER: Final = 30
PART: Final = 31
RESOURCE: Final = 32
FETCHED: Final = 33
SCATTER: Final = 34
ONGOING: Final = 35
GROUPED: Final = 36
TURN: Final = 37
CHAIN: Final = 38
UNFUSED: Final = 39

#: The `graph` of what was fetched and went back without one.
SCATTERED: Final = -2
#: What the worker of a run is called that a process of a local scheduler's pool has made: so, and
#: the process's number.
POOLED: Final = "process "

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
    # With LOCK as `call` it waited for other threads of its process, as the sampler saw it; with
    # "wait for Event name" for what that stands for; with EXCHANGE, for pieces of a P2P
    # exchange to have gone to the other workers. " gave up" follows the name of one that was
    # interrupted, or did not wait any longer.
    BLOCK: ("start", "stop", "thread", "call", "awaited", "gather", "gathered", "key"),
    # The scheduler (or a local scheduler) took a graph: number, arrived, state ready, tasks in
    # it (futures that it needs are none), keys wanted, who sent it, and the run of the task that
    # submitted it (or -1).
    GRAPH: ("graph", "start", "stop", "tasks", "wanted", "client", "parent"),
    # A client handed over a graph: its running number in that process, keys wanted, bytes.
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
    # nothing (it waited for a free thread). Of very many needs some are told; see `needs`.
    DEPEND: ("run", "on"),
    # An object that travels inside a graph. `graph`: the hand-over's number as in SUBMIT (-1: the
    # next hand-over of a local scheduler). `name` is the layer (or expression, or key) that holds
    # it, `how` the way from there to it; `variable`, `file`, `line`: where the user has it from.
    # `nbytes` of one copy; `copies` of it in the graph; it may be cut into `pieces`, one for each
    # task; `tasks` of the layer seen to hold one (0: all of the layer); `dump` ns of pickling it
    # for the scheduler, all attempts. Where several layers hold it there is a row for each, and
    # all but the first have no copies and no dump: it is pickled once.
    OBJECT: (
        "t", "number", "graph", "type", "name", "how", "variable", "file", "line",
        "nbytes", "copies", "pieces", "tasks", "dump",
    ),
    # What a worker's process took when a run began and when it had ended, its result still there;
    # and what Dask took all results there for when it began. Of some runs only.
    MEMORY: ("run", "before", "after", "managed"),
    # The user called a framework's training, or made its data matrix (`call`); `number` is the id
    # of the data object. The data: what the user calls it (and `label` its labels), its own `name`,
    # pieces along the rows and along the columns; `merged`: column pieces that its graph puts
    # together (0: none); its size (-1: unknown); `held`: 1 if it comes from persisted pieces only
    # (-1: unknown), `pending` of which were not done at the start. `failed`: 1 if the call raised.
    TRAIN: (
        "start", "stop", "thread", "call", "number", "file", "line", "variable", "label", "name",
        "type", "pieces", "column_pieces", "merged", "rows", "width", "nbytes", "held", "pending",
        "failed",
    ),
    # Looks at the threads that run tasks, summed: tasks of prefix `name` were `count` times, for
    # `total` ns together, in the user's `label` ("file:line function"); `how` as in `stack`;
    # `variable` is the user's outermost function, which the task calls.
    STACK: ("t", "name", "label", "how", "variable", "count", "total"),
    # A column of a frame that a task of prefix `name` made; `how` says what its values are (see
    # `columns`), `nbytes` what they take about, in `count` rows.
    COLUMN: ("t", "name", "label", "type", "how", "count", "nbytes"),
    # Of what layer `name` reads only a part is used right above it. `how` "columns": `count` of
    # `total` bytes of a row, in the columns `label`; "filter": rows that pass one (both 0);
    # "slice": `count` of `total` elements of an array. `variable` is the function that reads, of an
    # array the layer that loads. "stored": of a compressed file `total` elements are unpacked for
    # `count`, which is more where the chunks asked for cut across the file's; `label`: shapes of
    # the array, the file's chunks, and those asked for ("9x9 3x9 9x3"). Dask may fuse what loads
    # with layers above it: there is a row for each of them, of which the first that ran counts.
    UNUSED: ("t", "name", "how", "label", "variable", "count", "total"),
    # A place in the tree of stacks of this process: function `name` of `file` at `line`, called
    # from place `parent` (-1: it is outermost). Numbers count up from 0; see `tree`.
    NODE: ("number", "parent", "name", "file", "line"),
    # Looks at stacks, summed: while `step` was done, for tasks of prefix `name` ("" elsewhere), the
    # innermost frame was `node` (-1: not kept) in `count` looks, for `total` ns; `how` as in
    # `stopped`.
    FLAME: ("t", "step", "name", "how", "node", "count", "total"),
    # Calls as cProfile counted them while `step` was done: of function `name` (`file`, `line`) by
    # the one named with `by_` ("" if none): all calls, those not from within itself, ns in it
    # alone, and ns with what it called. Rows of a function sum to its own figures, so that where
    # functions call one another in circles that without caller may be negative; see `called`.
    CALLED: (
        "step", "name", "file", "line", "by_name", "by_file", "by_line", "calls", "primitive",
        "own", "total",
    ),
    # A thread was seen to hold the GIL (`waits` 0) or to wait for it (1) all this time.
    HOLD: ("start", "stop", "thread", "waits"),
    # When `thread` held the GIL in this time, its innermost frame was `node` (-1: not kept); of the
    # user's `label` ("file:line function"), or of a library's if there is none.
    STOOD: ("start", "stop", "thread", "node", "label"),
    # What was done of a step where the clock of its thread was read: for `total` ns together, of
    # which the thread was on a processor for `cpu`. Not of all that was done of the step.
    CPU: ("t", "step", "total", "cpu"),
    # What a run of a local scheduler made: bytes, about; -1: it was not weighed. Only of runs that
    # waited: it is what they waited for. (Workers say of each run in FINISH what Dask takes its
    # result for.)
    RESULT: ("run", "nbytes"),
    # In this time `thread`, in a task, was last seen at `node` (-1: not kept), whose stack has its
    # frames of C too: `name` a symbol, `file` its library, `line` 0.
    NATIVE: ("start", "stop", "thread", "node"),
    # Run `run` is of graph `graph` of its scheduler (-1: of one that was not seen). Left out where
    # its cause is that graph, or a run of it.
    OWNER: ("run", "graph"),
    # The plan that an optimizer returned at `t` has as layer `name` what another plan of this
    # process has too: all that it made of the user's expression (or layer) `label` and is of kind
    # `variable`. `how` is "among others" if the layer has other work besides, or if it is one that
    # may have: of rows of a plan with the same label and variable the first that ran counts.
    # `count` of its `total` columns the first of these plans has as well; 0, 0 if not known.
    PART: ("t", "name", "label", "variable", "how", "count", "total"),
    # Run `run` could not begin before its worker had what it needs of its resources `name` ("GPU").
    RESOURCE: ("run", "name"),
    # Object `number` of hand-over `graph`, as in OBJECT, is what the client had fetched of `key`,
    # or holds that; or (`graph` SCATTERED) the object of that number in SCATTER is.
    FETCHED: ("number", "graph", "key"),
    # A client was asked to scatter an object: what, and `variable`, `file`, `line`: where the user
    # has it from. Of one object `number` is the same each time. It was scattered at `by_line`.
    SCATTER: (
        "t", "number", "type", "variable", "file", "line", "by_file", "by_line", "nbytes",
    ),
    # A run that lasts, as if it ended now; of several the last counts, and its row of RUN before.
    ONGOING: ("run", "received", "ready", "start", "stop", "thread", "cpu", "worker"),
    # In a task of prefix `name` pandas gave `count` groups of `total` rows together one by one: to
    # a function that it calls for each (`label` ""), or to the user's loop `label` ("file:line
    # function"), which ends at `line`. Not told of few groups; see `probes.groupby`.
    GROUPED: ("t", "name", "label", "line", "count", "total"),
    # The coroutine of a run had its worker's event loop, which did nothing else meanwhile.
    TURN: ("run", "start", "stop", "cpu"),
    # A plan has layer `name` in the chain of layers, each needed by the next alone, that begins
    # with layer `by_name`: it makes `count` chunks of `nbytes` at most. Dask may fuse the chain, or
    # a part of it, into tasks of its last layer; rows of a chain are in its order.
    CHAIN: ("t", "name", "by_name", "count", "nbytes"),
    # A plan of one collection left operation `name` on a data frame as tasks of its own, which
    # Dask can fuse with others of the plan: `by_name` is the last of these.
    UNFUSED: ("t", "name", "by_name"),
}  # fmt: skip

#: Fields that hold text; each becomes an index into the batch's strings.
TEXT: Final = frozenset(
    {
        "label", "worker", "type", "name", "peer", "call", "client", "file", "how", "variable",
        "by_name", "by_file",
    }
)  # fmt: skip

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
    MEMORY: "memory",
    TRAIN: "train",
    STACK: "stack",
    COLUMN: "column",
    UNUSED: "unused",
    NODE: "node",
    FLAME: "flame",
    CALLED: "called",
    HOLD: "hold",
    STOOD: "stood",
    CPU: "cpu",
    RESULT: "result",
    NATIVE: "native",
    OWNER: "owner",
    PART: "part",
    RESOURCE: "resource",
    FETCHED: "fetched",
    SCATTER: "scatter",
    ONGOING: "ongoing",
    GROUPED: "grouped",
    TURN: "turn",
    CHAIN: "chain",
    UNFUSED: "unfused",
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
