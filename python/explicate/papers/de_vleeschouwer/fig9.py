"""D-fig9: use of the bottleneck against the links' delay, 50 packets of queue (figure 9). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.statistics import Check, above, at_least, falling
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("D-fig9")

QUEUE = '{ kind = "droptail", limit = "50pkt" }'
"""Fixed by the text."""
TCP, MONITOR, FRIEND = "TCP", "LR-LMXTCP", "LR-LMXTCP_TCPfriend"


def delays(effort: Effort) -> Sequence[float]:
    """Return the delays of every link, ms (D-P17)."""
    return effort.pick((5.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 150.0), (5.0, 10.0, 20.0, 40.0, 80.0, 150.0))


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every delay."""
    names = {TCP: base.tcp(effort), MONITOR: MONITOR, FRIEND: FRIEND}
    return {
        (label, delay): base.case(effort, protocol, 0.0, delay_ms=delay, queue=QUEUE)
        for label, protocol in names.items()
        for delay in delays(effort)
    }


@study.predicate("D-fig9-a", from_ms=40)
def monitor_uses_more(data: Data, from_ms: float) -> Iterator[Check]:
    """The monitor keeps more in use as the pipe grows."""
    for delay in delays(data.effort):
        if delay >= from_ms:
            most = data.measure((MONITOR, delay), base.utilisation)
            for other in (TCP, FRIEND):
                used = data.measure((other, delay), base.utilisation)
                yield above(f"utilisation at {delay:g} ms: {MONITOR} over {other}", most, used)


@study.predicate("D-fig9-b", slack=0.01)
def all_decline(data: Data, slack: float) -> Iterator[Check]:
    """Once the queue is smaller than the pipe all leave something unused."""
    for system in (TCP, MONITOR, FRIEND):
        used = [data.measure((system, delay), base.utilisation) for delay in delays(data.effort)]
        yield falling(f"utilisation of {system}", used, slack)


@study.predicate("D-fig9-c", least=0.97, low_ms=5, high_ms=10)
def full_at_small_delay(data: Data, least: float, low_ms: float, high_ms: float) -> Iterator[Check]:
    """A queue of several pipes keeps the link busy."""
    for system in (TCP, MONITOR, FRIEND):
        for delay in (low_ms, high_ms):
            used = data.measure((system, delay), base.utilisation)
            yield at_least(f"utilisation of {system} at {delay:g} ms", used, least)


def window_cuts(results: Results) -> float:
    """Return how often the windows fell by more than 30 % from one second to the next, all flows together."""
    flows = [f"{group}.{i}" for group in ("clean", "lossy") for i in range(5)]
    return float(sum(metrics.falls(metrics.series(results, flow, "cwnd", base.WARMUP_S), 0.7) for flow in flows))


@study.predicate("D-fig9-d")
def tcp_backs_off_more(data: Data) -> Iterator[Check]:
    """TCP backs off more often."""
    for delay in (20.0, 40.0):
        tcp, monitor = (data.measure((system, delay), window_cuts) for system in (TCP, MONITOR))
        yield above(f"cuts of the window at {delay:g} ms: TCP over {MONITOR}", tcp, monitor)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against delay."""
    grid = delays(data.effort)
    lines = [
        Line.of(system, grid, [data.measure((system, delay), base.utilisation) for delay in grid])
        for system in (TCP, MONITOR, FRIEND)
    ]
    return [Panel("Use of the bottleneck, 50 packets of queue", "delay of a link (ms)", "utilisation", lines)]
