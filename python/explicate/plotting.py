"""Figures for papers, by matplotlib: the panels of the report in the width of a column, as PDF, SVG or PNG.

>>> import explicate
>>> explicate.run("mine.toml").plot("throughput").save("throughput.pdf")   # doctest: +SKIP
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explicate import figures
from explicate.charts import Axes
from explicate.errors import BadInputError
from explicate.figures import Figure, Panel, Study
from explicate.files import written

if TYPE_CHECKING:
    from explicate.results import Results

COLUMN_IN, TEXT_IN = 3.33, 7.0
"""Widths in inches of a column and of the text of a two-column page (ACM's; IEEE's column has 3.5)."""
PANEL_IN = 2.1
"""Height of a panel, in inches."""
LEGEND_IN = 0.16
"""Height of a line of a legend, in inches."""
LETTER_IN, LINE_IN = 0.058, 0.13
"""Width of a letter and height of a line of a caption, in inches."""
BESIDE_IN = 0.5
"""What stands to the left of a panel, in inches."""
MOST_LETTERS = 48
"""Letters of all names below bars that stand side by side; more are turned."""
UPRIGHT_LETTERS = 38
"""Letters of a line of such names, and of the label beside a vertical axis."""
SHORT = 30.0
"""A logarithmic axis whose ends are less than this factor apart has numbers at 2 and 5, too."""
FEW_POINTS = 24
"""A line with as many points at most shows where they are."""
FORMATS = ("pdf", "svg", "png")
PRINT = ("#0067a5", "#c44e00", "#007a5a", "#b0478a", "#8a6a00", "#2f8fc4", "#5b3fa0", "#6b6b6b")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1.5, 1, 1.5)))
OTHER_SCRIPTS = (
    "Noto Serif CJK SC", "Noto Sans CJK SC", "Source Han Serif SC", "WenQuanYi Micro Hei", "Songti SC", "SimSun",
    "Noto Serif CJK JP", "Hiragino Mincho ProN", "Yu Mincho", "Noto Serif CJK KR", "AppleMyungjo", "Batang",
    "Noto Sans Devanagari", "Noto Sans Thai", "Arial Unicode MS",
)  # fmt: skip
"""Fonts for names in scripts that matplotlib's own fonts lack; those that are installed are used."""
STYLE = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.color": "#cccccc",
    "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType: some publishers refuse Type 3
    "svg.fonttype": "none",
    "svg.hashsalt": "explicate",
    "savefig.dpi": 300,
}


def _style() -> dict[str, Any]:
    from matplotlib import font_manager  # noqa: PLC0415 (an optional package)

    installed = set(font_manager.get_font_names())
    return STYLE | {"font.family": ["serif", *(font for font in OTHER_SCRIPTS if font in installed)]}


@contextmanager
def _missing_letters() -> Iterator[None]:
    """Warn once of all letters that no font has; matplotlib has a warning for each."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        yield
    found = [re.match(r"Glyph (\d+) ", str(one.message)) for one in raised]
    for one, glyph in zip(raised, found, strict=True):
        if glyph is None:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    letters = dict.fromkeys(chr(int(glyph[1])) for glyph in found if glyph)
    if letters:
        warnings.warn(
            f"no installed font has {' '.join(letters)}: the figure shows boxes instead; install one that has "
            "them, such as fonts-noto-cjk (Debian), or write an SVG, whose viewer chooses the font",
            stacklevel=5,
        )


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl  # noqa: PLC0415 (an optional package)
        from matplotlib import figure  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise BadInputError("figures for papers need matplotlib: pip install 'explicate[plot]'") from error
    return mpl


@dataclass(frozen=True)
class Plot:
    """A figure of results, to save, to change by matplotlib, or to look at in a notebook."""

    figure: Figure

    def matplotlib(self, *, width: float | None = None) -> Any:
        """Return a new `matplotlib.figure.Figure`; `width` in inches, by default one column or the whole text."""
        mpl = _matplotlib()
        with mpl.rc_context(_style()):
            return _drawn(mpl, self.figure, width)

    def save(self, path: str | Path, *, width: float | None = None) -> Path:
        """Write the figure as PDF, SVG or PNG by the name's ending; the same results give the same file.

        Raise BadInputError for another ending, or if matplotlib is not installed; OSError if writing fails.
        """
        target = Path(path)
        kind = target.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise BadInputError(f"{target}: the name must end with {', '.join('.' + name for name in FORMATS)}")
        data = self._rendered(kind, width)
        target.parent.mkdir(parents=True, exist_ok=True)
        with written(target) as fresh:
            fresh.write_bytes(data)
        return target

    def _rendered(self, kind: str, width: float | None = None) -> bytes:
        mpl = _matplotlib()
        data = io.BytesIO()
        dates: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
        with mpl.rc_context(_style()), _missing_letters():
            _drawn(mpl, self.figure, width).savefig(data, format=kind, metadata=dates[kind])
        return data.getvalue()

    def _repr_svg_(self) -> str:
        return self._rendered("svg").decode()


def plot(results: Results, kind: str) -> Plot:
    """Return the figure `kind` of `results`; raise BadInputError if there is no such figure, or no data for it."""
    if kind not in figures.ALL:
        raise BadInputError(f"no figure {kind!r}; the figures are: {', '.join(figures.ALL)}")
    study = Study.of(results)
    figure = figures.ALL[kind](study)
    if figure is None:
        raise BadInputError(figures.nothing(kind, study))
    return Plot(figure)


def _drawn(mpl: Any, figure: Figure, width: float | None) -> Any:
    panels = figure.panels
    across = min(len(panels), 1 if width is not None and width <= COLUMN_IN else 3 if len(panels) != 4 else 2)
    down = math.ceil(len(panels) / across)
    wide = width if width is not None else COLUMN_IN if across == 1 else TEXT_IN
    letters = max(1, int((wide / across - BESIDE_IN) / LETTER_IN))
    names, beside = _legend_names(figure, across)
    rows = math.ceil(len(names) / beside) + sum(name.count("\n") for name in names) if len(names) > 1 else 0
    more = LINE_IN * max(_literal(panel.caption, letters).count("\n") for panel in panels)
    more += LETTER_IN * max(map(_turned, panels))
    high = (PANEL_IN + more) * down + LEGEND_IN * max(2, rows)
    canvas = mpl.figure.Figure(figsize=(wide, high), layout="constrained")
    grid = canvas.subplots(down, across, squeeze=False).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        draw_panel(axes, panel, letters)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    _legend(canvas, figure, names, beside)
    return canvas


def line_style(place: int) -> dict[str, Any]:
    """Return colour and dashes of a place, as matplotlib names them."""
    return {"color": PRINT[place % len(PRINT)], "linestyle": DASHES[place % len(DASHES)]}


def draw_panel(axes: Any, panel: Panel, letters: int = 100) -> None:
    """Draw a panel, as wide as so many letters, into axes of matplotlib."""
    frame = panel.axes
    if panel.bars:
        axes.bar(
            [i + 0.5 for i in range(len(panel.bars))],
            [bar.value for bar in panel.bars],
            color=[PRINT[bar.place % len(PRINT)] for bar in panel.bars],
            width=0.72,
        )
        places = panel.names or [(i + 0.5, str(i + 1)) for i in range(0, len(panel.bars), max(1, len(panel.bars) // 8))]
        names = [_literal(name, UPRIGHT_LETTERS) for _, name in places]
        axes.set_xticks([at for at, _ in places], names, rotation=90 if _turned(panel) else 0)
        axes.grid(visible=False, axis="x")
        axes.set_axisbelow(True)
    for one in panel.series:
        colour = PRINT[one.place % len(PRINT)]
        if one.dots:
            axes.plot(one.x, one.y, ".", color=colour, markersize=4)
            if one.low:
                axes.vlines(one.x, one.low, one.high, color=colour, linewidth=0.6)
            continue
        marks = {"marker": ".", "markersize": 3} if len(one.x) <= FEW_POINTS and not one.loose else {}
        axes.plot(one.x, one.y, **line_style(one.place), **marks, **({"linewidth": 0.7} if one.loose else {}))
        if one.low:
            axes.fill_between(one.x, one.low, one.high, color=colour, alpha=0.15, linewidth=0)
    _frame(axes, frame, letters)
    if panel.caption:
        axes.set_title(_literal(panel.caption, letters), loc="left")


def _turned(panel: Panel) -> int:
    """Return the letters of the longest line below the bars if the names do not fit side by side, else 0."""
    lengths = [len(name) for _, name in panel.names]
    return min(max(lengths), UPRIGHT_LETTERS) if sum(lengths) > MOST_LETTERS else 0


def _frame(axes: Any, frame: Axes, letters: int) -> None:
    if frame.shade is not None and frame.shade[1] > frame.shade[0]:
        axes.axvspan(*frame.shade, color="#8b949e", alpha=0.15, linewidth=0)
    if "x" in frame.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: _plain(x))
        short = frame.x[1] < SHORT * frame.x[0]
        axes.xaxis.set_minor_formatter(lambda x, _: _plain(x) if short and f"{x:e}"[0] in "25" else "")
        axes.tick_params(axis="x", which="minor", pad=5)  # on the line of the longer ticks' numbers
    if frame.x_names:
        axes.set_xticks(
            range(1, len(frame.x_names) + 1), ["\n".join(map(_literal, name.split("\n"))) for name in frame.x_names]
        )
    axes.set_xlim(*frame.x)
    axes.set_ylim(*frame.y)
    axes.set_xlabel(_literal(frame.x_label, letters))
    axes.set_ylabel(_literal(frame.y_label, UPRIGHT_LETTERS))


def _literal(name: str, letters: int = 100) -> str:
    """Return a name in lines for matplotlib, which would set what is between two dollars as mathematics."""
    whole = name.replace(" = ", "\u00a0=\u00a0")
    return textwrap.fill(whole, letters, break_on_hyphens=False).replace("\u00a0", " ").replace("$", r"\$")


def _plain(value: float) -> str:
    """Return a number at a logarithmic axis without a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _legend(canvas: Any, figure: Figure, names: Sequence[str], beside: int) -> None:
    if len(figure.names) < 2:
        return
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an optional package)
    from matplotlib.patches import Patch  # noqa: PLC0415

    bars = any(panel.bars for panel in figure.panels)
    dots = {one.place for panel in figure.panels for one in panel.series if one.dots}
    marks = [
        Patch(color=PRINT[i % len(PRINT)])
        if bars
        else Line2D([], [], color=PRINT[i % len(PRINT)], marker=".", linestyle="")
        if i in dots
        else Line2D([], [], **line_style(i))
        for i in range(len(figure.names))
    ]
    canvas.legend(marks, names, loc="outside upper center", ncols=beside)


def _legend_names(figure: Figure, across: int) -> tuple[list[str], int]:
    """Return the names of a legend in lines, and how many of them stand side by side."""
    most = 48 if across == 1 else 104
    letters = max(map(len, figure.names), default=0) + 5
    names = [_literal(name, most) for name in figure.names]
    return names, max(1, min(len(names), most // letters))


def listed(results: Results) -> str:
    """Return the names of all figures, each with its title or the missing data."""
    study = Study.of(results)
    found: Sequence[tuple[str, Figure | None]] = [(name, figure(study)) for name, figure in figures.ALL.items()]
    wide = max(map(len, figures.ALL))
    return "\n".join(
        f"{name:<{wide}}  {figure.title}" if figure else f"{name:<{wide}}  – ({figures.nothing(name, study)})"
        for name, figure in found
    )
