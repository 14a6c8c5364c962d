"""Where the bytes of a picture lie: in a file of their own, or in a part of an archive."""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO

MAX_FILE_BYTES = 512 * 2**20
PICTURE_SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm")
)
_ZIP_HEADER = struct.Struct("<26xHH")  # the lengths of name and extra field close the header


class UnreadableError(Exception):
    """A picture that cannot be used; the message is the reason, in a few words."""


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """One picture, before it is read.

    Parameters
    ----------
    path
        Name relative to the data set's root, printable whatever the file system holds.
    file
        What to open: the picture itself or the archive it is in.
    length
        Bytes it takes there.
    offset
        Where it begins in `file`; in a zip archive, where its local header begins.
    unpacked_length
        Bytes after decompression; 0 where it is stored as it is.
    zipped
        Whether a zip header precedes it.
    shape
        (height, width, channels) of raw uint8 pixels; None for an encoded picture.
    problem
        Why it cannot be read, where that is known already.
    """

    path: str
    file: str
    length: int
    offset: int = 0
    unpacked_length: int = 0
    zipped: bool = False
    shape: tuple[int, int, int] | None = None
    problem: str = ""

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of the folders it is in, outermost first."""
        return tuple(self.path.split("/")[:-1])

    def read(self) -> bytes:
        """The encoded picture, or its raw pixels; raises UnreadableError."""
        if self.problem:
            raise UnreadableError(self.problem)
        if max(self.length, self.unpacked_length) > MAX_FILE_BYTES:
            raise UnreadableError(f"a file of more than {MAX_FILE_BYTES // 2**20} MiB")
        try:
            with open(self.file, "rb") as file:
                return self._read(file)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from error
        except (zlib.error, struct.error) as error:
            raise UnreadableError("damaged inside its archive") from error

    def _read(self, file: BinaryIO) -> bytes:
        file.seek(self.offset)
        if self.zipped:
            name, extra = _ZIP_HEADER.unpack(file.read(_ZIP_HEADER.size))
            file.seek(name + extra, os.SEEK_CUR)
        data = file.read(self.length)
        if self.unpacked_length:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, self.unpacked_length)
        if len(data) != (self.unpacked_length or self.length):
            raise UnreadableError("shorter than its archive or folder says")
        return data


def is_picture(path: str) -> bool:
    """Whether a file is called like a picture; hidden ones are not ours to read."""
    parts = path.split("/")
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not hidden and os.path.splitext(parts[-1])[1].lower() in PICTURE_SUFFIXES
