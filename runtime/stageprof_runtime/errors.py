"""The one tree of errors that stageprof raises on purpose.

::

    StageprofError              exit status 2, one line, no traceback
    ├── RecordingError          a `*.stageprof` file cannot be used
    │   ├── NotARecording       not such a file at all (or none there)
    │   ├── NewerRecording      written by a newer major version of the format
    │   ├── DamagedRecording    such a file, but nothing in it can be read
    │   └── RecordingNotWritable
    ├── ClusterError            no cluster at an address, or it takes no scheduler plugin
    └── UsageError              an option or argument that makes no sense

A message has three parts: what was seen, what was expected, what to do. A recording that merely
ends too early is no error: it opens, and says that it is incomplete.
"""

from __future__ import annotations

from typing import ClassVar


class StageprofError(Exception):
    """Something that the user can put right; the base of all errors of stageprof.

    Args:
        seen: what was found.
        expected: what should have been there instead.
        do: what to do about it.
    """

    #: exit status of the command line
    status: ClassVar[int] = 2

    def __init__(self, seen: str, *, expected: str = "", do: str = "") -> None:
        parts = (seen, expected and f"expected {expected}", do)
        super().__init__("; ".join(part for part in parts if part))


class RecordingError(StageprofError):
    """A recording cannot be read or written."""


class NotARecording(RecordingError):
    """The path names something that is no stageprof recording."""


class NewerRecording(RecordingError):
    """The recording has a newer major version than this stageprof can read."""


class DamagedRecording(RecordingError):
    """The recording (or a batch of it) is so damaged that nothing of it can be used."""


class RecordingNotWritable(RecordingError):
    """The recording cannot be begun at that path."""


class ClusterError(StageprofError):
    """The cluster cannot be reached, or does not let stageprof in."""


class UsageError(StageprofError):
    """The caller asked for something that makes no sense."""
