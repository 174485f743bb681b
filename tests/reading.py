"""Pages as tests read them."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "link", "img", "input"}


class Page(HTMLParser):
    """Reads a page, and refuses elements that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else None, data))

    def with_class(self, name):
        return [(tag, a) for tag, a in self.elements if name in (a.get("class") or "").split()]

    def text(self, *tags):
        return "".join(data for tag, data in self.texts if not tags or tag in tags)
