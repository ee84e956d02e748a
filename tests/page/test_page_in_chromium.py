"""The page in a real browser: it looks right at three widths, keeps itself fresh, obeys the keyboard, and no name."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fsxwarm.daemon.page.sessions import SESSION_LASTS
from fsxwarm.model.job import Count, Counters
from page.browser import Tab, chromium, needs_chromium
from page.stand import ADA, ALICE, GB, NASTY, Stand, standing

pytestmark = needs_chromium

WIDTHS = (360, 800, 1400)


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with standing(tmp_path) as one:
        await one.busy()
        yield one


@pytest.fixture
async def tab() -> AsyncIterator[Tab]:
    async with chromium() as one:
        yield one


async def enter(tab: Tab, stand: Stand) -> str:
    await tab.open(stand.address(ALICE))
    place: str = await tab.ask("location.href")
    return place


async def test_it_fits_three_widths_in_light_and_dark(stand: Stand, tab: Tab, tmp_path: Path) -> None:
    """Pictures go to FSXWARM_SCREENSHOTS, if that names a folder."""
    folder = Path(os.environ.get("FSXWARM_SCREENSHOTS") or tmp_path)
    place = await enter(tab, stand)
    grounds = set()
    for name, target in (("page", place), ("folders", f"{place}folders?path=/fsx/data")):
        await tab.open(target)
        for width in WIDTHS:
            for dark in (False, True):
                picture = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                await tab.look(picture, width=width, dark=dark)
                assert await tab.ask("document.documentElement.scrollWidth") <= width, (name, width)
                grounds.add(await tab.ask("getComputedStyle(document.body).backgroundColor"))
                assert picture.stat().st_size > 10_000
    assert len(grounds) == 2
    assert tab.complaints == []


async def test_no_name_is_obeyed(stand: Stand, tab: Tab) -> None:
    place = await enter(tab, stand)
    title = await tab.ask("document.title")
    for target in (place, f"{place}folders?path=/fsx/data"):
        await tab.open(target)
        await tab.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        text = await tab.text()
        shown = [name.decode() for name in NASTY[:8]]
        assert all(name.replace("/", "|") in text or name in text for name in shown), target
        assert await tab.ask("document.querySelectorAll('img, iframe, base, h1 ~ h1, style').length") == 0
        assert await tab.ask("document.scripts.length") == 1
        assert await tab.ask("[...document.links].every((one) => one.href.startsWith(location.origin))")
    await tab.open(place)
    assert await tab.ask("document.title") == title
    assert tab.complaints == []
    assert [one for one in tab.requests if not one.startswith((stand.base, "data:"))] == []


async def test_it_keeps_itself_fresh_and_what_was_opened_open(stand: Stand, tab: Tab) -> None:
    await enter(tab, stand)
    await stand.face.core.heard_by(1)
    await tab.ask("window.same = true; document.querySelector('#failures details').open = true")
    counters = Counters(Count(1000, 100 * GB), restored=Count(987, 99 * GB), scanned=True)
    await stand.face.core.progress("j1", replace(counters, reasons={"storage_class": 12, "lost": 13}))
    await tab.until("document.querySelector('#jobs').innerText.includes('987 files of 1,000')")
    await tab.until("document.querySelector('#failures').innerText.includes('37 files')")
    assert await tab.ask("window.same === true")  # it was not loaded anew
    assert await tab.ask("document.querySelector('#failures details[open]') !== null")
    assert tab.complaints == []


async def test_a_problem_is_read_out_once(stand: Stand, tab: Tab) -> None:
    await enter(tab, stand)
    await tab.open(stand.address(ADA))
    await stand.face.core.heard_by(1)
    assert await tab.ask("document.querySelector('#problems').innerText") == ""
    stand.face.core.problems = ("<b>no lfs</b>",)
    await stand.face.core.finish("j1")
    await tab.until("document.querySelector('#problems[role=alert]').innerText.includes('<b>no lfs</b>')")
    await tab.ask("window.told = document.querySelector('#problems')")
    await stand.face.core.finish("j2")
    await tab.until("document.querySelector('#jobs').innerText.split('done').length > 2")
    assert await tab.ask("window.told === document.querySelector('#problems')")


async def test_folders_fold_by_keyboard_and_stay_so(stand: Stand, tab: Tab) -> None:
    place = await enter(tab, stand)
    await tab.open(f"{place}folders?path=/fsx/data&sort=size")
    visible = "[...document.querySelectorAll('.folders tbody tr')].filter((one) => !one.hidden).length"
    before = await tab.ask(visible)
    first = "[...document.querySelectorAll('.folders button')].find((one) => one.ariaLabel === '{} hot')"
    await tab.ask(f"{first.format('fold')}.focus()")
    await tab.press("Enter", 13)
    assert await tab.ask(visible) == before - 2
    assert await tab.ask(f"{first.format('unfold')}.getAttribute('aria-expanded')") == "false"
    assert await tab.ask(f"document.activeElement === {first.format('unfold')}")
    await stand.face.core.finish("j1")  # an update, that must not unfold it
    await tab.ask("anew()")
    assert await tab.ask(visible) == before - 2
    await tab.press("Enter", 13)
    assert await tab.ask(visible) == before
    assert tab.complaints == []


async def test_it_works_without_scripts(stand: Stand, tab: Tab) -> None:
    await tab.call("Emulation.setScriptExecutionDisabled", value=True)
    place = await enter(tab, stand)
    await tab.open(f"{place}folders?path=/fsx/data&sort=name")
    assert "hot" in await tab.text()
    assert await tab.ask("document.querySelectorAll('.folders tr[hidden]').length") == 0
    target = await tab.ask("document.querySelector('.folders thead th:nth-child(4) a').href")
    await tab.open(target)
    assert await tab.ask("document.querySelector('th[aria-sort]').innerText.includes('coverage')")
    assert await tab.ask("document.querySelector('noscript') !== null")


async def test_everything_has_a_name_for_those_who_do_not_see_it(stand: Stand, tab: Tab) -> None:
    await tab.resize(360, 900)  # where tables are laid out as cards
    await enter(tab, stand)
    tree = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
    by_role: dict[str, list[str]] = {}
    for node in tree:
        if not node.get("ignored"):
            by_role.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("image", "img", "link", "button", "table", "region", "textbox", "heading"):
        assert all(by_role.get(role, [])), (role, by_role.get(role))
    assert len(by_role["table"]) >= 3
    assert len(by_role["row"]) > 20
    assert {"Jobs", "Not resident", "Now", "Space", "Longest at FSx"} <= set(by_role["heading"])
    images = by_role.get("image", []) + by_role.get("img", [])
    assert any("in the last hour" in name for name in images)
    assert any("% settled" in name for name in images)


async def test_every_control_can_be_reached_by_keyboard(stand: Stand, tab: Tab) -> None:
    await enter(tab, stand)
    reached = set()
    for _ in range(40):
        await tab.press("Tab", 9)
        reached.add(await tab.ask("document.activeElement.tagName + (document.activeElement.className || '')"))
    assert {"Askip", "A", "SUMMARY", "INPUT", "BUTTON", "DIVscrolls"} <= reached


async def test_a_session_that_ends_is_said_to_have_ended(stand: Stand, tab: Tab) -> None:
    await enter(tab, stand)
    await stand.face.core.heard_by(1)
    stand.clock.seconds += SESSION_LASTS
    await stand.face.core.finish("j2")
    await tab.until("document.querySelector('#stale')?.innerText.includes('fsxwarm page')")
