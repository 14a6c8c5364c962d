"""Labeling projects of colored pictures, and a slow model of what acts do."""

from protorect import LabelingSession

NO, UNKNOWN, UNSURE = None, "_unknown", "_unsure"


def opened(colors, pictures=True, examples=None, **options):
    """A session on the colored pictures, all of them embedded."""
    session = LabelingSession.open(
        colors.out,
        colors.pictures if pictures else None,
        examples,
        **{"source": colors.weights, "cache": False} | options,
    )
    assert session.wait(60)
    return session


def numbers(session):
    """The numbers of the pictures by their names."""
    return {one.name: one.id for one in session.pictures(limit=1000).pictures}


def said(session):
    """What people said of each picture, and the classes: everything that acts decide."""
    rows = session.pictures(order="name", limit=1000).pictures
    given = {
        one.id: (one.label, one.status) for one in rows if one.status in ("example", "accepted")
    }
    return given, [(one.name, one.key) for one in session.state().classes]


class Model:
    """Classes and labels by plain copies of the whole state: undo is the state before."""

    def __init__(self):
        self.classes = []  # [name, key]
        self.labels = {}  # picture: (class, accepted) or _unknown or _unsure
        self.past, self.future = [], []

    def state(self):
        return [list(one) for one in self.classes], dict(self.labels)

    def _begin(self):
        self.past.append(self.state())
        self.future = []

    def _class(self, name, key=None):
        if name not in [one for one, _ in self.classes]:
            taken = [one for _, one in self.classes]
            free = next((digit for digit in "1234567890" if digit not in taken), None)
            for one in self.classes:
                if key is not None and one[1] == key:
                    one[1] = None
            self.classes.append([name, key or free])

    def label(self, ids, name):
        self._begin()
        if name not in (NO, UNKNOWN, UNSURE):
            self._class(name)
        for one in ids:
            self.labels.pop(one, None)
            if name is not NO:
                self.labels[one] = name if name in (UNKNOWN, UNSURE) else (name, False)

    def accept(self, pairs):
        self._begin()
        for one, name in pairs:
            self.labels[one] = (name, True)

    def add_class(self, name, ids, key):
        self._begin()
        self._class(name, key)
        for one in ids:
            self.labels[one] = (name, False)

    def rename_class(self, name, new):
        self._begin()
        for one in self.classes:
            one[0] = new if one[0] == name else one[0]
        self._relabel(name, new)

    def merge_classes(self, name, into):
        self._begin()
        self.classes = [one for one in self.classes if one[0] != name]
        self._relabel(name, into)

    def remove_class(self, name):
        self._begin()
        self.classes = [one for one in self.classes if one[0] != name]
        self._relabel(name, None)

    def set_key(self, name, key):
        self._begin()
        for one in self.classes:
            if one[0] == name:
                one[1] = key
            elif key is not None and one[1] == key:
                one[1] = None

    def move_class(self, name, position):
        self._begin()
        chosen = next(one for one in self.classes if one[0] == name)
        self.classes.remove(chosen)
        self.classes.insert(position, chosen)

    def undo(self):
        self.future.append(self.state())
        self.classes, self.labels = self.past.pop()

    def redo(self):
        self.past.append(self.state())
        self.classes, self.labels = self.future.pop()

    def _relabel(self, name, new):
        for picture, label in list(self.labels.items()):
            if isinstance(label, tuple) and label[0] == name:
                if new is None:
                    del self.labels[picture]
                else:
                    self.labels[picture] = (new, label[1])
