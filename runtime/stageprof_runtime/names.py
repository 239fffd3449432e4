"""The names of objects, found when they were put into a graph and kept until it is sent.

Where a layer or an expression is made, the user's variables are on the stack; where it is handed
over, a function that made them may have returned. Names are kept by id with a weak reference
where there can be one, so that a later object at the same address is not given the name.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple, Self

from stageprof_runtime.clock import now_ns
from stageprof_runtime.fetched import fetched
from stageprof_runtime.holder import Held
from stageprof_runtime.holding import LEAST, Walk
from stageprof_runtime.identity import Identity
from stageprof_runtime.kinds import CUSTOM, DATA, kind_of
from stageprof_runtime.kinship import (
    address,
    extent,
    find_kin,
    find_whole,
    is_kin,
    is_numpy,
    parent,
)
from stageprof_runtime.naming import Origin, by_hint, find
from stageprof_runtime.scopes import Stack
from stageprof_runtime.weight import weigh

#: Names kept; with a reference each some 400 bytes.
MOST: Final = 5000
#: Small objects of one class named for one layer: any may be slow to pickle, a million are not
#: looked up.
ALIKE: Final = 8
#: What follows a variable's name in the way to an object.
_NAME: Final = re.compile(r"[.\[]")
#: A frame of so many cells may hold `LEAST` bytes, if its strings are long.
_CELLS: Final = LEAST // 50


class Known(NamedTuple):
    """A named object."""

    identity: Identity
    origin: Origin
    #: what it is a piece of, or its own number
    number: int
    #: the key of which it, or what it is made from, is the result that was fetched; None if of none
    key: object = None


class Names:
    """The names of the objects in graphs."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}
        self._parents: dict[int, tuple[Any, int]] = {}
        self._numbered: dict[int, Known] = {}
        self._numbers = itertools.count(1)
        #: an array, and where in it a piece is -> the piece's number
        self._alone: dict[tuple[int, object], int] = {}
        #: layer -> what the first of its parts is a piece of
        self._pieces: dict[str, Known] = {}
        #: by the class's id: a class that lives no longer may be taken for another
        self._alike: Counter[int] = Counter()

    def get(self, value: object) -> Known | None:
        """What is known of an object."""
        known = self._known.get(id(value))
        if known is not None and known.identity.is_of(value):
            return known
        return self._of_parent(value)

    def _of_parent(self, value: object) -> Known | None:
        """What is known of the array of which an array is a view: it is a piece of that."""
        base = parent(value)
        ref, number = self._parents.get(id(base), (None, 0)) if base is not value else (None, 0)
        known = self._numbered.get(number)
        if known is None or ref is None or ref() is not base:
            return None
        return self.keep(value, known.origin, number, known.key)

    def has(self, value: object) -> bool:
        """Whether an object is known by the name of a variable."""
        known = self.get(value)
        return known is not None and known.origin.variable != ""

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._parents.clear()
        self._numbered.clear()
        self._alone.clear()
        self._pieces.clear()
        self._alike.clear()

    def see(
        self,
        x: object,
        layer: str,
        frame: FrameType | None,
        until: int,
        clock: Callable[[], int] = now_ns,
    ) -> bool:
        """Name what a new layer or expression holds; whether there was time for all of it."""
        with Sight(self, frame) as sight:
            walk = Walk(until, sight.whole, deep=False, clock=clock)
            for held in walk.graph(x, layer):
                if clock() > until:
                    return False
                if self._worth(held.value) and self.get(held.value) is None:
                    sight.name(held)
            return not walk.stopped

    def _worth(self, value: Any) -> bool:
        kind = kind_of(value)
        if kind == CUSTOM:
            kin = id(type(value))
            self._alike[kin] += 1
            return self._alike[kin] <= ALIKE or weigh(value) >= LEAST
        return kind != DATA or heavy(value)

    def keep(self, value: object, origin: Origin, number: int = 0, key: object = None) -> Known:
        """Know an object by this origin from now on."""
        if len(self._known) >= MOST:
            self.clear()
        number = number or self._number(value)
        known = Known(Identity(value), origin, number, key)
        self._known[id(value)] = self._numbered[number] = known
        return known

    def alone(self, known: Known, helds: Sequence[Held]) -> Known:
        """What a graph holds of an object: of an array's one piece a number of its own.

        The next graph may hold another piece; of the same one the number is the same.
        """
        value: Any = helds[0].value
        pieces = is_numpy(value) and parent(value) is not value
        if not pieces or any(held.value is not value for held in helds):
            return known
        if len(self._alone) >= MOST:
            self._alone.clear()
        where = known.number, extent(value)
        number = self._alone.get(where) or next(self._numbers)
        self._alone[where] = number
        return known._replace(number=number)

    def piece(self, held: Held) -> Known | None:
        """What a part of a list is a piece of: if the first of a layer is, all are."""
        first = self._pieces.get(held.layer) if type(held.value) is list else None
        if first is None:
            return None
        return self.keep(held.value, first.origin, first.number, first.key)

    def cut(self, held: Held, known: Known) -> None:
        """A part of a layer is known to be a piece of this."""
        if type(held.value) is list and held.layer:
            self._pieces[held.layer] = known

    def _number(self, value: object) -> int:
        """A number of its own, or that of the array of which it is a view."""
        base = parent(value)
        ref, number = self._parents.get(id(base), (None, 0))
        if is_numpy(base):
            if ref is None or ref() is not base:
                number = next(self._numbers)
                self._parents[id(base)] = weakref.ref(base), number
            return number
        at = address(value)
        if at:
            _, number = self._parents.setdefault(-at, (None, next(self._numbers)))
            return number
        return next(self._numbers)


class Sight:
    """One look at the stack, for all that one layer holds."""

    def __init__(self, names: Names, frame: FrameType | None, *, made: bool = True) -> None:
        """A look that has not begun.

        Args:
            names: where names are kept.
            frame: where to look from.
            made: whether it is here that the layer is made; else it is handed over.
        """
        self._names = names
        self._frame = frame
        self._made = made
        self._stack: Stack | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._stack is not None:
            self._stack.clear()
        self._frame = None

    @property
    def stack(self) -> Stack:
        """The scopes on the stack, read when first needed."""
        if self._stack is None:
            self._stack = Stack(self._frame)
        return self._stack

    def whole(self, x: Any) -> bool:
        """Whether a container is a variable of the user's: it is one object then."""
        if self._names.has(x):
            return True
        if len(x) < 2 or weigh(x) < LEAST:
            return False
        origin = find(x, self.stack)
        if origin is None:
            return False
        self._keep(x, origin)
        return True

    def name(self, held: Held) -> Known:
        """Find the name of a value, and keep it."""
        value = held.value
        if (piece := self._names.piece(held)) is not None:
            return piece
        origin = find_whole(value, self.stack) or find(value, self.stack)
        if origin is not None:
            return self._keep(value, origin)
        origin = find_kin(value, self.stack)
        if origin is not None:
            known = self._keep(value, origin)
            self._names.cut(held, known)
            return known
        origin = by_hint(held.function, held.name)
        if not origin.line and self._made:
            origin = Origin(origin.variable, *self.stack.line())
        return self._keep(value, origin)

    def _keep(self, value: object, origin: Origin) -> Known:
        return self._names.keep(value, origin, key=self._key(value, origin) if fetched else None)

    def _key(self, value: object, origin: Origin) -> object:
        """The key of which it is the result, or what it was made from: Dask copies and cuts."""
        named = self.stack.value(_NAME.split(origin.variable, 1)[0])
        given = (v for scope in self.stack.called() for v in list(scope.variables.values()))
        kin = (v for v in given if fetched.key_of(v) is not None and is_kin(value, v))
        keys = map(fetched.key_of, itertools.chain((value, named), kin))
        return next((key for key in keys if key is not None), None)


def heavy(value: Any) -> bool:
    """Whether a value may be of `LEAST` bytes; cheaper than weighing where it is a frame."""
    shape = getattr(value, "shape", None) if type(value).__module__.startswith("pandas") else None
    if type(shape) is tuple:
        cells = 1
        for n in shape:
            cells *= n
        return cells >= _CELLS
    return weigh(parent(value)) >= LEAST
