"""What was found out about objects in S3, as lines and as JSON."""

from __future__ import annotations

from fsxwarm.cli.output import safe
from fsxwarm.cli.schema import CheckedS3, tally
from fsxwarm.engine.preflight import Checked
from fsxwarm.model.units import format_count


def checked_lines(checked: Checked) -> list[str]:
    """Lines for people; none where nothing was looked up and nothing is worth telling."""
    lines: list[str] = []
    if checked.requests:
        lines.append(
            f"S3: {format_count(checked.checked.files, 'object')} looked up"
            f" with {format_count(checked.requests, 'request')}"
        )
    if checked.requests and checked.unchecked.files:
        files = format_count(checked.unchecked.files, "file")
        why = safe(checked.skipped) or "more than one request for 200 files"
        lines.append(f"S3: {files} not looked up: {why} (--check-s3 always looks at all)")
    if checked.outside.files:
        lines.append(f"S3: {format_count(checked.outside.files, 'file')} outside every association")
    if checked.newer.files:
        lines.append(
            f"S3: {format_count(checked.newer.files, 'object')} written after the file: what is restored may be newer"
        )
    return lines


def checked_document(checked: Checked) -> CheckedS3:
    """The same for programs."""
    return {
        "checked": tally(checked.checked),
        "unchecked": tally(checked.unchecked),
        "outside": tally(checked.outside),
        "newer": tally(checked.newer),
        "requests": checked.requests,
        "skipped": checked.skipped,
    }
