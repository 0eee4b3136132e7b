"""Record scenes on the kernel's TCP, in `validation/kernel/`: `make kernel-peers`.

    python validation/kernel_record.py [--jobs N] [--scene NAME] [--out DIR] [--explicated PATH]

Needs root. Each scene has a file; scenes that have one are left out, so an interrupted recording goes on where it
stopped. The third that is drawn by `kernel_scenes.HIDDEN_SEED` comes first, in a folder of its own. Prints lateness,
and no figure of TCP.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from kernel_scenes import HIDDEN_SEED, Scene, all_scenes, figures, hidden

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "validation" / "kernel"
RUNS = 7
TOGETHER_MBPS = 80
"""Scenes run at the same time while the sum of their rates is below this: 50 Mbit/s take half of a processor."""
PATIENCE = 3
"""After so many runs in a row that do not count, another scene has its turn."""


def limits(scene: Scene) -> dict[str, float]:
    """Return the highest lateness of a run that counts, ms.

    A packet that leaves an emulated link late lengthens its round trip by as much: one in a thousand may do so by
    2.5 ms, or by 2 % of the round trip if that is longer, which changes the mean by microseconds. (The kernel may spend
    2 ms in one batch of received packets, so less cannot be asked.) When the machine stands still, what arrives
    meanwhile leaves in one burst, whose acknowledgements return in one burst, which queues at the bottleneck for at
    most as long. The longest of a run may be 5 ms, or longer if that is neither more than a fifth of
    the round trip nor than 0.4 of the buffer: once in a hundred round trips or more. On the shortest paths, where 5 ms
    are more than that, a run has hundreds of losses, of which one stall makes one.
    """
    longest = min(scene.rtt_ms / 5, 0.4 * scene.buffer_bdp * scene.rtt_ms)
    return {"p999_ms": max(2.5, scene.rtt_ms / 50), "longest_ms": max(5.0, longest)}


def lateness(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the lateness of a run, ms: of packets at the emulated links, and of the processors."""
    works = report["forwarders"]
    return {
        "p50_ms": max(work["late_p50_us"] for work in works) / 1e3,
        "p99_ms": max(work["late_p99_us"] for work in works) / 1e3,
        "p999_ms": max(work["late_p999_us"] for work in works) / 1e3,
        "longest_ms": max(work["late_most_us"] for work in works) / 1e3,
        "stalls": report["machine"]["stalls"],
        "longest_stall_ms": report["machine"]["longest_stall_ms"],
    }


def spoilt(late: Mapping[str, float], allowed: Mapping[str, float], report: Mapping[str, Any]) -> str:
    """Return why a run does not count; nothing if it does."""
    if not report["machine"]["real_time"]:
        return "no real-time priority"
    if any(work["missed"] + work["refused"] + work["no_room"] for work in report["forwarders"]):
        return "frames missed"
    return ", ".join(f"{key} {late[key]:.2f} > {limit:g}" for key, limit in allowed.items() if late[key] > limit)


def stolen() -> float:
    """Return what the host of this virtual machine has taken since the start, s."""
    words = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK")


def run(scene: Scene, seed: int, explicated: str) -> dict[str, Any]:
    """Run a scene once."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(scene.scenario())
        file.flush()
        command = [explicated, "lab", file.name, "--json", "--with-parent", "--set", f"seed={seed}"]
        for group, controller in scene.kernel.items():
            command += ["--kernel", f"{group}={controller}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{scene.name}: {done.stderr.strip()[-500:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def row(flow: Mapping[str, Any], limited: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a flow."""
    keys = ("flow", "start_s", "goodput_bps", "sent_packets", "retransmissions", "timeouts", "completion_s")
    return {
        **{key: flow[key] for key in keys if flow[key] is not None},
        **{key: round(value, 3) for key, value in limited.items() if key.endswith("_s")},
    }


def counted(scene: Scene, seed: int, explicated: str) -> tuple[dict[str, Any], str]:
    """Run a scene once; return what is recorded, and why it does not count."""
    taken, load = stolen(), os.getloadavg()[0]
    report = run(scene, seed, explicated)
    late, limited = lateness(report), {flow["flow"]: flow for flow in report["kernel_flows"]}
    found = {
        "seed": seed,
        "figures": {key: round(value, 6) for key, value in figures(scene, report["flows"], report["links"]).items()},
        "lateness": {key: round(value, 3) for key, value in late.items()},
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "stolen_s": round(stolen() - taken, 2),
        "flows": [row(flow, limited.get(flow["flow"], {})) for flow in report["flows"]],
        "sysctls": report["sysctls"],
    }
    return found, spoilt(late, limits(scene), report)


def record(scene: Scene, part: Path, explicated: str, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Run a scene until enough runs count, and return its file's contents; None after several in a row that do not.

    `part` keeps what there is until then.
    """
    done = json.loads(part.read_text(encoding="utf-8")) if part.exists() else {"runs": [], "thrown": []}
    runs, thrown, in_vain = done["runs"], done["thrown"], 0
    while len(runs) < RUNS and in_vain < PATIENCE:
        found, why = counted(scene, len(runs) + 1, explicated)
        late = found["lateness"]
        say(
            f"{scene.name}: run {found['seed']} {why or 'counts'} "
            f"(p50 {late['p50_ms']}, p99 {late['p99_ms']}, p99.9 {late['p999_ms']}, longest {late['longest_ms']} ms)"
        )
        in_vain = in_vain + 1 if why else 0
        if why:
            thrown.append({"seed": found["seed"], "why": why})
        else:
            runs.append(found)
        part.write_text(json.dumps(done), encoding="utf-8")
    return summary(scene, runs, thrown) if len(runs) == RUNS else None


def summary(scene: Scene, kept: Sequence[Mapping[str, Any]], thrown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the contents of a scene's file."""
    columns = {key: [run["figures"][key] for run in kept] for key in kept[0]["figures"]}
    return {
        "scene": scene.name,
        "scenario": scene.scenario(),
        "controllers": scene.kernel,
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "processors": os.cpu_count(),
        "limits": limits(scene),
        "medians": {key: median(values) for key, values in columns.items()},
        "ranges": {key: [min(values), max(values)] for key, values in columns.items()},
        "runs": [{key: value for key, value in run.items() if key != "sysctls"} for run in kept],
        "thrown": thrown,
        "sysctls": kept[-1]["sysctls"],
    }


class Budget:
    """A sum that users of it share; one who wants more than is left waits."""

    def __init__(self, whole: float) -> None:
        self.left = whole
        self.changed = threading.Condition()

    @contextmanager
    def of(self, part: float) -> Iterator[None]:
        """Hold a part."""
        with self.changed:
            self.changed.wait_for(lambda: self.left >= part)
            self.left -= part
        try:
            yield
        finally:
            with self.changed:
                self.left += part
                self.changed.notify_all()


def main(argv: Sequence[str] | None = None) -> int:
    """Record what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="scenes at a time, if their rates are low")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often a scene has its turn")
    parser.add_argument("--scene", action="append", metavar="NAME", help="this scene alone; may be repeated")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="DIR")
    parser.add_argument("--explicated", default=str(ROOT / "target" / "release" / "explicated"), metavar="PATH")
    options = parser.parse_args(argv)
    scenes = all_scenes()
    secret = hidden(scenes)
    print(
        f"{len(scenes)} scenes; {len(secret)} of them, drawn by seed {HIDDEN_SEED}, in {options.out / 'hidden'}",
        flush=True,
    )
    if unknown := set(options.scene or ()) - {scene.name for scene in scenes}:
        parser.error(f"no scene is called {min(unknown)}; `python validation/kernel_scenes.py` lists them")
    # What makes and removes namespaces would take longer than a run on a busy machine.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    lock, budget = threading.Lock(), Budget(TOGETHER_MBPS)

    def say(text: str) -> None:
        with lock:
            print(text, flush=True)

    def work(scene: Scene) -> None:
        path = options.out / ("hidden" if scene.name in secret else "") / f"{scene.name}.json"
        part = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return
        try:
            with budget.of(scene.mbps):
                found = record(scene, part, options.explicated, say)
            if found:
                path.write_text(compact(found), encoding="utf-8")
                part.unlink()
                return
        except (RuntimeError, OSError, ValueError) as error:
            say(f"{scene.name}: {error}")
        left.append(scene)

    left = [scene for scene in scenes if not options.scene or scene.name in options.scene]
    # Long round trips first: they bear more lateness.
    left.sort(key=lambda scene: (scene.name not in secret, -scene.rtt_ms))
    for _ in range(options.rounds):
        chosen, left = left, []
        with ThreadPoolExecutor(options.jobs) as threads:
            list(threads.map(work, chosen))
    if left:
        print("the machine is too busy for: " + ", ".join(scene.name for scene in left))
    return 1 if left else 0


def compact(found: Mapping[str, Any]) -> str:
    """Return JSON with a line for each run."""
    lines = []
    for key, value in found.items():
        if isinstance(value, list):
            inner = ",\n".join("  " + json.dumps(item) for item in value)
            lines.append(f' "{key}": [\n{inner}\n ]' if value else f' "{key}": []')
        else:
            lines.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
