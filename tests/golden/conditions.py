"""The condition in which each recorded call met its files: what the case's name, note and neighbours tell.

Nothing here is an answer. A condition says which files exist, in which HSM state, what the coordinator does with
them, and which calls went before; the simulator must find out what `lfs` prints then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fsxwarm.model.hsm import IDLE, WEDGED_MOVED, Action, Flags, Verb
from fsxwarm.sim.lfs.kernel import Target

ALICE, BOB = 1001, 1002
USERS: Final = {"root": 0, "alice": ALICE, "bob": BOB}

PLAIN = Flags(0)
ARCHIVED = Flags.EXISTS | Flags.ARCHIVED
DIRTY = ARCHIVED | Flags.DIRTY
RELEASED = ARCHIVED | Flags.RELEASED


@dataclass(frozen=True, slots=True)
class File:
    """A regular file. `doing` is what the coordinator does with it; `unflushed`: written, still held open."""

    flags: Flags = PLAIN
    owner: int = 0
    mode: int = 0o644
    size: int = 3000
    fid: str = ""
    archive_id: int = 1
    doing: Action = IDLE
    unflushed: bool = False


@dataclass(frozen=True, slots=True)
class Folder:
    owner: int = 0
    mode: int = 0o755
    fid: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    target: bytes


@dataclass(frozen=True, slots=True)
class HardLink:
    of: bytes


@dataclass(frozen=True, slots=True)
class Special:
    """A FIFO (`p`), a character device (`c`) or a bound socket (`s`)."""

    letter: str


Thing = File | Folder | Link | HardLink | Special


@dataclass(frozen=True, slots=True)
class Condition:
    """`things` by absolute path, in the order in which their folders list them; `before`: calls that root made."""

    cwd: bytes
    things: Mapping[bytes, Thing]
    before: tuple[tuple[bytes, ...], ...] = ()
    lists: Mapping[bytes, bytes] = field(default_factory=dict)
    coordinator: str = "enabled"
    others_may_restore: bool = True
    targets: tuple[Target, ...] = ()

    def having(self, **changes: object) -> Condition:
        return replace(self, **changes)  # type: ignore[arg-type]  # the field names are checked by replace


plain = File()
archived = File(ARCHIVED)
released = File(RELEASED)
dirty = File(DIRTY)
lost = File(RELEASED | Flags.LOST)
waiting = File(RELEASED, doing=Action(Verb.RESTORE))


def running(moved: int = 0, size: int = 3000) -> File:
    return File(RELEASED, size=size, doing=Action(Verb.RESTORE, running=True, moved=moved))


def archiving(moved: int) -> File:
    return File(Flags.EXISTS, size=12 << 20, doing=Action(Verb.ARCHIVE, running=True, moved=moved))


wedged = File(RELEASED, doing=Action(Verb.RESTORE, running=True, moved=WEDGED_MOVED))

ODD_NAMES: Final = (
    b"a b",
    b"new\nline",
    b"--help",
    b"--",
    b"-dash",
    b"bad\xff\xfe\x80name",
    b"tab\tcr\resc\x1b[31m",
    b"q'\"`$(x)\\",
    b"a: (0x00000000)",
    b"%s%n%d",
    b"*?[a]",
    b"n" * 255,
    b"  lead and trail  ",
    "héllo-漢字-😀".encode(),
)

G: Final = b"/mnt/lustre/g"


def _below(folder: bytes, things: Mapping[bytes, Thing]) -> dict[bytes, Thing]:
    return {name if name.startswith(b"/") else folder + b"/" + name: thing for name, thing in things.items()}


def _many(pattern: str, numbers: range, thing: File) -> dict[bytes, Thing]:
    return {(pattern % number).encode(): thing for number in numbers}


_COMMON: dict[bytes, Thing] = {
    b"plain": plain,
    b"empty": File(size=0),
    b"arch": archived,
    b"emptyarch": File(ARCHIVED, size=0),
    b"dirty": dirty,
    b"dirty-open": archived,
    b"rel": released,
    b"rellost": lost,
    b"reldirty": released,
    b"dir": Folder(),
    b"hard": HardLink(b"rel"),
    b"ln-rel": Link(b"rel"),
    b"ln-dangling": Link(b"nosuch"),
    b"ln-dir": Link(b"dir"),
    b"ln-outside": Link(b"/etc/hostname"),
    b"fifo": Special("p"),
    b"chr": Special("c"),
    b"r600": File(ARCHIVED, mode=0o600),
    b"r644": archived,
    b"a600": File(ARCHIVED, owner=ALICE, mode=0o600),
    b"none-alice": File(ARCHIVED, owner=ALICE, mode=0),
    b"priv": Folder(mode=0o700),
    b"priv/f": archived,
    b"x: (0x0000000d) released exists archived, archive_id:1\ny": plain,
    **dict.fromkeys(ODD_NAMES, released),
    **{
        b"%b-%b" % (kind, flag): thing
        for kind, thing in ((b"set", plain), (b"aset", archived))
        for flag in (b"norelease", b"noarchive", b"lost", b"dirty", b"exists", b"archived")
    },
    **_many("q%d", range(6), released),
    b"b1": File(RELEASED, size=12 << 20),
    b"b2": File(RELEASED, size=12 << 20),
    b"b3": File(RELEASED, size=12 << 20),
    b"b4": File(RELEASED, size=12 << 20),
    **_many("x%d", range(1, 6), released),
    b"t0": released,
    b"t8": released,
    **dict.fromkeys((b"pfl", b"pfl4-fsx-like", b"stripe2", b"dom", b"mirror"), released),
    **_many("w%d", range(1, 9), released),
    b"w5b": released,
    b"arc2": File(RELEASED, archive_id=2),
    **_many("y%d", range(1, 4), released),
    **_many("k%d", range(1, 4), released),
    **_many("o%d", range(1, 5), archived),
    b"n1": released,
    b"c1": archived,
    b"c2": archived,
    b"c6": File(ARCHIVED, owner=ALICE),
    b"c7": File(ARCHIVED, owner=ALICE, mode=0o666),
    b"cd": dirty,
    b"np": plain,
    b"cn": File(ARCHIVED | Flags.NORELEASE),
    b"cl": File(ARCHIVED | Flags.LOST),
}
_DEEPEST: Final = G + b"/deep" + b"/" + b"/".join([b"d" * 200] * 18)
_DEEP: Final[dict[bytes, Thing]] = {_DEEPEST + b"/f": plain}


COMMON: Final = Condition(G, _below(G, _COMMON))

_R: Final = G + b"/r"
RESTORE: Final = Condition(
    _R,
    {
        **_below(_R, _COMMON),
        G + b"/fifo": Special("p"),
        **_below(
            _R,
            {
                **_many("a%d", range(1, 9), released),
                **_many("l%d", range(1, 3), released),
                b"lost1": lost,
                b"lost2": File(ARCHIVED | Flags.LOST),
                b"f21": released,
                b"own600": File(RELEASED, owner=ALICE, mode=0o600),
                b"own000": File(RELEASED, owner=ALICE, mode=0),
                b"own644": File(RELEASED, owner=ALICE),
                b"own600b": File(RELEASED, owner=ALICE, mode=0o600),
                b"root600": File(RELEASED, mode=0o600),
                b"root644": released,
                b"rootx": released,
            },
        ),
    },
)
_R2: Final = G + b"/r2"
LISTED: Final = Condition(
    _R2,
    _below(
        _R2,
        {
            **_many("f%d", range(1, 31), released),
            b"dirty": dirty,
            b"sp ace": released,
            b" lead": released,
            b"trail ": released,
            b"tab\t": released,
            b"nl\nx": released,
            b"-d2": released,
            b"q\xff": released,
        },
    ),
)
_R4: Final = G + b"/r4"
SIZED: Final = Condition(_R4, _below(_R4, _many("s%d", range(60), released)))

FIND_FX: Final = Condition(
    G + b"/fx",
    _below(
        G + b"/fx",
        {
            b"rel": released,
            b"-dash": released,
            b"nl\nname": released,
            b"bad\xff": released,
            b"arch": archived,
            b"plain": plain,
            b"rel0": File(RELEASED, size=0),
            b"dirty": dirty,
        },
    ),
)

GROUPS: Final[Mapping[str, Condition]] = {
    "hsm_restore": RESTORE,
    "hsm_restore_filelist": LISTED,
    "hsm_restore_size": SIZED,
    "hsm_restore_mntpath": LISTED,
    "hsm_release_size": SIZED.having(things=dict.fromkeys(SIZED.things, archived)),
    "lfs_find": FIND_FX,
}


def of(case: str) -> Condition:
    """Return the condition of a case: its own, or its group's."""
    if case in CASES:
        return CASES[case]
    return GROUPS.get(case.partition("/")[0], COMMON)


def _with(base: Condition, things: Mapping[bytes, Thing], **changes: object) -> Condition:
    return base.having(things={**base.things, **_below(base.cwd, things)}, **changes)


def _common(**things: Thing) -> Condition:
    return _with(COMMON, {name.encode(): thing for name, thing in things.items()})


def _restore(**things: Thing) -> Condition:
    return _with(RESTORE, {name.encode(): thing for name, thing in things.items()})


def _set(option: bytes, name: bytes) -> Condition:
    return COMMON.having(before=((b"lfs", b"hsm_set", option, name),))


def _list(content: bytes) -> Condition:
    return LISTED.having(lists={b"/tmp/fl": content})


def _numbered(count: int, before: bytes = b"") -> Condition:
    lines = b"".join(before + b"s%d\n" % number for number in range(count))
    return _with(SIZED, _many("s%d", range(count), released), lists={b"/tmp/fl": lines})


_TWO: Final = {b"/mnt/two/x": released}
_FIND_G: Final = Condition(
    G,
    _below(
        G,
        {
            b"q4": released,
            b"dir": Folder(),
            **{b"r6/" + name: released for name in (b"b2", b"x3", b"b5", b"x1", b"b4", b"x2", b"x5")},
            b"r6/b1": archived,
            "héllo-漢字-😀".encode(): released,
            b"--help": released,
            b"a600": File(RELEASED, owner=ALICE, mode=0o600),
            b"deep/below/f": released,
            b"q3": released,
            b"rel": released,
            b"reldirty": released,
            b"q'\"`$(x)\\": released,
            **{b"r5/" + name: released for name in b"t1 t6 t2 t13 z1 t5 t7 o1 z0 t12 z5M zsparse t15 t3 t9".split()},
            b"tab\tcr\resc\x1b[31m": released,
            b"--": released,
            b"priv": Folder(mode=0o700),
            b"priv/f": released,
            b"r600": File(RELEASED, mode=0o600),
            b"a: (0x00000000)": released,
            b"plain": plain,
            b"%s%n%d": released,
            b"-dash": released,
            **{b"r2/f" + number: released for number in b"25 6 28 22 26 21 11 23 29 7 30 24".split()},
            b"r2/nl\nx": released,
            b"r2/f27": released,
            b"r2/f1": archived,
            b"r2/f15": released,
            b"*?[a]": released,
            b"q0": released,
            b"emptyarch": File(RELEASED, size=0),
            b"  lead and trail  ": released,
            b"hard": released,
            b"rellost": lost,
            b"a b": released,
            b"new\nline": released,
            b"n" * 255: released,
            b"r644": released,
            b"dirty": dirty,
            b"bad\xff\xfe\x80name": released,
            **{b"fx/" + name: released for name in (b"rel", b"-dash", b"nl\nname", b"bad\xff")},
            b"fx/arch": archived,
            b"fx/rel0": File(RELEASED, size=0),
            **{
                b"r4/" + name: released
                for name in (
                    b"s16 s4 s59 s53 s24 c3 s40 s37 s30 s47 c4 s29 s23 s54 s9 s3 s11 s15 s27 s50 s7 s49 s34 s43 s39 s44"
                    b" s33 c7 s0 s57 s20 s12 s18 s55 s22 s28 s2 s8 s10 n3 s46 s31 c5 c2 n4 s36 s41 s17 s5 s25 s52 s58"
                    b" s1 s21 s56 s19 s13 s32 s45 s38 c6 c1 s42 s35 s48 s14 s51 s26 s6"
                ).split()
            },
            b"r/l2": released,
            b"r/lost1": lost,
            b"r/a5": released,
        },
    ),
)

CASES: Final[Mapping[str, Condition]] = {
    # hsm_state: files between opening, writing and closing
    "hsm_state/written-still-open": _with(COMMON, {b"dirty-open": File(ARCHIVED, unflushed=True)}),
    "hsm_state/written-closed": _with(COMMON, {b"dirty-open": dirty}),
    "hsm_state/written-not-closed-on-another-client": _common(o4=File(ARCHIVED, unflushed=True)),
    "hsm_release/written-not-closed-on-another-client": _common(o4=File(ARCHIVED, unflushed=True)),
    "hsm_state/written-closed-on-another-client": _common(o4=dirty),
    "hsm_state/after-append-to-released": _common(w1=dirty),
    "hsm_state/after-truncate-0-of-released": _common(w2=File(DIRTY, size=0)),
    # hsm_state after hsm_set
    **{
        f"hsm_state/plain+set-{flag}": _set(b"--" + flag.encode(), b"set-" + flag.encode())
        for flag in ("norelease", "noarchive", "lost", "dirty", "exists")
    },
    **{
        f"hsm_state/archived+set-{flag}": _set(b"--" + flag.encode(), b"aset-" + flag.encode())
        for flag in ("norelease", "noarchive", "lost", "dirty", "exists", "archived")
    },
    "hsm_set/released-lost": _common(rellost=released),
    "hsm_state/released+lost": _with(
        COMMON, {b"rellost": released}, before=((b"lfs", b"hsm_set", b"--lost", b"rellost"),)
    ),
    "hsm_state/released+set-dirty": _set(b"--dirty", b"reldirty"),
    # names and places
    **{
        f"hsm_state/{name}": COMMON.having(cwd=b"/", things=_DEEP)
        for name in (
            "long-path-dir-822",
            "long-path-dir-1827",
            "long-path-dir-3636",
            "long-path-3638",
            "path-4088-missing",
        )
    },
    "hsm_state/long-path-archived-3638": COMMON.having(cwd=b"/", things={_DEEPEST + b"/f": archived}),
    "hsm_state/other-lustre-fs": _with(COMMON, _TWO),
    "hsm_state/as-bob-released-root-0644": _common(r644=released),
    # a copy agent that is stopped, a coordinator that is disabled, then shut down
    "hsm_action/restore-copytool-stopped-after-0s": _common(q0=waiting),
    "hsm_state/restore-in-progress-copytool-stopped-0s": _common(q0=waiting),
    **{
        case: _common(q0=running())
        for case in (
            "hsm_action/restore-copytool-stopped-after-1s",
            "hsm_state/restore-in-progress-copytool-stopped-1s",
            "hsm_action/restore-copytool-stopped-after-3s",
            "hsm_state/restore-in-progress-copytool-stopped-3s",
            "hsm_restore/again-while-restore-running",
            "hsm_release/while-restore-running",
            "hsm_action/as-bob-restore-running",
        )
    },
    "hsm_restore/max_requests-1-second": _common(q0=running()),
    "hsm_action/restore-waiting-2": _common(q0=running(), q1=waiting, q2=waiting),
    "hsm_state/restore-waiting": _common(q0=running(), q1=waiting, q2=waiting),
    "hsm_restore/again-while-waiting": _common(q0=running(), q1=waiting, q2=waiting),
    "hsm_action/remove-in-progress": _common(arch=File(ARCHIVED, doing=Action(Verb.REMOVE))),
    "hsm_state/remove-in-progress": _common(arch=File(ARCHIVED, doing=Action(Verb.REMOVE))),
    "hsm_cancel/restore-running-copytool-stopped": _common(q2=running()),
    **{
        case: _with(COMMON, {b"q2": running()}, before=((b"lfs", b"hsm_cancel", b"q2"),))
        for case in ("hsm_action/after-cancel-copytool-stopped", "hsm_state/after-cancel-copytool-stopped")
    },
    "hsm_cancel/as-bob": _common(q1=waiting),
    "hsm_state/after-copytool-continued": _common(q0=released, q1=archived, q2=archived, qa=plain),
    "hsm_action/after-cancel-copytool-continued": _common(q2=archived),
    "hsm_restore/hsm_control-disabled": COMMON.having(coordinator="disabled"),
    **{
        case: _with(COMMON, {b"q3": waiting}, coordinator="disabled")
        for case in (
            "hsm_action/hsm_control-disabled",
            "hsm_state/hsm_control-disabled-restore-queued",
            "hsm_cancel/waiting-while-disabled",
        )
    },
    "hsm_action/after-cancel-of-waiting": _with(
        COMMON, {b"q3": waiting}, coordinator="disabled", before=((b"lfs", b"hsm_cancel", b"q3"),)
    ),
    **{
        case: COMMON.having(coordinator="shutdown")
        for case in (
            "hsm_restore/hsm_control-shutdown",
            "hsm_action/hsm_control-shutdown",
            "hsm_state/hsm_control-shutdown",
        )
    },
    "hsm_release/hsm_control-shutdown": _with(COMMON, {b"q0": archived}, coordinator="shutdown"),
    # hsm_restore
    "hsm_restore/copytool-sigstopped": COMMON,
    "hsm_restore/already-resident": _restore(a1=archived),
    "hsm_restore/mixed-two-lustre-filesystems": _with(RESTORE, {b"/mnt/two/y": released}),
    "hsm_restore/mixed-two-lustre-filesystems-2": _with(RESTORE, _TWO),
    "hsm_restore/mixed-two-lustre-filesystems-3": _with(RESTORE, _TWO),
    "hsm_restore/name-invalid-utf8#2": _with(RESTORE, {b"bad\xff\xfe\x80name": archived}),
    "hsm_restore/mixed-archive-without-agent": _with(
        RESTORE, {b"arc2": File(RELEASED, archive_id=2, doing=Action(Verb.RESTORE))}
    ),
    "hsm_restore/mixed-archive-without-agent#2": _with(
        RESTORE, {b"arc2": File(RELEASED, archive_id=2, doing=Action(Verb.RESTORE))}
    ),
    "hsm_restore/other_request_mask-no-RESTORE-as-bob": RESTORE.having(others_may_restore=False),
    "hsm_restore/other_request_mask-no-RESTORE-as-alice-own-then-root": _with(
        RESTORE, {b"w8": File(RELEASED, owner=ALICE)}, others_may_restore=False
    ),
    # lists
    "hsm_restore_filelist/absolute": _list(b"/mnt/lustre/g/r2/f3\n"),
    "hsm_restore_filelist/no-final-newline": _list(b"f4\nf5"),
    "hsm_restore_filelist/blank-line-middle": _list(b"f6\n\nf7\n"),
    "hsm_restore_filelist/blank-line-end": _list(b"f6\n\n"),
    "hsm_restore_filelist/empty-list": _list(b""),
    "hsm_restore_filelist/only-newline": _list(b"\n"),
    "hsm_restore_filelist/spaces": _list(b"sp ace\n lead\ntrail \ntab\t\n"),
    "hsm_restore_filelist/comment": _list(b"# x\nf6\n"),
    "hsm_restore_filelist/quoted": _list(b'"f6"\n'),
    "hsm_restore_filelist/newline-in-name": _list(b"nl\nx\n"),
    "hsm_restore_filelist/leading-dash": _list(b"-d2\n"),
    "hsm_restore_filelist/invalid-utf8": _list(b"q\xff\n"),
    "hsm_restore_filelist/nul-separated": _list(b"f8\x00f9\x00"),
    "hsm_restore_filelist/nul-then-newline": _list(b"f8\x00\nf9\x00\n"),
    "hsm_restore_filelist/duplicates": _list(b"f10\nf10\nf10\n"),
    "hsm_restore_filelist/relative-other-cwd": _list(b"f11\n").having(cwd=b"/"),
    "hsm_restore_filelist/list+args": _list(b"f12\n"),
    "hsm_restore_filelist/dirty-in-middle": _list(b"f14\ndirty\nf15\n"),
    "hsm_restore_filelist/short-option-l": _list(b"f14\ndirty\nf15\n"),
    "hsm_restore_mntpath/mntpath-fid": _with(LISTED, {b"f16": File(RELEASED, fid="[0x200000402:0xc4:0x0]")}),
    "hsm_restore_mntpath/mntpath-filelist-of-fids": _with(
        LISTED,
        {b"f19": File(RELEASED, fid="[0x200000402:0xc5:0x0]")},
        lists={b"/tmp/fl": b"[0x200000402:0xc5:0x0]\n"},
    ),
    "hsm_restore_mntpath/mntpath-fid-as-bob": _with(
        LISTED, {b"f20": File(RELEASED, mode=0o600, fid="[0x200000402:0xc6:0x0]")}
    ),
    "hsm_restore_size/filelist-10": _numbered(10),
    "hsm_restore_size/filelist-52": _numbered(52),
    "hsm_restore_size/filelist-53": _numbered(53),
    "hsm_restore_size/filelist-1000": _numbered(1000, _R4 + b"/"),
    "hsm_restore_size/filelist-10000": _numbered(10000, _R4 + b"/"),
    "hsm_restore_size/filelist-50000": _numbered(50000, _R4 + b"/"),
    # hsm_release and hsm_set
    "hsm_release/already-released": _common(c1=released),
    "hsm_release/while-archive-running": _common(b1=archiving(6 << 20)),
    "hsm_release/after-close": _common(c2=released),
    **{
        f"layout/{layout}-release": _common(**{layout: archived})
        for layout in ("pfl", "pfl4-fsx-like", "stripe2", "dom", "mirror")
    },
    # readers and slow transfers
    "hsm_action/restore-by-read": _common(t8=running()),
    "hsm_state/restore-queued-by-hsm_restore": _common(t0=waiting, t8=running()),
    "hsm_action/archive-running-0": _common(b1=archiving(4 << 20)),
    "hsm_state/archive-running-0": _common(b1=archiving(4 << 20)),
    "hsm_action/archive-running-2": _common(b1=archiving(6 << 20)),
    "hsm_state/archive-running-2": _common(b1=archiving(6 << 20)),
    **{
        f"hsm_action/restore-progress-{number}": _common(b1=running(moved << 20, size=12 << 20))
        for number, moved in enumerate((1, 2, 4, 5, 7))
    },
    "hsm_state/restore-progress": _common(b1=running(7 << 20, size=12 << 20)),
    "hsm_state/restore-done-slow": _common(b1=File(ARCHIVED, size=12 << 20)),
    "hsm_action/before-cancel": _common(b2=running(2 << 20, size=12 << 20)),
    "hsm_cancel/running-slow-restore": _common(b2=running(2 << 20, size=12 << 20)),
    "copytool-killed/hsm_cancel-of-the-stuck-one": _common(b3=running(2 << 20, size=12 << 20)),
    "during-restore/action-after-rename": _common(w3b=running()),
    "during-restore/lfs-find-released": _common(w3b=running()),
    "during-restore/hsm_state-other-client": COMMON.having(things={G + b"/r10/w3b": running()}),
    "during-restore/action-after-unlink": COMMON.having(things={G + b"/r10/w3b": running()}),
    "hsm_state/archive-id-2": _common(arc2=plain),
    "hsm_state/archive-id-2#2": _common(arc2=File(RELEASED, archive_id=2)),
    **{
        case: _common(arc2=File(RELEASED, archive_id=2, doing=Action(Verb.RESTORE)))
        for case in ("hsm_cancel/waiting-without-agent", "hsm_cancel/waiting-without-agent#2")
    },
    "wedged/action": _common(y2=wedged, y3=wedged),
    "wedged/state": _common(y2=wedged, y3=wedged),
    "wedged/cancel": _common(y2=wedged, y3=wedged),
    "wedged/cancel-2": _common(k1=wedged, k3=wedged),
    # find, path2fid, df
    "lfs_find/as-bob": _FIND_G,
    "lfs_find/priv-as-bob": _FIND_G,
    **{
        f"lfs_misc/path2fid-{name}": _common(
            w1=File(fid="[0x200000402:0x119a:0x0]"), w2=File(fid="[0x200000402:0x119b:0x0]")
        )
        for name in ("1", "2", "missing")
    },
    "lfs_misc/df": COMMON.having(
        targets=(
            Target("lustre-MDT0000", 0, True, 15550848 << 10, 5120 << 10, 15543680 << 10),
            Target("lustre-MDT0001", 1, True, 15548928 << 10, 3200 << 10, 15543680 << 10),
            Target("lustre-OST0000", 0, False, 15580160 << 10, 34816 << 10, 15543296 << 10),
            Target("lustre-OST0001", 1, False, 15570944 << 10, 25600 << 10, 15543296 << 10),
        )
    ),
    "lfs_misc/path2fid-dir": COMMON.having(
        cwd=G + b"/r10", things={G + b"/r10": Folder(fid="[0x200000402:0x1180:0x0]")}
    ),
}
