//! What a flow may be told beside the parameters of its protocol and its recovery.

use crate::guard::AIR_LOSS;
use crate::params::{Param, Unit, Values};

/// Parameters that every flow has, beside those of its protocol and recovery.
pub const PARAMS: &[Param] = &[
    Param::new("initial_window", Unit::Packets, 3.0, "RFC 5681 section 3.1", "First congestion window.")
        .within(1.0, 1e6),
    Param::new("receiver_window", Unit::Packets, 1e6, "RFC 9293", "Most segments that the receiver has room for.")
        .within(1.0, 1e9),
    Param::new(
        "ack_every",
        Unit::Packets,
        1.0,
        "RFC 5681 section 4.2",
        "Packets in order to one acknowledgement; 2 is TCP's delayed acknowledgement.",
    )
    .within(1.0, 1000.0),
    Param::new(
        "ack_delay",
        Unit::Seconds,
        0.1,
        "RFC 1122 section 4.2.3.2; 0.1 s as ns-2",
        "Longest that an acknowledgement waits for more packets.",
    )
    .within(1e-6, 0.5),
    Param::new(
        "quick_acks",
        Unit::Packets,
        0.0,
        "RFC 5681 section 4.2 permits it; Linux sends up to 16",
        "Acknowledgements at the beginning that wait for no second packet, so that slow start is not slowed down.",
    )
    .within(0.0, 1e6),
    Param::new("ecn", Unit::Flag, 0.0, "RFC 3168", "Packets are ECN-capable: routers mark instead of dropping."),
    Param::new(
        "paced",
        Unit::Flag,
        0.0,
        "Aggarwal, Savage, Anderson, INFOCOM 2000",
        "Packets are spread over the round trip even if the law does not ask for it.",
    ),
    Param::new(
        "rtt_resolution",
        Unit::Seconds,
        f64::NAN,
        "D03 section 4.1, RTT",
        "Unit in which the law is told round trips and writes them into headers; auto: that of the retransmission timer, `clock_tick`; 0s is exact.",
    )
    .within(0.0, 1.0),
    Param::new(
        "guard",
        Unit::Choice(&["auto", "on", "off"]),
        0.0,
        "ours",
        "Whether an explicit flow that no router has answered behaves as TCP; auto: if the way of its data has a port without a controller of its protocol.",
    ),
    Param::new(
        "air_loss",
        Unit::Fraction,
        AIR_LOSS,
        "ours",
        "Packets that the air may lose: with `guard`, losses below are no sign of congestion where no router answers.",
    )
    .within(0.0, 0.9),
    Param::new(
        "refuse_explicit",
        Unit::Flag,
        0.0,
        "paper I section III",
        "The receiving end does not speak the explicit protocol.",
    ),
];

/// Whether these are the values of a flow that is guarded ([`crate::guard`]). A driver that knows the way says `on` for `auto`.
pub fn is_guarded(values: &Values) -> bool {
    values.get(PARAMS, "guard") == 1.0
}

/// Has a flow with these values guarded, or not.
pub fn set_guarded(values: &mut Values, guarded: bool) {
    if let Some(param) = PARAMS.iter().find(|p| p.name == "guard") {
        values.set(param, if guarded { 1.0 } else { 2.0 });
    }
}
