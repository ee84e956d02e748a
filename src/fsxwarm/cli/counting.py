"""Having the daemon count: `fsxwarm status` where one answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fsxwarm.cli.output import complain, emit_json
from fsxwarm.cli.schema import error_document
from fsxwarm.cli.status_view import exit_of, show, status_document
from fsxwarm.client import naming, wire
from fsxwarm.client.client import Client
from fsxwarm.engine.selection import Unusable
from fsxwarm.engine.status import FlagTallies, Status
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.entry import Trouble
from fsxwarm.model.tally import Coverage, Tally


@dataclass(slots=True)
class _Unfit:
    """See `Unfit`."""

    missing: Unusable
    outside: Unusable


def status_by_daemon(client: Client, wish: wire.CountWish, *, check: bool, json: bool) -> Exit:
    """Have the daemon count how much is resident, and show it."""
    try:
        with client:
            answer = client.count(wish)
    except FsxwarmError as error:
        if json:
            emit_json(error_document(error))
        raise
    found = _status(answer, wish.get("depth"))
    unfit = _Unfit(_unusable(answer["missing"]), _unusable(answer["outside"]))
    code = exit_of(found, unfit, check=check)
    if json:
        emit_json(status_document(found, unfit, code))
    else:
        complain("asked the daemon")
        show(found, unfit)
    return code


def _status(answer: wire.Counted, depth: int | None) -> Status:
    found = Status(
        all=_coverage(answer), unknown=_tally(answer["unknown"]), vanished=answer["vanished"],
        skipped=answer["skipped"], depth=depth,
    )  # fmt: skip
    found.troubles.count = answer["troubles"]
    found.troubles.first += [Trouble(naming.exact(one), one["errno"], one["text"]) for one in answer["first_troubles"]]
    if "flags" in answer:
        flags = answer["flags"]
        found.flags = FlagTallies(**{one.name: _tally(flags[one.name]) for one in fields(FlagTallies)})  # type: ignore[literal-required]  # the names are the same
    for folder in answer.get("folders", ()):
        found.folders[naming.exact(folder)] = _coverage(folder)
    return found


def _coverage(share: wire.Share) -> Coverage:
    return Coverage(_tally(share["resident"]), _tally(share["released"]))


def _tally(count: wire.Count) -> Tally:
    return Tally(count["files"], count["bytes"])


def _unusable(some: wire.Unusable) -> Unusable:
    return Unusable(some["count"], [naming.exact(one) for one in some["first"]])
