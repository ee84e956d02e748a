"""Time until all is resident, against what the simulated FSx could do at best; virtual time."""

from __future__ import annotations

from bench.tables import table
from bench.virtual import warm
from fsxwarm.model.units import format_duration, format_size
from fsxwarm.sim.datasets import Dataset
from fsxwarm.sim.layout import fixed, lognormal
from fsxwarm.sim.spec import WorldSpec

ROWS = {
    "8 x 8 GB": Dataset(8, fixed(8 * 10**9)),
    "20,000 x 100 KB": Dataset(20_000, fixed(100_000)),
    "20,000 log-normal": Dataset(20_000, lognormal),
}
TARGET = 1.10


def main() -> bool:
    """Print the table; returns whether every row keeps its target."""
    rows, good = [], True
    for name, dataset in ROWS.items():
        spec = WorldSpec()
        outcome = warm(spec, dataset)
        good &= outcome.ratio <= TARGET and outcome.status == 0
        rows.append([
            name, format_size(outcome.bytes), format_duration(outcome.bound), format_duration(outcome.seconds),
            f"{outcome.ratio:.3f}", f"{outcome.requests:,}", f"{outcome.deepest:,}",
            f"{outcome.counts.get('duplicates', 0)}",
        ])  # fmt: skip
    table(
        f"Time until all is resident / lower bound (target ≤ {TARGET})",
        ["dataset", "bytes", "bound", "fsxwarm", "ratio", "requests", "deepest queue", "asked twice"],
        rows,
    )
    return good
