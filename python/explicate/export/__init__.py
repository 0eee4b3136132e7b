"""Results and links in the formats of other tools: mahimahi, qlog, TCP in pcapng, tc netem."""

from explicate.export.mahimahi import mahimahi
from explicate.export.netem import netem
from explicate.export.qlog import qlog
from explicate.export.tcp import convert

__all__ = ["convert", "mahimahi", "netem", "qlog"]
