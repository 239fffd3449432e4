"""Who holds what a walk over a graph comes to: a layer, a part of it, a task and its function."""

from __future__ import annotations

from typing import NamedTuple, Self

from stageprof_runtime.wording import text_of


class Holder(NamedTuple):
    """Where a walk is."""

    layer: str
    #: id of the part of the graph
    within: int
    #: key of the task, None in what all tasks of the layer hold
    key: object
    #: levels that the walk may still go down
    depth: int
    function: object = None

    def task(self, key: object, *, datum: bool) -> Self:
        """A task of it; `datum`: the task is no call, but a value."""
        # A graph that was made of layers, and is none any more, is told by its keys. So is a
        # value: all layers that need it have that one task.
        name = text_of(key[0] if type(key) is tuple and key else key)
        return self._replace(layer=(name if datum else "") or self.layer or name, key=key)


class Held(NamedTuple):
    """A value, and who holds it."""

    value: object
    #: layer or expression, "" if it is the graph's only one
    layer: str
    #: the way from there to it, in words
    how: str
    #: the name that it has there, if any
    name: str
    #: id of the part of the graph with which it is pickled
    within: int
    #: key of the task, None if all tasks of the layer hold it
    key: object
    #: the function that carries it, if one does
    function: object = None
