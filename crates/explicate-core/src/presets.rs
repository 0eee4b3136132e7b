//! Presets: combinations that papers and users call by one name, and stacks, the TCP of a system. Data only.

use crate::stacks::Stack;

/// A named combination of a protocol, a recovery and parameters: data, not code.
pub struct Preset {
    /// The name in scenarios and tables.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Paper or RFC.
    pub source: &'static str,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The recovery's name.
    pub recovery: &'static str,
    /// The name stands for this recovery, so a stack leaves it.
    pub names_recovery: bool,
    /// Parameters that differ from the defaults, as a scenario would write them in base units.
    pub params: &'static [(&'static str, f64)],
    /// Parameters of the controllers on its path that differ from the defaults, where a port's router is `auto`.
    pub router: &'static [(&'static str, f64)],
}

/// The default protocol of real routers.
pub const DEFAULT_EXPLICIT: &str = "xcp";
/// The preset by which real hosts send if none is given. Of the presets that the default routers answer, it has the
/// best results over paths with and without losses (table in `docs/files.md`).
pub const DEFAULT_SENDER: &str = "LR-LMXCP";
/// Explicit protocols with different kinds of feedback: a rate, a load factor, a flag.
pub const FEEDBACKS: [&str; 3] = ["xcp", "vcp", "xtcp"];
/// The recovery of a flow that names a protocol without one.
pub const DEFAULT_RECOVERY: &str = "sack";
/// The TCP by which an explicit flow of the simulator goes on where no router answers, or the other end refuses explicit feedback. With
/// CUBIC in its place, and the recoveries of explicit flows, CUBIC of other hosts kept 0.67 of its share over a plain path with a short
/// buffer; files go by CUBIC there, which QUIC's recovery and pacing make fair.
pub const DEFAULT_FALLBACK: &str = "newreno";
/// The stack of hosts whose scenario names none.
pub const DEFAULT_STACK: &str = "linux";
/// The TCP of most operating systems.
pub const DEFAULT_TCP: &str = "cubic";

const fn preset(
    name: &'static str,
    protocol: &'static str,
    recovery: &'static str,
    source: &'static str,
    summary: &'static str,
) -> Preset {
    Preset { name, summary, source, protocol, recovery, names_recovery: false, params: &[], router: &[] }
}

/// Packets that are not repeated.
const fn unreliable(name: &'static str, source: &'static str, summary: &'static str) -> Preset {
    Preset { names_recovery: true, ..preset(name, name, "none", source, summary) }
}

/// A variant of paper D's Table 1: a controller that only explicit feedback changes, over a recovery with these
/// switches.
const fn of_paper_003(
    name: &'static str,
    protocol: &'static str,
    recovery: &'static str,
    params: &'static [(&'static str, f64)],
    summary: &'static str,
) -> Preset {
    Preset {
        params,
        names_recovery: true,
        ..preset(name, protocol, recovery, "De Vleeschouwer, Frossard 2008, Table 1", summary)
    }
}
/// `on_loss = "keep"`.
const KEEP: (&str, f64) = ("on_loss", 1.0);
const NO_PA: (&str, f64) = ("partial_ack", 0.0);
/// Without the prefix LR: only TCP's retransmission timer.
const NO_LR: [(&str, f64); 2] = [("restart_on_any", 0.0), ("retransmission_timer", 0.0)];

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        params: &[("on_duplicates", 1.0)],
        names_recovery: true,
        ..preset("tahoe", "reno", "tahoe", "Jacobson, SIGCOMM 1988", "TCP Tahoe: every loss restarts from one segment")
    },
    preset("reno", "reno", "reno", "RFC 5681", "TCP Reno: AIMD window, fast retransmit and fast recovery"),
    Preset {
        names_recovery: true,
        ..preset(
            "newreno",
            "reno",
            "newreno",
            "RFC 5681, RFC 6582",
            "TCP NewReno: AIMD window, partial acknowledgements",
        )
    },
    Preset {
        names_recovery: true,
        ..preset("sack", "reno", "sack", "RFC 5681, RFC 6675", "TCP SACK: AIMD window, selective acknowledgements")
    },
    preset("cubic", "cubic", "sack", "RFC 9438, RFC 6675", "TCP CUBIC with selective acknowledgements"),
    unreliable("video", "paper D section 8.1", "Live video over UDP that follows XCP's feedback"),
    unreliable("video_xtcp", "paper D section 8.1", "Live video over UDP that follows XTCP's flags"),
    unreliable("greedy", "RFC 768", "UDP at a constant rate, without congestion control"),
    preset("hstcp", "hstcp", "sack", "RFC 3649, RFC 6675", "HighSpeed TCP with selective acknowledgements"),
    preset("bic", "bic", "sack", "Xu, Harfoush, Rhee, INFOCOM 2004", "BIC with selective acknowledgements"),
    Preset {
        params: &[("paced", 1.0)],
        ..preset(
            "hybla",
            "hybla",
            "sack",
            "Caini, Firrincieli 2004",
            "TCP Hybla, paced, with selective acknowledgements",
        )
    },
    preset("westwood", "westwood", "newreno", "Grieco, Mascolo, ACM CCR 2004", "TCP Westwood+ over NewReno's recovery"),
    preset("vegas", "vegas", "newreno", "Brakmo, Peterson, IEEE JSAC 1995", "TCP Vegas over NewReno's recovery"),
    preset("fast", "fast", "sack", "Wei et al., IEEE/ACM ToN 2006", "FAST TCP with selective acknowledgements"),
    Preset {
        params: &[("ecn", 1.0)],
        ..preset(
            "new_jersey",
            "new_jersey",
            "newreno",
            "Xu, Tian, Ansari, IEEE JSAC 2004",
            "TCP New Jersey with routers that warn, over NewReno's recovery",
        )
    },
    preset("bbr", "bbr", "sack", "Cardwell et al., ACM Queue 2016", "BBR v1, paced, with selective acknowledgements"),
    preset("bbr3", "bbr3", "sack", "draft-ietf-ccwg-bbr-06", "BBR v3, paced, with selective acknowledgements"),
    preset("xcp_i", "xcp_i", "sack", "paper I, RFC 6675", "XCP-i with selective acknowledgements"),
    preset("xcp", "xcp", "sack", "draft-falk-xcp-spec-03, RFC 6675", "XCP with selective acknowledgements"),
    preset("vcp", "vcp", "newreno", "paper K section III", "VCP over NewReno's fast recovery"),
    preset("vcp-bise", "vcp-bise", "newreno", "paper K section IV-A", "VCP with BISE over NewReno's fast recovery"),
    Preset {
        params: &[KEEP],
        ..preset(
            "vcp-wlte",
            "vcp",
            "newreno",
            "paper K section IV-B",
            "VCP whose window does not change on a fast retransmit",
        )
    },
    Preset {
        params: &[KEEP],
        ..preset("vcp-bise-wlte", "vcp-bise", "newreno", "paper K section IV", "VCP with BISE and WLTE")
    },
    of_paper_003(
        "XCP_dumb",
        "xcp",
        "reno",
        &[("follow_duplicates", 0.0)],
        "XCP with TCP Reno's reaction to losses; ignores the feedback of duplicates, as ns-2 does",
    ),
    of_paper_003(
        "XCP",
        "xcp",
        "loss_resilient",
        &[KEEP, NO_PA, NO_LR[0], NO_LR[1]],
        "Paper D's XCP, without SACK: losses do not change the window, partial deflation",
    ),
    of_paper_003(
        "XCP_PA",
        "xcp",
        "loss_resilient",
        &[KEEP, NO_LR[0], NO_LR[1]],
        "Paper D's XCP with retransmissions on partial acknowledgements",
    ),
    of_paper_003(
        "LR-XCP",
        "xcp",
        "loss_resilient",
        &[KEEP, NO_PA],
        "Loss-resilient XCP: a retransmission timer, and a recovery timer that any acknowledgement restarts",
    ),
    of_paper_003(
        "LR-XCP_PA",
        "xcp",
        "loss_resilient",
        &[KEEP],
        "Loss-resilient XCP with retransmissions on partial acknowledgements",
    ),
    of_paper_003("LR-LMXCP", "xcp", "loss_monitor", &[KEEP], "Loss-resilient XCP with the loss monitor"),
    Preset {
        // Section 7.2: 10 packets of 1000 bytes, beta = 0.9.
        router: &[("target_queue", 10_000.0), ("queue_weight", 0.1)],
        ..of_paper_003(
            "LR-XCPQ_PA",
            "xcp",
            "loss_resilient",
            &[KEEP],
            "LR-XCP_PA over routers that keep a queue of 10 packets of 1000 bytes",
        )
    },
    of_paper_003(
        "LR-XTCP",
        "xtcp",
        "loss_resilient",
        &[NO_PA],
        "Loss-resilient XTCP: losses do not reduce the window; a retransmission timer",
    ),
    of_paper_003(
        "LR-XTCP_PA",
        "xtcp",
        "loss_resilient",
        &[],
        "Loss-resilient XTCP with retransmissions on partial acknowledgements",
    ),
    of_paper_003("LR-LMXTCP", "xtcp", "loss_monitor", &[], "Loss-resilient XTCP with the loss monitor"),
    of_paper_003(
        "LR-LMXTCP_TCPfriend",
        "xtcp",
        "loss_monitor",
        &[("tcp_friendly", 1.0)],
        "Loss-resilient XTCP with the loss monitor, which backs off where TCP would time out",
    ),
];

/// The names of [`STACKS`], in their order.
pub const STACK_NAMES: &[&str] = &["linux", "rfc", "ns2"];

/// All stacks. Words are given by their number, as in presets.
pub const STACKS: &[Stack] = &[
    Stack {
        name: "linux",
        summary: "TCP as Linux 6.18 has it",
        source: "Linux 6.18, net/ipv4",
        recovery: Some("rack"),
        // fq_codel, as systemd sets `net.core.default_qdisc` on most distributions; the kernel's own default is a FIFO of 1000 packets.
        params: &[("host_queue", 2.0)],
        end_to_end: &[
            ("variant", 1.0),
            ("initial_window", 10.0),
            ("autotuning", 1.0),
            ("acks", 1.0),
            ("growth", 1.0),
            ("after_idle", 1.0),
        ],
        // Linux has no BBR v3; a host with it paces as the others.
        of_protocol: &[("cubic", &[("hystart", 1.0)]), ("bbr", &[("bursts", 1.0)]), ("bbr3", &[("bursts", 1.0)])],
    },
    Stack {
        name: "rfc",
        summary: "TCP as the RFCs of today have it",
        source: "RFC 5681, RFC 6298, RFC 6928, RFC 7323, RFC 7661, RFC 8985, RFC 9406, RFC 9937",
        recovery: Some("rack"),
        // No RFC is about a host's queue; it is finite.
        params: &[("rto", 1.0), ("host_queue", 1.0)],
        end_to_end: &[("initial_window", 10.0), ("ack_every", 2.0), ("growth", 2.0), ("hystart", 2.0)],
        of_protocol: &[],
    },
    Stack {
        name: "ns2",
        summary: "TCP as ns-2 has it, with which papers compare: one round-trip sample at a time, in ticks of 10 ms",
        source: "ns-2.35, tcp.cc",
        // No queue of hosts: ns-2's agents send into the queues of links.
        recovery: None,
        params: &[("rto", 2.0)],
        end_to_end: &[],
        of_protocol: &[],
    },
];
