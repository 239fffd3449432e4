"""The instruction at which a frame stands, told from its bytecode.

CPython looks whether it should give the GIL up at three kinds of instructions only: at the
beginning of a function, at a jump backward (which may be part of the comparison before it) and
after a call.
"""

from __future__ import annotations

import dis
from types import FrameType
from typing import Final

_STOPPING: Final = frozenset(
    number for name, number in dis.opmap.items() if name == "RESUME" or "JUMP_BACKWARD" in name
)
_CALLING: Final = frozenset(number for name, number in dis.opmap.items() if "CALL" in name)
_COMPARING: Final = dis.opmap["COMPARE_OP"]


class Instruction:
    """Where a frame stands, or stood."""

    def __init__(self, frame: FrameType, at: int | None = None) -> None:
        self._code = frame.f_code.co_code
        self._at = frame.f_lasti if at is None else at

    @property
    def between(self) -> bool:
        """Whether it gives the GIL up there between two steps of its own: it runs bytecode."""
        code, at = self._code, self._at
        if not 0 <= at < len(code):
            return True  # the function has not begun
        if code[at] in _STOPPING:
            return True
        if code[at] != _COMPARING:
            return False
        at += 2  # a comparison may be one with the jump after it
        while at < len(code) and code[at] == 0:  # caches
            at += 2
        return at < len(code) and "JUMP_BACKWARD" in dis.opname[code[at]]

    @property
    def call(self) -> bool:
        """Whether it is a call."""
        return 0 <= self._at < len(self._code) and self._code[self._at] in _CALLING
