"""Read an SVG plot in tests."""

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """The text of every text element."""
    return [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter(SVG + "text")
    ]


def colors_of_dashed_lines(svg: str) -> list[str]:
    """The stroke color of every dashed line."""
    styles = [node.get("style", "") for node in ElementTree.fromstring(svg).iter(SVG + "path")]
    return re.findall(r"stroke: (\S+?);", "\n".join(s for s in styles if "stroke-dasharray" in s))
