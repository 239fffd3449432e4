"""What the watch says: records of five numbers, some followed by a text.

Like all that the watch runs, this imports the standard library only.
"""

from __future__ import annotations

import os
import select
import struct
import time

#: As `typing` has it; importing that would take longer than all else that the watch does first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: kind and four numbers; see `INTERVAL` and those after it
RECORD: Final = struct.Struct("<5q")
#: start, stop (ns), thread, whether it waited (1) or held (0) the GIL
INTERVAL: Final = 0
#: looks, those that found the GIL taken, threads that waited for it (sum), unused
SUMS: Final = 1
#: ns of CPU of the watch, of py-spy; looks that came late; intervals dropped
COST: Final = 2
#: bytes of JSON that follow
TEXT: Final = 3

#: What the watch is told once several threads of the process run tasks.
TASKS: Final = b"tasks"

#: What it is told, again and again, while tasks run whose C frames are wanted.
NATIVE: Final = b"native"

#: What it is told once they are wanted no more though the watch goes on; it says `RESTED` then.
REST: Final = b"rest"
RESTED: Final = "rested"

#: What it is told in the end. That its input ends does not do: a child that the process has forked
#: holds the other end, too.
END: Final = b"end"

#: Bytes kept for a reader that does not read.
BACKLOG: Final = 1 << 20


class Out:
    """Standard output, which never makes this program wait."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._left = bytearray()
        self.dropped = 0
        os.set_blocking(file, False)

    def add(self, kind: int, *numbers: int) -> None:
        """Add a record."""
        if kind == INTERVAL and len(self._left) > BACKLOG:
            self.dropped += 1
            return
        self._left += RECORD.pack(kind, *numbers)

    def text(self, value: object) -> None:
        """Add a text of JSON."""
        import json

        data = json.dumps(value).encode()
        self.add(TEXT, len(data), 0, 0, 0)
        self._left += data

    def flush(self, until: float = 0.0) -> None:
        """Write what is accepted; with `until` (seconds of `time.monotonic`) wait for the rest."""
        while self._left:
            try:
                del self._left[: os.write(self._file, self._left[:65536])]
            except BlockingIOError:
                wait = until - time.monotonic()
                if wait <= 0 or not select.select([], [self._file], [], wait)[1]:
                    return
