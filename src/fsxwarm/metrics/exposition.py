"""Measures as text: Prometheus' format, OpenMetrics where it is asked for, and a file for node_exporter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics

from fsxwarm.metrics import table
from fsxwarm.model.measures import Measures
from fsxwarm.model.meter import Histogram

_OPEN_METRICS: Final = "application/openmetrics-text"


class Collector:
    """What prometheus_client asks for metrics: they are read when it asks. `labels` are put on each."""

    def __init__(self, measure: Callable[[], Measures], labels: Mapping[str, str] | None = None) -> None:
        self._measure = measure
        self._labels = dict(labels or {})

    def collect(self) -> Iterator[Metric]:
        """Read all metrics; those that have nothing to tell are left out."""
        now = self._measure()
        for row in table.TABLE:
            family = self._family(row, now)
            if family.samples:
                yield family

    def _family(self, row: table.Metric, now: Measures) -> Metric:
        labels = [*row.labels, *self._labels]
        family: Metric = _FAMILIES[row.type](row.name.removesuffix("_total"), row.meaning, labels=labels)
        more = tuple(self._labels.values())
        for values, value in row.read(now):
            if isinstance(family, HistogramMetricFamily) and isinstance(value, Histogram):
                family.add_metric([*values, *more], _buckets(value), value.sum)
            elif isinstance(family, GaugeMetricFamily | CounterMetricFamily) and not isinstance(value, Histogram):
                family.add_metric([*values, *more], value)
        return family


_FAMILIES: Final[Mapping[table.Type, Callable[..., Metric]]] = {
    table.Type.GAUGE: GaugeMetricFamily,
    table.Type.COUNTER: CounterMetricFamily,
    table.Type.HISTOGRAM: HistogramMetricFamily,
}


def _buckets(some: Histogram) -> list[tuple[str, float]]:
    buckets: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*some.bounds, float("inf")), some.counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), total))
    return buckets


class Exposition:
    """Answers scrapes."""

    def __init__(self, measure: Callable[[], Measures], labels: Mapping[str, str] | None = None) -> None:
        self._collector = Collector(measure, labels)

    def answer(self, accept: str) -> tuple[bytes, str]:
        """All metrics, and their content type: OpenMetrics if an Accept header names it, else Prometheus' text."""
        if _OPEN_METRICS in (part.partition(";")[0].strip().lower() for part in accept.split(",")):
            body: bytes = openmetrics.generate_latest(self._collector)  # type: ignore[no-untyped-call]  # it has none
            return body, f"{_OPEN_METRICS}; version=1.0.0; charset=utf-8"
        return self.text(), "text/plain; version=0.0.4; charset=utf-8"

    def text(self) -> bytes:
        """All metrics in Prometheus' text format 0.0.4, the only one that node_exporter's files may have."""
        return generate_latest(self._collector)
