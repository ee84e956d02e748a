"""Makes trees of files in memory: so many, of such sizes, in folders, a share of them released; the same by seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from fsxwarm.model.hsm import Flags
from fsxwarm.sim.layout import ASSOCIATIONS, Sizes, lognormal
from fsxwarm.sim.namespace import VirtualNamespace

RESIDENT: Final = Flags.EXISTS | Flags.ARCHIVED
RELEASED: Final = RESIDENT | Flags.RELEASED


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a tree is made of.

    `sizes` draws bytes (see `fsxwarm.sim.layout`). The files are spread evenly over top folders, as many as there are
    `associations`, and there `per_folder` to a folder. Metadata targets take turns with the top folders. `released` is
    a share from 0 to 1, drawn file by file. `time` is when they were last used, in seconds since the epoch; with
    `age_spread` up to so many seconds earlier.
    """

    files: int
    sizes: Sizes = lognormal
    associations: int = len(ASSOCIATIONS)
    per_folder: int = 1000
    released: float = 1.0
    time: int = 0
    age_spread: int = 0
    seed: int = 0


def make(names: VirtualNamespace, dataset: Dataset) -> list[bytes]:
    """Make a dataset's files below the mount point; return their paths, folder by folder."""
    chance = random.Random(dataset.seed)  # noqa: S311 - the same seed, the same tree
    paths: list[bytes] = []
    for number in range(dataset.associations):
        name = ASSOCIATIONS[number] if number < len(ASSOCIATIONS) else f"dataset-{number}"
        top = names.mount.path + b"/" + name.encode()
        names.make_folder(top)
        share = dataset.files // dataset.associations + (number < dataset.files % dataset.associations)
        for at in range(share):
            part, rest = divmod(at, dataset.per_folder)
            folder = top + b"/part-%04d" % part
            if not rest:
                names.make_folder(folder)
            flags = RELEASED if chance.random() < dataset.released else RESIDENT
            path = folder + b"/sample-%06d.bin" % at
            age = chance.randint(0, dataset.age_spread) if dataset.age_spread else 0
            names.make_file(path, dataset.sizes(chance), flags, time=dataset.time - age)
            paths.append(path)
    return paths
