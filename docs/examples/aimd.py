"""AIMD with a choice of pace: the Rust example of CONTRIBUTING.md (aimd.rs) in Python."""

import explicate
from explicate import Ack, Loss, Param, SenderInit
from explicate.protocols import Probe


class Aimd(explicate.Sender):
    """Additive increase, multiplicative decrease, both by parameter."""

    params = (
        Param("increase", "packets", 1.0, "Chiu and Jain 1989, section 3", "Segments more each round trip."),
        Param("keep", "fraction", 0.5, "Chiu and Jain 1989, section 3", "What a loss leaves.", max=1.0),
    )

    def __init__(self, init: SenderInit) -> None:
        self.cwnd = init.initial_window
        self.increase, self.keep = init.values["increase"], init.values["keep"]

    def allowance(self) -> float:
        return self.cwnd

    def on_ack(self, ack: Ack) -> None:
        if not ack.recovering and not ack.app_limited:
            self.cwnd += self.increase * ack.newly_acked / self.cwnd

    def on_loss(self, loss: Loss) -> None:
        keep = 0.0 if loss.kind == "timeout" else self.keep
        self.cwnd = max(self.cwnd * keep, 1.0)

    def probe(self, put: Probe) -> None:
        put("cwnd", self.cwnd)


explicate.register("aimd-py", Aimd, source="Chiu and Jain, Computer Networks and ISDN Systems 17, 1989")
