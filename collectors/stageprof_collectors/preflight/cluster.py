"""The cluster that is to run a graph: its workers, as it tells of them itself.

What the scheduler has told the client already is read; versions and CPUs are asked for, once, and
no longer than a limit: a worker that does not answer is one that nothing is known of.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from stageprof_runtime.compat import asked_of

#: Seconds that workers have to answer one question.
ANSWER_S: Final = 2.0
#: And if there is no time left.
SHORT_S: Final = 0.05
#: Where a worker's configuration has its thresholds.
MEMORY: Final = "distributed.worker.memory"


@dataclass(frozen=True)
class Worker:
    """What is known of one worker."""

    address: str
    host: str
    threads: int
    #: bytes; 0 if it has no limit
    memory_limit: int
    #: bytes of its process at its last sign of life
    memory: int
    #: that it may use; 0 if not known
    cpus: int = 0


@dataclass(frozen=True)
class Cluster:
    """What is known of a cluster."""

    workers: tuple[Worker, ...]
    #: workers that were asked for and are not there; 0 if none is known to be
    late: int = 0
    #: fractions of its memory limit from which a worker moves results to disk, and is paused
    spill: float = 0.7
    pause: float = 0.8
    #: package -> version -> how many processes have it
    versions: Mapping[str, Counter[str]] = field(default_factory=dict)
    local: bool = False
    #: bytes that its machine has for all of its workers; 0 if not known
    machine: int = 0

    @property
    def threads(self) -> int:
        """Of all workers."""
        return sum(worker.threads for worker in self.workers)


def seen(client: Any) -> Cluster:
    """What the client knows of its cluster; nobody is asked."""
    from distributed.system import MEMORY_LIMIT

    told = client.scheduler_info(n_workers=-1)["workers"]
    workers = tuple(_worker(address, facts) for address, facts in told.items())
    cluster = getattr(client, "cluster", None)
    local = type(cluster).__name__ == "LocalCluster"
    return Cluster(workers, _late(cluster), local=local, machine=MEMORY_LIMIT if local else 0)


def _worker(address: str, facts: Mapping[str, Any]) -> Worker:
    memory = (facts.get("metrics") or {}).get("memory") or 0
    limit = int(facts.get("memory_limit") or 0)
    host = str(facts.get("host") or "")
    return Worker(str(address), host, int(facts.get("nthreads") or 0), limit, int(memory))


def _late(cluster: Any) -> int:
    """Workers that a cluster plans to have, and has not; of clusters that tell."""
    plan, observed = getattr(cluster, "plan", None), getattr(cluster, "observed", None)
    if not isinstance(plan, set) or not isinstance(observed, set):
        return 0
    return max(0, len(plan) - len(observed))


@dataclass(frozen=True)
class Answers:
    """What workers answered, by their addresses, and what could not be learnt."""

    cpus: Mapping[str, Any]
    memory: Mapping[str, Any]
    versions: Mapping[str, Counter[str]]
    unseen: tuple[str, ...]


def asked(client: Any, left_s: float) -> Answers:
    """Ask the workers for CPUs, thresholds and versions; they have so many seconds for it."""
    from dask.config import get
    from dask.system import cpu_count

    unseen: list[str] = []
    until = time.monotonic() + left_s

    def ask(what: str, question: str, *args: Any, **options: Any) -> Any:
        try:
            left = min(ANSWER_S, until - time.monotonic())
            return asked_of(client, question, *args, timeout_s=max(left, SHORT_S), **options)
        except Exception as error:  # nobody answers, or this client cannot be waited for
            unseen.append(f"{what} ({type(error).__name__}: {error})"[:160])
            return {}

    cpus = ask("the CPUs of the workers", "_run", cpu_count, on_error="return")
    memory = ask("the workers' thresholds of memory", "_run", get, MEMORY, on_error="return")
    versions = _versions(ask("the versions on the workers", "_get_versions"))
    return Answers(cpus, memory, versions, tuple(unseen))


def told(known: Cluster, answers: Answers) -> Cluster:
    """A cluster with what its workers answered."""
    workers = tuple(_with(worker, answers.cpus.get(worker.address)) for worker in known.workers)
    spill, pause = _fraction(answers.memory, "spill"), _fraction(answers.memory, "pause")
    return replace(known, workers=workers, spill=spill, pause=pause, versions=answers.versions)


def _fraction(told: Mapping[str, Any], name: str) -> float:
    """The lowest of the workers'; 1 where it is switched off or nobody tells."""
    values = [own.get(name) for own in told.values() if isinstance(own, Mapping)]
    return min((v for v in values if type(v) is float and v > 0), default=1.0)


def _with(worker: Worker, cpus: object) -> Worker:
    number = cpus if type(cpus) is int else 0
    return replace(worker, cpus=number)


def _versions(told: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Of each package how many processes have which version."""
    processes = [told.get("client"), told.get("scheduler"), *(told.get("workers") or {}).values()]
    found: dict[str, Counter[str]] = {}
    for process in processes:
        if not isinstance(process, Mapping):
            continue
        for package, version in (process.get("packages") or {}).items():
            found.setdefault(str(package), Counter())[str(version)] += 1
    return found
