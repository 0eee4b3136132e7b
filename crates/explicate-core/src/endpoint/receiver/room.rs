//! The receive window as Linux 6.18 tunes it (`tcp_input.c`): 64 kB at first, then what the sender may want in the next round
//! trips, by what the application read in the last one. It rises to that by two segments for each that arrives.
//!
//! | symbol | field | unit | value |
//! | --- | --- | --- | --- |
//! | rcv_ssthresh | `window` | segments | 65536 bytes at first |
//! | window_clamp | `most` | segments | 81920 bytes at first |
//! | rcvq_space.space | `read` | segments | 10 at first |
//! | rcv_rtt_est.rtt_us | `rtt` | time | |
//!
//! Deviations:
//! 1. Linux measures round trips by time stamps that the sender echoes, which our data packets do not. Here they are that of
//!    set-up, and the change of the one-way delay since.
//! 2. `most` follows a measurement one round trip later. By its source the kernel needs no more than the next read of the
//!    application; in all recordings (`validation/kernel/`) its first window limits a sender for one round trip more.
//! 3. The application reads at once. The largest length in `tcp_rmem` does not limit; `receiver_window` does.

use crate::units::Time;

/// Half of the first length in `tcp_rmem`, bytes: what the SYN is answered with.
const FIRST: u32 = 65_536;
/// Five eighths of it, bytes, the share of memory that is data once full segments have arrived.
const FIRST_MOST: u32 = 81_920;
/// Bytes of TCP's options in a data segment, which count as part of the segment's length here.
const OPTIONS: u32 = 12;
/// TCP_INIT_CWND.
const FIRST_READ: u32 = 10;
/// Segments by which the window rises with one.
const STEP: u32 = 2;

/// The window and what it follows.
pub(super) struct Room {
    pub(super) window: u32,
    most: u32,
    /// Most segments that a window may have.
    limit: u32,
    /// Most that was read in a round trip.
    read: u32,
    /// `most` from the next round trip on.
    next_most: u32,
    /// When the present round trip began, and the segment expected then.
    began: Time,
    first: u32,
    /// Zero before the first data.
    rtt: Time,
    /// When the SYN was answered.
    opened: Time,
    /// One-way delay less the round trip, modulo 2^32, in units of time stamps.
    offset: u32,
}

impl Room {
    /// Before the SYN. `payload` is that of a full segment, bytes; `limit` the largest window.
    pub(super) fn new(payload: u32, limit: u32) -> Room {
        let window = (FIRST / (payload + OPTIONS)).clamp(1, limit);
        Room {
            window,
            most: (FIRST_MOST / payload.max(1)).clamp(window, limit),
            limit,
            read: FIRST_READ.min(window),
            next_most: 0,
            began: Time::ZERO,
            first: 0,
            rtt: Time::ZERO,
            opened: Time::ZERO,
            offset: 0,
        }
    }
    /// The SYN is answered.
    pub(super) fn open(&mut self, now: Time) {
        self.opened = now;
    }

    /// A segment arrived that the sender stamped `stamped`; `next` is expected now, and what is out of order reaches
    /// `beyond` segments further. Returns whether the window rises.
    pub(super) fn on_data(&mut self, now: Time, stamped: u32, next: u32, beyond: u32) -> bool {
        let one_way = ((now.0 >> 2) as u32).wrapping_sub(stamped);
        if self.rtt == Time::ZERO {
            (self.rtt, self.began) = (now.since(self.opened).max(Time(4)), now);
            self.offset = one_way.wrapping_sub((self.rtt.0 >> 2) as u32);
        }
        let sample = Time((one_way.wrapping_sub(self.offset) as i32).max(1) as u64 * 4);
        // Linux: a lower one counts at once.
        self.rtt = if sample < self.rtt { sample } else { Time(self.rtt.0 - self.rtt.0 / 8 + sample.0 / 8) };
        if now.since(self.began) >= self.rtt {
            self.most = self.most.max(self.next_most).min(self.limit);
            let read = next.saturating_sub(self.first);
            if read > self.read {
                self.next_most = wanted(self.read, read);
                self.read = read;
            }
            (self.began, self.first) = (now, next);
        }
        if beyond > 0 {
            self.most = self.most.max(self.read.saturating_mul(2).saturating_add(beyond)).min(self.limit);
        }
        let before = self.window;
        self.window = self.window.saturating_add(STEP).min(self.most);
        self.window > before
    }
}

/// `tcp_rcvbuf_grow`: twice what was read, and as much growth again as there was, twice: a sender in slow start doubles.
fn wanted(before: u32, read: u32) -> u32 {
    let (before, twice) = (before.max(1) as u64, 2 * read as u64);
    (twice + 2 * (twice * (read as u64 - before.min(read as u64)) / before)).min(u32::MAX as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stamp;
    use alloc::vec::Vec;

    /// A path of 100 ms whose rounds, each a burst, have these numbers of segments; the windows after them.
    fn windows(rounds: &[u32]) -> Vec<u32> {
        let mut room = Room::new(1448, 1000);
        room.open(Time::secs(1));
        let (mut next, mut now) = (0, Time::secs(1));
        rounds
            .iter()
            .map(|&count| {
                now += Time::millis(100);
                for _ in 0..count {
                    next += 1;
                    room.on_data(now, stamp(now - Time::millis(50)), next, 0);
                }
                room.window
            })
            .collect()
    }

    /// 65536 / 1460 = 44, then 81920 / 1448 = 56. Round trips end with the first segment of the next: 11 are read, then 20 and 40. Of
    /// 20 after 11 follows 2 * 20 + 2 * 40 * 9/11 = 104, which counts a round trip later.
    #[test]
    fn the_first_window_limits_for_one_round_trip() {
        assert_eq!(wanted(11, 20), 104);
        assert_eq!(windows(&[10, 20, 40, 56]), [56, 56, 56, 104]);
        assert_eq!(windows(&[10, 20, 40, 5]), [56, 56, 56, 66], "two for each that arrives");
        assert_eq!(windows(&[10, 20, 40, 56, 104, 240, 500, 500, 500]).last(), Some(&1000), "the limit");
        assert_eq!(windows(&[10, 10, 10, 10, 10]), [56; 5], "no more is wanted");
    }

    /// A segment that is out of order needs as much room more as it is ahead.
    #[test]
    fn what_is_out_of_order_has_room() {
        let mut room = Room::new(1448, 1000);
        room.open(Time::secs(1));
        let now = Time::millis(1100);
        for n in 1..50 {
            room.on_data(now, stamp(now), 0, n);
        }
        assert_eq!(room.window, 2 * 10 + 49, "more than 56");
        assert_eq!(Room::new(8948, 1000).window, 7, "long packets");
        assert_eq!(Room::new(1448, 20).window, 20, "no more than the limit");
    }

    /// The round trip is that of set-up and what queues add: with 100 ms more, 60 segments in 150 ms are not a round trip.
    #[test]
    fn round_trips_follow_the_one_way_delay() {
        let mut room = Room::new(1448, 1000);
        room.open(Time::secs(1));
        let late = |ms: u64, queue: u64| (Time::millis(ms), stamp(Time::millis(ms - 50 - queue)));
        let (now, stamped) = late(1100, 0);
        room.on_data(now, stamped, 1, 0);
        for n in 0..60 {
            let (now, stamped) = late(1190, 100);
            room.on_data(now, stamped, n + 2, 0);
        }
        let (now, stamped) = late(1250, 100);
        room.on_data(now, stamped, 62, 0);
        assert!((Time::millis(199)..=Time::millis(200)).contains(&room.rtt), "{}", room.rtt);
        assert_eq!((room.read, room.window), (10, 56));
        room.on_data(Time::millis(1301), stamp(Time::millis(1151)), 63, 0);
        assert_eq!((room.read, room.window), (63, 56));
        room.on_data(Time::millis(1301), stamp(Time::millis(1251)), 64, 0);
        assert_eq!(room.rtt, Time::millis(100), "a shorter one counts at once");
    }
}
