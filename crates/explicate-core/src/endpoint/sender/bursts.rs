//! Pacing by super-packets, as Linux 6.18 paces (`tcp_tso_autosize`, `tcp_update_skb_after_send`): what a flow sends in a
//! millisecond leaves together, two packets at least, and the next waits for all of it. A burst that the window
//! interrupts goes on with the next acknowledgement. A burst that leaves later than pacing allows has credit: the next waits
//! for that much less, for half as long at least. The first nine segments of a flow are not paced.

use super::SenderEndpoint;
use crate::params::choices;
use crate::units::Time;

choices! {
    /// What a paced flow sends at once.
    pub enum Bursts { Packets = "packets", Linux = "linux" }
}

const SPAN: f64 = 1e-3;
const FEWEST: f64 = 2.0;
/// Packets of 1500 bytes in the longest super-packet, 64 kB.
const MOST: f64 = 43.0;
/// The number of the first segment that is paced; segments count from one.
const UNPACED: u32 = 10;

/// The present burst.
#[derive(Default)]
pub(super) struct Burst {
    packets: u32,
    /// What it takes at the pacing rate, and how late it began.
    span: Time,
    credit: Time,
    /// When pacing allows the next one.
    until: Time,
}

impl SenderEndpoint {
    /// A packet left, after which pacing waits for `gap` seconds.
    #[inline(never)]
    pub(super) fn pace_in_bursts(&mut self, now: Time, gap: f64) {
        let unpaced = self.recovery.at().highest < UNPACED;
        let burst = &mut self.rare.get_or_insert_default().burst;
        if unpaced {
            burst.until = now;
            return;
        }
        if burst.packets == 0 {
            (burst.span, burst.credit) = (Time::ZERO, now.since(burst.until));
            burst.until = burst.until.max(now);
        }
        burst.packets += 1;
        burst.span += Time::from_secs_f64(gap);
        if burst.packets >= (SPAN / gap).clamp(FEWEST, MOST) as u32 {
            burst.packets = 0;
            burst.until += burst.span - burst.credit.min(Time(burst.span.0 / 2));
            self.wait_until = burst.until;
        }
    }
}
