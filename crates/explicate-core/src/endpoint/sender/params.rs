//! Parameters of a flow, besides those of its protocol and its recovery.

use super::below::HostQueue;
use super::bursts::Bursts;
use crate::guard::AIR_LOSS;
use crate::params::{Auto, Flag, Fraction, Packets, Param, Seconds, Values, choices, parameters};

choices! {
    /// Whether an explicit flow that no router has answered behaves as TCP.
    pub enum Guarding { Auto = "auto", On = "on", Off = "off" }
}

choices! {
    /// When a receiving end acknowledges.
    pub enum Acks { Counted = "counted", Linux = "linux" }
}

choices! {
    /// How the receive window of a simulated flow grows.
    pub enum Autotuning { None = "none", Linux = "linux" }
}

parameters! {
    /// Parameters that every flow has.
    pub struct Params {
        /// First congestion window.
        initial_window: Packets = 3.0, in 1.0..=1e6, "RFC 5681 section 3.1";
        /// Maximum number of segments for which the receiver has room.
        receiver_window: Packets = 1e6, in 1.0..=1e9, "RFC 9293";
        /// The receive window of a simulated flow at the start: `receiver_window` at once; or as Linux tunes it, 64 kB at first, then
        /// twice what the application read in a round trip, up to `receiver_window`.
        autotuning: Autotuning = Autotuning::None, "Linux 6.18, tcp_rcv_space_adjust";
        /// When the receiving end acknowledges: by `ack_every`, `ack_delay` and `quick_acks`, or as Linux does: up to 16 quick
        /// acknowledgements, then every second segment, delayed by 40 to 200 ms.
        acks: Acks = Acks::Counted, "RFC 5681 section 4.2; Linux 6.18, __tcp_ack_snd_check";
        /// In-order packets per acknowledgement; 2 is TCP's delayed acknowledgement.
        ack_every: Packets = 1.0, in 1.0..=1000.0, "RFC 5681 section 4.2";
        /// Maximum delay of an acknowledgement that waits for more packets.
        ack_delay: Seconds = 0.1, in 1e-6..=0.5, "RFC 1122 section 4.2.3.2; 0.1 s as ns-2";
        /// Acknowledgements at the beginning that do not wait for a second packet, so that delaying does not slow
        /// slow start.
        quick_acks: Packets = 0.0, in 0.0..=1e6, "RFC 5681 section 4.2 permits it; Linux sends up to 16";
        /// The sending host's queue, which the simulator adds where the port of its link has none: a flow has two super-packets or 1 ms
        /// of its rate there at most, and what has no room waits in the transport instead of being dropped. fifo: in order, 1000
        /// packets or 0.2 s of the line for all flows; fq_codel: flows take turns; fq: turns, and flows are paced as Linux paces them;
        /// none: no queue of its own, packets join the port at once.
        host_queue: HostQueue = HostQueue::None, "Linux 6.18, tcp_small_queue_check";
        /// Packets are ECN-capable: routers mark instead of dropping.
        ecn: Flag = false, "RFC 3168";
        /// New data packets are ECN-capable and have ECT(1), the code of L4S, whatever the congestion controller does
        /// with marks; controllers that write codes of their own go on to do so.
        l4s: Flag = false, "RFC 9331";
        /// The flow follows the advice of SCONE elements (`scone` of links): it sends SCONE packets, and its average rate keeps to
        /// the lowest rate that returned in 67 s. For protocols without explicit feedback, in simulations.
        scone: Flag = false, "draft-ietf-scone-protocol-07";
        /// Time between two SCONE packets. The first ones leave at the start, and 1, 2, 4, ... s apart.
        scone_every: Seconds = 20.0, in 0.1..=33.5, "draft-ietf-scone-protocol-07: at least two in 67 s";
        /// Packets are paced over the round trip even if the congestion controller does not request pacing.
        paced: Flag = false, "Aggarwal, Savage, Anderson, INFOCOM 2000";
        /// What a paced flow sends at once: a packet; or as Linux, what it sends in a millisecond, two packets at least.
        bursts: Bursts = Bursts::Packets, "Linux 6.18, tcp_tso_autosize";
        /// Resolution of the round-trip times that the congestion controller receives and writes into headers, from
        /// every acknowledgement of new data; 0s is exact; auto: the estimate of the retransmission timer, by its
        /// `rto` and `clock_tick`.
        rtt_resolution: Auto<Seconds> = None, in 0.0..=1.0, "D03 section 4.1, RTT";
        /// Whether an explicit flow that no router has answered behaves as TCP; auto: if the path of its data has a
        /// port without a controller of its protocol.
        guard: Guarding = Guarding::Auto, "ours";
        /// Share of packets that a link may lose by errors: with `guard`, smaller losses are no sign of congestion
        /// where no router answers.
        air_loss: Fraction = AIR_LOSS, in 0.0..=0.9, "ours";
        /// The receiving end does not support the explicit protocol.
        refuse_explicit: Flag = false, "paper I section III";
    }
}

impl Params {
    /// Whether something spaces the flow's packets if its controller does not.
    pub fn is_paced(&self) -> bool {
        self.paced || self.host_queue == HostQueue::Fq
    }
}

/// Parameters that every flow has.
pub const PARAMS: &[Param] = Params::PARAMS;

/// Whether these values make a flow guarded ([`crate::guard`]). A driver that knows the path replaces `auto` by `on`
/// or `off`.
pub fn is_guarded(values: &Values) -> bool {
    Params::of(values).guard == Guarding::On
}

/// Sets whether a flow with these values is guarded.
pub fn set_guarded(values: &mut Values, guarded: bool) {
    if let Some(param) = PARAMS.iter().find(|p| p.name == "guard") {
        let guarding = if guarded { Guarding::On } else { Guarding::Off };
        values.set(param, guarding as u8 as f64);
    }
}
