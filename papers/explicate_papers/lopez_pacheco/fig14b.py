"""I-fig14b: the second sender starts when the first fills the cloud that both cross (figure 14, the second problem)."""

from __future__ import annotations

from collections.abc import Sequence

from explicate.results import Results
from explicate.summary import jain_index
from explicate_papers import metrics
from explicate_papers.controls import Rewrite, Settings, edit
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("I-fig14b")

SHARED = "shared"
FIXED = "law"
LATE_S = 20.0


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The sender j 20 s after the sender i, with the paper's law and with that for shared bottlenecks."""
    flows = [
        base.flow(effort, "i", base.XCPI, ("i", "di")),
        base.flow(effort, "j", base.XCPI, ("j", "dj"), start=f"{LATE_S:g}s"),
    ]
    case = Case(base.scenario(effort, "I-fig14b", base.shared(), flows))
    law = Case(base.scenario(effort, "I-fig14b-law", base.shared(), flows))
    return {SHARED: case, FIXED: base.fair_law(law)}


@study.predicate("I-fig14b-a", most=0.5, after_s=20)
def the_late_one_stays_small(data: Data, most: float, after_s: float) -> Check:
    """Its rate is the one that shuffling yields."""

    def ratio(results: Results) -> float:
        i, j = (metrics.mean(base.over_time(results, one, LATE_S + after_s - 1)) for one in ("i", "j"))
        return j / i

    return at_most(f"j over i from {after_s:g} s after its start on", data.measure(SHARED, ratio), most)


@study.predicate("I-fig14b-b", jain=0.95, within_s=20)
def a_law_for_shared_links(data: Data, jain: float, within_s: float) -> Check:
    """The paper has no law for this. With ours each edge steers to its flows' multiple of what is left."""

    def fairness(results: Results) -> float:
        rates = [base.over_time(results, one, LATE_S + within_s - 1) for one in ("i", "j")]
        return jain_index([float(rate["value"][0]) for rate in rates])

    return at_least(f"Jain's index in second {within_s:g} after j's start", data.measure(FIXED, fairness), jain)


study.control(
    "equation 1 in the place of the law for shared links",
    Rewrite("off", lambda _, case: base.equation_1(case), lambda label: label == FIXED),
    ["I-fig14b-b"],
    base.WHY_EQUATION_1,
)
study.control(
    "the second sender starts with the first",
    Settings("off", {"flows.j.start": "0s"}),
    ["I-fig14b-a"],
    "two flows that grow together from the same window share what both edges find to be left",
)
study.control(
    "a router at the shared link",
    edit("off", base.routers_everywhere),
    ["I-fig14b-a"],
    "one controller serves the shared link and both flows: the edges estimate nothing, and shares become equal",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Windows and throughputs over time, beside those with the law for shared bottlenecks, and half of the link."""
    return base.panels(data, SHARED, ["i", "j"], beside=[FIXED], marks={"half of the link": 15.0})
