"""How far a place had counted when a recording begins in the middle of its life."""

from __future__ import annotations

from typing import Any

import msgspec

from stageprof_runtime.event import Place

_decode = msgspec.msgpack.decode
_encode = msgspec.msgpack.encode
#: A batch, field by field, each still packed.
Packed = dict[str, msgspec.Raw]


class Start:
    """How far a place had counted when the recording begins."""

    def __init__(self, raw: Packed) -> None:
        self._seq = _decode(raw["seq"], type=int)
        self._drops = _decode(raw["drops"], type=dict[str, int])
        self._cost = _decode(raw["cost"], type=dict[str, tuple[int, int]])

    def first(self, raw: Packed) -> bytes:
        """The place's first batch: nothing is counted yet."""
        return _changed(raw, 0, {}, {})

    def since(self, raw: Packed) -> bytes:
        """A later batch, counted from here; b"" if it is none."""
        seq = _decode(raw["seq"], type=int) - self._seq
        drops = _decode(raw["drops"], type=dict[str, int])
        cost = _decode(raw["cost"], type=dict[str, tuple[int, int]])
        more = {why: n - self._drops.get(why, 0) for why, n in drops.items()}
        spent = {hook: self._spent(hook, *now) for hook, now in cost.items()}
        return _changed(raw, seq, {why: n for why, n in more.items() if n > 0}, spent) * (seq > 0)

    def _spent(self, hook: str, calls: int, ns: int) -> tuple[int, int]:
        before = self._cost.get(hook, (0, 0))
        return max(0, calls - before[0]), max(0, ns - before[1])


def _changed(raw: Packed, seq: int, drops: dict[str, int], cost: dict[str, Any]) -> bytes:
    new = {"seq": seq, "drops": drops, "cost": cost}
    return _encode(raw | {name: msgspec.Raw(_encode(value)) for name, value in new.items()})


def place_of(raw: Packed) -> Place:
    """The place that a batch is of."""
    return Place(*_decode(raw["place"], type=tuple[str, str, int, str, int]))
