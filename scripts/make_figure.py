"""Makes docs/long-fat-pipe.svg, the picture of the README, from runs of scenarios/long-fat-pipe.toml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

import explicate

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios" / "long-fat-pipe.toml"
PICTURE = ROOT / "docs" / "long-fat-pipe.svg"

LINK = "r1->r2"
CURVES = (("xcp", "XCP"), ("newreno", "NewReno"), ("cubic", "CUBIC"))
SECONDS = 40

WIDTH, PANEL, LEFT, RIGHT = 720, 150, 58, 84
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#343a40}.title{font-weight:600}.grid{stroke:#adb5bd;stroke-width:.5}"
    "path{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    "path.xcp{stroke:#0072b2;stroke-width:2.2}path.newreno{stroke:#d55e00;stroke-dasharray:7 3}"
    "path.cubic{stroke:#b0489a;stroke-dasharray:2 2}"
    "text.xcp{fill:#0072b2}text.newreno{fill:#b84f00}text.cubic{fill:#b0489a}"
    "@media(prefers-color-scheme:dark){text{fill:#dee2e6}.grid{stroke:#868e96}"
    "path.xcp{stroke:#56b4e9}text.xcp{fill:#56b4e9}path.newreno{stroke:#f0863a}text.newreno{fill:#f0863a}"
    "path.cubic{stroke:#e08bcd}text.cubic{fill:#e08bcd}}"
)
"""Colours that the colour-blind can tell apart, dashes besides; on a page's own ground, light or dark."""


Curve = tuple[str, str, list[tuple[float, float]]]
"""Class of the style, name, points."""


def curve(samples: pl.DataFrame, variant: str, variable: str) -> list[tuple[float, float]]:
    """Time and value of one variable of the bottleneck."""
    wanted = (pl.col("variant") == variant) & (pl.col("object") == LINK) & (pl.col("variable") == variable)
    return list(samples.filter(wanted).select("time_s", "value").iter_rows())


def panel(top: float, title: str, ticks: Sequence[tuple[float, str]], curves: Sequence[Curve]) -> str:
    """One diagram: grid, labels and curves; the last tick is the top of the scale."""
    most = ticks[-1][0]
    wide = WIDTH - LEFT - RIGHT

    def x(t: float) -> float:
        return LEFT + wide * t / SECONDS

    def y(value: float) -> float:
        return top + PANEL * (1 - value / most)

    parts = [f'<text class="title" x="{LEFT}" y="{top - 8}">{title}</text>']
    for value, label in ticks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{label}</text>')
    ends: list[float] = []
    for style, name, points in curves:
        path = "L".join(f"{x(t):.1f},{y(min(v, most)):.1f}" for t, v in points)
        parts.append(f'<path class="{style}" d="M{path}"/>')
        tail = [v for t, v in points if t > SECONDS - 2]
        at = y(sum(tail) / len(tail)) + 4
        away = 2 if at < top + PANEL / 2 else -2
        while any(abs(at - other) < 14 for other in ends):
            at += away
        ends.append(at)
        parts.append(f'<text class="{style}" x="{WIDTH - RIGHT + 6}" y="{at:.1f}">{name}</text>')
    return "\n".join(parts)


def main() -> None:
    """Run and draw."""
    results = explicate.compare(SCENARIO, [name for name, _ in CURVES])
    samples = results.samples
    queue = [(name, label, curve(samples, name, "queue_bytes")) for name, label in CURVES]
    busy = [(name, label, curve(samples, name, "utilisation")) for name, label in CURVES]
    # The buffer is one bandwidth-delay product: bytes of it are milliseconds of the line.
    waits = [(name, label, [(t, v * 8 / 200e6 * 1e3) for t, v in points]) for name, label, points in queue]
    first, second = 34, 34 + PANEL + 52
    height = second + PANEL + 42
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Five flows over 200 Mbit/s and 200 ms: utilisation and queueing delay of the bottleneck under XCP, "
        "NewReno and CUBIC</title>",
        f"<style>{STYLE}</style>",
        panel(first, "Share of the bottleneck in use", [(0, "0"), (0.5, "50 %"), (1, "100 %")], busy),
        panel(second, "Waiting time in its queue", [(0, "0"), (100, "100 ms"), (200, "200 ms")], waits),
    ]
    for t in range(0, SECONDS + 1, 10):
        at = LEFT + (WIDTH - LEFT - RIGHT) * t / SECONDS
        parts.append(f'<text x="{at:.1f}" y="{second + PANEL + 18}" text-anchor="middle">{t} s</text>')
    PICTURE.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
