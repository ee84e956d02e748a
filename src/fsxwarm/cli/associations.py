"""`fsxwarm associations`: which folders show which S3 prefixes, and what is wrong with them."""

from __future__ import annotations

from typing import Final, TypedDict

from rich.text import Text

from fsxwarm.app import App
from fsxwarm.cli.options import Json, Paths, absolute
from fsxwarm.cli.output import console, emit_json, safe, show_path
from fsxwarm.cli.run import run
from fsxwarm.cli.schema import FilePath, json_path
from fsxwarm.cli.tables import plain_table
from fsxwarm.engine.atlas import Atlas, Chart
from fsxwarm.errors import CONSEQUENCES, Exit, FsxwarmError, Kind
from fsxwarm.model.association import Complaint, Link, complaint_of, link_of
from fsxwarm.model.entry import Trouble
from fsxwarm.model.filesystems import is_lustre_client
from fsxwarm.ports.tree import Tree

_NO_LINK: Final = Complaint(
    "no association: nothing here comes from S3", "make one in the FSx console, or with CreateDataRepositoryAssociation"
)


class ComplaintDocument(TypedDict):
    """What is wrong, and what to do."""

    what: str
    todo: str


class AssociationDocument(FilePath):
    """One association: `path` is where it shows, `id` is empty for a legacy link (ImportPath)."""

    id: str
    uri: str
    lifecycle: str
    imports: list[str]
    exports: list[str]
    legacy: bool
    complaint: ComplaintDocument | None


class MountDocument(FilePath):
    """One mount: its file system's id (empty when AWS could not tell) and its associations."""

    source: str
    file_system: str
    associations: list[AssociationDocument]
    complaint: ComplaintDocument | None


class AssociationsDocument(TypedDict):
    """`fsxwarm.associations/1`."""

    schema: str
    exit: int
    mounts: list[MountDocument]


def associations(paths: Paths = None, *, json: Json = False) -> Exit:
    """Show which folders are linked to which S3 prefixes, how they are kept in step, and what is wrong with them.

    With PATHs: only the associations that they lie in, or that lie below them. Asks FSx: needs AWS credentials.
    """

    async def work(app: App) -> Exit:
        atlas = app.aws.atlas
        if not atlas.mounts:
            raise FsxwarmError(Kind.NOT_LUSTRE, "no Lustre file system is mounted here")
        charts = await atlas.charts()
        if paths:
            charts = await _about(atlas, [await _real(app.tree, absolute(path)) for path in paths])
        code = _exit(charts)
        if json:
            emit_json(_document(charts, code))
        else:
            _show(charts)
        return code

    return run(work, json=json)


async def _real(tree: Tree, path: bytes) -> bytes:
    place = await tree.resolve(path)
    if isinstance(place, Trouble):
        raise FsxwarmError(Kind.NO_SUCH_PATH, f"{show_path(path)} cannot be looked at")
    if not is_lustre_client(place.fstype, place.source):
        raise FsxwarmError(Kind.NOT_LUSTRE, f"{show_path(path)} is not on FSx for Lustre")
    return place.path


async def _about(atlas: Atlas, paths: list[bytes]) -> list[Chart]:
    """The charts of these paths, with those of their links that have to do with them."""
    chosen: dict[bytes, Chart] = {}
    for path in paths:
        chart = await atlas.chart_of(path)
        if chart is None:
            continue
        known = chosen.get(chart.mount.path)
        wanted = {link for link in chart.links if link.base.startswith(path.rstrip(b"/") + b"/") or link.base == path}
        wanted |= {link} if (link := link_of(path, chart.links)) else set()
        wanted |= set(known.links) if known else set()
        kept = tuple(link for link in chart.links if link in wanted)
        chosen[chart.mount.path] = Chart(chart.mount, chart.system, kept, chart.complaint, chart.failure)
    return list(chosen.values())


def _exit(charts: list[Chart]) -> Exit:
    if all(chart.failure is not None for chart in charts):
        return CONSEQUENCES[Kind.CLOUD].exit
    wrong = any(_complaint(chart) or any(complaint_of(link.association) for link in chart.links) for chart in charts)
    return Exit.INCOMPLETE if wrong else Exit.DONE


def _complaint(chart: Chart) -> Complaint | None:
    return chart.complaint or (None if chart.links else _NO_LINK)


def _show(charts: list[Chart]) -> None:
    out = console()
    table = plain_table("path", [])
    for title in ("S3", "state", "imports", "exports", "id"):
        table.add_column(title, overflow="fold")
    complaints: list[tuple[str, Complaint]] = []
    for chart in charts:
        for link in chart.links:
            one = link.association
            wrong = complaint_of(one)
            if wrong is not None:
                complaints.append((show_path(link.base or b"/"), wrong))
            table.add_row(
                show_path(link.base or b"/"),
                safe(str(one.uri)),
                Text(one.lifecycle, "yellow" if wrong else "green"),
                " ".join(one.imports) or "-",
                " ".join(one.exports) or "-",
                one.id or "ImportPath",
            )
        if (wrong := _complaint(chart)) is not None:
            complaints.append((show_path(chart.mount.path), wrong))
    if table.row_count:
        out.print(table)
    for where, wrong in complaints:
        out.print(Text(f"{where}: {safe(wrong.what)}", "yellow"))
        out.print(f"  → {safe(wrong.todo)}")


def _document(charts: list[Chart], code: Exit) -> AssociationsDocument:
    return {"schema": "fsxwarm.associations/1", "exit": int(code), "mounts": [_mount(chart) for chart in charts]}


def _mount(chart: Chart) -> MountDocument:
    return {
        **json_path(chart.mount.path),
        "source": chart.mount.source,
        "file_system": chart.system.id if chart.system else "",
        "associations": [_link(link) for link in chart.links],
        "complaint": _wrong(_complaint(chart)),
    }


def _wrong(complaint: Complaint | None) -> ComplaintDocument | None:
    return None if complaint is None else {"what": complaint.what, "todo": complaint.todo}


def _link(link: Link) -> AssociationDocument:
    one = link.association
    return {
        **json_path(link.base or b"/"),
        "id": one.id,
        "uri": str(one.uri),
        "lifecycle": one.lifecycle,
        "imports": list(one.imports),
        "exports": list(one.exports),
        "legacy": one.legacy,
        "complaint": _wrong(complaint_of(one)),
    }
