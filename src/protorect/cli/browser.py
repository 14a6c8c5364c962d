"""Open a page in the user's browser."""

import os
import sys
import webbrowser
from pathlib import Path


def open_page(page: Path | str) -> bool:
    """Open a file or an address where somebody can see it; return whether it was opened.

    Not in continuous integration, a pipe, or a session without a display.
    """
    if os.environ.get("CI") or not sys.stdout.isatty():
        return False
    displays = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform not in ("win32", "darwin") and not displays:
        return False
    return webbrowser.open(page if isinstance(page, str) else page.resolve().as_uri())
