"""Random damage to the bytes of a valid file."""

import contextlib
import os
import time

from hypothesis import HealthCheck, settings, strategies as st

from protorect.errors import ProtorectError

LONGEST_READ = 5.0  # seconds, on a busy machine

# Each example writes a file into the same folder; a slow one fails by `read_or_refused`.
damaged_files = settings(
    max_examples=int(os.environ.get("PROTORECT_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

_WORDS = st.sampled_from(
    [
        b"\0",
        b"\xff",
        b"-1",
        b"9" * 5000,
        b"1e999",
        b"NaN",
        b"true",
        b"null",
        b"[" * 200,
        b"{}",
        b'"',
    ]
)


@st.composite
def damages(draw, content):
    """The content with a few changes: bytes replaced, removed, inserted, repeated, or cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        part = bytes(data[start:end])
        data[start:end] = draw(
            st.one_of(
                st.binary(min_size=len(part), max_size=len(part)),
                st.just(b""),
                st.binary(max_size=8),
                st.just(part + part),
                _WORDS,
            )
        )
        if draw(st.integers(0, 9)) == 0:
            del data[start:]
    return bytes(data)


def read_or_refused(path, content, read, valid):
    """Write the content and read it: a value that is `valid` or a ProtorectError, and soon."""
    path.write_bytes(content)
    start = time.perf_counter()
    with contextlib.suppress(ProtorectError):
        value = read(path)
        assert valid(value), value
    assert time.perf_counter() - start < LONGEST_READ
