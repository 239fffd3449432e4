"""How many examples a test draws that says something of all values."""

from __future__ import annotations

import os
from typing import Final

#: What is new is found by those who can mend it: by hand examples are many, and drawn anew each
#: time; elsewhere they are a few, and the same ones.
BY_HAND: Final = "CI" not in os.environ
EXAMPLES: Final = 100 if BY_HAND else 20
