"""What lets another process of ours look at this one, and where py-spy is."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path
from typing import Final

#: Yama's switch: at 1 a process may look at its own children only, unless it was allowed to.
_YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
_SET_PTRACER: Final = 0x59616D61


def allow(pid: int) -> None:
    """Let a child of ours, and its children, look at this process where Yama would not."""
    if _restricted():
        ctypes.CDLL(None).prctl(_SET_PTRACER, pid, 0, 0, 0)


def allowed_no_more() -> None:
    """Take the permission back."""
    if _restricted():
        ctypes.CDLL(None).prctl(_SET_PTRACER, 0, 0, 0, 0)


def _restricted() -> bool:
    try:
        return _YAMA.read_text(encoding="ascii").strip() == "1"
    except (OSError, ValueError):
        return False


def spy() -> str:
    """The program py-spy beside this Python or on the path; "" if there is none."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")
    return found or ""
