"""What links widgets in the browser, which Panel keeps until it is told that they have gone.

Its register holds a link as long as the widget that the link begins at, and a link holds all that
its script uses. Two that lead to one another keep each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import panel as pn
from panel.links import Callback


def unlink(views: Iterable[Any]) -> None:
    """Forget the links of views that are shown no more."""
    for view in views:
        for each in view.select():
            Callback.registry.pop(each, None)


def unlink_at_end(views: Iterable[Any]) -> None:
    """The same when the session ends for which they are made; a report or notebook is none."""
    document = pn.state.curdoc
    if document is not None and document.session_context is not None:
        pn.state.on_session_destroyed(lambda _: unlink(views))
