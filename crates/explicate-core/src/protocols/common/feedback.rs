//! Which acknowledgements bring feedback: one switch for the senders of XCP's and VCP's families.
//!
//! An acknowledgement returns what routers wrote into the packet that caused it, whether or not it covers new data. The
//! authors' agents for ns-2 are built on that simulator's TCP Reno and read feedback where TCP opens its window: at new
//! acknowledgements. Their windows therefore neither grow nor shrink by feedback while a loss is repaired.

use crate::api::Ack;
use crate::params::{Flag, parameters};

parameters! {
    /// The switch.
    pub struct Params {
        /// The feedback of duplicate acknowledgements counts; without, that of new ones alone, as in the authors' ns-2 code.
        follow_duplicates: Flag = true, "D03 3.3; paper D section 4.2; XCP's and VCP's ns-2 code";
    }
}

impl Params {
    /// Whether the sender follows the feedback of this acknowledgement.
    #[inline(always)]
    pub fn counts(self, ack: &Ack<'_>) -> bool {
        self.follow_duplicates || !ack.duplicate
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::api::AnyProtocol;
    use crate::registry;
    use crate::testing;
    use crate::units::Time;
    use crate::wire::{Congestion, Format, Transport};

    /// By how much ten acknowledgements with positive feedback, the code of low load, move a window of ten packets.
    fn growth(protocol: &AnyProtocol, follow: f64, duplicate: bool) -> f64 {
        let mut sender = testing::sender(protocol, 10.0, &[("follow_duplicates", follow)]);
        sender.on_start(Time::ZERO, Time::millis(100));
        let mut header = Congestion::new(Format::MINIMAL);
        let mut transport = Transport::EMPTY;
        transport.set_code(1);
        for i in 1..=10 {
            header.set_reverse_feedback(1_000 * i);
            let ack = testing::ack(Time::millis(i as u64), &header);
            let newly_acked = !duplicate as u32;
            sender.on_ack(&Ack { duplicate, newly_acked, transport: &transport, ..ack });
        }
        sender.allowance().cwnd - 10.0
    }

    #[test]
    fn one_switch_has_all_senders_of_both_families() {
        let declares = |p: &&AnyProtocol| p.params().iter().any(|param| param.name == "follow_duplicates");
        let family: Vec<&AnyProtocol> = registry::protocols().filter(declares).collect();
        let mut names: Vec<&str> = family.iter().map(|p| p.name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["p_xcp", "vcp", "vcp-bise", "xcp", "xcp_i", "xcp_linux24", "xcp_r", "xcp_window"]);
        for protocol in family {
            let name = protocol.name();
            let of_new = growth(protocol, 0.0, false);
            assert!(of_new > 0.0, "{name}");
            assert_eq!(growth(protocol, 1.0, false), of_new, "{name}: of new ones the feedback always counts");
            assert!(growth(protocol, 1.0, true) > 0.0, "{name}");
            assert_eq!(growth(protocol, 0.0, true), 0.0, "{name}");
        }
    }
}
