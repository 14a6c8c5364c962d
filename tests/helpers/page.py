"""Read an HTML page in tests."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr"}


class Reader(HTMLParser):
    """The elements with their attributes, and the text by tag; every element must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data.replace("\N{NO-BREAK SPACE}", " ")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def requests_and_scripts(html: str) -> list[str]:
    """Everything that a browser would request or run."""
    problems = []
    for tag, attributes in Reader(html).elements:
        if tag in ("script", "iframe", "object", "embed"):
            problems.append(tag)
        for name, value in attributes.items():
            fetches = name.split(":")[-1] in ("src", "href", "srcset", "action", "data", "poster")
            if fetches and not (value or "").startswith(("#", "data:")):
                problems.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                problems.append(f"{tag} {name}")
    return problems + [word for word in ("@import", "url(http", "url(//") if word in html]
