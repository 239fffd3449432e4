"""How much of the processor some work takes, for tests that compare it with more of the same."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def spent(work: Callable[[], object]) -> float:
    """Seconds of this process's, without collections of garbage.

    After thousands of tests a full one takes longer than what is measured, and falls into it by
    chance.
    """
    gc.disable()
    try:
        begun = time.process_time()
        work()
        return time.process_time() - begun
    finally:
        gc.enable()
