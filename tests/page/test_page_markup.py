"""Whatever text is put into a page comes out as text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st

from fsxwarm.daemon.page.charts import bar, warmth
from fsxwarm.daemon.page.markup import document, join, tag, text
from page.stand import NASTY

TEXTS = st.text(st.characters(codec="utf-8")) | st.sampled_from(NASTY).map(lambda name: name.decode("utf-8", "replace"))


class Seen(HTMLParser):
    """What a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.tags.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.tags.append(f"declaration {decl}")


@given(TEXTS)
@example("</p><script>alert(1)</script>")
def test_text_in_an_element_is_text(value: str) -> None:
    seen = Seen(tag("p", value))
    assert seen.tags == ["p"]
    assert seen.attributes == []


@given(TEXTS)
@example('" onload="alert(1)')
@example("' onload='alert(1)")
def test_text_in_an_attribute_is_its_value(value: str) -> None:
    seen = Seen(tag("p", title=value))
    assert seen.tags == ["p"]
    assert [name for name, _ in seen.attributes] == ["title"]


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_what_can_be_seen_is_shown_as_it_is(value: str) -> None:
    assert Seen(tag("p", value)).text == value
    assert Seen(tag("p", title=value)).attributes == [("title", value)]


@given(TEXTS)
def test_nothing_unseen_comes_through(value: str) -> None:
    shown = text(value + "\u202e\u200b\x1b\x00\ud800")
    assert not {"\u202e", "\u200b", "\x1b", "\x00", "\ud800", "\n"} & set(shown)
    shown.encode()


def test_bytes_that_are_no_text_are_spelt_out() -> None:
    assert text(b"a\xff\n".decode("utf-8", "surrogateescape")) == "a\\xff\\n"


def test_parts_that_are_markup_stay_so() -> None:
    assert join(tag("b", "<"), "<") == "<b>&lt;</b>&lt;"
    assert "&lt;title&gt;" in document("<title>", tag("p", "x"))


@given(st.floats(0, 1))
def test_only_everything_is_warmest_and_only_nothing_coldest(share: float) -> None:
    assert (warmth(share) == 10) is (share == 1)
    assert (warmth(share) == 0) is (share == 0)
    assert f"w{warmth(share)}" in bar(share, "so much")
