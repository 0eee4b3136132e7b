"""Are the papers' protocols still ahead? What ``explicate study papers`` runs and prints.

Runs, measures and records are those of ``explicate.studies.bits``, the rule of the verdict is `verdict`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explicate import text
from explicate.errors import BadInputError
from explicate.studies.bits import cell, heads
from explicate.studies.tables import Law, Network
from explicate.studies.verdict import Against, Values
from explicate.suggestions import instead
from explicate_papers.modern import verdict
from explicate_papers.modern.topologies import TODAY, Topology, law_named, topologies
from explicate_papers.modern.verdict import OWN, PAPER, THEN, Finding
from explicate_papers.register import experiments

NAME = "papers"
NOTE = "the paper's protocol over today's hosts is judged beside each law of today"
ROWS = {
    THEN: "the paper's baseline, with the paper's hosts",
    PAPER: "the paper's protocol, with the paper's hosts",
    OWN: "the paper's protocol, with today's hosts",
}
"""The rows of every topology before those of today's laws."""
THEIR_HOSTS, TODAYS_HOSTS = "the paper's", "Linux"


def rows() -> list[Law]:
    """Return the rows of every topology; those of the papers are filled by the topologies."""
    papers = [Law(name, name, 0, what, {}, {}) for name, what in ROWS.items()]
    return [*papers, *map(law_named, TODAY)]


def chosen(
    only: Sequence[str],
    laws: Sequence[str],
    *,
    quick: bool,  # noqa: ARG001 (all topologies are in the quick form)
    traces: Sequence[str] = (),  # noqa: ARG001 (recordings belong to other studies)
) -> tuple[list[Network], list[Law]]:
    """Return the topologies and rows with these names, or all; raise BadInputError for an unknown name.

    A paper's letter stands for its topologies.
    """
    every, known = topologies(), rows()
    letters = {one.name: one.experiment.partition("-")[0] for one in every}
    _check("topology", "topologies", only, [*dict.fromkeys(letters.values()), *letters])
    _check("law", "laws", laws, [row.name for row in known])
    networks: list[Network] = [one for one in every if not only or {one.name, letters[one.name]} & set(only)]
    return networks, [row for row in known if not laws or row.name in laws]


def _check(kind: str, kinds: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            near = instead(name, known)
            hint = f"{near}; " if near.startswith("did you mean") else ""
            raise BadInputError(f"there is no {kind} {name!r}; {hint}the {kinds} are: {', '.join(known)}")


def topology(name: str) -> Topology:
    """Return the topology of this name; raise KeyError if there is none."""
    return {one.name: one for one in topologies()}[name]


def listing(networks: Sequence[Network]) -> str:
    """Return `networks` and all rows as two tables."""
    made = [(one.name, topology(one.name)) for one in networks]
    body = [[name, one.experiment, one.title, one.names[OWN], one.names[THEN]] for name, one in made]
    shown = text.table(["topology", "experiment", "what", "protocol", "baseline"], body, left=5)
    return f"{shown}\n\n{text.table(['law', 'what'], [[row.name, row.carried] for row in rows()], left=2)}"


def names(one: Topology) -> dict[str, str]:
    """Return what the rows of a topology are called."""
    return {**one.names, **{name: law_named(name).label for name in TODAY}}


def finding(one: Topology, values: Values) -> Finding | None:
    """Return what the rule says of a topology."""
    return verdict.judge(values, TODAY, {name: one.floor(name) for name in one.measures})


def table(one: Topology, values: Values) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a topology's table; the last column has the protocol's word beside a rival."""
    found, called = finding(one, values), names(one)
    beside: Mapping[str, Against] = found.beside if found else {}
    body = []
    for row in rows():
        if row.name in values:
            cells = [cell([each for block in values[row.name][name] for each in block]) for name in one.measures]
            hosts = THEIR_HOSTS if row.name in (THEN, PAPER) else TODAYS_HOSTS
            said = verdict.word(beside[row.name]).value if row.name in beside else ""
            body.append([called[row.name], hosts, *cells, said])
    return ["law", "hosts", *heads(one), f"{called[OWN]} is"], body


def sentences(one: Topology, values: Values) -> list[str]:
    """Return the verdict in words."""
    found = finding(one, values)
    return verdict.sentences(found, names(one)) if found else []


def shown(network: Network, values: Values) -> str:
    """Return a topology's source, its table and its verdict in words."""
    one = topology(network.name)
    source = experiments()[one.experiment]
    head = f"{source.paper.authors}, {source.figure} ({source.id})"
    return "\n".join([head, text.table(*table(one, values), left=2), *sentences(one, values)])
