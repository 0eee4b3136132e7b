"""Makes docs/reference from the sources.

One page for each protocol, recovery, queue discipline, channel, estimator and medium, with a picture of what it does
(`page_figures.py`), the columns of the result tables and the keys of a scenario. What a page says comes from the
registry, from the schema and from the `//!` documentation at the head of the Rust file, which is found by the line that
registers it. Nothing here names a protocol. `--check` tells whether the committed pages and pictures are up to date,
and whether what the written pages promise holds (`check_prose.py`).
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import check_prose
import page_figures
import python_api

from explicate import engine
from explicate.engine import Entry

ROOT = Path(__file__).resolve().parent.parent
PAGES = Path("docs/reference")
PICTURES = "img"
"""Folder of the pictures, below that of the pages."""
CORE = Path("crates/explicate-core/src")
NOTE = "<!-- Made by `make docs` from {sources}: change those, not this page. -->"

LINE = re.compile(r'^    (\w+)::(\w+)(?: = "\w+")?,$', re.MULTILINE)
"""A registry line."""
PROBE = re.compile(r'\bput\(\s*([^,;]*"\w+"[^,;]*),')
"""The names of a variable that a machine tells: one, or several to choose from."""
COMBINES = re.compile(r" \((\S+)/(\S+)\)$")
"""The law and the recovery of a preset, at the end of its summary."""
NEIGHBOUR = re.compile(r"^use (crate::(?:protocols|recovery)|super)::((?:common::)?\w+)::([^;]+);$", re.MULTILINE)
"""What a file uses of another in its folder or in that of its kind, or in `common/` there."""


@dataclass(frozen=True)
class Kind:
    """A kind of registry entry that has pages."""

    name: str
    folder: str
    title: str
    one: str
    says: str
    """What the kind is, in one sentence."""
    use: str
    """How a scenario names one."""


KINDS = (
    Kind(
        "protocol", "protocols", "Protocols", "Protocol",
        "A congestion controller: how much a flow may have in flight. An explicit one also has a router controller.",
        "[[flows]]\nname = \"mine\"\nprotocol = \"{name}\"{params}",
    ),
    Kind(
        "recovery", "recovery", "Recoveries", "Recovery",
        "How lost segments are detected and retransmitted; any protocol runs over any recovery.",
        "[[flows]]\nname = \"mine\"\nprotocol = \"{law}/{name}\"{params}",
    ),
    Kind(
        "qdisc", "qdisc", "Queue disciplines", "Queue discipline",
        "Which packets enter the queue of a port, are marked, or leave next.",
        "[topology]\nbottleneck = {{ rate = \"50Mbit/s\", delay = \"40ms\", queue = {{ kind = \"{name}\"{keys} }} }}",
    ),
    Kind(
        "channel", "channel", "Channels", "Channel",
        "What a link does to packets besides transmitting them at its rate.",
        "[[link]]\nname = \"r1->r2\"\nchannel = [{{ kind = \"{name}\"{keys} }}]",
    ),
    Kind(
        "estimator", "estimate", "Estimators", "Estimator",
        "How a router measures the available bandwidth of plain routers; selected by the parameter `estimator`.",
        "[[link]]\nname = \"r1->r2\"\nrouter = {{ kind = \"{router}\", estimator = \"{name}\"{keys} }}\n\n"
        "[[flows]]\nname = \"mine\"\nprotocol = \"{router}\"",
    ),
    Kind(
        "medium", "medium", "Media", "Medium",
        "A wireless medium that several nodes share: access, reception and collisions.",
        "[[medium]]\nname = \"air\"\nkind = \"{name}\"\nlayout = {{ kind = \"chain\", stations = 3 }}\n\n"
        "[[flows]]\nname = \"mine\"\nprotocol = \"reno\"\nfrom = \"n1\"\nto = \"n3\"",
    ),
)  # fmt: skip


HEADERS = (
    "{bytes} bytes of a data packet are headers (IP and UDP, transport, and a congestion header if it has one), the "
    "rest is payload: while nothing is lost, `goodput_bps` is `throughput_bps` times (packet - {bytes}) / packet."
)
WRITTEN = {"file": '"steps.trace"', "rates over time": '[{ at = "0s", rate = "5Mbit/s" }]'}
"""Units of parameters that have no default, and what a page writes for them."""

QUEUES = {"fast": '{ kind = "droptail", limit = "200pkt" }', "dctcp": '"step"', "prague": '"dualpi2"'}
ROOM = {name: f"[topology]\nbottleneck = {{ queue = {queue} }}\n\n" for name, queue in QUEUES.items()}
"""What stands before an entry that needs another queue than the default one: a longer one, or one that marks."""


# ------------------------------------------------------------------------------------------------ the sources


@dataclass(frozen=True)
class Source:
    """The Rust file of a registry entry."""

    path: Path
    docs: str
    variables: tuple[str, ...]


def module_docs(text: str) -> str:
    """The `//!` lines at the head of a Rust file as Markdown, its links to code as plain code."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//!"):
            break
        lines.append(line[3:].removeprefix(" "))
    docs = "\n".join(lines).strip()
    docs = re.sub(r"\[(`[^`\]]+`)\](?:\([^)]*\))?", r"\1", docs)
    return docs.replace(r"\[", "[").replace(r"\]", "]")


def sources(kind: Kind) -> Iterator[Source]:
    """The files of a kind, in the order of its registry, which is the order of its lines."""
    folder = CORE / kind.folder
    modules = [module for module, _ in LINE.findall((ROOT / folder / "mod.rs").read_text(encoding="utf-8"))]
    for module in modules:
        path = folder / f"{module}.rs"
        if not (ROOT / path).is_file():
            path = folder / module / "mod.rs"
        text = (ROOT / path).read_text(encoding="utf-8")
        yield Source(path, module_docs(text), tuple(dict.fromkeys(variables(path, folder, modules))))


def variables(
    path: Path, folder: Path, registered: Sequence[str], seen: frozenset[Path] = frozenset()
) -> Iterator[str]:
    """The variables of a file of the kind in `folder`, and those of the neighbours whose parts it uses.

    Neighbours may use each other; `seen` are the files on the way to this one.
    """
    code = (ROOT / path).read_text(encoding="utf-8").split("\n#[cfg(test)]\n", maxsplit=1)[0]
    for root, named, names in NEIGHBOUR.findall(code):
        # A module of `common/` may be used by its name.
        module = f"{named}::{names}" if named == "common" and names.isidentifier() else named
        if module not in registered or re.search(r"(Sender|Router)\b", names):
            neighbour = path.parent if root == "super" else folder
            used = neighbour / f"{module.replace('::', '/')}.rs"
            used = used if (ROOT / used).exists() else used.with_suffix("") / "mod.rs"
            if used not in seen:
                yield from variables(used, folder, registered, seen | {path})
    for names in PROBE.findall(code):
        yield from re.findall(r'"(\w+)"', names)


# ------------------------------------------------------------------------------------------------- Markdown


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns that are empty in every row are left out."""
    body = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    kept = [i for i in range(len(head)) if any(row[i] for row in body)]
    lines = [[head[i] for i in kept], ["---"] * len(kept), *([row[i] for i in kept] for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parameters(entry: Entry) -> str:
    """The parameters of an entry as a table."""
    rows = (
        (
            f"`{p['name']}`",
            "required" if p["unit"] in WRITTEN else f"`{p['default']}`",
            p["unit"],
            p["doc"],
            p["source"],
        )
        for p in entry["parameters"]
    )
    return table(("key", "default", "unit or words", "meaning", "source"), rows)


def page(title: str, made_from: Sequence[str], *parts: str) -> str:
    """A whole page."""
    note = NOTE.format(sources=", ".join(made_from))
    return "\n\n".join([f"# {title}", note, *(part for part in parts if part)]) + "\n"


def example(kind: Kind, entry: Entry, law: str, router: str) -> str:
    """How a scenario names it, with the first parameter that has a plain default.

    `law` and `router` are what it stands beside, if it cannot stand alone.
    """
    plain = [
        p
        for p in entry["parameters"]
        if re.match(r"^[\w.]*$", p["default"]) and p["default"] not in ("auto", "NaN", "unlimited")
    ]
    first = plain[0] if plain else None
    value = "" if first is None else first["default"]
    written = "" if first is None else value if re.match(r"^([\d.]+|true|false)$", value) else f'"{value}"'
    keys = f", {first['name']} = {written}" if first else ""
    for p in entry["parameters"]:
        if p["unit"] in WRITTEN:
            keys = f", {p['name']} = {WRITTEN[p['unit']]}"
    params = f"\nparams = {{ {first['name']} = {written} }}" if first else ""
    text = kind.use.format(name=entry["name"], law=law, router=router, keys=keys, params=params)
    text = ROOM.get(entry["name"], "") + text
    return f"In a scenario:\n\n```toml\n{text}\n```"


@dataclass(frozen=True)
class Beside:
    """What a page says beside the entry itself."""

    router: Entry | None
    example: str
    picture: str
    about: str
    presets: Sequence[Entry]


def entry_page(kind: Kind, entry: Entry, source: Source, beside: Beside) -> str:
    """The page of one entry."""
    link = f"[`{source.path}`](../../{source.path})"
    facts = f"{entry['summary']}.\n\n*{kind.one}* · {entry['source']} · {link}"
    shown = f"![{beside.about}]({PICTURES}/{beside.picture})\n\n{beside.about}"
    parts = [facts, shown, beside.example, "## The idea, the symbols, the deviations", source.docs]
    if "header_bytes" in entry:
        parts += ["## Headers", HEADERS.format(bytes=entry["header_bytes"])]
    router = beside.router
    if entry["parameters"]:
        title = "## Parameters of the sender" if router else "## Parameters"
        parts += [title, parameters(entry)]
    if router:
        parts += [
            "## Parameters of the router",
            'Written as `router = { kind = "' + router["name"] + '", ... }` of a link.',
            parameters(router),
        ]
    if source.variables:
        names = ", ".join(map(with_unit, source.variables))
        of = {"qdisc": "`router`", "recovery": "`flow`"}.get(kind.name, "`flow` and `router`" if router else "`flow`")
        told = f"What `[sampling]` of {of} records: {names}; see [columns](columns.md#samplesvariable)."
        if kind.name == "channel":
            told = f"What `explicate curves` computes for each length of packets: {names}."
        parts += ["## Variables", told]
    if beside.presets:
        parts += ["## Presets", preset_table(beside.presets)]
    return page(entry["name"], ["the registry", f"`{source.path}`"], *parts)


def with_unit(variable: str) -> str:
    """A sampled variable and its unit."""
    unit = next((v["unit"] for v in engine.columns()["samples.variable"] if v["name"] == variable), None)
    return f"`{variable}` ({unit})" if unit else f"`{variable}`"


def preset_table(presets: Iterable[Entry]) -> str:
    """Presets with what they combine."""
    return table(("name", "", "source"), ((f"`{e['name']}`", e["summary"], e["source"]) for e in presets))


def presets_of(kind: Kind, name: str, presets: Iterable[Entry]) -> list[Entry]:
    """The presets that are made of this law or recovery."""
    part = {"protocol": 1, "recovery": 2}.get(kind.name)
    if part is None:
        return []
    return [e for e in presets if (found := COMBINES.search(e["summary"])) and found[part] == name]


# ------------------------------------------------------------------------------------- columns and scenario keys


def columns_page() -> str:
    """The columns of every result table."""
    said = (
        "Columns tell what happened in the *measured span*, from the end of the warm-up to the end of the run, except "
        'where they say "whole run". What happens at the very moment in which the warm-up ends comes before the span: '
        "without a warm-up, a packet that is sent or dropped at 0 s, such as the first one of connection set-up, is "
        "only in columns of the whole run. The same list: `explicate columns`."
    )
    parts = [said]
    for name, columns in engine.columns().items():
        rows = ((f"`{c['name']}`", c["unit"], c["doc"]) for c in columns)
        parts += [f"## `{name}`", table(("column", "unit", "definition"), rows)]
    return page("Columns of the result tables", ["`crates/explicate-build/src/tables.rs`"], *parts)


WORDS = {
    "time": "time", "rate": "rate", "bytes": "bytes", "distance": "distance", "coordinate": "coordinate",
    "decibels": "decibels", "frequency": "per time", "length": "length of a queue", "percentage": "percentage",
    "packets": "packets", "queue": "queue discipline", "router": "router", "channel": "channel", "protocol": "protocol",
    "flow_params": "table of parameters",
}  # fmt: skip
"""What the schema's definitions are called on the page."""


def form(value: dict[str, Any]) -> str:
    """What a key takes, in words."""
    if "$ref" in value:
        name = str(value["$ref"]).rsplit("/", 1)[-1]
        return WORDS.get(name, name)
    if "anyOf" in value:
        return " or ".join(form(choice) for choice in value["anyOf"])
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if value.get("type") == "array":
        return f"list of {form(value.get('items', {}))}"
    if value.get("type") == "object":
        return "table"
    if value.get("type") == "string":
        return "text"
    if value.get("type") == "boolean":
        return "true or false"
    least, most = value.get("minimum"), value.get("maximum", 1e18)
    bounds = [f"from {least:,g}" if least is not None else "", f"to {most:,.12g}" if most < 1e18 else ""]
    return " ".join(["whole number" if value.get("type") == "integer" else "number", *filter(None, bounds)])


def keys(table_: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Name, form, default and meaning of the keys of a table of the schema."""
    required = table_.get("required", ())
    for name, value in table_["properties"].items():
        doc, _, default = value.get("description", "").partition(" Default: ")
        yield f"`{name}`", form(value), default or ("required" if name in required else ""), doc


def tables(name: str, value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of a scenario below a key, outer ones first, each with its name as TOML writes it."""
    for choice in value.get("anyOf", ()):
        yield from tables(name, choice)
    if value.get("type") == "array":
        yield from tables(f"[{name}]", value.get("items", {}))
    elif "properties" in value:
        yield name, value
        for key, inner in value["properties"].items():
            yield from tables(f"{name}.{key}" if name else key, inner)


def scenario_page() -> str:
    """Every key of a scenario."""
    schema = engine.schema()
    units = ((WORDS[name], f'`"{d["examples"][0]}"`') for name, d in schema["$defs"].items() if "examples" in d)
    parts = [
        "How to write one: [scenarios](../scenarios.md). For editors: `explicate schema > scenario.schema.json`.",
        "Quantities are texts with a unit:",
        table(("quantity", "like"), units),
    ]
    for name, value in tables("", schema):
        # A list in a list is written as one path in double brackets, a table in a list beside it.
        path, _, key = name.rpartition("].") if name.startswith("[") and not name.endswith("]") else (name, "", "")
        inner = re.sub(r"[][]", "", path)
        title = f"`[[{inner}]]`" if name.startswith("[") else f"`[{inner}]`" if name else "At the top"
        parts += [
            f"## {title}{f', `{key}`' if key else ''}",
            table(("key", "takes", "default", "meaning"), keys(value)),
        ]
    common = flow_parameters(schema)
    parts += [
        "## Parameters of every flow",
        "In `params`, beside those of the flow's protocol and recovery:",
        table(("key", "takes", "meaning"), common),
    ]
    return page("Keys of a scenario", ["`crates/explicate-scenario/src/keys.rs`", "the registry"], *parts)


def flow_parameters(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Parameters of flows that no registry entry declares."""
    declared = {p["name"] for e in engine.registry() if e["kind"] in ("protocol", "recovery") for p in e["parameters"]}
    for name, value in schema["$defs"]["flow_params"]["properties"].items():
        if name not in declared:
            yield f"`{name}`", form(value), value["description"]


# -------------------------------------------------------------------------------------------------- all pages


def pages() -> dict[str, str]:
    """Every page and picture by its file name."""
    entries = engine.registry()
    of_kind = {kind.name: [e for e in entries if e["kind"] == kind.name] for kind in KINDS}
    routers = {e["name"]: e for e in entries if e["kind"] == "router"}
    presets = [e for e in entries if e["kind"] == "preset"]
    law = of_kind["protocol"][0]["name"]
    asks = next(name for name, e in routers.items() if any(p["name"] == "estimator" for p in e["parameters"]))
    named = [(kind, e["name"]) for kind, of_it in of_kind.items() for e in of_it]
    if strays := page_figures.strays(named):
        sys.exit(f"scripts/page_figures.toml: the registry has no {', '.join(strays)}")
    drawn = page_figures.drawn(named)
    made = {f"{PICTURES}/{name}.svg": svg for name, (_, svg) in drawn.items()}
    index = [
        "Also on the command line: `explicate protocols NAME`. "
        "Names of sources: [sources](../sources.md). Terms: [glossary](../glossary.md).",
        "[Keys of a scenario](scenario.md) · [Columns of the result tables](columns.md) · "
        "[The Python package](python.md)",
    ]
    for kind in KINDS:
        found = list(sources(kind))
        listed = of_kind[kind.name]
        if len(found) != len(listed):
            sys.exit(f"{CORE / kind.folder / 'mod.rs'}: {len(found)} lines, but {len(listed)} entries in the registry")
        rows = []
        for entry, source in zip(listed, found, strict=True):
            if f'"{entry["name"]}"' not in (ROOT / source.path).read_text(encoding="utf-8"):
                sys.exit(f"{source.path} does not name `{entry['name']}`: is the engine built from these sources?")
            router = routers.get(entry["name"]) if kind.name == "protocol" else None
            name = f"{kind.name}-{entry['name']}"
            beside = Beside(
                router,
                example(kind, entry, law, asks),
                f"{name}.svg",
                drawn[name][0],
                presets_of(kind, entry["name"], presets),
            )
            made[f"{name}.md"] = entry_page(kind, entry, source, beside)
            rows.append((f"[{entry['name']}]({name}.md)", entry["summary"], entry["source"]))
        index += [f"## {kind.title}", kind.says, table(("name", "", "source"), rows)]
    index += [
        "## Presets",
        "Names for a protocol over a recovery. A flow's `protocol` is a preset, a protocol, or `protocol/recovery`.",
        preset_table(presets),
    ]
    made["index.md"] = page("Reference", ["the registry"], *index)
    made["columns.md"] = columns_page()
    made["scenario.md"] = scenario_page()
    made["python.md"] = page("The Python package", ["`python/explicate`"], *python_api.parts())
    return made


def there(folder: Path) -> dict[str, Path]:
    """The pages and pictures of a folder by their names as `pages` gives them."""
    return {str(path.relative_to(folder)): path for end in ("*.md", f"{PICTURES}/*.svg") for path in folder.glob(end)}


def differences(made: dict[str, str], folder: Path) -> Iterator[str]:
    """What the committed pages lack, have too many, or say otherwise."""
    committed = {name: path.read_text(encoding="utf-8") for name, path in there(folder).items()}
    for name in sorted(made.keys() | committed.keys()):
        old, new = committed.get(name, ""), made.get(name, "")
        if old != new and name.endswith(".svg"):
            yield f"{PAGES / name}: {'another picture' if old and new else 'new' if new else 'not used'}"
        elif old != new:
            yield from difflib.unified_diff(
                old.splitlines(),
                new.splitlines(),
                f"{PAGES / name} (committed)",
                f"{PAGES / name} (made)",
                n=1,
                lineterm="",
            )


def main() -> None:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the pages are not up to date")
    options = parser.parse_args()
    made, folder = pages(), ROOT / PAGES
    if options.check:
        changed = list(differences(made, folder))
        if changed:
            sys.exit("\n".join(changed) + "\nthe reference pages are not up to date: `make docs` makes them")
        problems = list(check_prose.problems())
        if problems:
            sys.exit("\n".join(problems))
        return
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    for name, path in there(folder).items():
        if name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in check_prose.documents():
        text = path.read_text(encoding="utf-8")
        path.write_text(check_prose.with_example(text), encoding="utf-8")
    print(f"{PAGES}: {len(made)} pages and pictures")


if __name__ == "__main__":
    main()
