"""Where a package that some files need is not installed, these files are left out."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

NEEDS: Final = {
    "panel": ("test_hostile_pages.py", "test_paths.py", "test_web_access.py"),
    "trustme": ("test_tls.py",),
}

collect_ignore = [
    file for package, files in NEEDS.items() if find_spec(package) is None for file in files
]
