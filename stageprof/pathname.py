"""Names of files and folders for texts that anybody may have chosen."""

from __future__ import annotations

import hashlib
import re
from typing import Final

#: Characters that some file system or shell does not like.
_ODD: Final = re.compile(r"[^A-Za-z0-9_.]+")
#: Characters of a text that its name keeps.
_KEPT: Final = 60


def path_name(text: str, shown: str | None = None) -> str:
    """A name that every file system takes, another for every text, the same on every machine.

    Args:
        text: what is named.
        shown: what of it people shall recognize; None for all.
    """
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    readable = _ODD.sub("-", text if shown is None else shown)
    return f"{readable[:_KEPT].strip('-.')}-{digest}".lstrip("-")
