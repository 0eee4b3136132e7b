//! The variables of `[sampling]`, in the table `samples`, each with its unit.

use crate::tables::{Column, Kind};

const fn variable(name: &'static str, unit: &'static str, doc: &'static str) -> Column {
    Column { name, unit, kind: Kind::F64, doc }
}

/// Every variable that can be sampled. A segment is the payload of a full packet.
pub const VARIABLES: &[Column] = &[
    // `queue`, `throughput`, `cwnd`, `rtt` and `goodput`.
    variable("queue_packets", "packets", "Packets in the queue of a link, excluding the packet in service."),
    variable("queue_bytes", "bytes", "Bytes in the queue of a link, excluding the packet in service."),
    variable(
        "throughput_bps",
        "bit/s",
        "IP bytes that left a link, or that reached a flow's receiver, in the period. A packet counts as a whole when its last bit \
         leaves or arrives: in periods of a few packets' times, values exceed the line's rate.",
    ),
    variable(
        "utilisation",
        "",
        "Throughput divided by the link's capacity, above 1 in periods of a few packets' times (see `throughput_bps`); over a medium \
         the share of its time.",
    ),
    variable("cwnd", "segments", "Congestion window of a flow."),
    variable("rtt_ms", "ms", "Mean of the round-trip time samples of the period."),
    variable(
        "goodput_bps",
        "bit/s",
        "In-order payload that reached the receiver in the period; when a gap is filled, what waited behind it counts at once.",
    ),
    // `flow`: congestion controllers.
    variable("ssthresh", "segments", "Slow-start threshold."),
    variable("pacing_bps", "bit/s", "Rate at which packets are paced."),
    variable("pacing_gain", "", "Multiple of the bandwidth at which packets are paced."),
    variable("bandwidth_bps", "bit/s", "Estimate of the bottleneck's bandwidth."),
    variable("rtprop_ms", "ms", "Estimate of the round-trip time without queues."),
    variable("mode", "", "State: 0 start-up, 1 drain, 2 probing for bandwidth, 3 probing for the round-trip time."),
    variable("bw_shortterm_bps", "bit/s", "Bound of the bandwidth by recent losses; infinite without."),
    variable(
        "inflight_longterm",
        "segments",
        "Most that was in flight without losing too much; infinite before such a loss.",
    ),
    variable("inflight_shortterm", "segments", "Bound of what is in flight by recent losses; infinite without."),
    variable("max_win", "segments", "Window before the last reduction, the target of the search."),
    variable("step", "segments per RTT", "Increase of the window."),
    variable("w_max", "segments", "Window before the last reduction."),
    variable("k_s", "s", "Time in which the curve reaches `w_max`."),
    variable("w_est", "segments", "Window of standard TCP's additive increase."),
    variable("base_rtt_ms", "ms", "Least round-trip time seen; null before the first."),
    variable("rtt_min_ms", "ms", "Least round-trip time seen; null before the first."),
    variable("waiting_packets", "packets", "Sender's estimate of its packets in queues."),
    variable("rate_bps", "bit/s", "Sending rate; of a router the rate that it gives to each flow."),
    variable("increase", "segments per RTT", "Increase of the window."),
    variable("rho", "", "Multiple of the reference round-trip time."),
    variable("bandwidth_segments_per_s", "segments/s", "Estimate of the available bandwidth."),
    variable("bwe_segments_per_s", "segments/s", "Estimate of the bandwidth from acknowledgements."),
    variable("feedback_bytes_per_s", "bytes/s", "Last feedback of an acknowledgement: the change of the rate."),
    variable("feedback_bytes", "bytes", "Last feedback of an acknowledgement: the change of the window."),
    variable("heard_bytes", "bytes", "Sum of the feedback received in acknowledgements."),
    variable("x_s", "s", "X in packets: the time between two packets."),
    variable("h_cwnd_bytes", "bytes", "Window in packets."),
    variable("alpha", "", "Share of marked packets, averaged over windows."),
    variable("frozen", "", "1 while the window is frozen after a reduction, else 0."),
    variable("recphase_segment", "segments", "Number of the segment that ends the recovery."),
    variable(
        "advised_bps",
        "bit/s",
        "SCONE: the rate that a sender keeps to, or that an element last advised to a flow; null without advice.",
    ),
    // `flow`: the guard of explicit senders.
    variable("law", "", "Controller of a guarded flow's window: 0 its own, 1 its own within TCP's window, 2 TCP's."),
    variable("unanswered_delay_s", "s", "Least delay of this round trip where no router answers."),
    variable("surplus_losses", "packets", "Losses beyond `air_loss`; at 30 TCP's window is the limit."),
    variable("losses_with_delay", "", "Correlation of losses with delay; at 60 TCP's window is the limit."),
    // `flow`: recoveries.
    variable("srtt_ms", "ms", "Smoothed round-trip time; null before the first one is measured."),
    variable(
        "controller_srtt_ms",
        "ms",
        "Smoothed round-trip time of the congestion controller where `rtt_resolution` gives it one of its own; null before \
         the first.",
    ),
    variable("rto_ms", "ms", "Retransmission timeout, back-off included."),
    variable(
        "reordering_window_ms",
        "ms",
        "Time for which a segment may be late before it is taken for lost (RFC 8985).",
    ),
    variable("in_flight", "segments", "Segments sent and not acknowledged."),
    variable("inflation", "segments", "Window inflation: segments known to have left the network (RFC 6582)."),
    variable("dupcount", "acknowledgements", "Duplicates counted for the candidate of a retransmission."),
    variable("timer_resends", "segments", "Segments retransmitted by the second timer, in the whole run."),
    variable("lost", "segments", "Segments that were not retransmitted, in the whole run."),
    // `router`: controllers.
    variable("avg_rtt_s", "s", "Mean round-trip time of the traffic, from packet headers."),
    variable("persistent_queue_bytes", "bytes", "Least queue of an interval."),
    variable("mean_queue_bytes", "bytes", "Smoothed mean of the persistent queue."),
    variable("res_pos_bytes_per_s", "bytes/s", "Remaining positive feedback of the interval."),
    variable("res_neg_bytes_per_s", "bytes/s", "Remaining negative feedback of the interval."),
    variable("cp", "bytes/s per s", "Positive feedback per unit of X."),
    variable("cn", "bytes/s per byte", "Negative feedback per byte."),
    variable("limited_x_s", "s", "Sum of X of the flows that are limited elsewhere."),
    variable("load_factor", "", "Demand of the interval over the target capacity."),
    variable("code", "", "Code in packets: 1 low load or accelerate, 2 high load or brake, 3 overload."),
    variable("target_bps", "bit/s", "Target of the rate that leaves the queue."),
    variable("dequeue_bps", "bit/s", "Rate that leaves the queue."),
    variable("accelerated_share", "", "Share of packets that leave as accelerates."),
    variable("mixing_ratio", "", "Share of packets that get the second of two codes."),
    variable("average_queue_bytes", "bytes", "Average queue at which packets are marked."),
    variable("congestion_counter", "packets", "Drops not yet signalled by a flag."),
    variable("congestion_flags", "packets", "Packets that the router flagged, in the whole run."),
    variable(
        "uncounted_drops",
        "packets",
        "Drops beyond the number of waiting packets, which were not counted, in the whole run.",
    ),
    variable("share", "", "Present share of a class in the line's rate."),
    // `router`: queue disciplines.
    variable("virtual_queue_packets", "packets", "Length of the virtual queue."),
    variable("virtual_queue_bytes", "bytes", "Length of the virtual queue."),
    variable("virtual_share", "", "Virtual capacity over the capacity."),
    variable("dropping", "", "1 while the discipline drops, else 0."),
    variable("count", "packets", "Packets dropped in the present dropping state."),
    variable("flows_new", "flows", "Flows in the list of new ones."),
    variable("flows_old", "flows", "Flows in the list of old ones."),
    variable("mark_probability", "", "Probability of a mark, or of a drop."),
    variable("classic_probability", "", "Probability of a mark or a drop in the queue for other traffic than L4S."),
    variable("low_delay_ms", "ms", "Time for which the last packet of the queue for L4S waited."),
    variable("classic_delay_ms", "ms", "Time for which the last packet of the queue for other traffic waited."),
    variable("average_packets", "packets", "Average queue."),
    variable("average_bytes", "bytes", "Average queue."),
    variable("p_b", "", "Base probability of a mark or a drop."),
    variable("price", "", "Price of the link; REM's probability of a mark is 1 - phi^-price."),
    // `router`: media.
    variable("air_rate_bps", "bit/s", "Transmission rate of a link over a medium."),
    variable("air_rate_changes", "changes", "Changes of that rate, up or down, in the whole run."),
    variable("air_attempts", "frames", "Transmission attempts, in the whole run."),
    variable("air_unanswered", "frames", "Attempts without acknowledgement or CTS, in the whole run."),
    variable("air_window_slots", "slots", "Contention window of the sending station."),
    // `agent`.
    variable("virtual_routers", "", "Clouds of plain routers for which the agent computes feedback."),
    variable(
        "virtual_routers_ahead",
        "",
        "Downstream clouds for which the agent computes feedback on behalf of receivers.",
    ),
    variable("clouds_met", "", "Packets from a cloud that is not measured, in the whole run."),
    variable("requests", "", "Requests for a measurement, in the whole run."),
    variable("untold", "", "Packets from a cloud that did not fit the table, in the whole run."),
    variable("broken", "", "Paths that do not answer requests."),
    variable("malformed", "packets", "Packets that could not be read, in the whole run."),
    variable("sessions", "", "Measurements in progress for other nodes."),
    variable("refused", "", "Rejected requests, in the whole run."),
    variable("probe_bytes", "bytes", "Bytes of probes sent, in the whole run."),
];
