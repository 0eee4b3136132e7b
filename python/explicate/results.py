"""The results of a simulation: four tables, and their files on disk.

The files hold nothing of the machine: no wall time, host, path or number of jobs (wall times go to ``timing.json``
alone). The same scenario and seed give the same bytes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from explicate.errors import BadInputError
from explicate.files import DESCRIPTION, TABLES, replacing, write_json, write_table, write_text
from explicate.summary import busy_links, group_summary, identical_runs, jain_index, link_summary, sameness, with_count

if TYPE_CHECKING:
    from explicate.plotting import Plot

OWN: Mapping[str, tuple[str, ...]] = {
    "flows": ("flow", "group", "goodput_bps"),
    "links": ("link", "utilisation"),
    "samples": ("time_s", "object", "variable", "value"),
    "run": ("name", "seed", "version", "scenario"),
}
"""Columns that identify a table; the axes and ``run`` precede them."""
FORMAT = 1
"""Version of the layout of a result directory, in ``run.json``; it changes when older readers could not read it."""


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """The tables of one run, or of many runs along `axes`.

    `axes` names the leading columns that a sweep or comparison put before each table's own; a plain run has none.
    `warnings` are the scenario's, `trace` is the packet trace as text if requested, `timing` is the engine's
    report of wall time, which is no result; `wanted` are the measures that a sweep was asked for. `unused` has the
    setting of each warning that nothing uses one; it is not written to files.
    """

    flows: pl.DataFrame
    links: pl.DataFrame
    samples: pl.DataFrame
    run: pl.DataFrame
    axes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    trace: str = ""
    timing: Any = None
    wanted: tuple[str, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Return whether axes and tables are equal."""
        if not isinstance(other, Results):
            return NotImplemented
        theirs = other.tables()
        return self.axes == other.axes and all(frame.equals(theirs[name]) for name, frame in self.tables().items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return a line about the tables; `summary` has what came out."""
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        rows = ", ".join(f"{name} {frame.height}" for name, frame in self.tables().items())
        return f"<{type(self).__name__} {self.name}{over}, rows: {rows}>"

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.run["name"][0])

    @property
    def seed(self) -> int:
        """The seed of the first run."""
        return int(self.run["seed"][0])

    @property
    def version(self) -> str:
        """The version of the engine that computed this."""
        return str(self.run["version"][0])

    @property
    def scenario(self) -> str:
        """The first run's scenario, all defaults resolved, as TOML."""
        return str(self.run["scenario"][0])

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables by name."""
        return {name: getattr(self, name) for name in TABLES}

    def jain(self, group: str | None = None) -> float:
        """Return Jain's index of the flows' goodput, the mean over runs; of one `group` or of all flows.

        Raise ValueError if there is no such group, or if the results have axes (`select` one point first).
        """
        if self.axes:
            raise ValueError(f"these results vary {', '.join(self.axes)}: select one point first")
        flows = self.flows
        if group is not None:
            flows = flows.filter(pl.col("group") == group)
            if flows.is_empty():
                known = ", ".join(self.flows["group"].unique(maintain_order=True).to_list())
                raise ValueError(f"no flow group {group!r}; the groups are: {known}")
        per_run = [
            jain_index(frame["goodput_bps"].to_list(), frame["count"].to_list())
            for frame in with_count(flows).partition_by("run")
        ]
        return math.fsum(per_run) / len(per_run) if per_run else math.nan

    def summary(self) -> pl.DataFrame:
        """Return one row per flow group and point of the axes; see `explicate.summary.group_summary`."""
        return group_summary(self.flows, self.axes)

    def link_summary(self) -> pl.DataFrame:
        """Return one row per link and point of the axes, the mean over runs."""
        return link_summary(self.links, self.axes)

    def sameness(self) -> str:
        """Return a sentence about runs that differ in nothing but their seed; empty if there are none."""
        return sameness(identical_runs(self.flows, self.links, self.axes), len(self.points()))

    def points(self) -> list[dict[str, Any]]:
        """Return the points of the axes in the order of the runs; one empty point if there are no axes."""
        return self.run.select(self.axes).unique(maintain_order=True).to_dicts() if self.axes else [{}]

    def select(self, point: Mapping[str, Any] | None = None, /, **axes: Any) -> Results:
        """Return the results at one value of some axes, which are then no longer axes.

        Raise KeyError for an unknown axis, ValueError if nothing was run there.
        """
        wanted = {**(point or {}), **axes}
        for axis in wanted:
            if axis not in self.axes:
                raise KeyError(f"no axis {axis!r}; the axes are: {', '.join(self.axes) or 'none'}")
        where = [pl.col(axis) == value for axis, value in wanted.items()]
        if where and self.run.filter(*where).is_empty():
            raise ValueError(f"nothing was run at {wanted}")
        chosen: dict[str, Any] = {
            name: frame.filter(*where).drop(*wanted) if where else frame for name, frame in self.tables().items()
        }
        return replace(self, **chosen, axes=tuple(axis for axis in self.axes if axis not in wanted))

    def to_pandas(self) -> dict[str, Any]:
        """Return the tables as pandas frames, by name; raise ImportError if pandas is not installed."""
        try:
            return {name: frame.to_pandas() for name, frame in self.tables().items()}
        except ImportError as error:
            raise ImportError("this needs pandas and pyarrow: pip install 'explicate[pandas]'") from error

    def to_xarray(self) -> Any:
        """Return the samples as an `xarray.Dataset` over the axes, ``run``, ``object`` and ``time_s``.

        Raise ImportError if xarray or pandas is not installed.
        """
        try:
            import xarray  # noqa: PLC0415 (an optional package)

            index = [*self.axes, "run", "object", "time_s"]
            samples = self.samples.with_columns(pl.col("object", "variable").cast(pl.String))
            wide = samples.pivot("variable", index=index, values="value").to_pandas().set_index(index)
        except ImportError as error:
            raise ImportError("this needs xarray, pandas and pyarrow: pip install 'explicate[xarray]'") from error
        found = xarray.Dataset.from_dataframe(wide)
        found = found.reindex({axis: self.run[axis].unique(maintain_order=True).to_list() for axis in self.axes})
        return found.assign_attrs(name=self.name, seed=self.seed, version=self.version, scenario=self.scenario)

    def plot(self, kind: str) -> Plot:
        """Return a figure as an object: a notebook shows it, `Plot.save` writes a PDF, SVG or PNG.

        `kind` is one of `explicate.figures.ALL`. Raise ValueError if there is none such or no data for it.
        """
        # Figures read tables: from here they are found by name, as the package finds its public names.
        drawn: Plot = importlib.import_module("explicate.plotting").plot(self, kind)
        return drawn

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summaries of flow groups and of links with a queue, drops or marks."""
        busy = busy_links(self.links)
        links = self.link_summary().filter(pl.col("link").is_in(busy))
        shown = "".join(frame._repr_html_() for frame in (self.summary(), links))
        varied = f", over {', '.join(self.axes)}" if self.axes else ""
        runs = f"{self.run.height} run{'s' * (self.run.height > 1)}"
        return f"<p><b>{escape(self.name)}</b>: {runs}{escape(varied)}</p>{shown}"

    def write(self, directory: str | Path, *, csv: bool = False) -> Path:
        """Write Parquet (and with `csv` also CSV) tables, ``run.json`` and ``timing.json``; return the directory.

        Older results there are replaced when everything is on the disk, pages and pictures of them included. If
        that is not possible they stay as they are, and an OSError is raised.
        """
        folder = Path(directory)
        with replacing(folder) as fresh:
            self._write_files(fresh, csv=csv)
        return folder

    def _write_files(self, folder: Path, *, csv: bool) -> None:
        for name, frame in self.tables().items():
            write_table(frame, folder, name, csv=csv)
        about = {
            "format": FORMAT,
            "name": self.name,
            "seed": self.seed,
            "version": self.version,
            "runs": self.run.height,
            "axes": list(self.axes),
            "warnings": list(self.warnings),
            **({"measures": list(self.wanted)} if self.wanted else {}),
            "scenario": self.scenario,
            "sha256": {name: _digest(folder / f"{name}.parquet") for name in TABLES},
        }
        write_json(folder / DESCRIPTION, about)
        if self.timing is not None:
            write_json(folder / "timing.json", self.timing)
        if self.trace:
            write_text(folder / "trace.txt", self.trace)

    @classmethod
    def load(cls, directory: str | Path) -> Results:
        """Read what `write` wrote; raise FileNotFoundError or ValueError, naming the file, if it is not that."""
        folder = Path(directory)
        about = described(folder)
        if about["format"] != FORMAT:
            raise BadInputError(
                f"{folder / DESCRIPTION}: results of another version of explicate (format {about['format']}, not "
                f"{FORMAT}); run it again"
            )
        tables: dict[str, Any] = {name: _table(folder, name, about["axes"]) for name in TABLES}
        for name, digest in about.get("sha256", {}).items():
            if name in TABLES and _digest(folder / f"{name}.parquet") != digest:
                raise BadInputError(
                    f"{folder / name}.parquet: is not the table that run.json describes: it is of other results, or "
                    "writing was interrupted; run again"
                )
        timing, trace = folder / "timing.json", folder / "trace.txt"
        return cls(
            **tables,
            axes=tuple(about["axes"]),
            warnings=tuple(about["warnings"]),
            wanted=tuple(about.get("measures", ())),
            trace=trace.read_text(encoding="utf-8") if trace.is_file() else "",
            timing=_read(timing, _json) if timing.is_file() else None,
        )


def described(folder: Path) -> dict[str, Any]:
    """Return what ``run.json`` says of the results in `folder`, of any format.

    Raise FileNotFoundError if there is none, ValueError if it describes no results.
    """
    path = folder / DESCRIPTION
    if folder.is_file():
        raise BadInputError(f"{folder}: is a file; name the directory that `explicate run -o DIR` wrote")
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: no results here (run.json is missing); make some with `explicate run -o`")
    about = _read(path, _json)
    wanted = {"format": int, "name": str, "axes": list, "warnings": list}
    if not isinstance(about, dict) or not all(isinstance(about.get(key), kind) for key, kind in wanted.items()):
        raise BadInputError(f"{path}: does not describe results of explicate")
    return about


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def used_elsewhere(unused: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the warnings of settings that one scenario of several does not use, but another one does.

    `unused` has the warnings of each scenario with the setting that it does not use.
    """
    each = list(unused)
    nowhere = set[str].intersection(*(set(one.values()) for one in each)) if each else set[str]()
    return {warning for one in each for warning, setting in one.items() if setting not in nowhere}


def stack(points: Sequence[Mapping[str, Any]], results: Sequence[Results]) -> Results:
    """Put the results of many `points` below each other, the points' values as leading columns.

    Raise ValueError if there are none.
    """
    if not results:
        raise ValueError("nothing was run")
    axes = tuple(points[0])
    tables: dict[str, Any] = {}
    for name in TABLES:
        frames = [
            result.tables()[name].select(*(pl.lit(value).alias(axis) for axis, value in point.items()), pl.all())
            for point, result in zip(points, results, strict=True)
        ]
        tables[name] = pl.concat(frames, how="vertical_relaxed")
    useful = used_elsewhere(result.unused for result in results)
    warnings = dict.fromkeys(warning for result in results for warning in result.warnings if warning not in useful)
    timing = [{"point": dict(point), "timing": result.timing} for point, result in zip(points, results, strict=True)]
    return Results(**tables, axes=axes, warnings=tuple(warnings), timing=timing)


def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of `frame` for JSON: null for NaN and the infinities."""
    finite = frame.with_columns(
        pl.when(pl.col(pl.Float32, pl.Float64).is_finite()).then(pl.col(pl.Float32, pl.Float64)).name.keep()
    )
    return finite.to_dicts()


def _table(folder: Path, name: str, axes: Sequence[str]) -> pl.DataFrame:
    path = folder / f"{name}.parquet"
    table = _read(path, pl.read_parquet)
    assert isinstance(table, pl.DataFrame)
    if table.columns[: len(axes) + 1] != [*axes, "run"] or not set(OWN[name]) <= set(table.columns):
        raise BadInputError(f"{path}: does not match the table `{name}` described by run.json; run again")
    if name == "run" and table.is_empty():
        raise BadInputError(f"{path}: has no run; run again")
    return table


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read(path: Path, reader: Callable[[Path], Any]) -> Any:
    try:
        return reader(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: missing from the results; run again") from error
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise BadInputError(f"{path}: damaged ({error}); run again") from error
