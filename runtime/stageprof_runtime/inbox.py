"""Who takes a session's batches in the process that owns it.

Where the scheduler is in the same process (`LocalCluster`), what it has for the owner need not
travel through the event loop, which costs it about a millisecond a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Sink = Callable[[bytes], None]

#: session -> what takes its batches, from any thread, and returns at once
sinks: Final[dict[str, Sink]] = {}
