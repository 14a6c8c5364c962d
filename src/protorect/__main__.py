"""`python -m protorect`, which is also how torchrun starts it."""

import sys

from protorect.cli import main

if __name__ == "__main__":
    sys.exit(main())
