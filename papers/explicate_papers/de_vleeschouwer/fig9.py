"""D-fig9: use of the bottleneck against the links' delay, 50 packets of queue (figure 9). Set-up: `base.py`.

A back-off is a fall of the congestion window, which nothing else makes smaller. Windows are sampled often enough that
the next back-off, a round trip later at least, falls into another sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, above, at_least, falling
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig9")

QUEUE = {"kind": "droptail", "limit": "50pkt"}
"""Fixed by the text."""
TCP, MONITOR, FRIEND = "TCP", "LR-LMXTCP", "LR-LMXTCP_TCPfriend"


def delays(effort: Effort) -> Sequence[float]:
    """Return the delays of the links, ms (D-P17); a quick sweep leaves out two of the longer ones."""
    every = base.points(effort, "D-P17")
    return effort.pick(every, [delay for i, delay in enumerate(every) if i not in (4, 6)])


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every delay."""
    names = {TCP: base.tcp(effort), MONITOR: MONITOR, FRIEND: FRIEND}
    often = {"sampling.every": "20ms", "sampling.of": ["cwnd"]}
    loss = float(effort.choices["D-P19"])
    return {
        (label, delay): replace(base.case(effort, protocol, loss, delay_ms=delay, queue=QUEUE), settings=often)
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


def back_offs(results: Results) -> float:
    """Return how often the windows fell, all flows together."""
    flows, start_s = [f"{group}.{i}" for group in ("clean", "lossy") for i in range(5)], base.warmup_s(results)
    return float(sum(metrics.falls(metrics.series(results, flow, "cwnd", start_s), 1.0) for flow in flows))


@study.predicate("D-fig9-d")
def tcp_backs_off_more(data: Data) -> Iterator[Check]:
    """TCP backs off more often, whatever the delay."""
    for delay in delays(data.effort):
        tcp, monitor = (data.measure((system, delay), back_offs) for system in (TCP, MONITOR))
        yield above(f"back-offs at {delay:g} ms: TCP over {MONITOR}", tcp, monitor)


study.control(
    "TCP and the loss monitor exchanged",
    exchange(TCP, MONITOR),
    ["D-fig9-a"],
    "timeouts leave a long path idle, and TCP has them",
)
study.control(
    "the loss monitor in TCP's place",
    Place("protocol", lambda label: (MONITOR, label[1]) if label[0] == TCP else label),
    ["D-fig9-d"],
    "the text has TCP's own back-offs in mind: without TCP there are no more than the monitor's",
)
study.control(
    "5 and 150 ms exchanged",
    exchange(5.0, 150.0),
    ["D-fig9-b", "D-fig9-c"],
    "a queue of 50 packets bridges a back-off over the short path and not over the long one",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against delay, and the back-offs that the text blames."""
    grid = delays(data.effort)

    def lines(metric: Callable[[Results], float]) -> list[Line]:
        systems = (TCP, MONITOR, FRIEND)
        return [Line.of(system, grid, [data.measure((system, delay), metric) for delay in grid]) for system in systems]

    what = "delay of a link (ms)"
    return [
        Panel("Use of the bottleneck, 50 packets of queue", what, "utilisation", lines(base.utilisation), y_from=0.7),
        Panel("How often the windows fell", what, "back-offs in a run", lines(back_offs)),
    ]
