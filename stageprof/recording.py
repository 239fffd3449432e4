"""`stageprof.Recording`: the collectors' recording, which can show itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import stageprof_collectors.recording as collected
from stageprof.configuration import Given, settings_of, settings_to_show
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.summary import Summary, summarize

if TYPE_CHECKING:
    from panel.viewable import Viewable


class Recording(collected.Recording):
    """A run as it was recorded; `print` shows its summary, and so does a notebook."""

    @classmethod
    def of(cls, recorded: collected.Recording) -> Recording:
        """The same recording with faces."""
        return cls(recorded.store, recorded.path)

    @property
    def summary(self) -> Summary:
        """What the faces show, as facts."""
        settings, problem = settings_to_show()
        return summarize(self, settings, problem=problem)

    def findings(self, settings: Given = None) -> list[Finding]:
        """What to change, best first; see docs/findings.md.

        Args:
            settings: over those of the environment and `pyproject.toml`, in the form of
                docs/settings.md: `{"rules": {"tiny-tasks": False}}`.

        Raises:
            UsageError: there is no such rule or limit, or its value has the wrong type.
        """
        return super().findings(settings_of(settings))

    def findings_frame(self, settings: Given = None) -> pd.DataFrame:
        """One row per finding, best first; `settings` as for `findings`.

        Columns: rule, severity, headline, cost_s, saving_low_s, saving_high_s, file, line,
        variable, layer, prefix, stage ("" if several), link.
        """
        return super().findings_frame(settings_of(settings))

    def innocence(self, settings: Given = None) -> list[str]:
        """A sentence for each popular suspect that costs little, with its bound."""
        return super().innocence(settings_of(settings))

    def report(self, path: str | os.PathLike[str], settings: Given = None) -> None:
        """Write all pages of the app as one HTML file that needs no server and no network.

        Args:
            path: the file; a page that is there is replaced, nothing else is.
            settings: as for `findings`.

        Raises:
            UsageError: the packages of `stageprof[ui]` are not installed, or `path` cannot be
                written, or `settings` make no sense.
        """
        from stageprof.app import written
        from stageprof.export.target import Format, exported, is_page

        form = Format(lambda of, where: written(of, where, settings), ".html")
        exported(form, self, Path(path), force=is_page(path))

    def show(self, *, port: int = 0, browser: bool = True) -> None:
        """Serve the app to this machine's browser until Ctrl-C.

        Args:
            port: where; 0 takes a free one.
            browser: open the default one.

        Raises:
            UsageError: the packages of `stageprof[ui]` are not installed, or the port is in use.
        """
        from stageprof import app

        app.show(app.served(self, port=port), browser=browser)

    def app(self) -> Viewable:
        """All pages as a Panel object, for a notebook.

        Raises:
            UsageError: the packages of `stageprof[ui]` are not installed.
        """
        from stageprof import app

        return app.embedded(self)

    def __str__(self) -> str:
        from stageprof.renderers import terminal

        return terminal.text(self.summary)

    def __repr__(self) -> str:
        return f"<Recording of {self.wall:.3g} s{'' if self.complete else ', incomplete'}>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows, and a terminal of IPython: the card, and the summary."""
        from stageprof.renderers import notebook

        return notebook.bundle(self.summary)

    def _repr_html_(self) -> str:
        from stageprof.renderers import notebook

        return notebook.html(self.summary)

    def _repr_markdown_(self) -> str:
        from stageprof.renderers import markdown

        return markdown.text(self.summary)
