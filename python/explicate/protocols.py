"""Protocols written in Python: base classes with the callbacks of ``api.rs``, and registration at run time.

Times are in seconds. An exception in a callback ends the run; a note on it says which callback, and at what simulated
time. docs/own-protocol.md has an example, and what a callback costs.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import os
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from explicate import engine
from explicate.engine import Ack, Loss, Packet, PortView, Sent, Undo
from explicate.errors import BadInputError

Probe = Callable[[str, float], None]
"""Takes a variable by name and value, for samples."""

UNITS = ("seconds", "bit/s", "bytes", "packets", "number", "fraction", "metres", "decibels", "flag")
"""Units of a `Param`; a list of words is a choice."""

Value = float | bool | str | None
"""A parameter's value: a number, a flag, a word of a choice, or None for "auto"."""


@dataclass(frozen=True)
class Param:
    """A parameter of a protocol, which scenarios set by `name`; `min` and `max` are included."""

    name: str
    unit: str | Sequence[str]
    default: Value
    source: str = ""
    doc: str = ""
    min: float = 0.0
    max: float = math.inf

    def plain(self) -> dict[str, Any]:
        """Return the parameter in the engine's form; raise ValueError for an invalid default."""
        words = [] if isinstance(self.unit, str) else list(self.unit)
        unit = self.unit if isinstance(self.unit, str) else "choice"
        if isinstance(self.default, str):
            if self.default not in words:
                raise ValueError(f"parameter {self.name!r}: the default {self.default!r} is not one of {words}")
            default = float(words.index(self.default))
        else:
            default = math.nan if self.default is None else float(self.default)
        numbers = {"default": default, "min": self.min, "max": self.max}
        return {"name": self.name, "unit": unit, "words": words, **numbers, "source": self.source, "doc": self.doc}


@dataclass(frozen=True)
class Allowance:
    """How much may be in flight: `cwnd` in segments, and the pacing rate in bit/s, or None for no pacing."""

    cwnd: float
    pacing: float | None = None


@dataclass(frozen=True)
class SenderInit:
    """What a sender is made from: the values of its parameters, and facts about its flow.

    `packet` is the length of a full packet in bytes, `initial_window` in segments, `interface` the rate in bit/s.
    """

    values: Mapping[str, Any]
    packet: float
    initial_window: float
    interface: float


@dataclass(frozen=True)
class RouterInit:
    """What a router is made from: the values of its parameters, the capacity in bytes/s and the delay of its link."""

    values: Mapping[str, Any]
    capacity: float
    delay: float
    rng: random.Random
    """The port's own stream, the same in every run with this seed."""


class Sender:
    """The congestion controller of one flow: override `allowance`, `on_ack`, `on_loss`, and others that it needs."""

    params: ClassVar[Sequence[Param]] = ()
    """Parameters of the sender, which a scenario's flows can set."""

    def __init__(self, init: SenderInit) -> None:
        """Override this to initialise state."""

    @classmethod
    def _make(cls, facts: Mapping[str, Any]) -> Self:
        return cls(SenderInit(**facts))

    def allowance(self) -> Allowance | float:
        """Return the present allowance; a number alone is the window in segments."""
        raise NotImplementedError

    def on_start(self, now: float, rtt: float) -> None:
        """Handle the first sample of the round-trip time: the connection is set up."""

    def on_idle(self, now: float, idle: float, timeout: float) -> None:
        """Handle new data after silence: nothing is outstanding, and the last packet left `idle` seconds ago.

        `timeout` is the retransmission timeout. It may change the allowance. Not called before the first packet.
        """

    def on_send(self, packet: Packet, sent: Sent) -> None:
        """Fill in the congestion header of a data packet that is about to leave."""

    def on_ack(self, ack: Ack) -> None:
        """Handle an acknowledgement."""
        raise NotImplementedError

    def on_loss(self, loss: Loss) -> None:
        """Handle a loss or mark."""
        raise NotImplementedError

    def threshold(self) -> float:
        """Return where slow start ends, in segments; it is saved when a loss is reported, for `on_undo`."""
        return math.inf

    def on_undo(self, undo: Undo) -> None:
        """Take the response to the last loss back: what was taken for lost had arrived.

        Without it `resume` is called with the window before the loss, if that is larger than the present one.
        """

    def on_timer(self, now: float) -> None:
        """Handle the expiry of the timer that `next_timer` returned."""

    def next_timer(self) -> float:
        """Return when `on_timer` is to be called; after `on_timer` this must be later."""
        return math.inf

    def resume(self, now: float, window: float, srtt: float) -> None:
        """Continue from this window, segments, without slow start."""

    def probe(self, put: Probe) -> None:
        """Report variables."""


class Receiver:
    """The part of a protocol at the receiving end; every callback does nothing by default."""

    def on_open(self, marks: bool) -> None:
        """Handle the opening of a flow. With `marks`, feedback counts only in packets with a mark."""

    def on_data(self, now: float, packet: Packet) -> None:
        """Handle a data packet, which may be a duplicate."""

    def on_ack(self, now: float, ack: Packet) -> None:
        """Fill in the congestion header of an acknowledgement that is about to leave."""


class Router:
    """The controller of one output port: observes its queue and writes feedback into packets."""

    params: ClassVar[Sequence[Param]] = ()
    """Parameters of the router, which a scenario's ports can set."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Accept the former name of `writes_into` for one release."""
        super().__init_subclass__(**kwargs)
        if "speaks_to" in vars(cls):
            warnings.warn(f"{cls.__name__}: `speaks_to` is now called `writes_into`", FutureWarning, stacklevel=2)
            cls.writes_into = vars(cls)["speaks_to"]  # type: ignore[method-assign]

    def __init__(self, init: RouterInit) -> None:
        """Override this to initialise state."""

    @classmethod
    def _make(cls, facts: Mapping[str, Any]) -> Self:
        given = dict(facts)
        return cls(RouterInit(rng=random.Random(given.pop("seed")), **given))

    def on_arrival(self, now: float, packet: Packet, port: PortView) -> None:
        """Handle an arrival; the queue may still drop the packet."""

    def writes_into(self, packet: Packet) -> bool:  # noqa: ARG002  (what overrides it has)
        """Return whether it writes feedback into this packet."""
        return False

    def on_departure(self, now: float, packet: Packet, port: PortView) -> None:
        """Handle a departure: the last chance to write into the packet."""

    def on_drop(self, now: float, packet: Packet, cause: str, port: PortView) -> None:
        """Handle a drop at this port's queue; `cause` is "overflow" or "early"."""

    def on_timer(self, now: float, port: PortView) -> None:
        """Handle the expiry of the timer that `next_timer` returned."""

    def next_timer(self) -> float:
        """Return when `on_timer` is to be called; read at the start and after each call, and then a later time."""
        return math.inf

    def probe(self, put: Probe) -> None:
        """Report variables."""


@dataclass(frozen=True)
class Registration:
    """A registered protocol; picklable if its classes are, so that other processes can register it too."""

    name: str
    sender: type[Sender]
    router: type[Router] | None
    receiver: type[Receiver] | None
    explicit: bool
    header: bool
    bears_plain_routers: bool
    controller: str | None
    source: str
    digest: str = field(compare=False)
    """A hash of the files that define its classes: other code gives other results."""


_registered: dict[str, Registration] = {}


def register(
    name: str,
    sender: type[Sender],
    *,
    router: type[Router] | None = None,
    receiver: type[Receiver] | None = None,
    explicit: bool | None = None,
    header: bool | None = None,
    bears_plain_routers: bool = False,
    controller: str | None = None,
    source: str = "",
    replace: bool = False,
) -> None:
    """Register a protocol under `name` in this process; scenarios, comparisons and sweeps can name it from now on.

    With a `router`, or the name of another protocol whose `controller` serves it, it is `explicit` by default: set-up
    negotiates feedback, and its packets have a congestion `header`. `replace` takes the place of a protocol of that
    name that was registered before. Raise ValueError if the name is taken or a parameter cannot be declared, TypeError
    if a class is not derived from its base, or lacks a callback that every sender has.
    """
    classes = tuple(part for part in (sender, router, receiver) if part is not None)
    for part, base in ((sender, Sender), (router, Router), (receiver, Receiver)):
        if part is not None and not (isinstance(part, type) and issubclass(part, base)):
            raise TypeError(f"{part!r} is not a class derived from explicate.{base.__name__}")
    missing = [name for name in ("allowance", "on_ack", "on_loss") if getattr(sender, name) is getattr(Sender, name)]
    if missing:
        raise TypeError(f"{sender.__name__} lacks {', '.join(missing)}: every sender defines it")
    answered = router is not None or controller is not None
    explicit = answered if explicit is None else explicit
    made = Registration(
        name=name, sender=sender, router=router, receiver=receiver, explicit=explicit,
        header=explicit if header is None else header, bears_plain_routers=bears_plain_routers, controller=controller,
        source=source, digest=_digest(classes),
    )  # fmt: skip
    _enter(made, replace=replace)


def registered() -> tuple[Registration, ...]:
    """Return the registered protocols, in order."""
    return tuple(_registered.values())


def ensure(wanted: Iterable[Registration]) -> None:
    """Register a protocol of another process, unless it exists here; raise RuntimeError if its code differs."""
    for one in wanted:
        here = _registered.get(one.name)
        if here is None:
            _enter(one, replace=False)
        elif here.digest != one.digest:
            raise RuntimeError(
                f"this worker has other code for {one.name!r}; restart it, or install the same everywhere"
            )


def digests(text: str) -> list[str]:
    """Return the hashes of the registered protocols that a scenario's text names."""
    return [one.digest for one in _registered.values() if one.name in text]


def raised_in(error: BaseException) -> str | None:
    """Return the callback of a protocol in Python that raised this exception, and the time; None if none did."""
    notes = getattr(error, "__notes__", [])
    return next((note for note in notes if note.startswith("in ") and note.endswith(" s of simulated time")), None)


def load(what: str) -> None:
    """Import a module, or a file NAME.py, that registers protocols; raise BadInputError if it does not load."""
    path = Path(what)
    if what.endswith(".py") and not path.is_file():
        raise BadInputError(f"--load {what}: no such file")
    if path.exists() and not what.endswith(".py") and not (path / "__init__.py").is_file():
        raise BadInputError(f"--load {what}: is no file NAME.py and no package")
    # An ordinary module, so that other processes can import it too.
    sys.path.insert(0, str(path.resolve().parent if what.endswith(".py") else Path.cwd()))
    try:
        module = importlib.import_module(path.stem if what.endswith(".py") else what)
    except ImportError as error:
        raise BadInputError(f"--load {what}: {error}") from error
    except SyntaxError as error:
        raise BadInputError(f"--load {error.filename}:{error.lineno}: {error.msg}") from error
    except (BadInputError, engine.ScenarioError):
        raise
    except Exception as error:  # of the user's code
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInputError(f"--load {where.filename}:{where.lineno}: {type(error).__name__}: {error}") from error
    found = getattr(module, "__file__", None)
    if what.endswith(".py") and (found is None or Path(found).resolve() != path.resolve()):
        raise BadInputError(f"--load {what}: a module `{path.stem}` exists already ({found}); rename the file")


def _enter(made: Registration, *, replace: bool) -> None:
    router = made.router
    doc = inspect.getdoc(made.sender) or ""
    engine.register(
        {
            "name": made.name,
            "summary": doc.partition("\n")[0] or made.name,
            "source": made.source or made.sender.__module__,
            "sender": (made.sender, Sender),
            "params": [param.plain() for param in made.sender.params],
            "receiver": None if made.receiver is None else (made.receiver, Receiver),
            "router": None if router is None else (router, Router),
            "router_params": [] if router is None else [param.plain() for param in router.params],
            "explicit": made.explicit,
            "header": made.header,
            "bears_plain_routers": made.bears_plain_routers,
            "controller": made.controller,
            "replace": replace,
        }
    )
    _registered[made.name] = made


def _digest(classes: Sequence[type]) -> str:
    """Return a hash of the files of these classes and of their bases outside this package."""
    own = {base for part in classes for base in part.__mro__ if base.__module__ not in {__name__, "builtins"}}
    texts = sorted(f"{base.__module__}.{base.__qualname__}\n{_code(base)}" for base in own)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _code(part: type) -> str:
    """Return the text of the file, or of the notebook's cell, that defines a class."""
    try:
        return _text(inspect.getsourcefile(part) or inspect.getfile(part))
    except (TypeError, OSError):
        pass
    try:
        return inspect.getsource(part)
    except (TypeError, OSError):
        # Changes of the code cannot be detected: no stored result is reused.
        return os.urandom(8).hex()


@cache
def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
