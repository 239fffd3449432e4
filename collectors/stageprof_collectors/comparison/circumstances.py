"""What was recorded, on what, and how it ended: what differs in it is not of one series."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from stageprof_collectors.findings.quantity import count, size
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Where the label of a block says its line, which moves when the file is edited, and of a cell its
#: number, which is another whenever it runs.
_AT_LINE: Final = re.compile(r"(?:(?<=^Block at In) \[\d+\])?:\d+$")


def program(header: Mapping[str, Any]) -> str:
    """What was recorded: `etl.py`; `etl.py, Block at etl.py`; `tests/test_etl.py::test_join`."""
    name, label = (str(header.get(part) or "") for part in ("program", "label"))
    if "::" in label:  # a test is the same whether pytest or python -m pytest runs it
        return label
    label = _AT_LINE.sub("", label)
    return name if label in ("", name) else ", ".join(filter(None, (name, label)))


def instant(started: object) -> float:
    """When a recording began, seconds since 1970; 0 if what its header says makes no sense."""
    try:
        return datetime.fromisoformat(str(started)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def failed(recording: Recording) -> str:
    """How it ended, if an exception left it or its exit status is not 0; else ""."""
    ended = recording.failures.ended
    return ended.said if ended is not None else ""


def circumstances(recording: Recording) -> dict[str, str]:
    """In words: "machine", "versions" and "cluster"; where they differ, times say nothing."""
    header = recording.store.header
    machine = [_host(recording), header.get("platform"), header.get("machine")]
    cpus = header.get("cpus")
    machine += [count(cpus, "CPU")] if isinstance(cpus, int) else []
    names = ("python", "dask", "distributed", "stageprof")
    return {
        "machine": ", ".join(str(part) for part in machine if part),
        "versions": ", ".join(f"{name} {header[name]}" for name in names if header.get(name)),
        "cluster": _cluster(recording),
    }


def _host(recording: Recording) -> str:
    """Where the client ran; if there is none, the scheduler."""
    hosts = {place.role: place.host for place in recording.store.places}
    return hosts.get("client") or hosts.get("scheduler") or ""


def _cluster(recording: Recording) -> str:
    """`2 workers of 1 thread, 4.1 GB`; a local scheduler has no workers."""
    workers = recording.workers()
    # Not those that took the place of others.
    at_once = {member.address for member in Crew(recording).fullest}
    workers = workers[workers["worker"].isin(at_once)] if at_once else workers
    if not len(workers):
        return "no workers"
    known = zip(workers["threads"], workers["memory_limit"], strict=True)
    shapes = Counter((int(threads), int(limit)) for threads, limit in known)
    return "; ".join(
        f"{count(number, 'worker')} of {count(threads, 'thread')}, "
        f"{size(limit) if limit else 'no memory limit'}"
        for (threads, limit), number in sorted(shapes.items())
    )
