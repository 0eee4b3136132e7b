"""Hashes of the inputs of verdicts: judges, cases, controls, choices and plans, each with all code that it uses.

They are hashes of syntax trees, so names and numbers count, but comments, docstrings and layout do not. A judge's
hash covers its own top-level statement, and every function, class and constant of the papers' modules that it names,
directly or through others. ``frozen.json`` holds the hashes as they were before the runs, ``changes.toml`` the changes
that were made later.
"""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from explicate_papers.plan import choices, rows, studies
from explicate_papers.register import PAPERS, Paper, experiments
from explicate_papers.study import Study

FRAMEWORK = frozenset(
    f"explicate_papers.{name}"
    for name in ("inputs", "study", "register", "judge", "plan", "store", "command", "gallery", "verdicts", "freeze")
)
"""Modules that a hash does not follow: they run the judges and measure nothing."""
Unit = tuple[str, str]
"""A module and a name of its top level."""


@dataclass(frozen=True)
class Module:
    """The syntax of a module of the papers: which statements bind a name, and where imported names come from."""

    statements: tuple[ast.stmt, ...]
    bound: Mapping[str, tuple[ast.stmt, ...]]
    imported: Mapping[str, Unit]
    """An imported name; the second part is empty if it is a module."""


@cache
def module(name: str) -> Module | None:
    """Return the syntax of a module that hashes follow; None for every other one."""
    if not name.startswith("explicate_papers.") or name in FRAMEWORK:
        return None
    spec = find_spec(name)
    if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return None
    return parsed(Path(spec.origin).read_text(encoding="utf-8"))


def frozen_name(name: str) -> str:
    """Return the name that a module had at the freeze: hashes hold names, and a move is no change."""
    for one in moves():
        if name == one.now or name.startswith(f"{one.now}."):
            return one.frozen + name.removeprefix(one.now)
    return name


def parsed(text: str) -> Module:
    """Return the syntax of a module's text."""
    statements = tuple(ast.parse(text).body)
    bound: dict[str, list[ast.stmt]] = {}
    imported: dict[str, Unit] = {}
    for statement in statements:
        if isinstance(statement, ast.ImportFrom):
            source = statement.module or ""
            for alias in statement.names:
                inner = f"{source}.{alias.name}"
                whole = module_exists(inner)
                imported[alias.asname or alias.name] = (inner, "") if whole else (source, alias.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                imported[alias.asname or alias.name] = (alias.name, "")
        else:
            for name in _binds(statement):
                bound.setdefault(name, []).append(statement)
    return Module(statements, {key: tuple(value) for key, value in bound.items()}, imported)


def module_exists(name: str) -> bool:
    """Whether `name` is a module of the papers, and not a name inside one."""
    try:
        return name.startswith("explicate_papers.") and find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _binds(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def dump(node: ast.AST) -> str:
    """Return a syntax tree as text, without places, docstrings and fields that are empty (they differ by version)."""
    parts = []
    for name, value in ast.iter_fields(node):
        if name == "body" and _documented(node):
            value = value[1:]  # noqa: PLW2901
        if value is None or value == [] or name in {"ctx", "type_comment", "kind"}:
            continue
        parts.append(f"{name}={_part(value)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _part(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_part, value))}]"
    return dump(value) if isinstance(value, ast.AST) else repr(value)


def _documented(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None


def uses(statements: Iterable[ast.stmt], inside: str, syntax: Module) -> Iterator[Unit]:
    """Yield the names that statements of the module `inside` use: from this module and other modules of the papers."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                where = syntax.imported.get(node.value.id)
                if where is not None and not where[1]:
                    yield where[0], node.attr
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in syntax.bound:
                    yield inside, node.id
                elif node.id in syntax.imported:
                    yield syntax.imported[node.id]


def closure(statements: Iterable[ast.stmt], inside: str, syntax: Module) -> dict[str, str]:
    """Return the dumps of all that the statements use, by module and name."""
    found: dict[str, str] = {}
    waiting = list(uses(statements, inside, syntax))
    while waiting:
        where, name = waiting.pop()
        source = syntax if where == inside else module(where)
        key = f"{frozen_name(where)}:{name}"
        if source is None or key in found:
            continue
        if name not in source.bound:
            if name in source.imported:
                waiting.append(source.imported[name])
            continue
        there = source.bound[name]
        found[key] = "\n".join(map(dump, there))
        waiting += uses(there, where, source)
    return found


def digest(statements: Iterable[ast.stmt], inside: str, syntax: Module, *more: object) -> str:
    """Return the hash of statements with all that they use, and of `more`."""
    kept = list(statements)
    parts = [*map(dump, kept), *(f"{key}\n{text}" for key, text in sorted(closure(kept, inside, syntax).items()))]
    return _hash([*parts, *map(repr, more)])


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def judge_digest(study: Study, claim: str) -> str:
    """Return the hash of a claim's judge, or of the reason why it has none or cannot fail; see `Rewrite`."""
    return _before_rewrites(claim, _judge_digest(study, claim))


def _judge_digest(study: Study, claim: str) -> str:
    inside = study.module
    syntax = module(inside)
    assert syntax is not None, inside
    rule = study.rules.get(claim)
    if rule is None:
        return _hash([study.skipped.get(claim, ""), study.unfailing.get(claim, "")])
    said = (sorted(rule.bounds.items()), rule.instead, rule.deterministic, claim in study.unfailing)
    return digest(_statements(syntax, "predicate", claim), inside, syntax, *said)


def _statements(syntax: Module, method: str, claim: str = "") -> list[ast.stmt]:
    """Return the top-level statements that call this method of a study, with the claim's id if one is given."""
    return [
        statement
        for statement in syntax.statements
        if _calls(statement, method) and (not claim or _names(statement, claim) or isinstance(statement, ast.For))
    ]


def _calls(statement: ast.stmt, method: str) -> bool:
    """Whether a statement calls this method of the module's study, or is decorated with it."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method
        and isinstance(node.value, ast.Name)
        and node.value.id == "study"
        for node in ast.walk(statement)
    )


def _names(statement: ast.stmt, text: str) -> bool:
    return any(isinstance(node, ast.Constant) and node.value == text for node in ast.walk(statement))


def experiment_digest(study: Study) -> str:
    """Return the hash of the cases of an experiment and its controls; see `Rewrite`."""
    return _before_rewrites(study.id, _experiment_digest(study))


def _before_rewrites(identifier: str, made: str) -> str:
    for one in reversed(rewrites()):
        if one.id == identifier and one.hash == made:
            made = one.was
    return made


def _experiment_digest(study: Study) -> str:
    inside = study.module
    syntax = module(inside)
    assert syntax is not None, inside
    controls = [(name, one.mutation.kind, one.flips) for name, one in sorted(study.controls.items())]
    return digest([*_statements(syntax, "cases"), *_statements(syntax, "control")], inside, syntax, controls)


def paper_digests(paper: Paper) -> dict[str, str]:
    """Return the hashes of a paper's choices (the values, not the reasons) and of its rows of the plan."""
    used = [(key, one.used, one.others) for key, one in sorted(choices(paper).items())]
    return {"choices": _hash(map(repr, used)), "plan": _hash([json.dumps(rows(paper), sort_keys=True)])}


def now() -> dict[str, str]:
    """Return all hashes as they are: of claims and experiments by id, of papers as ``N choices`` and ``N plan``."""
    made: dict[str, str] = {}
    known = studies()
    for paper in PAPERS.values():
        made |= {f"{paper.letter} {key}": value for key, value in paper_digests(paper).items()}
    for one in experiments().values():
        study = known.get(one.id)
        if study is not None:
            made[one.id] = experiment_digest(study)
            made |= {predicate.id: judge_digest(study, predicate.id) for predicate in one.predicates}
    return made


@cache
def of_experiment(identifier: str) -> str:
    """Return one hash of everything that is frozen for an experiment and for its paper's choices and plan."""
    study = studies()[identifier]
    judges = [judge_digest(study, predicate.id) for predicate in study.experiment.predicates]
    return _hash([experiment_digest(study), *judges, *paper_digests(study.experiment.paper).values()])


@cache
def of_paper(letter: str) -> str:
    """Return one hash of everything that is frozen for a paper."""
    return _hash(of_experiment(key) for key, study in studies().items() if study.experiment.paper.letter == letter)


@dataclass(frozen=True)
class Move:
    """Modules that moved after the freeze: the name of their package then and now, and why nothing else changed."""

    frozen: str
    now: str
    reason: str


@dataclass(frozen=True)
class Rewrite:
    """Rewritten code of an experiment whose runs do not change: the hash before and after, and the reason.

    It counts as the hash before. `cases` shows that the runs are the same. For a judge whose hash changed, old and new
    code have also given the same verdicts from one folder of runs.
    """

    id: str
    was: str
    hash: str
    reason: str


@dataclass(frozen=True)
class Change:
    """A change after the freeze: the id, the new hash, the reason, and the verdict before and after."""

    id: str
    hash: str
    reason: str
    before: str
    after: str


def frozen() -> dict[str, str]:
    """Return the hashes as they were frozen; empty before the freeze."""
    file = resources.files("explicate_papers").joinpath("frozen.json")
    made: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return made


def ledger() -> list[Change]:
    """Return the changes since the freeze, in order; raise ValueError for one without a reason."""
    made = [Change(**row) for row in _changes().get("change", [])]
    for one in made:
        if not one.reason.strip():
            raise ValueError(f"changes.toml: the change of {one.id} has no reason")
    return made


@cache
def moves() -> tuple[Move, ...]:
    """Return the moves since the freeze."""
    return tuple(Move(**row) for row in _changes().get("moved", []))


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """Return the rewrites since the freeze, in order."""
    return tuple(Rewrite(**row) for row in _changes().get("rewritten", []))


def _changes() -> dict[str, Any]:
    file = resources.files("explicate_papers").joinpath("changes.toml")
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def unrecorded(before: Mapping[str, str], changes: Iterable[Change], current: Mapping[str, str]) -> list[str]:
    """Return the differences from the freeze and its recorded changes: a sentence for each id."""
    known = {**before, **{one.id: one.hash for one in changes}}
    said = []
    for key in sorted({*known, *current}):
        if key not in known:
            said.append(f"{key} is new since the freeze")
        elif key not in current and known[key]:
            said.append(f"{key} is gone since the freeze")
        elif key in current and current[key] != known[key]:
            said.append(f"{key} changed since the freeze")
    return said
