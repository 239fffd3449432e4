"""The search for keys that are too many to be sent: the server reads them, and tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bokeh.models.widgets import Div, TextInput

from stageprof_collectors.findings.quantity import seconds
from stageprof_ui import browser, words
from stageprof_ui.columns.search import Found, Match, search, shown
from stageprof_ui.store import Store


class Search:
    """Looks for what was put into a field, once Enter is pressed there.

    It reads a part of the keys at a time: the loop is that of everybody who looks.
    """

    def __init__(self, store: Store, field: TextInput) -> None:
        self._store = store
        self._under_way: Iterator[Found] = iter(())
        self._wanted = ""
        #: where it says what it found
        self.told = Div(
            sizing_mode="stretch_width", disable_math=True, stylesheets=[browser.view_style()]
        )
        field.on_change("value", self._begin)

    def _begin(self, _attr: str, _old: str, wanted: str) -> None:
        self._wanted, self.told.text = wanted.strip()[:1000], ""
        self._under_way = search(self._store.recording, self._wanted) if self._wanted else iter(())
        self._go_on(self._under_way)

    def _go_on(self, mine: Iterator[Found]) -> None:
        if mine is not self._under_way:  # something else is looked for by now
            return
        found = next(mine, None)
        if found is None:
            return
        self.told.text = words.html("found", **self._facts(found))
        document = self.told.document
        if document is not None:
            document.add_next_tick_callback(lambda: self._go_on(mine))

    def _facts(self, found: Found) -> dict[str, Any]:
        return {
            "wanted": words.text(self._wanted),
            "looked": found.looked,
            "tasks": found.tasks,
            "more": found.more,
            "matches": [_row(match) for match in found.matches],
        }


def _row(match: Match) -> dict[str, str]:
    return {
        "key": match.key,
        "thread": match.thread,
        "start": seconds(match.start_s),
        "took": seconds(match.took_s),
        "show": json.dumps(shown(match)),
    }
