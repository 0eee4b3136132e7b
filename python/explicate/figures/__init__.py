"""The figures of results: which data go into which panel. Reports, notebooks and papers draw the same panels.

Without axes a figure is one panel with a line per flow, group or link. With axes (a comparison or sweep) there is a
panel per group or link in which the points stand side by side, or a panel per point with its flows apart.
"""

from explicate.figures.spread import completion, goodput, losses, rtt, slow, tradeoff
from explicate.figures.study import POINT, Figure, Panel, Study, label_points, legend
from explicate.figures.sweep import response
from explicate.figures.time import cwnd, delay, fairness, feedback, phase, queue, throughput, utilisation

ALL = {
    "response": response,
    "tradeoff": tradeoff,
    "throughput": throughput,
    "delay": delay,
    "queue": queue,
    "feedback": feedback,
    "utilisation": utilisation,
    "fairness": fairness,
    "cwnd": cwnd,
    "rtt": rtt,
    "losses": losses,
    "completion": completion,
    "slowdown": slow,
    "goodput": goodput,
    "phase": phase,
}
"""All figures by name, in the order of the page."""

WANTED = {"throughput": throughput, "queue": queue, "rtt": rtt, "cwnd": cwnd}
"""The figures that need samples, by their word in ``[sampling]``."""

SAMPLED = {"delay": "rtt", "fairness": "throughput", "phase": "throughput", "utilisation": "throughput"}
"""The word in ``[sampling]`` of the other figures over time."""


def nothing(name: str, study: Study) -> str:
    """Return a sentence for a figure that lacks data."""
    word = SAMPLED.get(name, name)
    if word in WANTED and WANTED[word](study) is None:
        return f'nothing to draw {name!r} from; put of = ["{word}"] and every = "100ms" under [sampling]'
    if name == "feedback":
        remedy = 'of = ["flow", "router"] and every = "100ms" under [sampling]'
        return f"nothing to draw {name!r} from; put {remedy}, if the network says anything to these senders"
    return f"nothing to draw {name!r} from in these results"


__all__ = ["ALL", "POINT", "WANTED", "Figure", "Panel", "Study", "label_points", "legend", "nothing"]
