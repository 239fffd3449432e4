"""A recording as one JSON object, for programs; docs/json.md says what its fields mean."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from stageprof_collectors.recording import Recording

#: The name of the form and its version; a new version may take fields away or change them.
SCHEMA: Final = "stageprof.show/1"


def document(recording: Recording) -> dict[str, Any]:
    """The object: plain dicts, lists, texts and finite numbers."""
    frame = recording.stages()
    frame = frame.reset_index()[["stage", "wall_s", "share", "busy_s"]]
    whole = {
        "schema": SCHEMA,
        "wall_s": recording.wall,
        "stages": frame.to_dict("records"),
        "findings": [],
        "coverage": recording.coverage(),
    }
    plain: dict[str, Any] = _plain(whole)
    return plain


def text(recording: Recording) -> str:
    """The object as strict JSON in ASCII: any terminal and any parser takes it."""
    return json.dumps(document(recording), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """JSON knows no NaN, and json no numpy."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
