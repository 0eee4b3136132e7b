"""`explicate explain`: what a stack sets, and what wins over it."""

from pathlib import Path

import pytest

from explicate.cli import main

pytestmark = pytest.mark.usefixtures("native_real")

TEXT = """\
stack = "linux"
[[flows]]
name = "a"
protocol = "cubic"
params = { initial_window = 4 }
[[flows]]
name = "b"
protocol = "cubic/newreno"
stack = "rfc"
[[flows]]
name = "c"
protocol = "xcp"
[[flows]]
name = "d"
protocol = "newreno"
"""


def test_each_setting_has_its_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.toml"
    file.write_text(TEXT, encoding="utf-8")

    def told(*more: str) -> dict[str, list[str]]:
        assert main(["explain", str(file), *more]) == 0
        groups: dict[str, list[str]] = {}
        for line in capsys.readouterr().out.replace(str(file), "x.toml").splitlines():
            if not line.startswith("  "):
                name = line.partition(":")[0]
                groups[name] = []
            groups[name].append(line.strip())
        return groups

    groups = told()
    assert groups["a"][:2] == ["a: cubic over rack, stack linux (x.toml:1:9)", "recovery = rack: stack linux"]
    assert "initial_window = 4: x.toml:5:29, instead of 10 of stack linux" in groups["a"]
    assert "hystart = linux: stack linux" in groups["a"]
    assert groups["b"][:2] == [
        "b: cubic over newreno, stack rfc (x.toml:9:9)",
        "recovery = newreno: x.toml:8:12, instead of rack of stack rfc",
    ]
    assert not any(line.startswith("initial_window") for line in groups["c"]), "explicit protocols have their own"
    assert "recovery = newreno: preset newreno, instead of rack of stack linux" in groups["d"]
    over = told("--set", "flows.a.params.initial_window=3", "--set", "stack=ns2")
    assert over["a"][0].endswith("stack ns2 (--set stack)")
    over = told("--set", "flows.a.params.initial_window=3")
    assert "initial_window = 3: --set flows.a.params.initial_window, instead of 10 of stack linux" in over["a"]
    file.write_text(TEXT.replace('stack = "linux"\n', ""), encoding="utf-8")
    assert told()["a"][0] == "a: cubic over rack, stack linux (default)"
