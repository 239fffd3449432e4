"""Code that has Python's garbage collector stop a process less often, in the process it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Objects made before the youngest are looked through; Python's own is 700 (2,000 from 3.12 on).
#: A hundred thousand small objects take some 10 MB, which is what garbage may come to.
YOUNG: Final = 100_000

_WORKERS: Final = """\
import gc

from distributed import default_client

default_client().run(gc.set_threshold, {young}, 50, 100)  # workers that come later need it too"""
_SCHEDULER: Final = """\
import gc

from distributed import default_client

default_client().run_on_scheduler(gc.set_threshold, {young}, 50, 100)"""
_HERE: Final = """\
import gc

gc.set_threshold({young}, 50, 100)"""


def rarely(recording: Recording, place: int) -> str:
    """Code for the process of a place, and all others of its role."""
    mine = recording.store.places[place]
    here = recording.store.places[recording.timeline.region.place]
    if mine.role == "worker":
        code = _WORKERS
    else:  # a scheduler may be in the program's own process; one alone was recorded by nobody's
        shared = here.role == "client" and (mine.host, mine.pid) == (here.host, here.pid)
        code = _HERE if shared else _SCHEDULER
    return code.format(young=YOUNG)
