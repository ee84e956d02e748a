"""`fsxwarm doctor`: can fsxwarm work here, and what to do if not."""

from __future__ import annotations

import errno
import os
import time
from typing import Final

from rich.text import Text

from fsxwarm.app import App
from fsxwarm.cli.options import Json, Paths, absolute
from fsxwarm.cli.output import console, emit_json, safe
from fsxwarm.cli.run import run
from fsxwarm.cli.schema import DoctorDocument
from fsxwarm.engine.doctor import Doctor, Finding, Level
from fsxwarm.engine.doctor_aws import examine_aws
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.entry import Trouble
from fsxwarm.ports.hsm import CallHungError, Hsm

_STYLES: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


def doctor(paths: Paths = None, *, json: Json = False) -> Exit:
    """Check that fsxwarm can work: lfs, the mount, your rights and free space, and say what to do about each finding.

    Without a PATH every Lustre mount is checked. Nothing is changed: the one restore that it asks for is of a file
    that is resident already, which does nothing.
    """

    async def work(app: App) -> Exit:
        doctor = Doctor(app.tree, app.hsm, app.server_version, root=os.geteuid() == 0)
        given = [absolute(path) for path in paths] if paths else app.lustre_mounts()
        findings: list[Finding] = []
        async for finding in doctor.examine(given):
            findings.append(finding)
            if not json:
                _show(finding)
        choice = app.hsm.choice
        if choice is not None:
            findings.append(Finding("backend", Level.OK, f"{choice.backend.value}: {choice.why}"))
            if not json:
                _show(findings[-1])
        about_aws = examine_aws(app.aws.atlas, app.aws.log, given, client=await _version(app.hsm), now=time.time())
        async for finding in about_aws:
            findings.append(finding)
            if not json:
                _show(finding)
        if not given:
            findings.append(Finding("path", Level.FAIL, "no Lustre file system is mounted here", _MOUNT))
            if not json:
                _show(findings[-1])
        code = Exit.CANNOT if any(finding.level is Level.FAIL for finding in findings) else Exit.DONE
        if json:
            emit_json(_document(findings, code))
        return code

    return run(work, json=json)


async def _version(hsm: Hsm) -> tuple[int, ...] | Trouble:
    """The client's version; what keeps it from being told is a finding already."""
    try:
        return await hsm.version()
    except (FsxwarmError, CallHungError):
        return Trouble(b"", errno.ENODATA)


_MOUNT: Final = 'mount it: see "Attach" on the file system\'s page in the FSx console'


def _show(finding: Finding) -> None:
    line = Text.assemble(
        (f"{finding.level.value:>4}", _STYLES[finding.level]), f"  {finding.check:<8} {safe(finding.text)}"
    )
    out = console()
    out.print(line)
    if finding.advice:
        out.print(Text(f"{'':15}→ {safe(finding.advice)}", "dim" if finding.level is Level.OK else ""))


def _document(findings: list[Finding], code: Exit) -> DoctorDocument:
    return {
        "schema": "fsxwarm.doctor/1",
        "exit": int(code),
        "findings": [
            {
                "check": finding.check,
                "level": finding.level.value,
                "text": finding.text,
                "advice": finding.advice,
            }
            for finding in findings
        ],
    }
