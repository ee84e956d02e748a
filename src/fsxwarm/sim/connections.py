"""What the kernel of a simulated client tells of its connections to metadata targets."""

from __future__ import annotations

import shutil
from pathlib import Path

from fsxwarm.sim.layout import FSNAME, INSTANCE, connections
from fsxwarm.sim.spec import WorldSpec

_IMPORT = """\
import:
    name: {name}
    target: {target}_UUID
    state: FULL
    connect_data:
       instance: 1
       target_version: {version}
       mdt_index: {index}
    connection:
       failover_nids: [ "sim@tcp" ]
       current_connection: "sim@tcp"
       connection_attempts: 1
       generation: 1
"""
"""What matters of what lprocfs_import_seq_show prints (lustre/obdclass/lprocfs_status.c)."""


def connect(folder: Path, spec: WorldSpec) -> None:
    """Make the connections of a simulated FSx; those of an earlier run are gone."""
    shutil.rmtree(connections(folder), ignore_errors=True)
    version = ".".join(map(str, (*spec.version, 0)))
    for index in range(spec.mdts):
        target = f"{FSNAME}-MDT{index:04x}"
        name = f"{target}-mdc-{INSTANCE}"
        device = connections(folder) / name
        device.mkdir(parents=True)
        text = _IMPORT.format(name=name, target=target, version=version, index=index)
        (device / "import").write_text(text)
