"""Protocols written in Python: their results, the use of their names, and their errors."""

import importlib
import math
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from polars.testing import assert_frame_equal

import explicate
from explicate import Ack, Allowance, Loss, Packet, Param, PortView, Scenario, Sent, Undo, engine, protocols
from explicate.sweeps.executors import opened

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "aimd.py"
SCENARIO = (ROOT / "examples" / "own-protocol" / "scenario.toml").read_text(encoding="utf-8")

pytestmark = pytest.mark.usefixtures("native_real")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test may register any protocol; the engine's list only grows."""
    monkeypatch.setattr(protocols, "_registered", {})


def registered(sender: type[explicate.Sender], name: str = "mine", **more: Any) -> str:
    """Register a class instead of that of the test before, and return the scenario that runs it."""
    explicate.register(name, sender, replace=True, **more)
    return SCENARIO.replace('"aimd/newreno"', f'"{name}/newreno"').replace('params = { keep = "80%" }\n', "")


class Fixed(explicate.Sender):
    """A window of four segments."""

    def allowance(self) -> Allowance | float:
        return 4

    def on_ack(self, ack: Ack) -> None:
        pass

    def on_loss(self, loss: Loss) -> None:
        pass


def test_the_window_is_what_the_class_says() -> None:
    results = explicate.run(registered(Fixed))
    assert results.flows["protocol"].unique().to_list() == ["mine/newreno"]
    # Four packets of 1500 bytes, the default, in each round trip.
    rates = 4 * 1500 * 8 / (results.flows["rtt_mean_ms"] / 1e3)
    assert results.flows["throughput_bps"].to_list() == pytest.approx(rates.to_list(), rel=0.01)


def test_it_is_known_wherever_a_name_is(tmp_path: Path) -> None:
    text = registered(Fixed)
    entry = next(e for e in explicate.registry() if e["name"] == "mine")
    assert (entry["summary"], entry["source"]) == ("A window of four segments.", __name__)
    assert "mine" in str(explicate.schema())
    both = explicate.compare(text, ["mine", "newreno"])
    assert both.flows["variant"].unique(maintain_order=True).to_list() == ["mine", "newreno"]
    built = Scenario.of({"name": "b", "duration": "2s", "topology": {"kind": "dumbbell", "bottleneck": {"rate": "1Mbit/s", "delay": "5ms"}}, "flows": [{"name": "f", "protocol": "mine"}]})  # fmt: skip  # noqa: E501
    assert explicate.run(built).flows.height == 1
    both.write(tmp_path)
    explicate.write_report(tmp_path, tmp_path / "report.html")
    assert "mine" in (tmp_path / "report.html").read_text(encoding="utf-8")


class Sized(Fixed):
    """A window by parameter."""

    params = (
        Param("window", "packets", 2.0, min=1.0),
        Param("mode", ["whole", "half"], "whole"),
        Param("doubled", "flag", False),
        Param("limit", "packets", None),
    )
    seen: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, init: explicate.SenderInit) -> None:
        self.seen.append(dict(init.values))
        self.window = init.values["window"]

    def allowance(self) -> Allowance:
        return Allowance(self.window, pacing=64e3)


def test_parameters_have_types() -> None:
    text = registered(Sized)
    Sized.seen.clear()
    results = explicate.run(text, set={"flows.0.params": {"window": 3, "mode": "half", "doubled": True}})
    assert Sized.seen[0] == {"window": 3.0, "mode": "half", "doubled": True, "limit": None}
    assert results.flows["throughput_bps"].to_list() == pytest.approx([64e3, 64e3], rel=0.05), "the pace"
    with pytest.raises(explicate.ScenarioError, match="`window` is 0; it has to be at least 1"):
        explicate.run(text, set={"flows.0.params": {"window": 0}})
    with pytest.raises(ValueError, match="is not one of"):
        Param("mode", ["a", "b"], "c").plain()


# ------------------------------------------------------------------------------------------------------------- failures


class Fails(Fixed):
    """Raises at the hundredth acknowledgement."""

    count = 0

    def on_ack(self, ack: Ack) -> None:
        self.count += 1
        if self.count == 100:
            raise ZeroDivisionError("one hundred")


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_exception_ends_the_run(jobs: int) -> None:
    with pytest.raises(ZeroDivisionError, match="one hundred") as caught:
        explicate.run(registered(Fails), runs=5, jobs=jobs)
    (note,) = caught.value.__notes__
    where, _, at = note.partition(", at ")
    assert where == "in Fails.on_ack"
    # One hundred acknowledgements, two for the four packets of each round trip of 40 to 50 ms.
    assert 2.0 < float(at.removesuffix(" s of simulated time")) < 2.6, note
    assert "in on_ack" in "".join(traceback.format_exception(caught.value)), "the traceback leads into the class"
    assert explicate.run(registered(Fixed)).flows.height == 2, "the engine runs on"


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (0.5, "a window of 0.5 segments; it must be finite, 1 or more"),
        (math.nan, "a window of NaN segments"),
        (Allowance(2, pacing=0.0), "a pacing rate of 0 bit/s"),
        ("wide", "allowance returned 'wide'; it returns a window in segments or an Allowance"),
        (None, "allowance returned None; it returns"),
        (Allowance("wide"), "allowance returned Allowance.cwnd='wide', pacing=None.; it returns"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_window_is_refused(window: Any, message: str) -> None:
    class Wrong(Fixed):
        def allowance(self) -> Any:
            return window

    with pytest.raises((ValueError, TypeError), match=message):
        explicate.run(registered(Wrong))


def test_timers_move_on() -> None:
    class Ticks(Fixed):
        next, ticks = 0.5, 0

        def on_timer(self, now: float) -> None:
            assert now == self.next
            Ticks.ticks += 1
            self.next = now + 0.5

        def next_timer(self) -> float:
            return self.next

    explicate.run(registered(Ticks))
    assert Ticks.ticks == pytest.approx(80, abs=4), "two flows, twice a second for 20 s"

    class Stuck(Ticks):
        def on_timer(self, now: float) -> None:
            pass

    with pytest.raises(ValueError, match=r"after on_timer at 0\.5 s the next timer is at 0\.5 s; it must be later"):
        explicate.run(registered(Stuck))


def reordered(name: str) -> str:
    """Return a scenario whose path reorders packets and loses none before its queue is full."""
    return f"""
        duration = "8s"
        topology = {{ pairs = 1, bottleneck = {{ rate = "10Mbit/s", delay = "10ms" }} }}
        link = [{{ name = "r1->r2", channel = [{{ kind = "jitter", mean = "20ms" }}] }}]
        flows = [{{ name = "one", protocol = "{name}/rack", stack = "linux" }}]
    """


def test_a_response_to_no_loss_is_taken_back() -> None:
    class Halves(Fixed):
        cwnd, before = 16.0, 0.0
        undone: ClassVar[list[Undo]] = []

        def allowance(self) -> float:
            return self.cwnd

        def threshold(self) -> float:
            return 100

        def on_loss(self, loss: Loss) -> None:
            Halves.before, self.cwnd = self.cwnd, 8

        def on_undo(self, undo: Undo) -> None:
            assert undo.cwnd == Halves.before
            self.cwnd = undo.cwnd
            Halves.undone.append(undo)

    registered(Halves)
    explicate.run(reordered("mine"))
    assert Halves.undone
    for undo in Halves.undone:
        assert (undo.ssthresh, 0 < undo.now < 8, 0.02 < undo.srtt < 1) == (100, True, True)

    class Resumes(Halves):
        """Has the default of the core: `resume`."""

        windows: ClassVar[list[float]] = []
        on_undo = explicate.Sender.on_undo

        def resume(self, now: float, window: float, srtt: float) -> None:
            self.cwnd = window
            Resumes.windows.append(window)

    registered(Resumes)
    explicate.run(reordered("mine"))
    assert set(Resumes.windows) == {16.0}

    class Wrong(Halves):
        def threshold(self) -> float:
            return math.nan

    registered(Wrong)
    with pytest.raises(ValueError, match="a threshold of NaN segments"):
        explicate.run(reordered("mine"))


def test_silence_is_told() -> None:
    class Idle(Fixed):
        seen: ClassVar[list[tuple[float, float, float]]] = []

        def on_idle(self, now: float, idle: float, timeout: float) -> None:
            Idle.seen.append((now, idle, timeout))

    registered(Idle)
    explicate.run("""
        duration = "10s"
        topology = { pairs = 1, bottleneck = { rate = "10Mbit/s", delay = "10ms" } }
        flows = [{ name = "one", protocol = "mine/newreno", on_off = { on = "1s", off = "2s" } }]
    """)
    # From 3, 6 and 9 s on.
    assert [round(now, 2) for now, _, _ in Idle.seen] == pytest.approx([3, 6, 9], abs=0.05)
    assert all(1.9 < idle < 2.1 and 0.02 < timeout < 3 for _, idle, timeout in Idle.seen)


class NoLoss(explicate.Sender):
    """Misspells a callback."""

    def allowance(self) -> float:
        return 4

    def on_ack(self, ack: Ack) -> None:
        pass

    def on_los(self, loss: Loss) -> None:
        pass


class Beyond(Fixed):
    """A default out of bounds."""

    params = (Param("keep", "fraction", 2.0, max=1.0),)


class Shadows(Fixed):
    """A parameter with the name of one that every flow has."""

    params = (Param("ecn", "packets", 1.0),)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: explicate.register("xcp", Fixed), "the name `xcp` is taken"),
        (lambda: explicate.register("newreno", Fixed, replace=True), "the name `newreno` is taken"),
        (lambda: explicate.register("a/b", Fixed), "cannot be the name of a protocol"),
        (lambda: explicate.register("other", Fixed, controller="nobody"), "no protocol is called `nobody`"),
        (lambda: explicate.register("other", explicate.Sender), "Sender lacks allowance, on_ack, on_loss"),
        (lambda: explicate.register("other", NoLoss), "NoLoss lacks on_loss: every sender defines it"),
        (lambda: explicate.register("other", Beyond), "parameter `keep`: the default 2 is not from 0 to 1"),
        (lambda: explicate.register("other", Shadows), "parameter `ecn`: flows have another of this name"),
        (lambda: explicate.register("other", int), "not a class derived from explicate.Sender"),  # type: ignore[arg-type]
    ],
)
def test_bad_registrations(call: Callable[[], None], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        call()


def test_names_clash_once() -> None:
    explicate.register("mine", Fixed, replace=True)
    with pytest.raises(ValueError, match="the name `mine` is taken"):
        explicate.register("mine", Fails)


# -------------------------------------------------------------------------------------------------- sender and router


FORMAT = 9


class Asking(explicate.Sender):
    """Sends at the rate that the slowest router of the path has written into its packets."""

    def __init__(self, init: explicate.SenderInit) -> None:
        self.allowed = Allowance(1.0)

    def allowance(self) -> Allowance:
        return self.allowed

    def on_send(self, packet: Packet, sent: Sent) -> None:
        packet.congestion.write(FORMAT, b"\xff\xff\xff\xff")

    def on_ack(self, ack: Ack) -> None:
        own = ack.header.read(FORMAT)
        assert own is not None
        rate = int.from_bytes(own[:4], "big")
        self.allowed = Allowance(100.0, pacing=8.0 * rate)

    def on_loss(self, loss: Loss) -> None:
        pass


class Share(explicate.Router):
    """Writes half of the capacity into every data packet, for two flows."""

    def __init__(self, init: explicate.RouterInit) -> None:
        self.rate = int(init.capacity / 2 * 0.95)

    def writes_into(self, packet: Packet) -> bool:
        return packet.congestion.read(FORMAT) is not None and not packet.is_ack

    def on_departure(self, now: float, packet: Packet, port: PortView) -> None:
        own = packet.congestion.read(FORMAT)
        if own is not None:
            packet.congestion.write(FORMAT, min(own[:4], self.rate.to_bytes(4, "big")))


def test_the_former_name_of_writes_into_works_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="Old: `speaks_to` is now called `writes_into`"):

        class Old(explicate.Router):
            def speaks_to(self, packet: Packet) -> bool:
                return True

    assert Old.writes_into is Old.speaks_to


class Returning(explicate.Receiver):
    """Returns the feedback of the last data packet."""

    last = bytes(16)

    def on_data(self, now: float, packet: Packet) -> None:
        self.last = packet.congestion.read(FORMAT) or self.last

    def on_ack(self, now: float, ack: Packet) -> None:
        ack.congestion.write(FORMAT, self.last)


def test_a_router_speaks_to_the_sender() -> None:
    text = registered(Asking, "asking", router=Share, receiver=Returning)
    results = explicate.run(text)
    assert {e["kind"] for e in explicate.registry() if e["name"] == "asking"} == {"protocol", "router"}
    goodput = results.flows["throughput_bps"]
    assert goodput.to_list() == pytest.approx([2.375e6, 2.375e6], rel=0.02), "half of 95 % each"
    assert results.flows["retransmissions"].sum() == 0
    assert_frame_equal(results.flows, explicate.run(text, engine="reference").flows)


# ---------------------------------------------------------------------------------------- commands and other processes


@pytest.fixture
def python(native_real: ModuleType) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command, in a separate process."""

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(Path(explicate.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "explicate", *args],
            env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return call


def scenario_file(folder: Path, protocol: str) -> str:
    file = folder / "scenario.toml"
    file.write_text(SCENARIO.replace('"aimd/newreno"', f'"{protocol}/newreno"'), encoding="utf-8")
    return str(file)


def test_commands_load_it(python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    scenario = scenario_file(tmp_path, "aimd-py")
    load = ("--load", str(EXAMPLE))
    unknown = python("run", scenario)
    assert unknown.returncode == 2
    assert "no protocol is called `aimd-py`" in unknown.stderr
    assert python("run", scenario, *load).returncode == 0
    assert "aimd-py" in python("protocols", *load).stdout
    swept = python("sweep", scenario, *load, "--vary", "flows.0.params.keep=0.5,0.8", "--executor", "processes", "-o", str(tmp_path / "out"))  # fmt: skip  # noqa: E501
    assert swept.returncode == 0, swept.stderr
    missing = python("run", scenario, "--load", "nothing.py")
    assert (missing.returncode, missing.stderr) == (2, "explicate: --load nothing.py: no such file\n")


def test_commands_print_the_traceback(python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("self.cwnd += ", "self.cwnd += 0 / 0 + ")
    (tmp_path / "wrong.py").write_text(text, encoding="utf-8")
    for name, text, message in (
        ("syntax.py", "def\n", "syntax.py:1: invalid syntax"),
        ("names.py", "\nnothing()\n", "names.py:2: NameError: name 'nothing' is not defined"),
        ("random.py", "", f"--load {tmp_path / 'random.py'}: a module `random` exists already"),
        ("text.txt", "", f"--load {tmp_path / 'text.txt'}: is no file NAME.py and no package"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        wrong = python("run", scenario_file(tmp_path, "aimd-py"), "--load", str(tmp_path / name))
        assert wrong.returncode == 2
        assert message in wrong.stderr
    failed = python("run", scenario_file(tmp_path, "aimd-py"), "--load", str(tmp_path / "wrong.py"))
    assert failed.returncode == 1
    assert "wrong.py" in failed.stderr
    assert "ZeroDivisionError" in failed.stderr
    assert "the run failed in Aimd.on_ack, at 0.0" in failed.stderr.splitlines()[-1]


@pytest.fixture
def processes() -> Iterator[Executor]:
    """Two processes without the registrations of this one."""
    with opened("processes", 2) as executor:
        assert executor is not None
        yield executor


def test_sweeps_in_other_processes(processes: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    aimd = importlib.import_module("aimd")  # registers it

    if "aimd-py" not in protocols._registered:
        explicate.register("aimd-py", aimd.Aimd, replace=True)
    text = SCENARIO.replace('"aimd/newreno"', '"aimd-py/newreno"')
    axes = {"flows.0.params.keep": [0.5, 0.8]}
    here = explicate.sweep(text, axes, runs=2, store=tmp_path)
    there = explicate.sweep(text, axes, runs=2, executor=processes)
    assert_frame_equal(here.flows, there.flows)
    assert explicate.sweep(text, axes, runs=2, store=tmp_path).fresh == 0, "nothing has changed"
    monkeypatch.setattr(protocols, "_code", lambda part: "other code")
    explicate.register("aimd-py", aimd.Aimd, replace=True)
    assert explicate.sweep(text, axes, runs=2, store=tmp_path).fresh == 4, "other code, other results"


def test_failures_of_a_sweep_say_where(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError: one hundred, in Fails.on_ack, at 2\.\d+ s"):
        explicate.sweep(registered(Fails), {"flows.0.count": [1, 2]}, jobs=1)


def test_the_place_of_a_failure_is_in_the_class(processes: Executor) -> None:
    with pytest.raises(
        RuntimeError, match=r"ZeroDivisionError: one hundred, in Fails.on_ack.* \(test_own_protocol.py:\d+\)"
    ):
        explicate.sweep(registered(Fails), {"flows.0.count": [1, 2]}, executor=processes)


def test_an_executor_is_no_word() -> None:
    with pytest.raises(TypeError, match="executor is 'processes'; give a concurrent"):
        explicate.sweep(registered(Fixed), {"flows.0.count": [1]}, executor="processes")  # type: ignore[arg-type]


def test_engines_that_are_not_there_are_named() -> None:
    code = "import explicate.engine"
    paths = str(Path(engine.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": paths, "EXPLICATE_ENGINE": "nowhere"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "EXPLICATE_ENGINE names 'nowhere', which does not load" in done.stderr
