"""What is on a contact sheet."""

from html.parser import HTMLParser


class Tiles(HTMLParser):
    """Links and details of tiles, and attributes of pictures."""

    def __init__(self, page):
        super().__init__()
        self.links, self.details, self.pictures, self.scripts = [], [], [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "a" and "tile" in values.get("class", ""):
            self.links.append((values["href"], "doubtful" in values["class"]))
            self.details.append(values["data-detail"])
        if tag == "img" and values.get("src"):
            self.pictures.append(values)
        self.scripts += tag == "script"
