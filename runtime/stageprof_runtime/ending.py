"""How a run of a task ended, from what the scheduler did with it."""

from __future__ import annotations


def status_of(finish: str, stimulus: str) -> int:
    """How a run ended, as in `event.STATUS`.

    A run that goes back to be run again has failed (and is retried) or was lost with its worker;
    what led to it says which.
    """
    if finish == "memory":
        return 0
    if finish == "erred" or stimulus.startswith("task-erred"):
        return 1
    lost = stimulus.startswith(("handle-worker-cleanup", "remove-worker", "worker-", "nanny-"))
    return 2 if lost else 3
