"""`stageprof.Recording`: the collectors' recording, which can show itself."""

from __future__ import annotations

import stageprof_collectors.recording as collected
from stageprof.summary import Summary, summarize


class Recording(collected.Recording):
    """A run as it was recorded; `print` shows its summary, and so does a notebook."""

    @classmethod
    def of(cls, recorded: collected.Recording) -> Recording:
        """The same recording with faces."""
        return cls(recorded.store, recorded.path)

    @property
    def summary(self) -> Summary:
        """What the faces show, as facts."""
        return summarize(self)

    def __str__(self) -> str:
        from stageprof.renderers import terminal

        return terminal.text(self.summary)

    def __repr__(self) -> str:
        return f"<Recording of {self.wall:.3g} s{'' if self.complete else ', incomplete'}>"

    def _repr_html_(self) -> str:
        from stageprof.renderers import notebook

        return notebook.html(self.summary)

    def _repr_markdown_(self) -> str:
        from stageprof.renderers import markdown

        return markdown.text(self.summary)
