"""`lfs df`, `path2fid`, `getname`, `getstripe -L` and `setstripe`: about mounts and layouts."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import Final

from fsxwarm.sim.lfs.getopt import BadOptionError, Spec, parse
from fsxwarm.sim.lfs.kernel import Kernel, Target
from fsxwarm.sim.lfs.outcome import Outcome, Output, UsageError, number, strerror

_PLAIN: Final = Spec(short={"h": False}, long={"help": "h"})
_GETSTRIPE: Final = Spec(short={"L": False, "h": False}, long={"layout": "L", "help": "h"})
_SETSTRIPE: Final = Spec(
    short={"c": True, "S": True, "i": True, "E": True, "L": True, "p": True, "h": False},
    long={
        "stripe-count": "c",
        "stripe-size": "S",
        "stripe-index": "i",
        "component-end": "E",
        "layout": "L",
        "pool": "p",
        "help": "h",
    },
)
_ROW: Final = "{:<20} {:>11} {:>11} {:>11} {:>4} {}\n"


def path2fid(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs path2fid`: goes on after a bad name, exits with the first one's errno; names files when several."""
    paths = _operands(_PLAIN, argv)
    if not paths:
        raise UsageError
    output = Output()
    status = 0
    for path in paths:
        try:
            fid = str(kernel.path2fid(path)).encode()
        except OSError as error:
            output.complain(b"lfs path2fid: cannot get fid for '%b': %b" % (path, strerror(number(error))))
            status = status or number(error)
        else:
            output.print(path + b": " + fid if len(paths) > 1 else fid)
    return output.exit(status)


def getname(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs getname`: the client's instance of a mount."""
    output = Output()
    status = 0
    for path in _operands(_PLAIN, argv):
        try:
            mounted = kernel.mounted(path)
        except OSError as error:
            words = strerror(number(error))
            output.complain(b"lfs getname: cannot get lov name: %b (%d)" % (words, number(error)))
            output.complain(b"cannot get instance for '%b': %b" % (path, words))
            status = status or number(error)
        else:
            output.print(f"{mounted.fsname}-{mounted.instance} ".encode() + path)
    return output.exit(status)


def df(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs df PATH`: in KiB; the summary adds up the OSTs alone."""
    paths = _operands(_PLAIN, argv)
    output = Output()
    if not paths:
        raise UsageError
    try:
        mount = kernel.mounted(paths[0])
    except OSError as error:
        status = errno.EOPNOTSUPP if number(error) == errno.ENOTTY else number(error)
        output.complain(b"lfs df: '%b' is not on a mounted Lustre file system: %b" % (paths[0], strerror(status)))
        return output.exit(status)
    targets = kernel.targets(mount.path)
    place = mount.path.decode("utf-8", "surrogateescape")
    table = _ROW.format("UUID", "1K-blocks", "Used", "Available", "Use%", "Mounted on")
    for target in targets:
        kind = "MDT" if target.is_mdt else "OST"
        table += _row(f"{target.name}_UUID", [target], f"{place}[{kind}:{target.number}]")
    table += "\n" + _row("filesystem_summary:", [target for target in targets if not target.is_mdt], place)
    output.print(table.encode("utf-8", "surrogateescape"))
    return output.exit(0)


def getstripe(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs getstripe -L FILE...`: the layout pattern alone; nothing else of getstripe is simulated."""
    try:
        options, paths = parse(_GETSTRIPE, argv)
    except BadOptionError as error:
        raise UsageError(b"lfs: unrecognized option '%b'" % error.named) from error
    if not paths or [option.letter for option in options] != ["L"]:
        raise UsageError
    output = Output()
    status = 0
    for path in paths:
        try:
            kernel.lstat(path)
            released = kernel.released(path)
        except OSError as error:
            output.complain(b"lfs: getstripe for '%b' failed: %b" % (path, strerror(number(error))))
            status = status or number(error)
        else:
            if released is not None:
                output.print(b"released" if released else b"raid0", b"\n\n")
    return output.exit(status)


def setstripe(argv: Sequence[bytes], kernel: Kernel) -> Outcome:
    """`lfs setstripe [OPTIONS] FILE...`: makes empty files; every layout behaves alike in the simulation."""
    output = Output()
    status = 0
    paths = _operands(_SETSTRIPE, argv)
    if not paths:
        raise UsageError
    for path in paths:
        try:
            kernel.create(path)
        except OSError as error:
            output.complain(b"lfs setstripe: cannot create composite file '%b': %b" % (path, strerror(number(error))))
            status = status or number(error)
    return output.exit(status)


def _operands(spec: Spec, argv: Sequence[bytes]) -> list[bytes]:
    try:
        options, paths = parse(spec, argv)
    except BadOptionError as error:
        raise UsageError(b"lfs: unrecognized option '%b'" % error.named) from error
    if any(option.letter == "h" for option in options):
        raise UsageError
    return paths


def _row(name: str, targets: Iterable[Target], place: str) -> str:
    listed = list(targets)
    total, used, free = (
        sum(numbers) // 1024
        for numbers in ([t.total for t in listed], [t.used for t in listed], [t.free for t in listed])
    )
    percent = -(-100 * used // (used + free)) if used + free else 0
    return _ROW.format(name, total, used, free, f"{percent}%", place)
