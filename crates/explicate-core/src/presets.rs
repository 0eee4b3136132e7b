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
    preset("reno", "reno", "reno", "RFC 5681", "TCP Reno: AIMD window, fast retransmit and fast recovery"),
    preset("newreno", "reno", "newreno", "RFC 5681, RFC 6582", "TCP NewReno: AIMD window, partial acknowledgements"),
    preset("sack", "reno", "sack", "RFC 5681, RFC 6675", "TCP SACK: AIMD window, selective acknowledgements"),
    preset("cubic", "cubic", "sack", "RFC 9438, RFC 6675", "TCP CUBIC with selective acknowledgements"),
    preset("xcp", "xcp", "sack", "draft-falk-xcp-spec-03, RFC 6675", "XCP with selective acknowledgements"),
];
