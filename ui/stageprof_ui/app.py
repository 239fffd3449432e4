"""The app: its pages in one frame, for the server and for the static report alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import panel as pn

from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.summary import incomplete
from stageprof_collectors.text import safe
from stageprof_ui import browser
from stageprof_ui.links import unlink, unlink_at_end
from stageprof_ui.live import Run
from stageprof_ui.shelf import Shelf
from stageprof_ui.shown import View, shown
from stageprof_ui.store import Store
from stageprof_ui.views import (
    compare,
    handover,
    layers,
    library,
    live,
    overview,
    profiles,
    timeline,
    workers,
)
from stageprof_ui.views.html import html

#: A page: its name in the address, its title, and what makes it.
Page = tuple[str, str, View]

#: Every page of a recording.
PAGES: Final[tuple[Page, ...]] = (
    ("overview", "Overview", overview.view),
    ("timeline", "Timeline", timeline.view),
    ("handover", "Graph hand-over", handover.view),
    ("layers", "Layers", layers.view),
    ("profiles", "GIL and profiles", profiles.view),
    ("workers", "Workers and memory", workers.view),
)


def page(
    store: Store,
    *,
    policy: str = "",
    trouble: str = "",
    front: Sequence[Page] = (),
    back: bool = False,
) -> pn.Template:
    """All pages of a recording in their frame.

    Args:
        store: the recording.
        policy: a Content-Security-Policy for the page itself, where no server sends one.
        trouble: what the reader must know first.
        front: pages before those of every recording.
        back: whether there is a list of recordings to go back to.
    """
    pn.extension("tabulator", notifications=False)
    summary, stock = store.summary, store.stock(served=not policy)
    wrong = ". ".join(filter(None, (summary.incomplete, trouble)))
    views = [(name, title, shown(view, store, stock)) for name, title, view in (*front, *PAGES)]
    return framed(
        views, summary.label, " · ".join(summary.facts), trouble=wrong, policy=policy, back=back
    )


def prepare(store: Store) -> None:
    """Make what the views take of a recording, so that the first who looks need not wait."""
    stock = store.stock(served=True)
    for _, _, view in PAGES:
        unlink([shown(view, store, stock)])


def embedded(store: Store) -> pn.Tabs | pn.Column:
    """All pages of a recording for a notebook, one behind the other, under what it lacks."""
    pn.extension("tabulator", notifications=False, inline=True)
    stock = store.stock()
    made = [(title, shown(view, store, stock)) for _, title, view in PAGES]
    # Colours are handed down to the views in it.
    style = [browser.notebook_style()]
    tabs = pn.Tabs(*made, sizing_mode="stretch_width", dynamic=False, stylesheets=style)
    if not (lacks := incomplete(store.recording)):
        return tabs
    said = html("incomplete", {"text": safe(lacks, limit=500)})
    return pn.Column(said, tabs, sizing_mode="stretch_width", stylesheets=style)


def comparison(
    stores: Sequence[Store], shown: int = 0, *, judged: Compared | None = None, policy: str = ""
) -> pn.Template:
    """Recordings side by side, and all pages of one of them.

    Args:
        stores: the recordings; the first is what the others are compared with.
        shown: whose pages follow.
        judged: what was found of the sides that each of two stands for.
        policy: as for `page`.
    """
    first: Page = ("compare", "Compare", lambda *_: compare.view(stores, shown, judged))
    return page(stores[shown], front=[first], policy=policy)


def recordings(shelf: Shelf) -> pn.Template:
    """The list of the recordings in a folder."""
    views = [("library", "Recordings", library.view(shelf))]
    return framed(views, "Recordings", "")


def following(run: Run) -> pn.Template:
    """A cluster that is being recorded."""
    pn.extension("tabulator", notifications=False)
    return framed(live.view(run, PAGES), run.label or "A running cluster", "")


def refusal(why: str) -> pn.Template:
    """What is shown instead of a recording that cannot be."""
    views = [("message", "Recording", html("message", {"text": safe(why, limit=1000)}))]
    return framed(views, "This recording cannot be shown", "", back=True)


def opening(name: str) -> pn.Template:
    """What is shown of a recording that is being opened; it asks again."""
    text = "This recording is being opened; its pages follow as soon as they are made."
    views = [("message", "Recording", html("message", {"text": text}))]
    return framed(views, name, "", back=True, again=True)


def asked() -> str:
    """Which recording the address asks for; "" if none, and never more than a text."""
    values = pn.state.session_args.get("recording") or [b""]
    return os.fsdecode(values[0])


def framed(
    views: Sequence[tuple[str, str, Any]],
    heading: str,
    facts: str,
    *,
    trouble: str = "",
    policy: str = "",
    back: bool = False,
    again: bool = False,
) -> pn.Template:
    """Views, each with its name in the address and its title, in the frame of the app."""
    frame = pn.Template(browser.frame())
    unlink_at_end([made for _, _, made in views])
    for name, _, made in views:
        frame.add_panel(name, made)
    variables = {
        "heading": safe(heading, limit=200),
        "facts": safe(facts, limit=500),
        "trouble": safe(trouble, limit=500) if trouble else "",
        "pages": [(name, title) for name, title, _ in views],
        "style": browser.page_style(),
        "script": browser.script(),
        "policy": policy,
        "back": back,
        "again": again,
        # Neither is fetched from anywhere, and there is none.
        "apple_icon": "",
        "app_favicon": "",
    }
    for name, value in variables.items():
        frame.add_variable(name, value)
    return frame
