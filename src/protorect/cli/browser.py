"""Open a page in the user's browser."""

import os
import sys
import webbrowser
from pathlib import Path


def open_page(path: Path) -> bool:
    """Open a page where somebody can see it; return whether it was opened."""
    return _can_show() and webbrowser.open(path.resolve().as_uri())


def _can_show() -> bool:
    """Not in continuous integration, a pipe, or a session without a display."""
    if os.environ.get("CI") or not sys.stdout.isatty():
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
