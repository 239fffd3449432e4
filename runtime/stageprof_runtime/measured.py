"""What each probe measures, and each looker: what an account lacks where one is off.

Steps by their names, and in other words what is no step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: The mark that tells of a probe that is off: "<probe>: <why>".
OFF: Final = "hook disabled"

#: Probes that are there only where somebody asked for them, who will want to know why they are off.
ASKED: Final = frozenset({"native.install"})

#: Probe -> what is not measured without it.
MEASURED: Final[dict[str, tuple[str, ...]]] = {
    "clients.install": ("clusters that are joined within the region",),
    "communication.Serving": ("what data a worker sends",),
    "communication.install": ("data.transfer", "connect"),
    "compression.install": ("compress", "decompress"),
    "deadlock.install": ("no deadlock of Python 3.11, where threads look at one another",),
    "exchanges.install": ("data.transfer of P2P",),
    "execution.Actors": ("calls of actors",),
    "execution.install": ("compute",),
    "frames.install": ("columns of frames",),
    "garbage.install": ("garbage collection",),
    "gil.install": ("gil.wait",),
    "groupby.install": ("groups that pandas goes over one by one",),
    "groups.install": ("groups that xarray reduces one by one",),
    "imports.install": ("import",),
    "layers.install": ("lines of layers",),
    "local.install": ("local.loop", "compute on local schedulers"),
    "locks.install": ("wait.resource by locks of threads",),
    "loops.install": ("stacks of the scheduler",),
    "memory.install": ("memory of tasks",),
    "native.install": ("C frames of tasks",),
    "objects.install": ("embedded objects",),
    "optimization.install": ("expr",),
    "parallel.install": ("waiting in joblib",),
    "plans.install": ("unused data", "what plans have in common", "what is fused"),
    "scatters.install": ("what is scattered",),
    "scheduling.install": ("materialize", "lowlevel", "order", "state", "transition"),
    "scheduling.install_local": ("order", "state", "lowlevel on local schedulers"),
    "serialization.install": (
        "graph.dump", "graph.load", "task.dump", "task.load", "data.dump", "data.load",
        "result.dump", "result.load",
    ),
    "shares.install": ("whose the bytes in messages are",),
    "shares.install_optimizers": ("whose lowlevel is",),
    "sources.install": ("files of functions that came by value",),
    "sources.install_cells": ("cells of functions that came by value",),
    "spill.install": ("spill.write", "spill.read"),
    "stacks.install": ("lines of tasks",),
    "tracebacks.install": ("tracebacks without our frames",),
    "training.install": ("training",),
    "arrivals.Arrivals": ("when results arrive",),
    "waiting.install": ("result.gather", "graph.send", "build of graphs that are handed over"),
}  # fmt: skip

#: The same of a thread of ours that looks, by its own name.
LOOKERS: Final[dict[str, tuple[str, ...]]] = {
    "loops": MEASURED["loops.install"],
    "sampler": ("construction, but for what its own probes see",),
    "stacks": MEASURED["stacks.install"],
}
#: What is said of a hook that goes on, but not every time.
SAMPLED: Final = "sampled"


def unmeasured(disabled: Iterable[str]) -> list[str]:
    """What is not measured where these are off, each once.

    Args:
        disabled: "<probe>: <why>", as the mark "hook disabled" says it; others are passed over.
    """
    parted = [label.partition(": ") for label in disabled]
    off = [name for name, _, why in parted if why != SAMPLED]
    known = MEASURED | LOOKERS
    return list(dict.fromkeys(what for name in off for what in known.get(name, ())))
