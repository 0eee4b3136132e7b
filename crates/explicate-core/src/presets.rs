//! Presets: the combinations that papers and users call by one name. Data only.

use crate::registry::Preset;

/// The recovery of a flow that names a protocol without one.
pub const DEFAULT_RECOVERY: &str = "sack";
/// What a flow falls back to when the other end refuses explicit feedback.
pub const DEFAULT_FALLBACK: &str = "newreno";

const fn preset(
    name: &'static str,
    protocol: &'static str,
    recovery: &'static str,
    source: &'static str,
    summary: &'static str,
) -> Preset {
    Preset { name, summary, source, protocol, recovery, params: &[], router: &[], fallback: DEFAULT_FALLBACK }
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        params: &[("on_duplicates", 1.0)],
        ..preset("tahoe", "reno", "tahoe", "Jacobson, SIGCOMM 1988", "TCP Tahoe: every loss restarts from one segment")
    },
    preset("reno", "reno", "reno", "RFC 5681", "TCP Reno: AIMD window, fast retransmit and fast recovery"),
    preset("newreno", "reno", "newreno", "RFC 5681, RFC 6582", "TCP NewReno: AIMD window, partial acknowledgements"),
    preset("sack", "reno", "sack", "RFC 5681, RFC 6675", "TCP SACK: AIMD window, selective acknowledgements"),
    preset("cubic", "cubic", "sack", "RFC 9438, RFC 6675", "TCP CUBIC with selective acknowledgements"),
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
    preset("xcp", "xcp", "sack", "draft-falk-xcp-spec-03, RFC 6675", "XCP with selective acknowledgements"),
];
