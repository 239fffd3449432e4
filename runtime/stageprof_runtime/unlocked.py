"""Whether this Python runs without a GIL.

There a thread stops for `sys._current_frames`, where it would give a GIL up, and runs on right
after. So what it stood at is read at once; and one that has gone on may have been anywhere, at a
call that took long as well.
"""

from __future__ import annotations

import sys


def unlocked() -> bool:
    """Whether this process has no GIL; an extension that needs one may bring it back."""
    return not getattr(sys, "_is_gil_enabled", lambda: True)()
