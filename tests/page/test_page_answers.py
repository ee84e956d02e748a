"""The page as it is sent: who sees what, what it may do in a browser, and that names cannot change it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from fsxwarm.daemon.access import Circle
from fsxwarm.daemon.page.parts import folders_address
from fsxwarm.daemon.page.sessions import SESSION_LASTS
from fsxwarm.model.job import Identity
from page.stand import ADA, ALICE, BOB, NASTY, USERS, Stand, standing
from page.test_page_markup import Seen


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with standing(tmp_path) as one:
        yield one


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    jar = aiohttp.CookieJar(unsafe=True)  # which takes cookies of 127.0.0.1
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


async def enter(stand: Stand, browser: aiohttp.ClientSession, identity: Identity) -> str:
    """Open a one-time address; the session's."""
    async with browser.get(stand.address(identity)) as answer:
        assert answer.status == 200
        return str(answer.url)


async def read(browser: aiohttp.ClientSession, address: str) -> tuple[int, str]:
    async with browser.get(address) as answer:
        return answer.status, await answer.text()


async def test_everybody_sees_numbers_and_nobodys_jobs(stand: Stand, browser: aiohttp.ClientSession) -> None:
    await stand.busy()
    status, page = await read(browser, f"{stand.base}/")
    assert status == 200
    assert "How warm" in page  # configured paths, as the metrics name them
    assert Seen(page).text.count("/fsx/data") == 1
    assert "alert(" not in page
    assert "room is made below" in page
    assert "fsxwarm page" in page


async def test_each_sees_his_own(stand: Stand, browser: aiohttp.ClientSession) -> None:
    await stand.busy(ALICE)
    for viewer, sees in ((ALICE, True), (ADA, True), (BOB, False)):
        place = await enter(stand, browser, viewer)
        page = (await read(browser, place))[1]
        assert ("/fsx/data/" in Seen(page).text) is sees
        assert ("alert(1)" in Seen(page).text) is sees
        assert ("You have no jobs." in page) is not sees


async def test_an_address_opens_one_session_in_one_browser(stand: Stand, browser: aiohttp.ClientSession) -> None:
    address = stand.address(ALICE)
    async with browser.head(address) as answer:
        assert answer.status == 400  # a look ahead uses nothing up
    async with browser.get(address, allow_redirects=False) as answer:
        assert answer.status == 303
        cookie = answer.headers["Set-Cookie"]
        place = answer.headers["Location"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert f"Path={place}" in cookie
    assert (await read(browser, f"{stand.base}{place}"))[0] == 200
    async with aiohttp.ClientSession() as another:
        for target in (address, f"{stand.base}{place}", f"{stand.base}{place}folders?path=/fsx"):
            status, page = await read(another, target)
            assert status == 403
            assert "fsxwarm page" in page


async def test_a_session_ends_with_its_time_and_with_the_right_to_it(
    stand: Stand, browser: aiohttp.ClientSession
) -> None:
    place = await enter(stand, browser, ALICE)
    stand.circle = Circle(0, USERS + 7, None)
    assert (await read(browser, place))[0] == 403
    stand.circle = Circle(0, USERS, None)
    assert (await read(browser, place))[0] == 200
    stand.clock.seconds += SESSION_LASTS
    assert (await read(browser, place))[0] == 403


async def test_an_open_page_is_told_when_its_session_is_over(stand: Stand, browser: aiohttp.ClientSession) -> None:
    place = await enter(stand, browser, ALICE)
    async with browser.get(f"{place}events") as stream:
        await stand.face.core.heard_by(1)
        await stand.busy()
        assert await asyncio.wait_for(stream.content.readline(), 10) == b"data: anew\n"
        stand.clock.seconds += SESSION_LASTS
        rest = await asyncio.wait_for(stream.content.read(), 20)
    assert b"event: over" in rest


async def test_open_pages_are_counted(stand: Stand, browser: aiohttp.ClientSession) -> None:
    place = await enter(stand, browser, ALICE)
    streams = [await browser.get(f"{place}events") for _ in range(10)]
    assert {one.status for one in streams} == {200}
    assert (await read(browser, f"{place}events"))[0] == 429
    for one in streams:
        one.close()
    await stand.face.core.heard_by(0)
    async with browser.get(f"{place}events") as again:
        assert again.status == 200


@pytest.mark.parametrize("where", ["", "events", "folders?path=/fsx/data", "folders?path=nowhere", "none"])
async def test_every_answer_has_a_strict_policy(stand: Stand, browser: aiohttp.ClientSession, where: str) -> None:
    place = await enter(stand, browser, ALICE)
    if where == "none":
        place, where = f"{stand.base}/in/", "none"
    async with browser.get(f"{place}{where}") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


async def test_nothing_is_fetched_from_elsewhere_and_nothing_runs_in_the_page(
    stand: Stand, browser: aiohttp.ClientSession
) -> None:
    await stand.busy()
    place = await enter(stand, browser, ALICE)
    for target in (place, f"{place}folders?path=/fsx/data", f"{stand.base}/"):
        seen = Seen((await read(browser, target))[1])
        for name, value in seen.attributes:
            assert not name.startswith("on")
            assert name != "style"
            if name in {"src", "href", "action"}:
                assert value is not None
                assert not value.startswith(("http", "//", "javascript", "data"))
        assert seen.tags.count("script") == 1
        assert "style" not in seen.tags
        assert "iframe" not in seen.tags
    for asset in ("page.js", "page.css", "icon.svg"):
        status, body = await read(browser, f"{stand.base}/static/{asset}")
        assert status == 200
        assert "http" not in body.replace("http://www.w3.org/2000/svg", "")


async def test_it_can_only_be_read(stand: Stand, browser: aiohttp.ClientSession) -> None:
    place = await enter(stand, browser, ALICE)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for target in (place, f"{place}folders", f"{stand.base}/"):
            async with browser.request(method, target) as answer:
                assert answer.status == 405


async def test_names_do_not_change_the_page(stand: Stand, browser: aiohttp.ClientSession) -> None:
    """The same page with harmless names has the same elements."""
    await stand.busy()
    place = await enter(stand, browser, ALICE)
    nasty = Seen((await read(browser, place))[1])
    core = stand.face.core
    harmless = iter(range(10_000))
    for job in core.all.values():
        named = tuple(b"/fsx/%d" % next(harmless) for _ in job.request.paths)
        core.all[job.id] = replace(job, request=replace(job.request, paths=named, label=job.request.label and "label"))
        core.misses[job.id] = [miss._replace(path=b"/fsx/y", detail="d") for miss in core.misses[job.id]]
    core.glance = replace(core.glance, slowest=[one._replace(path=b"/fsx/x") for one in core.glance.slowest])
    plain = Seen((await read(browser, place))[1])
    assert nasty.tags == plain.tags
    assert [name for name, _ in nasty.attributes] == [name for name, _ in plain.attributes]
    for name in NASTY[:8]:
        assert name.decode() in nasty.text


async def test_folders_are_counted_with_the_viewers_rights(stand: Stand, browser: aiohttp.ClientSession) -> None:
    place = await enter(stand, browser, ALICE)
    status, page = await read(browser, f"{place}folders?path=/fsx/data/")
    assert status == 200
    assert stand.asked == [(b"/fsx/data", ALICE)]
    text = Seen(page).text
    for word in ("cold", "hot", "deep", "4.00 GB", "83.3%", "50.0%"):
        assert word in text, word
    for name in NASTY[:8]:
        assert name.decode().replace("/", "|") in text
    await read(browser, f"{place}folders?path=/fsx/data&sort=name")
    assert len(stand.asked) == 1  # counted once, shown twice
    place = await enter(stand, browser, BOB)
    await read(browser, f"{place}folders?path=/fsx/data")
    assert stand.asked[1:] == [(b"/fsx/data", BOB)]


@pytest.mark.parametrize("sort", ["name", "size", "released", "coverage"])
async def test_folders_can_be_sorted_without_scripts(stand: Stand, browser: aiohttp.ClientSession, sort: str) -> None:
    place = await enter(stand, browser, ALICE)
    page = (await read(browser, f"{place}folders?path=/fsx/data&sort={sort}"))[1]
    text = Seen(page).text
    hot_first = text.index("hot") < text.index("cold")
    assert hot_first is (sort == "size")
    assert 'aria-sort="' in page


async def test_a_link_leads_where_its_name_says_whatever_its_bytes(
    stand: Stand, browser: aiohttp.ClientSession
) -> None:
    place = await enter(stand, browser, ALICE)
    for name in NASTY:
        path = b"/fsx/data/" + name.replace(b"/", b"|")
        if name in {b"..", b"--"}:
            continue
        assert (await read(browser, f"{place}{folders_address(path)}"))[0] == 200
        assert stand.asked[-1] == (path, ALICE)


@pytest.mark.parametrize(
    "query", ["", "?path=", "?path=relative", "?path=/fsx%00", "?path=/fsx&sort=evil", "?path=/a&path=/b", "?path"]
)
async def test_odd_questions_get_a_page_that_says_what_is_wrong(
    stand: Stand, browser: aiohttp.ClientSession, query: str
) -> None:
    place = await enter(stand, browser, ALICE)
    status, page = await read(browser, f"{place}folders{query}")
    assert status == 400
    assert "<h1>Bad Request</h1>" in page


async def test_a_folder_that_is_not_there_is_said_to_be_so(stand: Stand, browser: aiohttp.ClientSession) -> None:
    place = await enter(stand, browser, ALICE)
    status, page = await read(browser, f"{place}folders?path=/fsx/nowhere")
    assert status == 200
    assert "/fsx/nowhere: No such file or directory" in Seen(page).text
