//! A live source over UDP that follows XTCP's feedback: as `video.rs`, for routers that set flags.
//!
//! Source: paper D section 8.1, which expects video to run over UDP sessions beside file transfers over XTCP, with rates
//! controlled by the explicit notifications of routers.
//!
//! The idea: the source computes the window that an XTCP flow would have, and sends at that window per round trip,
//! evenly spaced, up to its maximum rate. So its share is that of an XTCP flow, without bursts, retransmissions, or
//! waiting for acknowledgements. Run it over the recovery `none`, as the preset of this name does.
//!
//! | symbol | field | unit | source |
//! | --- | --- | --- | --- |
//! | cwnd | of `xtcp` | segments | paper D section 3.2 |
//! | rate | cwnd s / srtt, at most `full` | bytes/s | |
//!
//! Deviations:
//! 1. The paper does not define how the notification sets a rate; a rate that imitates the window shares fairly with
//!    XTCP. The imitated window stays below what the maximum rate needs.
//! 2. As in `video.rs`, the receiver acknowledges every packet.

use alloc::boxed::Box;

use crate::api::{
    Ack, Allowance, AnyProtocol, AnyReceiver, AnySender, Loss, Probe, Protocol, Sender, SenderInit, Sent,
};
use crate::params::{BitsPerSecond, Info, parameters};
use crate::protocols::video::UNLIMITED;
use crate::protocols::xtcp::{Xtcp, XtcpSender};
use crate::units::{Rate, Time};
use crate::wire::Packet;

/// A source that follows XTCP's flags.
pub struct VideoXtcp;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Maximum rate, including all headers.
        rate: BitsPerSecond = 4e6, in 1e3..=1e12, "paper D section 8.1";
    }
}

impl Protocol for VideoXtcp {
    const INFO: Info = Info {
        name: "video_xtcp",
        summary: "A live source whose rate follows XTCP's flags",
        source: "paper D section 8.1",
        params: Params::PARAMS,
    };
    const EXPLICIT: bool = true;
    const HEADER_LEN: u16 = 0;
    const CONTROLLER: Option<&'static AnyProtocol> = Some(&Xtcp);

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let full = Params::of(init.values).rate / 8.0;
        let window = XtcpSender::new(&SenderInit { values: &Default::default(), ..*init });
        Box::new(VideoSender { window, packet: init.packet, full, srtt: 0.0 })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Xtcp.receiver()
    }
}

struct VideoSender {
    window: XtcpSender,
    /// Length of a full packet, bytes.
    packet: f64,
    /// Bytes/s.
    full: f64,
    /// Seconds; zero while unknown.
    srtt: f64,
}

impl VideoSender {
    /// Bytes/s.
    fn rate(&self) -> f64 {
        if self.srtt == 0.0 { self.full } else { (self.window.cwnd * self.packet / self.srtt).min(self.full) }
    }
}

impl Sender for VideoSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: UNLIMITED, pacing: Some(Rate::from_bytes_per_sec(self.rate()).max(Rate(1))) }
    }
    fn on_start(&mut self, _now: Time, rtt: Time) {
        self.srtt = rtt.as_secs_f64();
    }
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        self.window.on_send(packet, sent);
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt = ack.srtt.as_secs_f64();
        self.window.on_ack(ack);
        self.window.cwnd = self.window.cwnd.min(self.full * self.srtt / self.packet).max(1.0);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.window.on_loss(loss);
    }
    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        self.srtt = srtt.as_secs_f64();
        self.window.resume(now, window, srtt);
    }
    fn probe(&self, put: Probe<'_>) {
        put("rate_bps", self.rate() * 8.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing::{ack, loss, sender};
    use crate::wire::{Congestion, Transport, flag};

    /// Packets of 1000 B at 100 ms: a window of three is 240 kbit/s. The full rate of 400 kbit/s is a window of five.
    #[test]
    fn its_rate_is_that_of_an_xtcp_window() {
        let mut s = sender(&VideoXtcp, 3.0, &[("rate", 400e3)]);
        s.on_start(Time::ZERO, Time::millis(100));
        let pace = |s: &AnySender| s.allowance().pacing.unwrap().0;
        assert_eq!(pace(&*s), 240_000);
        let mut flagged = Transport::EMPTY;
        flagged.set_flags(flag::ACK | flag::CONGESTED);
        for (transport, rate) in [
            (Transport::EMPTY, 320_000), // slow start: a packet more per answer
            (Transport::EMPTY, 400_000),
            (Transport::EMPTY, 400_000),
            (flagged, 200_000),
            (Transport::EMPTY, 232_000), // 2.5 + 1 / 2.5
        ] {
            s.on_ack(&Ack { transport: &transport, ..ack(Time::secs(1), &Congestion::NONE) });
            assert_eq!(pace(&*s), rate);
        }
        s.on_loss(&loss(Time::secs(1), LossKind::Duplicates, 10));
        assert_eq!(pace(&*s), 232_000, "losses say nothing");
        s.on_loss(&loss(Time::secs(1), LossKind::Timeout, 10));
        assert_eq!(pace(&*s), 80_000);
    }
}
