"""Recognize pictures by their first bytes, and name the kinds of files that are not read."""

import os
import re

HEAD = 64  # bytes that are enough to recognize a picture
PICTURE_SUFFIXES = tuple(
    f".{suffix}"
    for line in (
        "jpg jpeg jpe jfif png apng gif bmp tif tiff webp ppm pgm pbm pnm",
        "avif avifs heic heif hif jp2 j2k jpf jpx j2c jpc",
    )
    for suffix in line.split()
)
_SIGNATURES = (  # Pillow's name of the format, and how its files begin
    ("JPEG", rb"\xff\xd8\xff"),
    ("PNG", rb"\x89PNG\r\n\x1a\n"),
    ("GIF", rb"GIF8[79]a"),
    ("BMP", rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0"),  # with the length of its header
    ("WEBP", rb"RIFF.{4}WEBP"),
    ("JPEG2000", rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"),
    ("TIFF", rb"(?:II[*+]\0|MM\0[*+])(?!.{4}CR)"),  # CR: a RAW photograph of Canon
    ("PPM", rb"P[1-6]\s+[\d#]"),
)
_PATTERNS = [(name, re.compile(pattern, re.DOTALL)) for name, pattern in _SIGNATURES]
_AVIF = {b"avif", b"avis"}
_HEIC = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}
_RAW, _DOCUMENTS, _OTHERS = "RAW photographs", "documents", "other files"
LISTS = (_DOCUMENTS, _OTHERS)  # kinds of files that may be a list of pictures
_KINDS = {  # of files that are not read, by their suffixes
    _RAW: "3fr arw cr2 cr3 crw dcr dng erf iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl "
    "sr2 srf srw x3f",
    "videos": "3gp avi flv m2ts m4v mkv mov mp4 mpeg mpg mts webm wmv",
    "pictures in other formats": "ai cdr dds eps exr hdr ico jxl jxr psd svg tga wmf xcf",
    _DOCUMENTS: "csv doc docx htm html json md odt pdf ppt pptx rtf txt xls xlsx xml",
    "archives": "7z bz2 gz rar tar tgz xz zip",
}
_KIND_OF = {f".{suffix}": kind for kind, all_of in _KINDS.items() for suffix in all_of.split()}


def picture_format(head: bytes) -> str | None:
    """Pillow's name for the format of a picture that begins like this; None if it is none."""
    if head[4:8] == b"ftyp":
        # The brands of the file: the major one, its version, and those it is compatible with.
        end = min(int.from_bytes(head[:4], "big"), len(head))
        brands = {head[start : start + 4] for start in range(8, end, 4)}
        return "AVIF" if brands & _AVIF else "HEIF" if brands & _HEIC else None
    return next((name for name, pattern in _PATTERNS if pattern.match(head)), None)


def is_hidden(path: str) -> bool:
    """Whether a file or one of its folders is hidden, or made by macOS beside the real ones."""
    return path.startswith((".", "__MACOSX")) or "/." in path or "/__MACOSX" in path


def is_picture(path: str, head: bytes) -> bool:
    """Whether a file that begins like this is a picture, whatever it is called.

    Most RAW photographs begin like a TIFF, and Pillow would decode the small preview in them.
    """
    found = picture_format(head)
    return found is not None and not (found == "TIFF" and kind_of_file(path) == _RAW)


def kind_of_file(path: str) -> str:
    """What kind of file is not read here, in the plural."""
    return _KIND_OF.get(os.path.splitext(path)[1].lower(), _OTHERS)
