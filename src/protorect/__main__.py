"""`python -m protorect`, which is also how torchrun starts it."""

from __future__ import annotations

import sys

from protorect.cli import main

if __name__ == "__main__":
    sys.exit(main())
