"""The topologies of the modern verdict: one case each of an experiment, with what is measured there.

Everything that the experiments have is taken from them: the case of the paper's protocol, that of its baseline, rates,
delays, names of links. Here stand the choice of the case, the time that is measured, and fair shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from explicate.engine import Override
from explicate.source import Source
from explicate.studies.tables import Law, Network
from explicate.studies.tables import tables as laws_of_bits
from explicate_papers import plan
from explicate_papers.de_vleeschouwer import base as d
from explicate_papers.ikeda import base as k
from explicate_papers.inputs import Case, Effort, Label
from explicate_papers.lopez_pacheco import base as i
from explicate_papers.lopez_pacheco import fig6, fig8, fig10, fig12
from explicate_papers.modern import hosts
from explicate_papers.modern.verdict import OWN, PAPER, THEN
from explicate_papers.nychis import base as n
from explicate_papers.nychis import fig9
from explicate_papers.register import experiments
from explicate_papers.yousefizadeh import base as y
from explicate_papers.yousefizadeh import txt_short

QUICK = "quick"
"""The plan of the experiments whose cases are used."""
TODAY = ("cubic-fq", "bbr3", "prague", "abc")
"""The laws of today: rows of the study of bits, with the same constants."""
STEADY = ("use", "p99", "jain", "loss")
"""What is measured of several flows that last; of one flow, or of sessions, all but Jain's index."""
ALONE = ("use", "p99", "loss")
AIR_S, AIR_FROM_S = 40.0, 10.0
"""Simulated time of paper N's topologies, and the time of it that is left out, s."""
CLOUD_S, CLOUD_FROM_S = 60.0, 10.0
"""The same of paper I's."""
LOSSY_S = 120.0
"""Simulated time of paper D's topologies; the paper's own warm-up is left out."""
RADIO_S = 60.0
"""Simulated time of paper Y's direct link."""
Called = tuple[str, str]
"""What the paper's protocol and its baseline are called."""
Pair = tuple[Label, Label] | Mapping[str, Case]
"""Their labels in an experiment, or their cases."""


@dataclass(frozen=True)
class Topology(Network):
    """A topology of a paper; `experiment` is that of the register whose case it is.

    `cases` are those of the paper's protocol and of its baseline with the paper's hosts, `names` what they are called.
    """

    experiment: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    cases: Mapping[str, Case] = field(default_factory=dict)

    def case(self, row: str) -> Case:
        """Return the case of a row: `THEN`, `PAPER` or `OWN`, or the name of a law of today."""
        if row == THEN:
            return self.cases[THEN]
        made = self.cases[PAPER]
        if row == PAPER:
            return made
        if row == OWN:
            return hosts.of_today(made)
        return hosts.with_law(made, law_named(row), self.constants())

    def timed(self, row: str) -> Case:
        """Return the case of a row with the length, the warm-up and the samples of this topology."""
        return hosts.timed(self.case(row), self.duration, self.warmup, self.every)

    def text(self, law: Law) -> str:
        """Return the scenario of a row."""
        return self.timed(law.name).text

    def source(self, law: Law) -> Source:
        """Return the scenario with a name for messages."""
        return Source(self.text(law), f"<{self.name}, {law.name}>", ".")

    def overrides(self, law: Law, /) -> Sequence[Override]:
        """Return the settings of the experiments' framework; a law of today takes nothing from it."""
        return self.timed(law.name).overrides() if law.name in (THEN, PAPER, OWN) else ()


@cache
def law_named(name: str) -> Law:
    """Return a law of today."""
    return next(law for law in laws_of_bits().laws if law.name == name)


@cache
def topologies() -> tuple[Topology, ...]:
    """Return all topologies, paper by paper."""
    return (*of_n(), *of_i(), *of_y(), *of_d(), *of_k())


def effort(experiment: str, seconds: float) -> Effort:
    """Return the effort with which an experiment makes its cases here."""
    return replace(plan.effort(experiments()[experiment], QUICK), seconds=seconds)


def cases(experiment: str, seconds: float, own: Label, then: Label) -> dict[str, Case]:
    """Return two cases of an experiment by their labels: of the paper's protocol, and of its baseline."""
    made: Mapping[Any, Case] = plan.studies()[experiment].make_cases(effort(experiment, seconds))
    return {PAPER: made[own], THEN: made[then]}


def topology(name: str, experiment: str, called: Called, pair: Pair, **keys: Any) -> Topology:
    """Return a topology, a family of its own; labels are of cases that run for its time."""
    own, then = called
    made = cases(experiment, keys["duration"], *pair) if isinstance(pair, tuple) else pair
    usual: dict[str, Any] = {"measures": ALONE, "drawn": ("use", "p99"), "every": 20, "scenario": ""}
    return Topology(
        name=name, family=name, experiment=experiment, names={OWN: own, PAPER: own, THEN: then}, cases=made,
        **(usual | keys),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- paper N


def of_n() -> list[Topology]:
    """802.11a, kernels that lose packets, routers configured with 54 Mbit/s where a hop carries half of that."""
    kernel_ms = float(effort("N-fig3", AIR_S).choices["N-P2"].removesuffix("ms"))
    lossy = 1.0

    def air(name: str, experiment: str, hops: int, links: Sequence[str], pair: Pair, **keys: Any) -> Topology:
        return topology(
            name, experiment, ("XCP", "TCP with SACK"), pair, links=dict.fromkeys(links, 1.0), rate=n.TUNED,
            carries=n.TUNED / hops, rtt=2 * kernel_ms * hops, served=True, duration=AIR_S, warmup=AIR_FROM_S, **keys,
        )  # fmt: skip

    def stations(make: Callable[..., Case]) -> dict[str, Case]:
        """Return both systems of one of figure 9's functions, with the smaller capacity."""
        one = effort("N-fig9", AIR_S)
        return {row: make(one, fig9.UNDER, AIR_S, protocol=system) for row, system in ((PAPER, n.XCP), (THEN, n.TCP))}

    hop = air(
        "N-hop", "N-fig3", 1, ["n1->n2"], ((n.XCP, lossy), (n.TCP, lossy)), title="One hop of 802.11",
        question=f"One flow over one hop of 802.11a whose kernels lose {lossy:g} % of the packets. The routers are "
        f"configured with {n.TOLD:g} Mbit/s, the hop carries about {n.TUNED:g}.",
        wanted="XCP carries about twice as much as TCP at this rate of losses.",
    )  # fmt: skip
    chain = air(
        "N-chain", "N-fig5", 3, ["n1->n2", "n2->n3", "n3->n4"], ((n.XCP, lossy), (n.TCP, lossy)),
        title="Three hops with hidden terminals",
        question=f"The same over three hops; each loses {lossy:g} %. All radios share one channel, and those "
        "two hops apart do not always sense each other. The delay is the sum over the three queues.",
        wanted="XCP carries more than TCP, and the gap grows with the number of hops.",
    )  # fmt: skip
    long = air(
        "N-flows", "N-fig9", 1, ["n1->n2"], stations(fig9.two_stations), title="Thirty flows over one hop",
        measures=STEADY,
        question=f"Thirty flows from one station to another, without losses. The routers are configured with "
        f"{fig9.UNDER:g} Mbit/s, less than the hop carries. The paper runs no TCP here; the baseline is that of its "
        "other figures.",
        wanted="XCP is fair if the capacity is under-estimated.",
    )  # fmt: skip
    hub = air(
        "N-hub", "N-fig11", 1, ["n1->n0", "n2->n0"], stations(fig9.three_stations),
        title="Two stations that contend", measures=STEADY,
        question="Fifteen flows from each of two stations to the server between them, configured in the same way. The "
        "delay is the sum over the two stations' queues, at the rate that both carry together. The baseline is again "
        "that of other figures.",
        wanted="Contention, not the configured capacity, decides fairness.",
    )  # fmt: skip
    return [hop, chain, long, hub]


# ------------------------------------------------------------------------------------------------- paper I


def of_i() -> list[Topology]:
    """Wires of 80 Mbit/s and less, clouds of plain routers."""
    one = effort("I-fig6", CLOUD_S)
    link_ms = 1000 * i.link_s(one)
    tcp = one.choices["I-P4"]

    def narrow(network: i.Network) -> dict[str, float]:
        """Return the links that are narrower than the widest, with their rates as a share of the fastest of them."""
        widest = max(mbps for _, _, mbps in network.links)
        found = {f"{a}->{b}": mbps for a, b, mbps in network.links if mbps < widest}
        return {name: mbps / max(found.values()) for name, mbps in found.items()}

    def cloud(name: str, experiment: str, called: Called, pair: Pair, hops: int, **keys: Any) -> Topology:
        return topology(
            name, experiment, called, pair, rtt=2 * hops * link_ms, duration=CLOUD_S, warmup=CLOUD_FROM_S, **keys
        )  # fmt: skip

    def beside_tcp(experiment: str, label: Label) -> dict[str, Case]:
        """Return a case that the paper runs with XCP-i alone, and its flows with TCP over plain routers."""
        made: Mapping[Any, Case] = plan.studies()[experiment].make_cases(effort(experiment, CLOUD_S))
        return {PAPER: made[label], THEN: hosts.over_plain_routers(made[label], tcp)}

    network, middle = i.chain(one)
    whole = cloud(
        "I-chain", "I-fig2", ("XCP", "TCP NewReno"), ("b", "a"), len(network.links), links=narrow(network), rate=30,
        title="A chain of routers that speak",
        question=f"One flow over three routers, {middle} with the bottleneck of 30 Mbit/s. All of them speak XCP "
        "(scenario b); the baseline crosses plain ones (scenario a).",
        wanted="XCP goes straight to the optimum and loses nothing; TCP saws.",
    )  # fmt: skip
    peering = narrow(i.peering(one))
    clouds = cloud(
        "I-clouds", "I-fig6", ("XCP-i", "XCP everywhere"), (fig6.CLOUDS, fig6.REFERENCE), 6, links=peering,
        rate=50, carries=30, title="Two clouds of plain routers",
        question="One flow crosses two clouds, of 30 and 50 Mbit/s, joined by XCP-i routers. Both narrow links are "
        "those of plain drop-tail routers, which stay as they are: the queue and the router of a law of today stand "
        "where XCP-i's routers stand.",
        wanted="XCP-i over clouds does what XCP does where all routers speak, which is the baseline.",
    )  # fmt: skip
    upgraded = cloud(
        "I-upgraded", "I-fig6", ("XCP everywhere", "XCP-i"), (fig6.REFERENCE, fig6.CLOUDS), 6, links=peering,
        rate=50, carries=30, title="The same path, every router replaced",
        question="The path of the last topology, without plain routers: XCP everywhere, beside laws of today with "
        "their queue and router at every port. The baseline is XCP-i over the clouds.",
        wanted="XCP-i spares the replacement of all routers.",
    )  # fmt: skip
    merge = cloud(
        "I-merge", "I-fig8", ("XCP-i", "XCP everywhere"), (fig8.CLOUDS, fig8.REFERENCE), 5,
        links=narrow(i.merge()), rate=40, title="Two clouds merge", measures=STEADY, fair={"i": 3, "j": 1},
        question="Clouds of 30 and of 10 Mbit/s with a flow each merge into a path of 40. Fair shares are 30 and 10. "
        "The delay is the sum over the three narrow links.",
        wanted="XCP-i gives both flows what XCP would give them.",
    )  # fmt: skip
    lot = cloud(
        "I-join", "I-fig10", ("XCP-i", "TCP NewReno"), beside_tcp("I-fig10", fig10.EVEN), 5,
        links={"cj->r1": 0.2, "ci->r1": 0.6, "r1->r2": 1.0}, rate=50, title="Two clouds and a path join",
        measures=STEADY, fair={"j0": 1, "j1": 1, "i": 4, "k": 4},
        question="The nearest to a parking lot in the papers: two flows behind a cloud of 10 Mbit/s, one behind a "
        "cloud of 30 and one behind XCP-i routers share 50 Mbit/s. Fair shares are 5, 5, 20 and 20. The paper runs no "
        "TCP here; the baseline is its TCP over plain routers.",
        wanted="The flows get these shares.",
    )  # fmt: skip
    fork = cloud(
        "I-fork", "I-fig12", ("XCP-i", "TCP NewReno"), beside_tcp("I-fig12", fig12.FORK), 5,
        links=narrow(fig12.network(effort("I-fig12", CLOUD_S))), rate=50, title="One cloud, two paths",
        measures=STEADY,
        question="Two flows share a link of 50 Mbit/s inside a cloud, behind which their paths part. The baseline is "
        "again TCP over plain routers.",
        wanted="Each gets 25 Mbit/s, and nothing is lost.",
    )  # fmt: skip
    return [whole, clouds, upgraded, merge, lot, fork]


# ------------------------------------------------------------------------------------------------- paper Y


def of_y() -> list[Topology]:
    """A fading radio with several antennas and Reed-Solomon coding, direct or over a satellite."""
    fec = (0.9, 0.5)
    transition_db, antennas = 8.0, "1x2"
    payload = y.share(y.VCP, fec, two_way=True)
    tcp = "TCP with REM and ECN"

    def direct(name: str, experiment: str, pair: Pair, **keys: Any) -> Topology:
        return topology(
            name, experiment, ("XCP", tcp), pair, links={y.FORTH: fec[0]}, rate=y.MBPS,
            carries=2 * y.MBPS * payload, rtt=2 * (y.DELAY_MS + y.WIRES_MS), duration=RADIO_S, warmup=y.WARMUP_S,
            **keys,
        )  # fmt: skip

    clear = direct(
        "Y-direct", "Y-fig3", ((y.XCP, antennas, y.CLEAR_DB), (y.TCP, antennas, y.CLEAR_DB)),
        title="A direct radio link",
        question="Ten flows each way between two platforms over a radio of 54 Mbit/s and 80 ms with a strong signal: "
        "no coded packet is lost. The use is that of both ways, the delay that of the way there.",
        wanted="XCP carries as much as VCP or more, and both more than TCP.",
    )  # fmt: skip
    fading = direct(
        "Y-fading", "Y-fig3", ((y.XCP, antennas, transition_db), (y.TCP, antennas, transition_db)),
        title="The radio link with a weak signal",
        question=f"The same with a signal of {transition_db:g} dB before two receiving antennas, where the code does "
        "not repair all fades.",
        wanted="Losses of the radio hurt all; with more antennas they end at a weaker signal.",
    )  # fmt: skip
    short = direct(
        "Y-short", "Y-txt-short", ((y.XCP, True), (y.TCP, True)), title="Short flows beside the long ones", tail=10,
        measures=("short", "short99", "middle", "p99", "use"),
        question=f"The strong signal, and short flows of {txt_short.MEAN_PACKETS} packets in the mean (Pareto) each "
        "way, beside the long ones.",
        wanted="Short flows change buffers more than use.",
    )  # fmt: skip
    satellite = topology(
        "Y-satellite", "Y-fig7", ("VCP", tcp), cases("Y-fig7", RADIO_S, y.VCP, y.TCP), title="Two satellite links",
        rate=y.SAT_MBPS, rtt=2 * (y.SAT_HOPS * y.SAT_MS + y.WIRES_MS), carries=y.SAT_MBPS * 0.93,
        links=dict.fromkeys((y.FORTH, "r2->r3"), 0.93), duration=y.WARMUP_S + y.MEASURED_S, warmup=100, every=500,
        question="Ten flows over two links of 2 Mbit/s and half a second in series. A flow stops after six timeouts in "
        "a row, as in the paper. The delay is the sum over both queues.",
        wanted="VCP is best and steady, XCP swings, TCP swings more.",
    )  # fmt: skip
    return [clear, fading, short, satellite]


# ------------------------------------------------------------------------------------------------- paper D


def of_d() -> list[Topology]:
    """Ten flows over one bottleneck, five of which continue over a link that loses packets."""
    lossy, delay_ms, hops = 5.0, 20.0, 3
    warmup = float(effort("D-fig3", LOSSY_S).choices["D-P3"].removesuffix("s"))

    def half(name: str, experiment: str, called: Called, pair: Pair, hop_ms: float, **keys: Any) -> Topology:
        return topology(
            name, experiment, called, pair, links={d.BOTTLENECK: 1.0}, rate=d.RATE_MBPS, rtt=2 * hops * hop_ms,
            duration=LOSSY_S, warmup=warmup, measures=STEADY, drawn=("use", "jain"), every=50, **keys,
        )  # fmt: skip

    xcp = half(
        "D-xcp", "D-fig3", ("LR-LMXCP", "XCP with Reno's recovery"), (("LR-LMXCP", lossy), ("XCP_dumb", lossy)),
        delay_ms, title="Half of the flows lose packets, XCP's family",
        question=f"Ten flows share 5 Mbit/s; five of them lose {lossy:g} % of their packets behind the bottleneck. "
        "Jain's index is that of all ten flows' goodput.",
        wanted="The loss monitor makes XCP fair to the flows that lose packets; with Reno's recovery they starve.",
    )  # fmt: skip
    xtcp = half(
        "D-xtcp", "D-fig8", ("LR-LMXTCP", "TCP Reno"), (("LR-LMXTCP", lossy), ("TCP", lossy)), delay_ms,
        title="Half of the flows lose packets, XTCP's family",
        question="The same with XTCP, whose routers flag as many packets as they drop.",
        wanted="Accurate feedback of receivers is enough: LR-LMXTCP is as fair as LR-LMXCP.",
    )  # fmt: skip
    far = 80.0
    long = half(
        "D-long", "D-fig9", ("LR-LMXTCP", "TCP Reno"), (("LR-LMXTCP", far), ("TCP", far)), far,
        title="Long paths before a short queue",
        question=f"The ten flows without losses over links of {far:g} ms, behind queues of 50 packets, less than a "
        "bandwidth-delay product.",
        wanted="LR-LMXTCP uses long paths better than TCP, which backs off more often.",
    )  # fmt: skip
    return [xcp, xtcp, long]


# ------------------------------------------------------------------------------------------------- paper K


def of_k() -> list[Topology]:
    """A long fat pipe: the first thirty seconds, the start included."""
    shown_s, loss, many = 30.0, 1e-4, 10

    def pipe(name: str, experiment: str, then: str, pair: Pair, **keys: Any) -> Topology:
        return topology(
            name, experiment, (k.PROPOSED, then), pair, links={k.BOTTLENECK: 1.0}, rate=k.MBPS, rtt=1000 * k.RTT_S,
            duration=shown_s, warmup=0, every=50, **keys,
        )  # fmt: skip

    start = pipe(
        "K-start", "K-fig4", k.TCP, (k.PROPOSED, k.TCP), title="The start of one flow",
        question="One flow begins over 100 Mbit/s and half a second. The first thirty seconds count, the start "
        "included.",
        wanted="BISE starts far faster than VCP, and without a loss, where TCP loses heavily.",
    )  # fmt: skip
    flows = pipe(
        "K-flows", "K-fig6a", k.VCP, ((k.PROPOSED, many), (k.VCP, many)), title="The start of ten flows",
        measures=STEADY,
        question="Ten flows begin together on the same path.",
        wanted="BISE uses the link with any number of flows, more than VCP does, and keeps queues short.",
    )  # fmt: skip
    lossy = pipe(
        "K-lossy", "K-fig7", k.TCP, ((k.PROPOSED, loss), (k.TCP, loss)), title="A long fat pipe with losses",
        question=f"One flow begins, and one packet in {1 / loss:,.0f} is lost on the air.",
        wanted="BISE carries more than VCP and TCP, and WLTE, which leaves the window as it is after a loss, adds "
        "to it.",
    )  # fmt: skip
    return [start, flows, lossy]
