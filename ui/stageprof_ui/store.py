"""What all pages of one app share: the recording, and what was made of it once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import param
from numpy.typing import NDArray

from stageprof_collectors.findings.diagnosis import Progress, examine
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import Summary, summarize
from stageprof_ui.canvas import Stock
from stageprof_ui.columns import boxes, holds, overview, sent, story, tables, timeline
from stageprof_ui.far import Far

T = TypeVar("T")


class Store(param.Parameterized):
    """A recording and its pictures' data; made when a page asks for them."""

    #: a `Recording`; param types its own fields
    recording: Any = param.ClassSelector(class_=Recording, constant=True, allow_None=False)
    #: up to so many tasks their stories go to the browser
    stories_most = param.Integer(story.MOST)
    #: above so many boxes they stay here, and the browser asks for what it shows
    near_most = param.Integer(5_000_000)
    settings: Any = param.ClassSelector(class_=Settings, default=DEFAULTS, constant=True)

    #: whether lines of the user's program are shown; not where pages may be sent to others
    sources = param.Boolean(default=False, constant=True)

    def __init__(
        self, recording: Recording, settings: Settings = DEFAULTS, *, sources: bool = False
    ) -> None:
        given = {"recording": recording, "settings": settings, "sources": sources}
        super().__init__(**given)  # type: ignore[no-untyped-call]
        # Several kernels have their apps on one page, which tells them by their names.
        self._name = f"app {secrets.token_hex(6)}"
        self._made: dict[Hashable, Any] = {}

    @cached_property
    def summary(self) -> Summary:
        """The facts that every face says first."""
        return summarize(self.recording, self.settings)

    def prepare(self, progress: Progress | None = None) -> None:
        """Make what every page needs; `progress` is told how far the diagnosis is."""
        examine(self.recording, self.settings, progress=progress)
        # To ask for one makes it, and it is kept.
        _ = self.summary, self.boxes, self.holds, self.tables, self.stories
        _ = self._apart if self.far else self._sent

    @cached_property
    def boxes(self) -> boxes.Boxes:
        """What every process and thread did."""
        return timeline.boxes(self.recording).through(self.recording.store.scratch.column)

    @cached_property
    def holds(self) -> holds.Holds:
        """When the threads among them held the GIL or waited for it."""
        most = 0 if self._many else holds.MOST
        return holds.holds(self.recording, self.boxes, most)

    @cached_property
    def tables(self) -> tables.Tables:
        """What names and colours them."""
        return tables.tables(self.recording, self.boxes)

    @cached_property
    def stories(self) -> story.Stories:
        """What each task waited for."""
        return story.stories(self.recording, self.boxes.unit_ns, most=self.stories_most)

    @cached_property
    def keys(self) -> NDArray[np.uint8]:
        """The keys of tasks, as they go to the browser."""
        return tables.keys(self.recording)

    def made(self, make: Callable[..., T], **how: Hashable) -> T:
        """What a function makes of the recording: once, for all who look at it."""
        wanted = make, *sorted(how.items())
        if wanted not in self._made:
            self._made[wanted] = make(self.recording, **how)
        found: T = self._made[wanted]
        return found

    @cached_property
    def cards(self) -> dict[str, Any]:
        """The findings, and what of the recording each is about."""
        return overview.findings(self.recording, self.summary)

    @cached_property
    def far(self) -> Far | None:
        """Who answers for the boxes; None if they are few enough to be sent."""
        return Far(self.recording, self.boxes, self.tables) if self._many else None

    @property
    def _many(self) -> bool:
        return len(self.boxes) > self.near_most

    def stock(self, *, served: bool = False) -> Stock:
        """What the figures of one session share; models belong to one document.

        Args:
            served: whether a server is there to be asked for more.
        """
        far = self.far if served else None
        sent_ = self._apart if far else self._sent
        return Stock.of(self._name, sent_, self.recording.wall, far, served=served)

    @cached_property
    def _sent(self) -> sent.Sent:
        """What goes to every browser."""
        held = sent.columns(self.boxes, self.recording.store.scratch.column)
        held |= self.holds.columns()
        return sent.Sent(held, self._told, sent.text(self.tables))

    @cached_property
    def _apart(self) -> sent.Sent:
        """The same without the boxes."""
        none = sent.columns(sent.emptied(self.boxes))
        return sent.Sent(none, self._told, sent.text(self.tables))

    @cached_property
    def _told(self) -> dict[str, Any]:
        return self.stories.columns() | {"keys": [self.keys]}
