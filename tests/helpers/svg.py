"""Read an SVG drawing in tests."""

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter(SVG + "text")
    ]


def dashed(svg: str) -> list[str]:
    """Colours of the dashed lines."""
    styles = [node.get("style", "") for node in ElementTree.fromstring(svg).iter(SVG + "path")]
    return re.findall(r"stroke: (\S+?);", "\n".join(s for s in styles if "stroke-dasharray" in s))
