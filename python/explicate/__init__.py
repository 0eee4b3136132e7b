"""Explicit congestion control, from paper to packets.

>>> import explicate
>>> results = explicate.run("scenarios/dumbbell.toml", seed=1)   # doctest: +SKIP
>>> results.summary()                                            # doctest: +SKIP
"""

from explicate.curves import channel_curves
from explicate.engine import ScenarioError, columns, registry, schema, template, version
from explicate.lab import compare, run
from explicate.notebook import show
from explicate.report import write_report
from explicate.results import Results
from explicate.scenario import Scenario
from explicate.summary import jain_index
from explicate.sweeps.api import sweep

__version__ = version()

__all__ = [
    "Results",
    "Scenario",
    "ScenarioError",
    "__version__",
    "channel_curves",
    "columns",
    "compare",
    "jain_index",
    "registry",
    "run",
    "schema",
    "show",
    "sweep",
    "template",
    "write_report",
]
