"""Mutations of bytes, of text and of documents: JSON, JSON lines, TOML, tables."""

import json
import re
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Mutation = Callable[[bytes, Random], bytes]

_LONG, _DEEP = "9" * 5000, 3000
ESCAPES = ("\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\u202egpj.exe", "a\rb", "a\nb", "\x00")
NUMBERS = (
    *(0, -1, 1, 2, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64),
    *(-(2**31), -(2**63), 10**30, 0.5, -0.0, 1e308, -1e308, 1e-320),
    *(float("inf"), float("-inf"), float("nan")),
)
TEXTS = (
    *("", " ", "a", ".", "..", "../../x", "/", "/etc/passwd", "~", "C:\\x", "a/b", "x" * 300),
    *("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "<script>alert(1)</script>", "%s%n", "{0}", "null"),
    *("1e999", "NaN", "é", "\ud800", "\udcff", "😀" * 50, "_unknown", "_unsure", "y" * 200_000),
    *ESCAPES,
)
_VALUES: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": None}, *NUMBERS, *TEXTS)
_TOKENS = (
    *(b"\0", b"\xff", b"\xff\xfe", b"\x80", b"-1", b"9" * 5000, b"1e999", b"NaN", b"Infinity"),
    *(b"true", b"null", b"[" * 3000, b'{"a":' * 3000, b"{}", b'"', b"\n", b"\r\n", b",", b";"),
    *(b"\t", b"=", b"#", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1b[31m", b"\xe2\x80\xae"),
    *(bytes(8), b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0\0\0\x80", b"PK\x05\x06", b"\x93NUMPY"),
)


def mutated_bytes(data: bytes, rng: Random) -> bytes:
    """A few changes anywhere: bits, removed, repeated, moved, inserted, overwritten, cut off."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        start = _position(len(changed), rng)
        end = min(len(changed), start + rng.choice((1, 1, 2, 4, 8, 16, 64, 512)))
        part = bytes(changed[start:end])
        match rng.randrange(9):
            case 0 if part:
                changed[start] ^= 1 << rng.randrange(8)
            case 1:
                del changed[start:end]
            case 2:
                changed[start:start] = part * rng.choice((1, 2, 50))
            case 3:
                changed[start:start] = rng.choice(_TOKENS)
            case 4:
                changed[start:end] = rng.choice(_TOKENS)[: max(8, end - start)]
            case 5:
                changed[start:end] = rng.randbytes(end - start)
            case 6:
                width = rng.choice((1, 2, 4, 8))
                value = int(rng.choice(NUMBERS[:15])) % 256**width
                changed[start : start + width] = value.to_bytes(
                    width, rng.choice(("big", "little"))
                )
            case 7:
                other = _position(len(changed), rng)
                changed[other:other] = part
            case _ if rng.random() < 0.3:
                del changed[start:]
    return bytes(changed)


def _position(length: int, rng: Random) -> int:
    """A place, half of the time near the beginning or the end, where headers are."""
    if length == 0 or rng.random() < 0.5:
        return rng.randint(0, length)
    near = min(length, rng.randrange(1, 128))
    return near if rng.random() < 0.6 else length - near


def mutated_value(value: Any, rng: Random) -> Any:
    """A value of JSON in which one part is replaced, removed, added, repeated or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        changed, key = dict(value), rng.choice(list(value))
        match rng.randrange(10):
            case 0:
                del changed[key]
            case 1:
                changed[rng.choice(TEXTS)] = changed.pop(key)
            case 2:
                changed[key] = changed[rng.choice(list(value))]
            case _:
                changed[key] = mutated_value(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.85:
        changed_list, place = list(value), rng.randrange(len(value))
        match rng.randrange(10):
            case 0:
                del changed_list[place]
            case 1:
                changed_list.insert(place, changed_list[rng.randrange(len(value))])
            case 2:
                changed_list *= rng.choice((2, 100)) if len(value) < 100 else 2
            case 3:
                rng.shuffle(changed_list)
            case _:
                changed_list[place] = mutated_value(value[place], rng)
        return changed_list
    return _other(value, rng)


def _other(value: Any, rng: Random) -> Any:
    """Another value, often of the same type and similar."""
    choice = rng.random()
    if choice < 0.5:
        return rng.choice(_VALUES)
    if isinstance(value, str) and choice < 0.9:
        place = rng.randint(0, len(value))
        return value[:place] + rng.choice(TEXTS) + value[place + rng.randrange(3) :]
    if isinstance(value, int | float) and choice < 0.9:
        return rng.choice((value + 1, value - 1, -value, value * 1000, float(value), str(value)))
    if choice < 0.95:
        nested: Any = value
        for _ in range(rng.choice((1, 2, 150))):
            nested = [nested] if rng.random() < 0.5 else {"a": nested}
        return nested
    return {"__tuple__": [value]} if rng.random() < 0.5 else [value, value]


def mutated_json(data: bytes, rng: Random) -> bytes:
    """A JSON document with other values, or with other bytes."""
    if rng.random() < 0.25:
        return mutated_bytes(data, rng)
    value = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = mutated_value(value, rng)
    return spelled(value, rng)


def spelled(value: Any, rng: Random) -> bytes:
    """JSON, now and then in a spelling that `json.dumps` does not choose."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.7)
    if rng.random() < 0.1:  # an integer of thousands of digits, or levels without end
        deep = "[" * _DEEP + "]" * _DEEP
        text = re.sub(r"-?\d+", lambda _: rng.choice((_LONG, deep, "1e999")), text, count=1)
    return text.encode("utf-8", "surrogatepass")


def mutated_lines(data: bytes, rng: Random) -> bytes:
    """JSON lines: one line with other values, or lines removed, repeated, exchanged, cut."""
    if rng.random() < 0.15:
        return mutated_bytes(data, rng)
    lines = data.splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(lines)) if lines else 0
        match rng.randrange(8):
            case 0:
                del lines[place : place + 1]
            case 1:
                lines.insert(place, rng.choice(lines or [b"{}\n"]))
            case 2:
                rng.shuffle(lines)
            case 3:
                lines.insert(place, rng.choice(_TOKENS) + b"\n")
            case _ if lines:
                try:
                    value = mutated_value(json.loads(lines[place]), rng)
                    lines[place] = spelled(value, rng) + b"\n"
                except (ValueError, RecursionError):
                    lines[place] = mutated_bytes(lines[place], rng)
    return b"".join(lines)


def mutated_act_journal(data: bytes, rng: Random) -> bytes:
    """A journal of labeling, most of the time with checksums and numbers that fit the change."""
    changed = mutated_lines(data, rng)
    if rng.random() < 0.3:
        return changed
    check, lines = 0, []
    for number, line in enumerate(changed.splitlines()):
        try:
            record = {"n": number, **json.loads(line)}
            record.pop("check", None)
            if rng.random() < 0.95:
                record["n"] = number
            body = json.dumps(record, separators=(",", ":")).encode()
        except (ValueError, TypeError, RecursionError):
            body = line[:-1] + b"}"
        check = zlib.crc32(body, check)
        lines.append(body[:-1] + f',"check":"{check:08x}"}}\n'.encode())
    return b"".join(lines)


_TOML_TEXTS = ('""', "[]", "{}", "true", "inf", "nan", "-1", "1e400", "0x10", _LONG, "1979-05-27")
_TOML_DEEP = (
    "[" * _DEEP + "]" * _DEEP,
    "{a=" * 500 + "1" + "}" * 500,
    '"""\n' + "x" * 9999 + '"""',
)


def mutated_toml(data: bytes, rng: Random) -> bytes:
    """A TOML file: another value, key, table or byte."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    lines = data.decode().splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(lines))
        key, _, value = lines[place].partition("=")
        spellings = (*_TOML_TEXTS, *_TOML_DEEP, json.dumps(rng.choice(TEXTS)))
        match rng.randrange(6):
            case 0:
                lines.insert(place, lines[place])
            case 1:
                lines[place] = f"{'a.' * rng.choice((1, 200, 5000))}b = {value or 1}"
            case 2:
                lines.insert(place, f"[{json.dumps(rng.choice(TEXTS))}]")
            case 3:
                lines[place] = f"{json.dumps(rng.choice(TEXTS))} = {value or 1}"
            case _:
                lines[place] = f"{key} = {rng.choice(spellings)}"
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def mutated_table(data: bytes, rng: Random) -> bytes:
    """A table with cells between commas or tabs, or a list of words: cells, lines, encoding."""
    if rng.random() < 0.25:
        return mutated_bytes(data, rng)
    text = data.decode("utf-8", "replace")
    mark = next((one for one in "\t;," if one in text), " ")
    lines = [line.split(mark) for line in text.splitlines()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.choice((0, rng.randrange(len(lines)))) if lines else 0
        if not lines:
            break
        cells = lines[place]
        cell = rng.randrange(len(cells)) if cells else 0
        match rng.randrange(8):
            case 0:
                del lines[place]
            case 1:
                lines.insert(place, cells[:])
            case 2:
                del cells[cell : cell + 1]
            case 3:
                cells.insert(cell, rng.choice(TEXTS))
            case 4:
                cells[cell : cell + 1] = [str(rng.choice(NUMBERS))]
            case 5:
                cells[cell : cell + 1] = [f'"{rng.choice(TEXTS)}' + '"' * rng.randrange(3)]
            case _:
                cells[cell : cell + 1] = [str(_other(cells[cell] if cells else "", rng))]
    changed = "\n".join(mark.join(cells) for cells in lines) + "\n" * rng.randrange(2)
    encoding = rng.choice(("utf-8",) * 6 + ("utf-8-sig", "utf-16", "utf-16-le", "latin-1"))
    errors = "surrogatepass" if encoding.startswith("utf") else "replace"
    return changed.encode(encoding, errors)
