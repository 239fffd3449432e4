"""What all pages of one app share: the recording, and what was made of it once."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any, Final

import param

from stageprof_collectors.diagnosis import Progress, examine
from stageprof_collectors.recording import Recording
from stageprof_collectors.settings import DEFAULTS, Settings
from stageprof_collectors.summary import Summary, summarize
from stageprof_ui.canvas import Stock
from stageprof_ui.columns import boxes, holds, story, tables, timeline

_NUMBERS: Final = itertools.count(1)


class Store(param.Parameterized):
    """A recording and its pictures' data; made when a page asks for them."""

    #: a `Recording`; param types its own fields
    recording: Any = param.ClassSelector(class_=Recording, constant=True, allow_None=False)
    #: up to so many tasks their stories go to the browser
    stories_most = param.Integer(story.MOST)
    settings: Any = param.ClassSelector(class_=Settings, default=DEFAULTS, constant=True)

    #: whether lines of the user's program are shown; not where pages may be sent to others
    sources = param.Boolean(default=False, constant=True)

    def __init__(
        self, recording: Recording, settings: Settings = DEFAULTS, *, sources: bool = False
    ) -> None:
        given = {"recording": recording, "settings": settings, "sources": sources}
        super().__init__(**given)  # type: ignore[no-untyped-call]
        self._name = f"app {next(_NUMBERS)}"

    @cached_property
    def summary(self) -> Summary:
        """The facts that every face says first."""
        return summarize(self.recording, self.settings)

    def prepare(self, progress: Progress | None = None) -> None:
        """Make what every page needs; `progress` is told how far the diagnosis is."""
        examine(self.recording, self.settings, progress=progress)
        # To ask for one makes it, and it is kept.
        _ = self.summary, self.boxes, self.holds, self.tables, self.stories

    @cached_property
    def boxes(self) -> boxes.Boxes:
        """What every process and thread did."""
        return timeline.boxes(self.recording)

    @cached_property
    def holds(self) -> holds.Holds:
        """When the threads among them held the GIL or waited for it."""
        return holds.holds(self.recording, self.boxes)

    @cached_property
    def tables(self) -> tables.Tables:
        """What names and colours them."""
        return tables.tables(self.recording, self.boxes)

    @cached_property
    def stories(self) -> story.Stories:
        """What each task waited for."""
        return story.stories(self.recording, self.boxes.unit_ns, most=self.stories_most)

    def stock(self) -> Stock:
        """What the figures of one session share; models belong to one document."""
        data = self.stories.columns() | {"keys": [tables.keys(self.recording)]}
        end = self.recording.wall
        return Stock.of(self._name, self.boxes, self.tables, data, end, self.holds)
