//! Path MTU discovery by probes (RFC 8899): probes of several lengths are sent together and echoed.
//!
//! A length is rejected if in three consecutive rounds it is not echoed while shorter probes of the same rounds are:
//! a single loss or an outage of the path has no effect. Lengths come from a table of common MTUs of links and
//! tunnels; the kernel's path MTU (from ICMP) is also tried, and is an upper bound.

use explicate_core::units::Time;

/// The minimum of every IPv4 path (RFC 1122, section 3.3.2), and MTUs of common links and tunnels, bytes of IP.
const TABLE: [u16; 17] =
    [576, 1006, 1200, 1280, 1320, 1360, 1380, 1400, 1420, 1440, 1450, 1460, 1472, 1480, 1492, 1500, 4352];
/// Rounds per length (MAX_PROBES of RFC 8899).
const ROUNDS: u32 = 3;
/// Duration of a round without an echo.
const SILENT: Time = Time::secs(1);
/// Maximum additional delay of long packets.
const LATER: Time = Time::millis(20);

/// A search for the longest packet.
pub struct Search {
    /// Lengths up to the wanted one, ascending, and whether an echo of each has arrived.
    lengths: Vec<(u16, bool)>,
    /// When this round began, and when it ends.
    round: (Time, Time),
    /// Whether any probe was echoed in this round.
    echoed: bool,
    /// Rounds in which a probe was echoed, but not the longest.
    without: u32,
    /// The lengths of the next round are to be sent.
    sends: bool,
}

impl Search {
    /// A search for a packet of up to `wanted` bytes of IP.
    pub fn new(wanted: u16) -> Search {
        let mut lengths: Vec<(u16, bool)> = TABLE.iter().filter(|l| **l < wanted).map(|l| (*l, false)).collect();
        lengths.push((wanted, false));
        Search { lengths, round: (Time::ZERO, Time::ZERO), echoed: false, without: 0, sends: true }
    }
    /// Sets an upper bound, from the kernel's path MTU.
    pub fn limit(&mut self, most: u16) {
        if most >= self.longest() {
            return;
        }
        self.lengths.retain(|(length, _)| *length < most);
        self.lengths.push((most, false));
        (self.without, self.sends) = (0, true);
    }
    fn longest(&self) -> u16 {
        self.lengths.last().map_or(0, |(length, _)| *length)
    }
    /// The longest length that was echoed.
    fn carried(&self) -> Option<u16> {
        self.lengths.iter().rev().find(|(_, echoed)| *echoed).map(|(length, _)| *length)
    }
    /// The lengths of the probes to send now. The first round has the longest and the shortest; if the shortest
    /// arrives but the longest does not, the next rounds have all lengths between. The longest leave first: a full queue
    /// drops the end of a burst, and must not look like a path for short packets only.
    pub fn poll(&mut self, now: Time) -> Vec<u16> {
        if now >= self.round.1 {
            self.without += self.echoed as u32;
            self.sends = true;
        }
        if !self.sends || self.found().is_some() {
            return Vec::new();
        }
        (self.round, self.echoed, self.sends) = ((now, now + SILENT), false, false);
        let all: Vec<u16> = self.lengths.iter().map(|(length, _)| *length).collect();
        if self.carried().is_none() {
            let mut ends = vec![self.longest(), all[0]];
            ends.dedup();
            return ends;
        }
        // The echo of the shortest shows that the path works.
        let carried = self.carried().unwrap_or(0);
        all.iter().rev().copied().filter(|length| *length > carried || *length == all[0]).collect()
    }
    /// Handles an echo of a probe of this length.
    pub fn handle_echo(&mut self, now: Time, length: u16) {
        let Some(entry) = self.lengths.iter_mut().find(|(l, _)| *l == length) else { return };
        entry.1 = true;
        if !self.echoed {
            self.echoed = true;
            let round_trip = now.since(self.round.0);
            self.round.1 = now + round_trip + LATER;
        }
    }
    /// When the round ends.
    pub fn due(&self) -> Time {
        if self.sends { Time::ZERO } else { self.round.1 }
    }
    /// The path MTU, once it is known.
    pub fn found(&self) -> Option<u16> {
        let carried = self.carried()?;
        (carried == self.longest() || self.without >= ROUNDS).then_some(carried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::rng::Rng;

    /// A path: its MTU, its round-trip time, its share of lost probes, and its outages.
    fn searched(wanted: u16, carries: u16, loss: f64, back: Time, rng: &mut Rng) -> (Option<u16>, Time) {
        let (mut search, mut now, trip) = (Search::new(wanted), Time::ZERO, Time::millis(600));
        let mut echoes: Vec<(Time, u16)> = Vec::new();
        while now < Time::secs(60) {
            while let Some(at) = echoes.iter().position(|(came, _)| *came <= now) {
                let (came, length) = echoes.remove(at);
                search.handle_echo(came, length);
            }
            if let Some(found) = search.found() {
                return (Some(found), now);
            }
            for length in search.poll(now) {
                if now >= back && length <= carries && rng.uniform() >= loss {
                    echoes.push((now + trip, length));
                }
            }
            now = echoes.iter().map(|(came, _)| *came).min().unwrap_or(Time::NEVER).min(search.due());
        }
        (None, now)
    }

    #[test]
    fn a_path_that_carries_all_costs_a_round_trip() {
        let mut rng = Rng::stream(1, "mtu");
        assert_eq!(searched(1500, 1500, 0.0, Time::ZERO, &mut rng), (Some(1500), Time::millis(600)));
        assert_eq!(searched(9000, 9000, 0.0, Time::ZERO, &mut rng).0, Some(9000));
        assert_eq!(searched(400, 400, 0.0, Time::ZERO, &mut rng).0, Some(400));
    }

    #[test]
    fn the_longest_of_the_table_that_arrives_is_found() {
        let mut rng = Rng::stream(2, "mtu");
        for (carries, found) in [(1499, 1492), (1492, 1492), (1400, 1400), (1300, 1280), (600, 576), (1450, 1450)] {
            let (length, took) = searched(1500, carries, 0.0, Time::ZERO, &mut rng);
            assert_eq!(length, Some(found), "{carries}");
            assert!(took < Time::secs(6), "{carries}: {took:?}");
        }
        assert_eq!(searched(9000, 4400, 0.0, Time::ZERO, &mut rng).0, Some(4352));
    }

    #[test]
    fn losses_and_outages_shorten_nothing() {
        let mut rng = Rng::stream(3, "mtu");
        let shortened = (0..2000).filter(|_| searched(1500, 1500, 0.05, Time::ZERO, &mut rng).0 != Some(1500)).count();
        assert!(
            shortened <= 2,
            "three losses of the longest in a row: 2000 * 0.05^3 = 0.25 expected, {shortened} seen"
        );
        assert_eq!(searched(1500, 1500, 0.0, Time::secs(30), &mut rng).0, Some(1500));
        assert_eq!(searched(1500, 500, 0.0, Time::ZERO, &mut rng).0, None, "nothing arrives, nothing is said");
    }

    /// A queue that other packets keep full has room for some packets of a burst, at random.
    #[test]
    fn a_full_queue_shortens_nothing() {
        let mut rng = Rng::stream(4, "mtu");
        for _ in 0..500 {
            let (mut search, mut now, trip) = (Search::new(1500), Time::ZERO, Time::millis(60));
            while search.found().is_none() {
                let mut room = 4000.0 * rng.uniform();
                let burst = search.poll(now);
                let carried: Vec<u16> = burst
                    .into_iter()
                    .take_while(|length| {
                        room -= *length as f64;
                        room >= 0.0
                    })
                    .collect();
                for length in carried {
                    search.handle_echo(now + trip, length);
                }
                now = search.due();
            }
            assert_eq!(search.found(), Some(1500));
        }
    }

    #[test]
    fn what_the_kernel_knows_is_tried_at_once() {
        let mut search = Search::new(1500);
        assert_eq!(search.poll(Time::ZERO), [1500, 576]);
        search.limit(1390);
        assert_eq!(search.poll(Time::millis(1)), [1390, 576]);
        search.handle_echo(Time::millis(9), 576);
        search.limit(1400);
        assert!(search.found().is_none() && search.poll(Time::millis(9)).is_empty());
        search.handle_echo(Time::millis(10), 1390);
        assert_eq!(search.found(), Some(1390));
    }
}
