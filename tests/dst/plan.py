"""What one simulation is about: a world, what clients do in it, and what goes wrong, all drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fsxwarm.engine.warm import Wish
from fsxwarm.model.hsm import Flags
from fsxwarm.model.policy import Policy, WindowPolicy
from fsxwarm.model.units import Amount
from fsxwarm.sim.faults import CallFault, Fault
from fsxwarm.sim.inodes import LUSTRE_DEV
from fsxwarm.sim.spec import Costs, WorldSpec

CLEAN = Flags.EXISTS | Flags.ARCHIVED
COLD = CLEAN | Flags.RELEASED
USER = 1000

ODD_NAMES = (
    b"-n",
    b"a b",
    b"x\ny",
    b"\xff\xfe",
    b"q: (0x0d)",
    b"{1,2}",
    b"*",
    b"'\"",
    b"\xc3\xa9",
    b" ",
    b"--",
    b"t\tt",
)
SIZES = (0, 1, 400, 513, 4_096, 100_000, 1_000_000, 30_000_000, 400_000_000)
BIG = 2_500_000_000
STUCK = frozenset({Fault.STUCK, Fault.DIES, Fault.WEDGED})


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is at first; `links` are its further names."""

    path: bytes
    size: int
    flags: Flags = COLD
    uid: int = 0
    mode: int = 0o644
    links: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """What a client runs: `what` is preload, release, pin, unpin or status, over `paths`.

    Times in seconds: `interrupt` after its start (None: never), `crashes` at which its process dies, each followed by
    the same command `restart` seconds later. `orphans`: its lfs children outlive it.
    """

    what: str
    at: float
    paths: tuple[bytes, ...]
    root: bool = True
    policy: Policy = field(default_factory=Policy)
    wish: Wish = field(default_factory=Wish)
    interrupt: float | None = None
    crashes: tuple[float, ...] = ()
    restart: float = 1.0
    orphans: bool = False


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that somebody else does to the world at a time; `other` is a second path, `number` an amount."""

    at: float
    what: str
    path: bytes = b""
    other: bytes = b""
    number: float = 0.0


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file whose first `tries` restores go wrong."""

    path: bytes
    fault: Fault
    tries: int


@dataclass(frozen=True, slots=True)
class BadCalls:
    """Calls of a kind that go wrong with a probability, between two times."""

    kind: str
    fault: CallFault
    share: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Plan:
    """All that happens, but for what follows from it. `deadline` is the adapters' for one call, in seconds."""

    seed: int
    spec: WorldSpec
    files: tuple[File, ...]
    symlinks: tuple[tuple[bytes, bytes], ...] = ()
    commands: tuple[Command, ...] = ()
    deeds: tuple[Deed, ...] = ()
    bad_files: tuple[BadFile, ...] = ()
    bad_calls: tuple[BadCalls, ...] = ()
    deadline: float = 20.0

    @property
    def faults_end(self) -> float:
        """When the last trouble is over, and the last command begun."""
        times = [0.0]
        times += [bad.end for bad in self.bad_calls]
        times += [deed.at for deed in self.deeds]
        times += [deed.at + deed.number for deed in self.deeds if deed.what in {"stop coordinators", "shut down"}]
        for command in self.commands:
            times += [command.at, *(at + command.restart for at in command.crashes)]
        return max(times)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)

    @property
    def quiet(self) -> bool:
        """Whether what becomes of each file follows from the plan alone, whatever the timing.

        Nobody else changes files, nothing is interrupted or short of room, and what goes wrong with a restore goes
        wrong either always or so seldom that the attempts of one run suffice.
        """
        return (
            {deed.what for deed in self.deeds} <= {"read", "stop coordinators", "set agents"}
            and all(c.what in {"preload", "status"} and c.interrupt is None for c in self.commands)
            and all(c.wish.deadline is None and c.root for c in self.commands)
            and self.spec.ost_size > 10**14
            and all(bad.tries in {1, 10**9} and bad.fault not in STUCK for bad in self.bad_files)
            and not self.bad_calls
        )

    def without_crashes(self) -> Plan:
        """The same plan without any process dying."""
        return replace(self, commands=tuple(replace(command, crashes=()) for command in self.commands))


def draw(seed: int) -> Plan:
    """Draw a plan. The same seed gives the same plan."""
    return _Drawing(random.Random(seed), seed).plan()


class _Drawing:
    """One plan in the making."""

    def __init__(self, rng: random.Random, seed: int) -> None:
        self.rng = rng
        self.seed = seed
        self.folders: list[bytes] = [b"/fsx"]
        self.stat_settles = False
        self.skip_duplicates: frozenset[int] = frozenset()
        self.users_may_restore = True

    def plan(self) -> Plan:
        files = self.files()
        mood = self.rng.choice(("quiet", "crash", "outsiders", "faults", "faults", "all", "all"))
        spec = self.spec(files, tight=mood in {"all", "outsiders"} and self.rng.random() < 0.3)
        self.stat_settles = spec.version >= (2, 15)
        if not spec.duplicates_block and self.seed % 2:
            self.skip_duplicates = frozenset({LUSTRE_DEV})
        self.users_may_restore = spec.users_may_restore
        commands = self.commands(files, crash=mood in {"crash", "all"}, calm=mood in {"quiet", "crash"})
        deeds: list[Deed] = []
        if mood in {"outsiders", "all"}:
            deeds += self.outsiders(files)
        if mood in {"faults", "all"}:
            deeds += self.accidents()
        faulty = mood in {"faults", "all"}
        return Plan(
            seed=self.seed,
            spec=spec,
            files=files,
            symlinks=tuple((file.path, self.path(n + 1000)) for n, file in enumerate(files[:3]) if self.chance(0.3)),
            commands=commands,
            deeds=tuple(sorted(deeds, key=lambda deed: deed.at)),
            bad_files=self.bad_files(files, calm=not faulty),
            bad_calls=self.bad_calls() if faulty else (),
        )

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # ---- the world ---------------------------------------------------------------------------------------------

    def spec(self, files: Sequence[File], *, tight: bool) -> WorldSpec:
        rng = self.rng
        osts = rng.choice((1, 2, 4))
        total = sum(file.size for file in files) + 10_000
        return WorldSpec(
            mdts=rng.choice((1, 1, 2, 4)),
            agents=rng.choice((1, 2, 4, 16, 64)),
            max_requests=rng.choice((None, None, 3, 10)),
            bandwidth=rng.choice((2e8, 1e9, 5e9)),
            latency=rng.choice((0.01, 0.1, 0.5, 2.0)),
            loop=rng.choice((0.0, 0.0, 0.0, 10.0)),
            osts=osts,
            ost_size=int(total * rng.uniform(0.4, 1.3)) // osts if tight else 10**15,
            version=rng.choice(((2, 12, 9), (2, 15, 8), (2, 15, 8), (2, 16, 0))),
            request_timeout=rng.choice((40.0, 90.0)),
            report_every=rng.choice((1.0, 5.0)),
            space_delay=rng.choice((0.0, 3.0)),
            users_may_restore=not self.chance(0.15),
            costs=rng.choice(
                (
                    Costs(),
                    Costs(stat=1e-5, state=1e-4, action=1e-4, request=1e-3, process=0.03),
                    Costs(stat=1e-4, state=1e-3, action=2e-3, request=0.01, process=0.4, per_queued=1e-4),
                )
            ),
        )

    def path(self, number: int) -> bytes:
        rng = self.rng
        if self.chance(0.25) and len(self.folders) < 8:
            name = rng.choice(ODD_NAMES) if self.chance(0.3) else b"d%d" % len(self.folders)
            folder = rng.choice(self.folders) + b"/" + name
            if folder not in self.folders:
                self.folders.append(folder)
        name = b"%d" % number + (rng.choice(ODD_NAMES) if self.chance(0.2) else b".bin")
        return rng.choice(self.folders) + b"/" + name

    def files(self) -> tuple[File, ...]:
        rng = self.rng
        count = rng.choice((1, 3, 8, 20, 40, 60))
        kinds = rng.choice((SIZES, SIZES, (100_000,), (1_000_000, 30_000_000), (*SIZES, BIG)))
        files = []
        for number in range(count):
            flags = rng.choices(
                (COLD, CLEAN, COLD | Flags.LOST, CLEAN | Flags.DIRTY, Flags(0), CLEAN | Flags.NORELEASE, Flags.EXISTS),
                (70, 12, 3, 4, 4, 4, 3),
            )[0]
            files.append(
                File(
                    self.path(number),
                    rng.choice(kinds),
                    flags,
                    uid=rng.choice((0, USER)),
                    mode=rng.choice((0o644, 0o644, 0o644, 0o600)),
                    links=(self.path(number + 500),) if self.chance(0.08) else (),
                )
            )
        return tuple(files)

    # ---- what clients do ---------------------------------------------------------------------------------------

    def commands(self, files: Sequence[File], *, crash: bool, calm: bool) -> tuple[Command, ...]:
        rng = self.rng
        commands = [self.preload(files, 0.0, calm=calm)]
        if self.chance(0.4):
            commands.append(self.preload(files, rng.choice((0.0, 0.05, 3.0, 11.0)), calm=calm))
        if self.chance(0.2):
            commands.append(Command("status", rng.uniform(0, 30), (b"/fsx",)))
        if not calm:
            commands += [
                Command(rng.choice(("release", "release", "pin", "unpin")), rng.uniform(0, 40), self.paths(), root=True)
                for _ in range(rng.choice((0, 0, 1, 2, 3)))
            ]
        if crash:
            times = sorted(rng.uniform(0.01, 30.0) for _ in range(rng.choice((1, 1, 2))))
            commands[0] = replace(
                commands[0],
                crashes=tuple(times),
                restart=rng.choice((0.1, 1.0, 3.0)),
                orphans=self.chance(0.5),
                interrupt=None,
            )
        return tuple(commands)

    def paths(self) -> tuple[bytes, ...]:
        if self.chance(0.6):
            return (b"/fsx",)
        return tuple(self.rng.sample(self.folders, self.rng.randint(1, len(self.folders))))

    def preload(self, files: Sequence[File], at: float, *, calm: bool) -> Command:
        rng = self.rng
        paths = self.paths()
        if self.chance(0.15):
            paths = (*paths, *(file.path for file in rng.sample(list(files), min(3, len(files)))))
        fixed = rng.choice((1, 2, 4, 7, 10, 50, 200, None, None))
        root = calm or self.chance(0.75 if self.users_may_restore else 0.2)
        policy = Policy(
            floor=2.0,  # late files are asked after sooner than in earnest: more happens in less time
            window=WindowPolicy(start=rng.choice((4, 64)), floor=4, ceiling=5000, fixed=fixed),
            stat_settles=self.stat_settles,
            skip_duplicates=self.skip_duplicates,
            may_cancel=root and self.chance(0.7),
            cap=rng.choice((30.0, 60.0)),
            patience=rng.choice((10.0, 30.0)),
            cure_patience=rng.choice((30.0, 60.0)),
            give_up=200.0,
            limbo=rng.choice((10.0, 40.0)),
            system_stall=20.0,
            look_batch=rng.choice((5, 500)),
            convinced=rng.choice((0, 3, 100)),
        )
        wish = Wish(
            ready=rng.choice((None, None, 0.2, 1.0)),
            deadline=None if calm or self.chance(0.8) else rng.uniform(1, 40),
            reserve=rng.choice((Amount(percent=5.0), Amount(percent=0.0), None)),
            fit=self.chance(0.5),
        )
        interrupt = None if calm or self.chance(0.6) else rng.uniform(0.0, 40.0)
        return Command("preload", at, paths, root, policy, wish, interrupt)

    # ---- what others do ----------------------------------------------------------------------------------------

    def outsiders(self, files: Sequence[File]) -> list[Deed]:
        rng = self.rng
        kinds = (
            "read",
            "write",
            "rename",
            "delete",
            "overwrite",
            "release",
            "restore",
            "pin",
            "lose",
            "cancel",
            "archive",
        )
        deeds = []
        for number in range(rng.choice((1, 4, 15))):
            what = rng.choice(kinds)
            path = rng.choice(files).path
            at = rng.choice((rng.uniform(0, 1), rng.uniform(0, 12), rng.uniform(9, 40)))
            deeds.append(Deed(at, what, path, path + b".new%d" % number, float(rng.choice(SIZES))))
        return deeds

    def accidents(self) -> list[Deed]:
        rng = self.rng
        deeds = []
        for _ in range(rng.choice((0, 1, 2, 4))):
            at = rng.uniform(0, 40)
            what = rng.choice(("stop coordinators", "shut down", "kill agents", "set agents", "freeze agents"))
            match what:
                case "stop coordinators" | "shut down":
                    deeds.append(Deed(at, what, number=rng.choice((1.0, 10.0, 45.0))))
                case "kill agents":
                    deeds.append(Deed(at, what, number=rng.choice((0.3, 1.0))))
                case "set agents":
                    deeds += [Deed(at, what, number=0.0), Deed(at + rng.choice((3.0, 30.0)), what, number=4.0)]
                case _:
                    deeds += [Deed(at, what), Deed(at + rng.choice((3.0, 30.0)), "thaw agents")]
        return deeds

    def bad_files(self, files: Sequence[File], *, calm: bool) -> tuple[BadFile, ...]:
        rng = self.rng
        share = rng.choice((0.0, 0.05, 0.3))
        faults = list(Fault) if not calm else [f for f in Fault if f not in STUCK]
        bad = []
        for file in files:
            if self.chance(share):
                fault = rng.choice(faults)
                tries = (
                    rng.choice((1, 1, 10**9))
                    if fault in STUCK
                    else rng.choice((1, 10**9) if calm else (1, 2, 3, 10**9))
                )
                bad.append(BadFile(file.path, fault, tries))
        return tuple(bad)

    def bad_calls(self) -> tuple[BadCalls, ...]:
        rng = self.rng
        bad = []
        for _ in range(rng.choice((0, 1, 2, 4))):
            kind, fault = rng.choice(
                (
                    ("restore", CallFault.HANG),
                    ("restore", CallFault.HANG),
                    ("restore", CallFault.HANG_AFTER),
                    ("restore", CallFault.EAGAIN),
                    ("restore", CallFault.EIO),
                    ("release", CallFault.HANG_AFTER),
                    ("state", CallFault.HANG),
                    ("action", CallFault.HANG),
                    ("space", CallFault.HANG),
                    ("cancel", CallFault.HANG),
                    ("file", CallFault.EIO),
                    ("stat", CallFault.HANG),
                )
            )
            start = rng.uniform(0, 30)
            share = (
                rng.choice((0.01, 0.1)) if fault is CallFault.EIO and kind == "file" else rng.choice((0.1, 0.5, 1.0))
            )
            bad.append(BadCalls(kind, fault, share, start, start + rng.choice((0.5, 5.0, 30.0))))
        return tuple(bad)
