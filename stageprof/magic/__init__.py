"""`%stageprof` and `%%stageprof`: a cell of a notebook, or a line of one, profiled.

`line` reads what was typed and `words` does it; `cell` runs code as IPython would, `running` does
that under a profile, `live` shows how far it is and then the card, `kept` has the last recordings,
and `waiting` lets a cell await.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Give a shell the magic; once more does nothing."""
    from stageprof.magic.waiting import awaited
    from stageprof.magic.words import Words

    if Words.of(shell) is None:
        shell.register_magics(Words(shell))
        shell.input_transformers_post.append(awaited)


def unload(shell: InteractiveShell) -> None:
    """Take it away again, and end a recording that is on."""
    from stageprof.magic.waiting import awaited
    from stageprof.magic.words import NAME, Words

    words = Words.of(shell)
    if words is None:
        return
    words.end()
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(NAME, None)
    shell.input_transformers_post.remove(awaited)


__all__ = ["load", "unload"]
