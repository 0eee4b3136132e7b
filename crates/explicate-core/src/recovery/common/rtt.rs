//! The estimate of the round-trip time and the timeout that it gives (RFC 6298, section 2). Nanoseconds.

/// SRTT and RTTVAR after one more sample (RFC 6298 (2.3)): the variance first, from the old SRTT. With a clock that
/// ticks they are integers, as hosts with such clocks compute them.
#[inline(always)]
pub(crate) fn smoothed(srtt: u64, rttvar: u64, sample: u64, tick: u32) -> (u64, u64) {
    if tick > 0 {
        return smoothed_in_ticks(srtt, rttvar, sample, tick as u64);
    }
    (srtt - srtt / 8 + sample / 8, rttvar - rttvar / 4 + srtt.abs_diff(sample) / 4)
}
/// The same in Jacobson's integers (Congestion avoidance and control, 1988, appendix A): SRTT has units of an eighth
/// of a tick, RTTVAR of a quarter, and both are compared in whole ticks. BSD and ns-2 round like this, and so does
/// Linux 2.4 except for its variance. SRTT is then up to a tick above the mean: with samples of one tick and two it
/// stays close to two.
#[cold]
fn smoothed_in_ticks(srtt: u64, rttvar: u64, sample: u64, tick: u64) -> (u64, u64) {
    let whole = |estimate: u64| estimate - estimate % tick;
    let deviation = whole(srtt).abs_diff(sample);
    let next = srtt + sample / 8 - whole(srtt) / 8;
    (next, rttvar + deviation / 4 - whole(rttvar) / 4)
}
/// The timeout before its bounds (2.2). RTTVAR is at least half a tick, so the minimum G of the variance needs no
/// code.
#[inline(always)]
pub(crate) fn timeout_of(srtt: u64, rttvar: u64) -> u64 {
    srtt + 4 * rttvar
}
