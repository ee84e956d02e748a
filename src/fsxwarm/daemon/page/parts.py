"""The parts of the page, each from what the viewer may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote_from_bytes

from fsxwarm.client import naming, wire
from fsxwarm.client.glance import coverage, flight, hindrance, points, rate, settled, share, user, what
from fsxwarm.client.missing import Miss, misses, shortfall
from fsxwarm.daemon.page.charts import bar, curve
from fsxwarm.daemon.page.markup import Markup, join, tag
from fsxwarm.daemon.page.tables import cell, row, simple_row, table
from fsxwarm.daemon.page.tables import header as header_cell
from fsxwarm.model.units import format_count, format_duration, format_rate, format_size

_HOUR: Final = 3600.0


def header(overview: wire.Overview, viewer: str) -> Markup:
    """Whose page it is."""
    up = format_duration(overview["at"] - overview["health"]["started"])
    said = f"{viewer}; version {overview['health']['version']}, up {up}"
    return tag("header", tag("h1", "fsxwarm"), tag("p", said))


def problems(overview: wire.Overview) -> Markup:
    """What is wrong with the whole. By itself, so that it is read out when it changes and not with each update."""
    health = overview["health"]
    found = [*health.get("problems", [])]
    if health["stalled"] and not found:
        found.append("files are in flight and none becomes resident")
    if health["draining"]:
        found.append("the daemon is restarting")
    said = tag("ul", *[tag("li", problem) for problem in found], class_="problems") if found else Markup("")
    return tag("section", said, id="problems", role="alert")


def now(overview: wire.Overview) -> Markup:
    """Rate, window and space right now, and the last hour of them."""
    health = overview["health"]
    files, size = rate(overview)
    window, in_flight, stalled, _ = flight(health)
    known = in_flight and files and overview["limit"] != "unknown"
    binds = hindrance(in_flight, stalled) or (overview["limit"] if known else "nothing known")
    stuck = f"; {stalled:,} stalled" if stalled else ""
    jobs = ", ".join(f"{count:,} {phase}" for phase, count in sorted(health["jobs"].items()) if count) or "none"
    facts = [
        ("restoring", f"{format_rate(size)}, {files:,.0f} files/s"),
        ("in flight", f"{in_flight:,} of a window of {window:,}{stuck}"),
        ("what binds", binds),
        ("jobs", jobs),
    ]
    past, at = points(overview["past"]), overview["at"]
    return _section(
        "now",
        "Now",
        tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        curve("restored", [(one.at, one.bytes) for one in past], format_rate, over=_HOUR, until=at),
        curve(
            "in flight (and window)",
            [(one.at, float(one.in_flight)) for one in past],
            lambda value: f"{value:,.0f} files",
            over=_HOUR,
            until=at,
            others=[(one.at, float(one.window)) for one in past],
        ),
        _hour_in_words(overview),
    )


def _hour_in_words(overview: wire.Overview) -> Markup:
    """The curves as a table: for those who see none."""
    past = points(overview["past"])
    titles = ["when", "restored", "in flight", "window"]
    rows = []
    for start in range(max(0, len(past) - 360), len(past), 30):
        some = past[start : start + 30]
        ago = format_duration(max(0.0, overview["at"] - some[-1].at))
        speed = sum(one.bytes for one in some) / len(some)
        mean = sum(one.in_flight for one in some) / len(some)
        values = (f"{ago} ago", format_rate(speed), f"{mean:,.0f}", f"{max(one.window for one in some):,}")
        rows.append(simple_row(titles, values))
    shown = table("The last hour", titles, rows)
    return tag("details", tag("summary", "the last hour in numbers"), shown, id="hour")


def spaces(rooms: Sequence[wire.Room]) -> Markup:
    """Free space, with the marks between which room is made."""
    titles = ["file system", "used", "free", "making room"]
    rows = []
    for room in rooms:
        used = 1 - room["free"] / room["total"] if room["total"] else 0.0
        free = f"{format_size(room['free'])} of {format_size(room['total'])} free"
        marks = [
            (1 - mark / room["total"], f"{meaning} {format_size(mark)}")
            for mark, meaning in ((room["low"], "room is made below"), (room["high"], "until there is"))
            if mark and room["total"]
        ]
        made = ", ".join(meaning for _, meaning in marks) or "no room is made here"
        low = bool(room["low"]) and room["free"] < room["low"]
        drawn = bar(used, f"{used:.0%} used; {free}; {made}", style="low" if low else "used", marks=marks)
        values = (tag("bdi", room["path"]), drawn, free, made + (" (dry run)" if room["dry_run"] else ""))
        rows.append(simple_row(titles, values))
    if not rows:
        return _section("space", "Space", tag("p", "Free space has not been measured yet."))
    return _section("space", "Space", table("Free space", titles, rows))


def warm(overview: wire.Overview, *, links: bool) -> Markup:
    """How warm the configured paths are, as last counted. `links`: to their folders."""
    titles = ["path", "resident", "size", "released", "counted"]
    rows = []
    for stock in overview["stocks"]:
        part, resident, released = coverage(stock), stock["resident"], stock["released"]
        files = format_count(resident["files"] + released["files"], "file")
        path = [tag("bdi", stock["path"]), *([" ", tag("small", _folder(stock))] if links else [])]
        values = (
            join(*path),
            join(bar(part, f"{percent(part)} resident"), " ", percent(part)),
            f"{format_size(resident['bytes'] + released['bytes'])}, {files}",
            format_size(released["bytes"]),
            f"{format_duration(max(0.0, overview['at'] - stock['at']))} ago",
        )
        rows.append(simple_row(titles, values))
    if not rows:
        return Markup("")
    return _section("warm", "How warm", table("How warm the configured paths are", titles, rows))


def percent(part: float) -> str:
    """A share so that only everything is 100 % and only nothing 0 %."""
    return f"{part:.0%}" if part in {0.0, 1.0} else f"{min(max(part, 0.001), 0.999):.1%}"


def jobs(overview: wire.Overview) -> Markup:
    """Jobs with how far they are, how long still, and what binds."""
    rows = [_job(job, overview["limit"]) for job in overview["jobs"]]
    titles = ["job", "what", "phase", "settled", "", "rate", "left"]
    if not rows:
        return _section("jobs", "Jobs", tag("p", "You have no jobs."))
    return _section("jobs", "Jobs", table("Jobs", titles, rows, style="jobs"))


def _job(job: wire.Job, limit: str) -> Markup:
    done, found, part = settled(job), job["counters"]["found"], share(job)
    more = "" if job["counters"]["scanned"] or job["final"] else " found so far"
    said = f"{format_count(done['files'], 'file')} of {found['files']:,}{more}, {format_size(found['bytes'])}"
    binds = f"; the limit is {limit}" if limit != "unknown" else ""
    going = job["phase"] == "running"
    speed = f"{format_rate(job['bytes_per_second'])}{binds}" if going and job["bytes_per_second"] else ""
    left = format_duration(job["eta"]) if going and job["eta"] is not None else ""
    bad = shortfall(job)
    about: list[str] = [tag("bdi", what(job)), tag("small", f" {user(job['owner'])}, {job['kind'].replace('_', ' ')}")]
    folders = [_folder(name) for name in job["paths"][:3]] if job["kind"] != "release" else []
    if folders:
        about.append(tag("small", " ", *[join(" ", link) for link in folders]))
    if bad:
        about.append(tag("strong", f" {bad}", class_="bad"))
    if job["error"]:
        about.append(tag("strong", f" {job['error']}", class_="bad"))
    drawn = Markup("") if part is None else bar(part, f"{part:.0%} settled", style="done" if job["final"] else None)
    return row(
        header_cell(job["id"]),
        cell("", *about, class_="about"),
        cell("", job["phase"]),
        cell("", said),
        cell("", drawn, " ", "" if part is None else percent(part), class_="share"),
        cell("", speed),
        cell("left", left),
    )


def _folder(name: naming.Name) -> Markup:
    path = naming.exact(name)
    return tag("a", "folders", tag("span", " of ", name["path"], class_="unseen"), href=folders_address(path))


def folders_address(path: bytes, **more: str) -> str:
    """The address, relative to the page, of the folders below a path."""
    rest = "".join(f"&{key}={quote_from_bytes(value.encode())}" for key, value in more.items())
    return f"folders?path={quote_from_bytes(path)}{rest}"


def failures(some: Sequence[wire.Job], examples: Mapping[str, Sequence[wire.Failure]]) -> Markup:
    """Why files are not resident, what to do, and some of their names."""
    found = misses(some)
    if not found:
        return _section("failures", "Not resident", tag("p", "Nothing has failed."))
    return _section("failures", "Not resident", *[_miss(miss, examples.get(miss.reason, ())) for miss in found])


def _miss(miss: Miss, examples: Sequence[wire.Failure]) -> Markup:
    names: Iterable[Markup] = (
        tag("li", tag("bdi", one["path"]), tag("small", f" {one['detail']}") if one["detail"] else "")
        for one in examples
    )
    shown = tag("details", tag("summary", "some of them"), tag("ul", *names), id=f"some-{miss.reason}")
    return tag(
        "article",
        tag("h3", miss.title),
        tag("p", tag("b", "What to do: "), miss.todo) if miss.todo else Markup(""),
        shown if examples else Markup(""),
    )


def slowest(some: Sequence[wire.Slow]) -> Markup:
    """The files that have been at FSx for longest."""
    if not some:
        return _section("slow", "Longest at FSx", tag("p", "No file of yours is on its way."))
    titles = ["file", "since", "size", "moved", "asked"]
    rows = [
        simple_row(
            titles,
            (
                tag("bdi", one["path"]),
                format_duration(one["seconds"]),
                format_size(one["size"]),
                "" if one["moved"] is None else format_size(one["moved"]),
                "once" if one["attempts"] == 1 else f"{one['attempts']:,} times",
            ),
        )
        for one in some
    ]
    return _section("slow", "Longest at FSx", table("The files longest at FSx", titles, rows))


def _section(name: str, title: str, *content: str) -> Markup:
    return tag("section", tag("h2", title, id=f"{name}-title"), *content, id=name, aria_labelledby=f"{name}-title")
