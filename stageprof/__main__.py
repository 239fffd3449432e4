"""`python -m stageprof` is `stageprof`."""

from __future__ import annotations

import sys

from stageprof.cli import main

if __name__ == "__main__":
    sys.exit(main())
