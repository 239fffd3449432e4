"""Machine-learning training: each call of a framework's entry points, and the data it was given.

Nothing is imported that the user did not import: a framework's functions are wrapped as soon as
its module is there. The names are the frameworks' public ones; one that is missing is passed over.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, Final, NamedTuple

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.collection import facts_of
from stageprof_runtime.event import TRAIN
from stageprof_runtime.lines import user_frame, user_line
from stageprof_runtime.patch import Emit, Undo, replace
from stageprof_runtime.scopes import Scope


class Argument(NamedTuple):
    """Where a call has an argument."""

    position: int
    keyword: str

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What was passed; None if nothing was."""
        if self.keyword in kwargs:
            return kwargs[self.keyword]
        return args[self.position] if self.position < len(args) else None


class Entry(NamedTuple):
    """One way into a framework: where it is, and which arguments hold data and labels."""

    owner: str
    name: str
    data: Argument
    labels: Argument


def _fits(*owners: str, name: str = "fit") -> tuple[Entry, ...]:
    return tuple(Entry(owner, name, Argument(1, "X"), Argument(2, "y")) for owner in owners)


#: An argument that there is not.
_NONE: Final = Argument(sys.maxsize, "")

#: module -> its entry points. Seen in xgboost 3.0 to 3.2, lightgbm 4.6 and 4.7, dask-ml 2025.1.
ENTRIES: Final[dict[str, tuple[Entry, ...]]] = {
    "xgboost.dask": (
        Entry("DaskDMatrix", "__init__", Argument(2, "data"), Argument(3, "label")),
        Entry("", "train", Argument(2, "dtrain"), _NONE),
        *_fits("DaskXGBRegressor", "DaskXGBClassifier", "DaskXGBRanker"),
    ),
    "lightgbm.dask": _fits("DaskLGBMRegressor", "DaskLGBMClassifier", "DaskLGBMRanker"),
    "dask_ml.wrappers": (*_fits("Incremental"), *_fits("Incremental", name="partial_fit")),
    "dask_ml.linear_model.glm": _fits("LinearRegression", "LogisticRegression"),
    "dask_ml.cluster.k_means": _fits("KMeans"),
    "dask_ml.decomposition.pca": _fits("PCA"),
}

#: Names of a frame that are looked at for the one that the user has for the data.
_NAMES: Final = 10_000


class _Inside(threading.local):
    """Whether an entry point is running on this thread: what it calls itself is not the user's."""

    on: bool = False


def install(emit: Emit) -> Undo:
    """Note the trainings of all frameworks that are loaded now or later."""
    inside = _Inside()
    noting = functools.partial(_noting, emit, inside)
    return arrived(ENTRIES, functools.partial(entered, noting))


def entered(
    make: Callable[[Entry, str], Callable[[Any], Any]], name: str, module: ModuleType
) -> Iterator[Undo]:
    """Replace a framework's entry points by what is made for each, of it and its full name."""
    for entry in ENTRIES[name]:
        owner = getattr(module, entry.owner, None) if entry.owner else module
        if hasattr(owner, entry.name):
            call = ".".join(filter(None, (name, entry.owner, entry.name)))
            yield replace(owner, entry.name, make(entry, call.removesuffix(".__init__")))


def _noting(emit: Emit, inside: _Inside, entry: Entry, call: str) -> Callable[[Any], Any]:
    def make(function: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            line = ("", 0) if inside.on else user_line(frame)
            if not line[0]:  # called by a framework, not by the user
                return function(*args, **kwargs)
            before = _known(entry, frame, args, kwargs)
            inside.on, failed, start = True, 1, now_ns()
            try:
                result = function(*args, **kwargs)
                failed = 0
            finally:
                inside.on = False
                thread, (number, *facts) = threading.get_ident(), before
                row = (TRAIN, start, now_ns(), thread, call, number, *line, *facts, failed)
                emit.row("client", row)
            return result

        return noted

    return make


def _known(
    entry: Entry, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """What is known of a call before it begins: number, names, facts."""
    data, labels = entry.data.of(args, kwargs), entry.labels.of(args, kwargs)
    # A data matrix goes by a number of its own, which `train` is given later.
    number = id(args[0] if entry.name == "__init__" else data)
    return number, _variable(frame, data), _variable(frame, labels), *facts_of(data)


def _variable(frame: FrameType | None, data: object) -> str:
    """The name that the user's innermost frame has for an object, "" if none."""
    frame = user_frame(frame)
    if frame is None or data is None:
        return ""
    names = Scope(frame).variables
    many = len(names) > _NAMES
    found = (n for n, value in names.items() if value is data and n.isidentifier() and not many)
    name = next(found, "")
    names.clear()
    return name
