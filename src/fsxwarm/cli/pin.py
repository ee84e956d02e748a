"""`fsxwarm pin` and `fsxwarm unpin`: keep files from being released, and let them go again."""

from __future__ import annotations

from fsxwarm.app import App
from fsxwarm.cli.live import ticking
from fsxwarm.cli.options import Braces, Exclude, FilesFrom, Include, Json, Nul, Paths
from fsxwarm.cli.output import console, emit_json
from fsxwarm.cli.run import run
from fsxwarm.cli.schema import PinDocument, issues, tally, unusable
from fsxwarm.cli.tables import show_leftovers, show_troubles
from fsxwarm.cli.wanted import Wanted
from fsxwarm.engine.pin import Pinned, pin_all
from fsxwarm.engine.selection import Selection
from fsxwarm.errors import Exit
from fsxwarm.model.units import format_count, format_size


def pin(
    paths: Paths = None,
    *,
    include: Include = None,
    exclude: Exclude = None,
    files_from: FilesFrom = None,
    nul: Nul = False,
    braces: Braces = False,
    json: Json = False,
) -> Exit:
    """Pin files: neither fsxwarm nor an FSx release task gives their space back until they are unpinned.

    Sets Lustre's norelease flag, which stays with the file. A file must be yours, unless you are root. Released files
    are not restored: preload them.
    """
    return _set(Wanted(paths, files_from, nul, include, exclude, braces), json=json, on=True)


def unpin(
    paths: Paths = None,
    *,
    include: Include = None,
    exclude: Exclude = None,
    files_from: FilesFrom = None,
    nul: Nul = False,
    braces: Braces = False,
    json: Json = False,
) -> Exit:
    """Unpin files: let them be released again. Clears Lustre's norelease flag."""
    return _set(Wanted(paths, files_from, nul, include, exclude, braces), json=json, on=False)


def _set(wanted: Wanted, *, json: bool, on: bool) -> Exit:
    async def work(app: App) -> Exit:
        selection = wanted.select(app, whole=True)
        result = Pinned(on)
        async with ticking(lambda: _line(result)):
            await pin_all(app.hsm, selection, result)
        code = _exit(result, selection)
        if json:
            emit_json(_document(result, selection, code))
        else:
            _show(result, selection)
        return code

    return run(work, json=json)


def _exit(result: Pinned, selection: Selection) -> Exit:
    failed = result.failed.count + result.troubles.count + selection.missing.count + selection.outside.count
    return Exit.INCOMPLETE if failed else Exit.DONE


def _line(result: Pinned) -> str:
    verb = "pinned" if result.on else "unpinned"
    return f"{verb} {format_count(result.done.files, 'file')}, {format_size(result.done.bytes)}"


def _show(result: Pinned, selection: Selection) -> None:
    out = console()
    out.print(_line(result))
    if result.failed.count:
        out.print(f"{format_count(result.failed.count, 'file')} could not be changed:", style="yellow")
        show_troubles(out, result.failed)
    if result.vanished:
        out.print(f"{format_count(result.vanished, 'path')} vanished meanwhile")
    show_leftovers(out, selection, result.troubles)


def _document(result: Pinned, selection: Selection, code: Exit) -> PinDocument:
    return {
        "schema": "fsxwarm.pin/1",
        "exit": int(code),
        "pinned": result.on,
        "done": tally(result.done),
        "failed": issues(result.failed),
        "vanished": result.vanished,
        "missing": unusable(selection.missing),
        "outside": unusable(selection.outside),
        "troubles": issues(result.troubles),
    }
