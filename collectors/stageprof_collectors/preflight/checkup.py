"""The check-up: every check is asked of what is about to be run, and what they found is ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stageprof_collectors.findings.diagnosis import MOST
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.preflight import (
    chunks,
    cluster,
    dtypes,
    fusing,
    graph,
    indexing,
    memory,
    metas,
    objects,
    training,
    workers,
)
from stageprof_collectors.preflight.check import Check
from stageprof_collectors.preflight.held import look
from stageprof_collectors.preflight.plan import OutOfTimeError, Plan, Watch, plain
from stageprof_collectors.preflight.rates import Rates, measured, usual
from stageprof_collectors.preflight.reading import read
from stageprof_runtime.handover import CLUSTER, Given, Handover

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Seconds that looking at one graph may take: a twentieth of a run that is worth checking.
LIMIT_S: Final = 1.0
#: Of them, the part after which objects are looked for no longer: the cluster is asked after that.
OBJECTS: Final = 0.7

#: All checks, in the order in which they are asked.
CHECKS: Final[tuple[Check, ...]] = (
    *graph.CHECKS,
    *indexing.CHECKS,
    *metas.CHECKS,
    *objects.CHECKS,
    *dtypes.CHECKS,
    *chunks.CHECKS,
    *fusing.CHECKS,
    *training.CHECKS,
    *memory.CHECKS,
    *workers.CHECKS,
)
#: Graphs of one program that are looked at: a loop that submits one by one makes them all alike.
GRAPHS: Final = 50
_RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True)
class Checkup:
    """What was found before anything ran."""

    #: gravest first
    findings: tuple[Finding, ...] = ()
    #: what was not looked at, and why
    unseen: tuple[str, ...] = ()
    #: graphs and trainings that were looked at, and the tasks of these graphs (about)
    graphs: int = 0
    tasks: int = 0
    #: seconds that looking took
    seconds: float = 0.0
    #: where predicted costs are from
    source: str = ""
    #: the line where the program was stopped ("" if unknown); None if it was not
    stopped: str | None = None

    @property
    def above_note(self) -> tuple[Finding, ...]:
        """The findings that are worth acting on."""
        return tuple(f for f in self.findings if f.severity != Severity.NOTE)


@dataclass
class Looking:
    """How to look, and what was found in all graphs so far."""

    settings: Settings = DEFAULTS
    limit_s: float = LIMIT_S
    like: Recording | None = None
    #: of a client to take for granted where none is known
    client: Any = None

    def __post_init__(self) -> None:
        self._found: list[Finding] = []
        self._unseen: dict[str, None] = {}
        self._graphs = self._tasks = 0
        self._seconds = 0.0
        self._source = ""
        self._known: dict[str, Rates] = {}
        #: by client: what its cluster answered, asked once
        self._answers: dict[int, cluster.Answers] = {}

    def look(self, given: Given, handover: Handover) -> None:
        """Take one graph, or one training, into account; raises nothing of its own."""
        if self._graphs >= GRAPHS:
            self._unseen.setdefault(f"graphs after the first {GRAPHS}")
            return
        watch = Watch(self.limit_s)
        plan = Plan(given.scheduler, self._rates(given.scheduler), *given.line)
        plan.trained, plan.outputs = given.trained, given.asked
        for part, name in self._parts(given, handover, plan, watch):
            self._try(part, name, plan)
        self._ask(plan)
        self._graphs += 1
        self._tasks += plan.tasks
        self._source = plan.rates.source
        self._seconds += watch.spent_s
        self._unseen |= dict.fromkeys(plan.unseen)

    def _rates(self, scheduler: str) -> Rates:
        if scheduler not in self._known:
            like = self.like
            self._known[scheduler] = usual(scheduler) if like is None else measured(like, scheduler)
        return self._known[scheduler]

    def _parts(
        self, given: Given, handover: Handover, plan: Plan, watch: Watch
    ) -> Iterator[tuple[Callable[[], None], str]]:
        objects = Watch(self.limit_s * OBJECTS)
        if given.graph is not None:
            yield lambda: read(given.graph, plan, handover.line_of, watch), "layers of the graph"
        client = given.client or self.client
        if plan.scheduler == CLUSTER and client is not None:
            yield lambda: _seen(client, plan), "the workers"
        if given.graph is not None and plan.pickled:
            args = given.graph, plan, handover.names, given.frame, objects
            yield lambda: look(*args), "objects in the graph"
        if plan.scheduler == CLUSTER and client is not None:
            yield lambda: self._asked(client, plan, watch), "the workers"

    def _asked(self, client: Any, plan: Plan, watch: Watch) -> None:
        if plan.cluster is None:
            return
        answers = self._answers.get(id(client))
        if answers is None:
            answers = self._answers[id(client)] = cluster.asked(client, watch.left_s)
        plan.cluster = cluster.told(plan.cluster, answers)
        for what in answers.unseen:
            plan.cannot(what)

    def _try(self, part: Callable[[], None], name: str, plan: Plan) -> None:
        try:
            part()
        except OutOfTimeError:
            plan.cannot(f"{name}, in part: there was no more time ({self.limit_s:g} s)")
        except Exception as error:  # whatever is in a graph, the rest is looked at
            plan.cannot(f"{name} ({plain(error)})")

    def _ask(self, plan: Plan) -> None:
        for check in CHECKS:
            if check.id in self.settings.off:
                continue
            try:
                limits = self._limits(check)
                for number, found in enumerate(check.find(plan, limits)):
                    if number >= MOST:
                        break
                    self._found.append(found)
            except Exception as error:  # one check that fails is no reason to lose the others
                plan.cannot(f"{check.id} ({plain(error)})")

    def _limits(self, check: Check) -> dict[str, float]:
        own = {name: limit.default for name, limit in check.limits.items()}
        return own | {n: v for id_, n, v in self.settings.limits if id_ == check.id}

    def result(self, unseen: Iterable[str] = ()) -> Checkup:
        """All that was found."""
        for what in unseen:
            self._unseen.setdefault(what)
        ranked = sorted(_merged(self._found), key=_rank)
        return Checkup(
            tuple(ranked), tuple(self._unseen), self._graphs, self._tasks, self._seconds,
            self._source,
        )  # fmt: skip


def _seen(client: Any, plan: Plan) -> None:
    plan.cluster = cluster.seen(client)


def _merged(found: Iterable[Finding]) -> Iterator[Finding]:
    """Of the findings of one rule with one cause at one place the gravest."""
    best: dict[tuple[str, str, str, int], Finding] = {}
    for finding in sorted(found, key=_rank):
        where = finding.where
        best.setdefault((finding.rule, finding.cause, where.file, where.line), finding)
    yield from best.values()


def _rank(finding: Finding) -> tuple[int, float, str, str]:
    middle = sum(finding.saving_s) / 2
    known = middle if middle == middle else 0.0  # noqa: PLR0124 (nan)
    return _RANKS[finding.severity], -known, finding.rule, finding.headline
