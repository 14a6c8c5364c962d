"""One picture before it is decoded: in a file of its own, or in a part of an archive."""

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Self

from protorect._utils.text import possible_name, printable
from protorect.images.formats import HEAD, PICTURE_SUFFIXES, is_hidden, is_picture
from protorect.images.memory import FILE_MEMORY

PathLike = str | os.PathLike[str]
Box = tuple[float, float, float, float]  # left, top, right, bottom
_ZIP_HEADER = struct.Struct("<26xHH")  # ends with the lengths of the name and the extra field


class UnreadableError(Exception):
    """A picture cannot be used; the message is the reason in a few words."""


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """One picture, before it is read."""

    path: str  # printable; in a folder or an archive, relative to it
    file: str  # to open: the picture itself or its archive
    length: int  # number of bytes in `file`
    offset: int = 0  # position in `file`; in a zip archive, of its local header
    unpacked_length: int = 0  # number of bytes after decompression; 0 if not compressed
    zipped: bool = False  # whether a zip header precedes it
    checksum: int | None = None  # CRC-32 of the decompressed bytes, if the archive has it
    shape: tuple[int, int, int] | None = None  # (height, width, 3) of raw uint8 pixels
    error: str = ""  # why it cannot be read, if that is known without reading it
    box: Box | None = None  # the part of it to use, in pixels; None for its central square
    changed: int = 0  # when `file` was modified, in nanoseconds; 0 in archives

    @classmethod
    def from_file(cls, file: PathLike, name: str | None = None) -> Self:
        """Describe a picture file, shown as `name`; if it cannot be read, `error` says why."""
        absolute = os.path.abspath(possible_name(file))
        path = printable(file if name is None else name)
        try:
            status = os.stat(absolute)
        except OSError as error:
            return cls(path, absolute, 0, error=error.strerror or str(error))
        return cls.from_status(path, absolute, status)

    @classmethod
    def from_status(cls, path: str, file: str, status: os.stat_result) -> Self:
        """Describe a file by its status; only regular ones are read: a pipe may never end."""
        error = "" if stat.S_ISREG(status.st_mode) else "not a regular file"
        return cls(path, file, status.st_size, error=error, changed=status.st_mtime_ns)

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of the folders in `path`, outermost first."""
        return tuple(self.path.split("/")[:-1])

    @property
    def in_archive(self) -> bool:
        """Whether `file` holds other pictures, too."""
        return self.zipped or self.offset > 0

    @property
    def is_picture(self) -> bool:
        """Whether it is called like a picture or begins like one, and is not hidden."""
        if is_hidden(self.path):
            return False
        if self.path.lower().endswith(PICTURE_SUFFIXES):
            return True
        try:
            return not self.error and is_picture(self.path, self._read(HEAD))
        except UnreadableError:
            return False

    @contextmanager
    def content(self) -> Iterator[bytes]:
        """Read it like `read`, and hold the memory that it takes until the block ends."""
        with FILE_MEMORY.reserve(min(self._held, FILE_MEMORY.total)):
            yield self.read()

    def read(self) -> bytes:
        """Read the encoded picture or its raw pixels; raises UnreadableError."""
        if self.error:
            raise UnreadableError(self.error)
        if self._held > FILE_MEMORY.total:
            megabytes = ceil(self._held / 2**20)
            limit = FILE_MEMORY.exceeded_by(self._held)
            raise UnreadableError(f"a file that takes {megabytes:,} MB to read; {limit}")
        length = self.unpacked_length or self.length
        data = self._read(length)
        if len(data) != length:
            raise UnreadableError("shorter than its archive or folder says")
        if self.checksum is not None and zlib.crc32(data) != self.checksum:
            raise UnreadableError("damaged inside its archive")
        return data

    @property
    def _held(self) -> int:
        """Bytes of memory that reading takes."""
        return self.length + self.unpacked_length

    def _read(self, count: int) -> bytes:
        """Read so many bytes of the picture from its beginning, or as many as there are."""
        try:
            with open(self.file, "rb") as file:
                file.seek(self.offset)
                if self.zipped:
                    name, extra = _ZIP_HEADER.unpack(file.read(_ZIP_HEADER.size))
                    file.seek(name + extra, os.SEEK_CUR)
                if not self.unpacked_length:
                    return file.read(min(count, self.length))
                # Deflate can make a few bytes longer, by less than this.
                packed = file.read(min(self.length, 2 * count + 1024))
                return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, count)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from error
        except (zlib.error, struct.error) as error:
            raise UnreadableError("damaged inside its archive") from error
