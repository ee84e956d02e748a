"""What `fsxwarm preload` was asked for, whoever does it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fsxwarm.cli.progress import Mode
from fsxwarm.cli.wanted import Wanted
from fsxwarm.config import Backend
from fsxwarm.engine.order import Order
from fsxwarm.engine.thaw import ThawWish
from fsxwarm.model.s3 import CheckS3
from fsxwarm.model.shard import Shard
from fsxwarm.model.units import Amount


@dataclass(frozen=True, slots=True)
class Command:
    """What the command line asks for. Times in seconds, `rate` in bytes per second; None where a setting decides."""

    wanted: Wanted
    retry_failed: Path | None
    order: Order
    deadline: float | None
    rate: int | None
    report: Path | None
    metrics_file: Path | None
    shard: Shard | None
    ready: float | None
    fit: bool
    reserve: Amount | None
    attempts: int | None
    window: int | None
    check_s3: CheckS3
    thaw: ThawWish | None
    progress: Mode
    backend: Backend | None
    json: bool
    arguments: tuple[str, ...]
