"""One picture before it is decoded: in a file of its own, or in a part of an archive."""

import os
import struct
import zlib
from dataclasses import dataclass
from typing import Self

from protorect._utils.text import printable

MAX_FILE_BYTES = 512 * 2**20
PICTURE_SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm")
)
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

    @classmethod
    def from_file(cls, file: PathLike, name: str | None = None) -> Self:
        """Describe a picture file, shown as `name`; if it cannot be read, `error` says why."""
        absolute = os.path.abspath(file)
        path = printable(file if name is None else name)
        try:
            length = os.stat(absolute).st_size
        except (OSError, ValueError) as error:  # ValueError: a zero byte in a name
            return cls(path, absolute, 0, error=getattr(error, "strerror", None) or str(error))
        regular = os.path.isfile(absolute)
        return cls(path, absolute, length, error="" if regular else "not a regular file")

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of the folders in `path`, outermost first."""
        return tuple(self.path.split("/")[:-1])

    @property
    def in_archive(self) -> bool:
        """Whether `file` holds other pictures, too."""
        return self.zipped or self.offset > 0

    def read(self) -> bytes:
        """Read the encoded picture or its raw pixels; raises UnreadableError."""
        if self.error:
            raise UnreadableError(self.error)
        if max(self.length, self.unpacked_length) > MAX_FILE_BYTES:
            raise UnreadableError(f"a file of more than {MAX_FILE_BYTES // 2**20} MiB")
        try:
            with open(self.file, "rb") as file:
                file.seek(self.offset)
                if self.zipped:
                    name, extra = _ZIP_HEADER.unpack(file.read(_ZIP_HEADER.size))
                    file.seek(name + extra, os.SEEK_CUR)
                data = file.read(self.length)
            if self.unpacked_length:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, self.unpacked_length)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from error
        except (zlib.error, struct.error) as error:
            raise UnreadableError("damaged inside its archive") from error
        if len(data) != (self.unpacked_length or self.length):
            raise UnreadableError("shorter than its archive or folder says")
        if self.checksum is not None and zlib.crc32(data) != self.checksum:
            raise UnreadableError("damaged inside its archive")
        return data


def is_picture(path: str) -> bool:
    """Whether a file has a picture's suffix and is not hidden."""
    parts = path.split("/")
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not hidden and os.path.splitext(parts[-1])[1].lower() in PICTURE_SUFFIXES
