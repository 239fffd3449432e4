"""The static report: all pages but the live one in a single file that asks for nothing."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from bokeh.document import Document
from bokeh.models import ImportedStyleSheet, InlineStyleSheet
from bokeh.resources import Resources
from panel import Template
from panel.io.save import save

from stageprof_collectors.comparison.comparison import Compared
from stageprof_ui import policy
from stageprof_ui.app import comparison, page
from stageprof_ui.store import Store

#: What of Bokeh the pages use; without WebGL, which nothing here draws with.
_PARTS: Final = ("bokeh", "bokeh-widgets", "bokeh-tables")
#: Up to so many tasks their stories are in the report, which would be too large to send else.
STORIES: Final = 60_000
_ICONS: Final = re.compile(r"<link[^>]*rel=\"(?:icon|apple-touch-icon|manifest)\"[^>]*>")


def text(store: Store) -> str:
    """The report as HTML."""
    store.stories_most = min(store.stories_most, STORIES)
    return _text(page(store, policy=policy.REPORT))


def compared(stores: Sequence[Store], found: Compared) -> str:
    """One recording of each side beside the other, what was found, and the pages of the last."""
    for store in stores:
        store.stories_most = min(store.stories_most, STORIES)
    return _text(comparison(stores, len(stores) - 1, judged=found, policy=policy.REPORT))


#: While it saves a page Panel has its whole process take styles from elsewhere, and takes that
#: back; two that overlap would leave it so.
_SAVING: Final = threading.Lock()


def _text(template: Template) -> str:
    with _SAVING:
        return _saved(template)


def _saved(template: Template) -> str:
    document = template.server_doc(Document())
    _inlined(document)
    out = io.StringIO()
    save(
        document,
        out,
        resources=Resources(mode="inline", components=list(_PARTS)),
        template=document.template,
        template_variables=document.template_variables,
    )
    made = policy.plain(_ICONS.sub("", out.getvalue()))
    return made.replace(policy.REPORT, policy.allowing(policy.REPORT, made), 1)


def _inlined(document: Any) -> None:
    """Style sheets become part of the page, each once, whoever uses it."""
    known: dict[str, InlineStyleSheet] = {}
    with document.models.freeze():  # or all of them are counted anew at each change
        for model in document.models:
            sheets = getattr(model, "stylesheets", None)
            if sheets:
                model.stylesheets = [_shared(sheet, known) for sheet in sheets]


def _shared(sheet: Any, known: dict[str, InlineStyleSheet]) -> Any:
    if isinstance(sheet, ImportedStyleSheet):
        css = _bundled(sheet.url)
    elif isinstance(sheet, InlineStyleSheet):
        css = str(sheet.css)
    elif isinstance(sheet, str):
        css = sheet
    else:
        return sheet
    return known.setdefault(css, InlineStyleSheet(css=css))


@cache
def _bundled(url: str) -> str:
    """The text of a style sheet of Panel's, from the installed package."""
    import panel as pn

    name = re.sub(r"^.*?(?=dist/|bundled/|css/)", "", url.partition("?")[0])
    dist = Path(pn.__file__).parent / "dist"
    found = [p for p in (dist.parent / name, dist / name) if p.is_file()]
    return found[0].read_text("utf-8") if found else ""
