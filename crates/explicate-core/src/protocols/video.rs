//! A live source over UDP that follows XCP's feedback: it encodes at the rate that the routers grant.
//!
//! Source: paper D section 8.1, which expects video over UDP sessions, with losses repaired by the application or not
//! at all, and rates controlled by explicit notifications of routers. The notification here is XCP's; `video_xtcp.rs`
//! uses that of XTCP.
//!
//! The idea: the source has a maximum rate and can encode at lower rates. Its packets have XCP's header, with their
//! spacing as X and a request for the rest up to the maximum rate; the feedback changes the rate, and packets are
//! paced at it. There is no window, and a loss does not reduce the rate, because the routers report congestion. Run
//! it over the recovery `none`, as the preset of this name does.
//!
//! | symbol | field | unit | source |
//! | --- | --- | --- | --- |
//! | throughput | `rate` | bytes/s | draft-falk-xcp-spec-03 section 3.1 \[D03\] |
//! | desired throughput | `full` | bytes/s | D03 section 3.1 |
//! | X = s / throughput | `x` | 2^-28 s | D03 section 3.1 |
//!
//! Deviations:
//! 1. A real receiver reports a few times per second; here it acknowledges every packet, as all receivers do, and the
//!    acknowledgements load the reverse path.
//! 2. If no acknowledgement arrives for a retransmission timeout, the rate falls to the minimum of one packet per
//!    round trip; the remaining routers will raise it again.

use alloc::boxed::Box;

use crate::api::{
    Ack, Allowance, AnyProtocol, AnyReceiver, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent,
};
use crate::params::{BitsPerSecond, Info, parameters};
use crate::protocols::xcp::{Form, Rate as RateForm, Window, Xcp, XcpReceiver};
use crate::units::{Rate, Time};
use crate::wire::Packet;

/// A source that follows XCP's feedback.
pub struct Video;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Maximum rate, including all headers.
        rate: BitsPerSecond = 4e6, in 1e3..=1e12, "paper D section 8.1";
    }
}

/// The window of a flow without one, segments.
pub(super) const UNLIMITED: f64 = 1e9;

impl Protocol for Video {
    const INFO: Info = Info {
        name: "video",
        summary: "A live source whose rate follows XCP's feedback",
        source: "paper D section 8.1",
        params: Params::PARAMS,
    };
    const EXPLICIT: bool = true;
    const CONTROLLER: Option<&'static AnyProtocol> = Some(&Xcp);

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let full = Params::of(init.values).rate / 8.0;
        let mut sender = VideoSender {
            packet: init.packet,
            full,
            rate: full,
            initial_window: init.initial_window,
            srtt: 0.0,
            words: (0, 0, 0),
        };
        sender.set(full);
        Box::new(sender)
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<XcpReceiver>::default())
    }
}

struct VideoSender {
    /// Length of a full packet, bytes.
    packet: f64,
    /// Bytes/s.
    full: f64,
    rate: f64,
    /// Segments.
    initial_window: f64,
    /// Seconds; zero while unknown.
    srtt: f64,
    /// The header of the next packets.
    words: (u32, u32, i32),
}

impl VideoSender {
    /// Continues at `rate`, at most the maximum and at least one packet per round trip, and writes the header.
    fn set(&mut self, rate: f64) {
        if self.srtt == 0.0 {
            return;
        }
        self.rate = rate.min(self.full).max(self.packet / self.srtt);
        let cwnd = self.rate * self.srtt / self.packet;
        // The number of paced packets in a round trip is no integer.
        let window = Window { cwnd, packet: self.packet, desired: self.full, srtt: self.srtt };
        self.words = RateForm::words(&window, cwnd);
    }
}

impl Sender for VideoSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: UNLIMITED, pacing: Some(Rate::from_bytes_per_sec(self.rate)) }
    }
    fn on_start(&mut self, _now: Time, rtt: Time) {
        self.srtt = rtt.as_secs_f64();
        self.set(self.initial_window * self.packet / self.srtt);
    }
    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        RateForm.write(packet, self.words);
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt = ack.srtt.as_secs_f64();
        self.set(self.rate + ack.header.reverse_feedback() as f64);
    }
    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind == LossKind::Timeout {
            self.set(0.0);
        }
    }
    fn resume(&mut self, _now: Time, window: f64, srtt: Time) {
        self.srtt = srtt.as_secs_f64();
        self.set(window * self.packet / self.srtt);
    }
    fn probe(&self, put: Probe<'_>) {
        put("rate_bps", self.rate * 8.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::common::rate_header::seconds_to_units;
    use crate::testing::{ack, loss, sender, sent};
    use crate::wire::{Congestion, Format};

    /// 500 kB/s at most; three packets of 1000 B at 100 ms to begin with: 30 kB/s.
    #[test]
    fn feedback_changes_the_rate_and_nothing_else_does() {
        let mut s = sender(&Video, 3.0, &[]);
        s.on_start(Time::ZERO, Time::millis(100));
        let pace = |s: &AnySender| s.allowance().pacing.unwrap().0;
        assert_eq!(pace(&*s), 240_000);
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        s.on_send(&mut p, &sent(Time::ZERO, 0));
        // 470 kB/s more, spread over three packets; one packet every 33 ms.
        assert_eq!(p.congestion.delta_throughput(), 156_667);
        assert_eq!(p.congestion.x(), seconds_to_units(0.1 / 3.0));
        let mut header = Congestion::new(Format::MINIMAL);
        for (feedback, rate) in [(20_000, 400_000), (1_000_000, 4_000_000), (-300_000, 1_600_000), (-300_000, 80_000)] {
            header.set_reverse_feedback(feedback);
            s.on_ack(&ack(Time::ZERO, &header));
            assert_eq!(pace(&*s), rate);
        }
        header.set_reverse_feedback(30_000);
        s.on_ack(&ack(Time::ZERO, &header));
        s.on_loss(&loss(Time::ZERO, LossKind::Duplicates, 10));
        assert_eq!(pace(&*s), 320_000);
        s.on_loss(&loss(Time::ZERO, LossKind::Timeout, 10));
        assert_eq!(pace(&*s), 80_000, "a packet of 1000 B in 100 ms");
    }
}
