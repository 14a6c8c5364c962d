"""Crashes before or after a file operation."""

import os
from contextlib import contextmanager

CHANGES = ["replace", "rename", "unlink", "link", "symlink", "mkdir", "rmdir", "open", "fsync"]


class CrashError(BaseException):
    """The process is gone: every file operation raises it from now on."""


@contextmanager
def crash_at(number, after):
    """Crash before or after the file operation with this number; yields whether it happened."""
    crashed, count = [], 0

    def crashing(operation):
        def run(*arguments, **options):
            nonlocal count
            if crashed:
                raise CrashError
            if operation is real["open"] and not arguments[1] & os.O_CREAT:
                return operation(*arguments, **options)  # which changes nothing
            if after:
                result = operation(*arguments, **options)
            count += 1
            if count == number:
                crashed.append(operation)
                raise CrashError
            return result if after else operation(*arguments, **options)

        return run

    real = {name: getattr(os, name) for name in CHANGES}
    for name, operation in real.items():
        setattr(os, name, crashing(operation))
    try:
        yield crashed
    except CrashError:
        pass
    finally:
        for name, operation in real.items():
            setattr(os, name, operation)
