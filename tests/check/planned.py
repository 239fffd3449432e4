"""Plans made by hand, and what a check says of them."""

from __future__ import annotations

from typing import Any

from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.preflight.checkup import CHECKS
from stageprof_collectors.preflight.cluster import Cluster, Worker
from stageprof_collectors.preflight.plan import Layer, Plan
from stageprof_collectors.preflight.rates import usual
from stageprof_collectors.tables.site import Collection
from stageprof_runtime.handover import CLUSTER

GB = 10**9


def worker(number: int = 0, **facts: Any) -> Worker:
    known = {"threads": 1, "memory_limit": 4 * GB, "memory": GB // 10, "cpus": 2}
    return Worker(f"tcp://{number}", "host", **(known | facts))


def cluster(*workers: Worker, **facts: Any) -> Cluster:
    return Cluster(workers or (worker(0), worker(1)), **facts)


def plan(*layers: Layer, **facts: Any) -> Plan:
    made = Plan(CLUSTER, usual(CLUSTER), "train.py", 7, layers=list(layers))
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def ask(rule: str, made: Plan) -> list[Finding]:
    [check] = [check for check in CHECKS if check.id == rule]
    return list(check.find(made, {n: limit.default for n, limit in check.limits.items()}))


def array(nbytes: int, pieces: int) -> Layer:
    return Layer("x-1", "x", pieces, Collection.ARRAY, nbytes // pieces, nbytes, "a.py", 3)
