"""A page of HTML, read without a browser."""

import html.parser

EMPTY = {"meta", "link", "img", "br", "hr", "input"}


class Reader(html.parser.HTMLParser):
    """Collects tags and text, and sees to it that every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.styles = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.styles if self.open[-1:] == ["style"] else self.words).append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())
