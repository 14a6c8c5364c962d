"""Mutations that know a binary format: most of the file stays valid, so that readers go on."""

import io
import json
import pickletools
import sqlite3
import struct
import tarfile
import warnings
import zipfile
import zlib
from contextlib import suppress
from random import Random
from typing import Any

from campaign.fuzz_mutations import (
    NUMBERS,
    TEXTS,
    Mutation,
    mutated_bytes,
    mutated_lines,
    mutated_value,
    spelled,
)
from protorect.labeling.placements import _checks_and_seal

_SHAPES = ("()", "(0,)", "(-1,)", "(2**70,)", "(10**9, 10**9)", "(3, 0)", "(1.5,)", "('a',)", "3")
_SHAPES += ("(" + "9" * 400 + ",)", "(" * 200 + ")" * 200, "None", "[2, 2]", "(4, 4, 4)", "(8,)")
_DESCR = ("'<f8'", "'|O'", "'<U9'", "'|V0'", "'>i8'", "'|S0'", "'<M8[ns]'", "'<c16'", "'|b1'")
_DESCR += ("[('a', '<f4')]", "[('a', '|O')]", "''", "'<f16'", "'(3,)<f4'", "'<U999999999'", "{}")


def mutated_npy(data: bytes, rng: Random) -> bytes:
    """A .npy file with another header, other bytes or another length."""
    if rng.random() < 0.3 or data[:6] != b"\x93NUMPY":
        return mutated_bytes(data, rng)
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header, rest = data[10:end].decode("latin-1"), data[end:]
    fields = eval(header, {}, {})  # of a file that this campaign has written
    spelling = {name: repr(value) for name, value in fields.items()}
    match rng.randrange(9):
        case 0 | 1:
            spelling["shape"] = rng.choice(_SHAPES)
        case 2 | 3:
            spelling["descr"] = rng.choice(_DESCR)
        case 4:
            spelling["fortran_order"] = rng.choice(("True", "None", "2", "'x'"))
        case 5:
            spelling[rng.choice(list(spelling))] = repr(rng.choice((*NUMBERS, *TEXTS[:20])))
        case 6:
            rest = rest[: rng.randrange(len(rest) + 1)] if rng.random() < 0.5 else rest * 2
        case 7:
            rest = mutated_bytes(rest, rng)
        case _:
            del spelling[rng.choice(list(spelling))]
    text = "{" + ", ".join(f"{name!r}: {value}" for name, value in spelling.items()) + "}"
    if rng.random() < 0.1:
        text = rng.choice(
            (text[: rng.randrange(len(text))], "\n" + text, text + "\x00", "(" + text)
        )
    coded = text.encode("utf-8", "replace")
    coded += b" " * (-(len(coded) + 11) % 64) + b"\n"
    version = rng.choice((b"\x01\x00",) * 5 + (b"\x02\x00", b"\x03\x00", b"\xff\x00"))
    length = struct.pack("<H", len(coded) & 0xFFFF)
    length = length if version == b"\x01\x00" else struct.pack("<I", len(coded))
    return data[:6] + version + length + coded + rest


def mutated_zip(inner: Mutation) -> Mutation:
    """A zip of which one member is mutated by `inner`, renamed, removed or stored otherwise."""

    def mutated(data: bytes, rng: Random) -> bytes:
        if rng.random() < 0.25:
            return mutated_bytes(data, rng)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(one.filename, archive.read(one)) for one in archive.infolist()]
        place, written = rng.randrange(len(members)), io.BytesIO()
        name, content = members[place]
        match rng.randrange(8):
            case 0:
                members[place] = (rng.choice(TEXTS[1:]).replace("\x00", "")[:9999] or "x", content)
            case 1:
                del members[place]
            case 2:
                members.append((name, members[rng.randrange(len(members))][1]))
            case _:
                members[place] = (name, inner(content, rng))
        ways = (zipfile.ZIP_STORED,) * 3 + (
            zipfile.ZIP_DEFLATED,
            zipfile.ZIP_BZIP2,
            zipfile.ZIP_LZMA,
        )
        with zipfile.ZipFile(written, "w", rng.choice(ways)) as archive:
            for name, content in members:
                with warnings.catch_warnings(action="ignore"):  # of a name that is there twice
                    archive.writestr(
                        zipfile.ZipInfo(name.encode(errors="replace").decode()), content
                    )
        whole = bytearray(written.getvalue())
        if rng.random() < 0.3:  # sizes, versions and flags are in the directory at the end
            start = max(whole.rfind(b"PK\x01\x02"), 0)
            width = rng.choice((2, 4))
            place = rng.randrange(start, len(whole))
            whole[place : place + width] = rng.choice((b"\xff" * width, bytes(width), b"\x63\0"))
        return bytes(whole)

    return mutated


def mutated_safetensors(data: bytes, rng: Random) -> bytes:
    """A safetensors file with another header, another configuration inside it, or other bytes."""
    length = struct.unpack("<Q", data[:8])[0]
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    choice = rng.random()
    if choice < 0.2:
        return mutated_bytes(data, rng)
    if choice < 0.65 and "protorect" in header.get("__metadata__", {}):
        config = json.loads(header["__metadata__"]["protorect"])
        for _ in range(rng.choice((1, 1, 2))):
            config = mutated_value(config, rng)
        header["__metadata__"]["protorect"] = spelled(config, rng).decode("utf-8", "replace")
    elif choice < 0.75:  # values: not finite, of another sign, zero
        changed, place = bytearray(rest), 4 * rng.randrange(max(1, len(rest) // 4))
        number = rng.choice((float("nan"), float("inf"), 1e38, -1.0, 0.0))
        changed[place : place + 4] = struct.pack("<f", number)
        rest = bytes(changed)
    elif choice < 0.85:
        name = rng.choice([one for one in header if one != "__metadata__"])
        header[name]["dtype"] = rng.choice(("F16", "I32", "F8_E5M2", "BOOL", "C64", "X", "F64"))
        if rng.random() < 0.5 and header[name]["shape"]:
            header[name]["shape"] = [*header[name]["shape"], 1]
    else:
        header = mutated_value(header, rng)
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + rest


_OPCODES = (b"N.", b"\x88", b"J\xff\xff\xff\xff", b"]", b"}", b")", b"\x8f", b"2", b"0", b"(", b"t")
_OPCODES += (b"cos\nsystem\n(S'true'\ntR", b"cbuiltins\neval\n", b"R", b"b", b"\x81", b"s", b"u")
_OPCODES += (
    b"\x8a\xff" + bytes(255),
    b"U\x03abc",
    b"h\x00",
    b"\x97",
    b"P1\n",
    b"cnumpy\nndarray\n",
)


def mutated_pickle(data: bytes, rng: Random) -> bytes:
    """A pickle of which operations are removed, repeated, exchanged or inserted."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    places = [place for _, _, place in pickletools.genops(data) if place is not None]
    pieces = [data[a:b] for a, b in zip(places, [*places[1:], len(data)], strict=True)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(pieces))
        match rng.randrange(5):
            case 0:
                del pieces[place]
            case 1:
                pieces.insert(place, pieces[rng.randrange(len(pieces))])
            case 2:
                pieces[place] = rng.choice(_OPCODES)
            case 3:
                pieces.insert(place, rng.choice(_OPCODES))
            case _:
                pieces[place] = mutated_bytes(pieces[place], rng)
        pieces = pieces or [b"."]
    return b"".join(pieces)


def mutated_onnx(data: bytes, rng: Random) -> bytes:
    """An ONNX network in which fields of its messages have other values or are missing."""
    import onnx

    if rng.random() < 0.25:
        return mutated_bytes(data, rng)
    model = onnx.load_from_string(data)
    for _ in range(rng.choice((1, 1, 2))):
        _change_field(rng.choice(_messages(model)), rng)
    return model.SerializeToString()


def _messages(message: Any) -> list[Any]:
    found = [message]
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            parts = [value] if hasattr(value, "ListFields") else list(value)
            found += [one for part in parts for one in _messages(part)]
    return found


def _change_field(message: Any, rng: Random) -> None:
    fields = message.ListFields()
    if not fields:
        return
    field, value = rng.choice(fields)
    repeated = not isinstance(value, int | float | str | bytes) and not hasattr(value, "ListFields")
    if rng.random() < 0.2 or field.type == field.TYPE_MESSAGE:
        if repeated and len(value):
            del value[rng.randrange(len(value))]
        else:
            message.ClearField(field.name)
        return
    numbers = [int(one) for one in NUMBERS[:15]]
    new: Any = rng.choice(numbers)
    if field.type == field.TYPE_STRING:
        new = rng.choice([text for text in TEXTS if text.isprintable() and len(text) < 400])
    elif field.type == field.TYPE_BYTES:
        new = mutated_bytes(value if isinstance(value, bytes) else b"", rng)
    try:
        if repeated:
            value[rng.randrange(len(value))] = new
        else:
            setattr(message, field.name, new)
    except (ValueError, TypeError, IndexError):
        message.ClearField(field.name)


_STATEMENTS = (
    "UPDATE features SET vector = x'010203'",
    "UPDATE features SET vector = zeroblob(length(vector))",
    "UPDATE features SET vector = zeroblob(length(vector) / 2)",
    "UPDATE features SET vector = 'text', content = 5",
    "UPDATE features SET vector = NULL",
    "UPDATE features SET used = 'x', network = x'00'",
    "UPDATE files SET content = 7, size = 'a'",
    "UPDATE files SET content = x'00'",
    "UPDATE files SET content = (SELECT content FROM files LIMIT 1)",
    "DROP TABLE features",
    "DROP TABLE files",
    "ALTER TABLE features RENAME TO other",
    "ALTER TABLE features ADD COLUMN more TEXT",
    "ALTER TABLE features DROP COLUMN used",
    "CREATE TRIGGER t AFTER INSERT ON features BEGIN DELETE FROM features; END",
    "CREATE TABLE notes (text)",
    "PRAGMA user_version = 7",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 7",
)


def mutated_sqlite(data: bytes, rng: Random) -> bytes:
    """A cache in which rows, tables or bytes were changed."""
    if rng.random() < 0.5:
        return mutated_bytes(data, rng)
    database = sqlite3.connect(":memory:", isolation_level=None)
    # A database in memory has no write-ahead log, which these two bytes of the header ask for.
    database.deserialize(data[:18] + b"\1\1" + data[20:])
    for statement in rng.sample(_STATEMENTS, rng.choice((1, 1, 2))):
        with suppress(sqlite3.Error):
            database.execute(statement)
    changed = database.serialize()
    database.close()
    return changed


def mutated_tar(inner: Mutation) -> Mutation:
    """A tar with other names, kinds, sizes and links of its members, checksums right."""

    def mutated(data: bytes, rng: Random) -> bytes:
        if rng.random() < 0.3:
            return mutated_bytes(data, rng)
        written, place = io.BytesIO(), rng.random()
        with tarfile.open(fileobj=io.BytesIO(data)) as members:
            files = [(one, (members.extractfile(one) or io.BytesIO()).read()) for one in members]
        kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE, b"Z")
        with tarfile.open(fileobj=written, mode="w", format=rng.choice((0, 1, 2))) as out:
            for number, (member, content) in enumerate(files):
                if number == int(place * len(files)):
                    match rng.randrange(4):
                        case 0:
                            member.name = rng.choice(TEXTS[1:-1]).replace("\x00", "")[:200] or "x"
                        case 1:
                            member.type, member.linkname = rng.choice(kinds), "/etc/passwd"
                        case 2:
                            member.size = rng.choice((0, 1, 2**33, max(0, member.size - 9)))
                        case _:
                            content = inner(content, rng)
                            member.size = len(content)
                try:
                    out.addfile(member, io.BytesIO(content.ljust(min(member.size, 10**5), b"\0")))
                except (ValueError, OSError, UnicodeError):
                    continue
        return written.getvalue()

    return mutated


def mutated_plan(data: bytes, rng: Random) -> bytes:
    """A journal of sorting, most of the time with checksums and the seal that fit the change."""
    changed = mutated_lines(data, rng)
    lines = changed.splitlines(keepends=True)[:-1]
    if not lines or rng.random() < 0.3:
        return changed
    if rng.random() < 0.3:  # as before there were checksums
        return b"".join(lines).replace(b'"format": 2', b'"format": 1')
    checks, seal = _checks_and_seal(lines)
    return b"".join(lines) + json.dumps({"checks": checks, "seal": seal}).encode() + b"\n"


def mutated_png(data: bytes, rng: Random) -> bytes:
    """A PNG of which a chunk is changed, with its checksum; other formats by their bytes."""
    if not data.startswith(b"\x89PNG") or rng.random() < 0.2:
        return mutated_bytes(data, rng)
    chunks, place = [], 8
    while place + 12 <= len(data):
        length = struct.unpack(">I", data[place : place + 4])[0]
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    number = rng.randrange(len(chunks))
    kind, content = chunks[number]
    match rng.randrange(5):
        case 0:
            chunks.insert(number, chunks[rng.randrange(len(chunks))])
        case 1:
            del chunks[number]
        case 2:
            kinds = (b"PLTE", b"tRNS", b"iCCP", b"eXIf", b"zTXt", b"acTL", b"fcTL", b"gAMA")
            packed = b"x\0\0" + zlib.compress(bytes(rng.choice((10, 10**6))))
            chunks.insert(number, (rng.choice(kinds), rng.choice((packed, content, b""))))
        case _:
            chunks[number] = (kind, mutated_bytes(content, rng))
    parts = [
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    ]
    return data[:8] + b"".join(parts)


def mutated_parquet(data: bytes, rng: Random) -> bytes:
    """A Parquet file with columns of other types and values, or with other bytes."""
    import pyarrow
    import pyarrow.parquet

    if rng.random() < 0.5:
        return mutated_bytes(data, rng)
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    name = rng.choice(table.column_names)
    rows = table.num_rows
    texts = [text for text in TEXTS if not any("\ud800" <= sign <= "\udfff" for sign in text)]
    columns: tuple[list[Any], ...] = (
        [rng.choice(texts) for _ in range(rows)],
        [rng.choice((1, 2.5, -7.0)) for _ in range(rows)],
        [None] * rows,
        [[1, 2]] * rows,
        [{"bytes": b"x", "path": "y"}] * rows,
        [b"\xff\x00"] * rows,
    )
    place = table.column_names.index(name)
    table = table.set_column(place, name, pyarrow.array(rng.choice(columns)))
    if rng.random() < 0.2:
        table = table.rename_columns([rng.choice(texts) for _ in table.column_names])
    written = io.BytesIO()
    pyarrow.parquet.write_table(table, written)
    return written.getvalue()
