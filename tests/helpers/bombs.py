"""Small files that are large pictures."""

import struct
import zlib


def png(width, height, depth, color):
    """A black PNG; `color` is the type of the format: 0 gray, 2 RGB, 4 LA, 6 RGBA."""
    row = b"\0" * (1 + width * {0: 1, 2: 3, 4: 2, 6: 4}[color] * depth // 8)
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in parts)


def chunk(kind, data):
    """A chunk of a PNG with its checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def gif(side):
    """A GIF of 43 bytes, whose first frame is to be cleared before a second one."""
    size = struct.pack("<HH", side, side)
    screen = b"GIF89a" + size + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    return screen + b"!\xf9\x04\x09\0\0\0\0,\0\0\0\0" + size + b"\0\x02\x02\x4c\x01\0;"
