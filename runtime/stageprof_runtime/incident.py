"""What befalls workers: Dask's own events of it, as the name and label of a mark.

Dask logs an event when a worker is paused or runs again, when its nanny ends it for its memory,
and when a worker goes and takes results with it. Anybody may log events of any content, so
nothing is asked of a message but what kind of builtin it is.
"""

from __future__ import annotations

from typing import Any, Final

#: What a worker's status means for its tasks, by Dask's name of it.
_STATUS: Final = {"paused": "worker paused", "running": "worker resumed"}
#: The topic under which nannies tell of workers that they end for their memory.
_NANNY: Final = "worker-restart-memory"


def incident(topic: Any, event: Any) -> tuple[str, str] | None:
    """Name and label of the mark that an event is worth; None for all others.

    Labels: "<address>" (paused, resumed), "<address> <bytes>" (killed: what its process took),
    "<address> <results> <running> <expected>" (results lost: how many there were of each, and 1
    if it went in good order).
    """
    if type(event) is not dict or type(topic) is not str:
        return None
    if topic == _NANNY:
        return "worker killed", f"{event.get('worker', '')} {_number(event.get('rss'))}"
    action = event.get("action")
    if type(action) is not str:
        return None
    if action == "worker-status-change":
        return _changed(topic, event)
    # The same is logged under "all" too, and names its worker there.
    if action == "remove-worker" and "worker" not in event:
        return "worker lost", _loss(topic, event)
    return None


def _changed(worker: str, event: dict[Any, Any]) -> tuple[str, str] | None:
    now, before = event.get("status"), event.get("prev-status")
    if type(now) is not str or type(before) is not str:
        return None
    # From "init" to "running" a worker begins; it was not paused.
    return (_STATUS[now], worker) if now in _STATUS and before in _STATUS else None


def _loss(worker: str, event: dict[Any, Any]) -> str:
    results, running = (_count(event.get(n)) for n in ("lost-computed-tasks", "processing-tasks"))
    return f"{worker} {results} {running} {int(event.get('expected') is True)}"


def _count(keys: Any) -> int:
    return len(keys) if type(keys) in (set, list, tuple, dict, frozenset) else 0


def _number(value: Any) -> int:
    return value if type(value) is int else 0
