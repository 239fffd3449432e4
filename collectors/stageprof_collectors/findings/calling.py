"""How a program calls the functions that its tasks are: through a client or not, and of what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: A key of `client.submit` and `client.map`, unless they are told that a function is not pure:
#: `delayed` numbers its calls at random, by a UUID.
FUTURES_KEY: Final = re.compile(r".*-[0-9a-f]{32}")
#: Keys that are looked at.
_KEYS: Final = 20


class Calling(NamedTuple):
    """How tasks were called."""

    #: by `client.map` or `client.submit`
    futures: bool
    #: whether of several arguments; None: not of several results of tasks, what else is not known
    several: bool | None
    #: the names of those that are given by name
    keywords: tuple[str, ...] = ()


#: `delayed` calls of one argument.
PLAIN: Final = Calling(futures=False, several=False)


def calling(recording: Recording, rows: Ints) -> Calling:
    """Of most of some runs, which are rows and not none."""
    runs, needs = recording.timeline.runs, recording.timeline.depends
    keys = recording.store.keys(runs["key"][rows[:_KEYS]])
    hashed = sum(FUTURES_KEY.fullmatch(key) is not None for key in keys)
    number = np.diff(needs.first)[rows]
    return Calling(2 * hashed > len(keys), float(np.median(number)) >= 2 or None)
