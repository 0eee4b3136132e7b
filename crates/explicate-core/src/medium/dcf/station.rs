//! A station: carrier sensing, back-off, the frame in reception, and the next frame to send.

use crate::port::Port;
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

use super::air::Heard;
use super::frame::{Frame, Transmission};
use super::{Capture, Settings};

/// State of a station's own frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It waits for the back-off, or there is no frame.
    Contend,
    /// It is in transmission, or will be after SIFS.
    Exchange,
    /// An answer is expected.
    AwaitCts,
    AwaitAck,
}

/// The frame in reception.
#[derive(Clone, Copy)]
pub(super) struct Lock {
    /// The transmission.
    serial: u32,
    began: Time,
    ends: Time,
    power: f64,
    /// The maximum interference so far.
    worst: f64,
    intact: bool,
}

/// An answer, or data after CTS, that follows after SIFS.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) at: Time,
    pub(super) frame: Frame,
    pub(super) to: u32,
    /// The link of the medium to which it belongs.
    pub(super) link: u32,
    /// The rate of the data frame.
    pub(super) rate: u8,
    pub(super) silent_until: Time,
}

/// The packet to send.
pub(super) struct Head {
    pub(super) slot: u32,
    pub(super) link: u32,
    pub(super) to: u32,
    /// Bytes of the frame.
    pub(super) bytes: u32,
    /// The packet as it was taken from the queue.
    pub(super) packet: Packet,
    /// It arrived, although its sender may not know.
    pub(super) delivered: bool,
    /// [`Station::held`] when it became the first of the queue.
    pub(super) held_before: Time,
    /// Its data frames so far, and their time on the air without preambles.
    pub(super) data_frames: u32,
    pub(super) spent: Time,
    pub(super) short_tries: u32,
    pub(super) long_tries: u32,
}

/// Counters of the whole run.
#[derive(Clone, Copy, Default, Debug)]
pub struct StationStats {
    /// Own frames sent (RTS, or data without RTS): attempts.
    pub attempts: u64,
    /// Attempts without an answer.
    pub failures: u64,
}

pub(super) struct Station {
    pub(super) port: Port,
    pub(super) backoff_rng: Rng,
    pub(super) error_rng: Rng,
    /// Signals that it senses; signals that reach it at all, and the sum of their powers.
    sensed: u32,
    signals: u32,
    energy: f64,
    pub(super) lock: Option<Lock>,
    sending: bool,
    /// Medium reserved by others until then (NAV).
    nav: Time,
    idle_since: Time,
    /// The last frame of the busy period could not be decoded.
    undecoded: bool,
    /// Remaining idle slots of the back-off, if there is one.
    backoff: Option<u32>,
    /// Slots are counted from this time; never while the medium is busy.
    counts_from: Time,
    /// It found the medium idle and needs no back-off unless that changes.
    at_once: bool,
    pub(super) cw: u32,
    /// It may send until then without contending again.
    pub(super) burst_until: Time,
    /// The interface measures its capacity, for which others' use of the medium is counted.
    measures: bool,
    /// Time in which others used the medium while the station contended, until `counted_until`.
    pub(super) held: Time,
    counted_until: Time,
    pub(super) phase: Phase,
    pub(super) head: Option<Head>,
    pub(super) answer: Option<Answer>,
    pub(super) answer_by: Time,
    pub(super) stats: StationStats,
}

impl Station {
    pub(super) fn new(port: Port, settings: &Settings, backoff_rng: Rng, error_rng: Rng) -> Station {
        Station {
            measures: port.is_measured(),
            port,
            backoff_rng,
            error_rng,
            sensed: 0,
            signals: 0,
            energy: 0.0,
            lock: None,
            sending: false,
            nav: Time::ZERO,
            idle_since: Time::ZERO,
            undecoded: false,
            backoff: None,
            counts_from: Time::NEVER,
            at_once: false,
            cw: settings.cw_min,
            burst_until: Time::ZERO,
            held: Time::ZERO,
            counted_until: Time::ZERO,
            phase: Phase::Contend,
            head: None,
            answer: None,
            answer_by: Time::NEVER,
            stats: StationStats::default(),
        }
    }

    /// Time of its next own action.
    pub(super) fn due(&self, s: &Settings) -> Time {
        let turn = if self.head.is_some() && self.phase == Phase::Contend { self.turn(s) } else { Time::NEVER };
        turn.min(self.answer_by).min(self.answer.map_or(Time::NEVER, |a| a.at))
    }

    // ---------------------------------------------------------------------------------------- back-off

    /// When its back-off ends.
    fn turn(&self, s: &Settings) -> Time {
        self.counts_from + Time(s.slot.0 * self.backoff.unwrap_or(0) as u64)
    }
    pub(super) fn is_its_turn(&self, now: Time, s: &Settings) -> bool {
        self.head.is_some() && self.phase == Phase::Contend && self.turn(s) <= now
    }
    pub(super) fn draw_backoff(&mut self) {
        // The window is a power of two minus one, so the low bits are uniform; otherwise the bias is below 2^-48.
        self.backoff = Some((self.backoff_rng.next_u64() % (self.cw as u64 + 1)) as u32);
        self.counts_from = Time::NEVER;
    }
    /// The next frame needs no back-off.
    pub(super) fn keep_the_air(&mut self) {
        (self.backoff, self.counts_from, self.phase) = (None, Time::NEVER, Phase::Exchange);
    }
    pub(super) fn double_window(&mut self, s: &Settings) {
        self.cw = (2 * self.cw + 1).min(s.cw_max);
    }
    /// A frame reached the front of an empty queue: the state of the medium decides whether it needs a back-off.
    pub(super) fn wants_to_send(&mut self, now: Time, s: &Settings) {
        if self.backoff.is_some() && self.turn(s) < now {
            self.backoff = None; // it ended while there was no frame to send
        }
        if self.backoff.is_none() {
            self.counts_from = Time::NEVER;
            let busy = self.is_busy() || self.nav > now || self.answer.is_some();
            if busy {
                self.draw_backoff();
            } else {
                (self.backoff, self.at_once) = (Some(0), true);
            }
        }
        self.resume(now, s);
    }
    /// Counts back-off slots while the medium is idle, from the end of the interframe space after the last frame.
    pub(super) fn resume(&mut self, now: Time, s: &Settings) {
        let ready = self.phase == Phase::Contend && self.answer.is_none() && !self.is_busy();
        if self.counts_from != Time::NEVER || self.backoff.is_none() || !ready {
            return;
        }
        let space = if self.undecoded { s.eifs } else { s.difs };
        let after_nav = if self.nav > self.idle_since { self.nav + s.difs } else { Time::ZERO };
        self.counts_from = now.max(self.idle_since + space).max(after_nav);
    }
    /// The medium becomes busy.
    fn freeze(&mut self, now: Time, s: &Settings) {
        self.undecoded = false;
        if self.counts_from == Time::NEVER {
            return;
        }
        let Some(left) = self.backoff else { return };
        let waits = self.head.is_some() && self.phase == Phase::Contend;
        if waits && self.turn(s) <= now + s.cca_time {
            return; // too late to be sensed: it sends
        }
        let counted = (now.since(self.counts_from).0 / s.slot.0).min(left as u64) as u32;
        self.backoff = (waits || counted < left).then_some(left - counted);
        self.counts_from = Time::NEVER;
        if self.at_once {
            self.at_once = false;
            self.draw_backoff();
        }
    }

    // ------------------------------------------------------------------------------------- reception

    /// Counts until `now` the time in which others use the medium: it senses them, answers them, or they have reserved
    /// it. Call before any of these changes, and before the phase does.
    #[inline]
    pub(super) fn count_others(&mut self, now: Time) {
        if !self.measures {
            return;
        }
        if self.phase == Phase::Contend {
            let until = if self.is_busy() { now } else { self.nav.min(now) };
            self.held += until.since(self.counted_until);
        }
        self.counted_until = now;
    }
    fn is_busy(&self) -> bool {
        self.sensed > 0 || self.sending
    }
    /// Whether others have reserved the medium (NAV).
    pub(super) fn is_reserved(&self, now: Time) -> bool {
        self.nav > now
    }
    pub(super) fn reserve(&mut self, now: Time, until: Time) {
        self.count_others(now);
        self.nav = self.nav.max(until);
    }
    pub(super) fn decoded(&mut self, now: Time, s: &Settings, yes: bool) {
        match s.capture {
            Capture::Ns2 if !yes => self.reserve(now, now + s.eifs), // and DIFS after that
            _ => self.undecoded = !yes,
        }
    }
    /// By ns-2's rules a station sends no CTS and no data if the medium is busy at that moment.
    pub(super) fn may_answer(&self, now: Time, s: &Settings, frame: Frame) -> bool {
        s.capture != Capture::Ns2 || frame == Frame::Ack || !(self.is_busy() || self.is_reserved(now))
    }

    /// Starts a transmission.
    pub(super) fn begins(&mut self, now: Time, s: &Settings) {
        self.count_others(now);
        if self.is_its_turn(now, s) {
            (self.backoff, self.counts_from) = (None, Time::NEVER);
        } else if !self.is_busy() {
            self.freeze(now, s);
        }
        (self.at_once, self.undecoded) = (false, false);
        self.sending = true;
        match &mut self.lock {
            Some(lock) if s.capture == Capture::Ns2 => lock.intact = false,
            lock => *lock = None,
        }
    }
    /// Ends a transmission.
    pub(super) fn ended(&mut self, now: Time) {
        self.count_others(now);
        self.sending = false;
        if self.sensed == 0 {
            self.idle_since = now;
        }
    }

    /// A signal arrives.
    pub(super) fn hears(&mut self, now: Time, s: &Settings, heard: &Heard, t: &Transmission) {
        if heard.sensed {
            self.count_others(now);
            if !self.is_busy() {
                self.freeze(now, s);
            }
            self.sensed += 1;
        }
        let others = self.energy;
        self.signals += 1;
        self.energy += heard.power;
        let understood = heard.decodable && t.frame != Frame::Noise;
        if s.capture == Capture::Ns2 {
            return self.follow(now, s, heard, t, understood);
        }
        if self.sending {
            return;
        }
        let survives = |power: f64, others: f64| match s.capture {
            Capture::Off => others == 0.0,
            _ => power >= s.capture_factor * others,
        };
        let (serial, power, intact) = (t.serial, heard.power, survives(heard.power, others));
        let fresh = Lock { serial, began: now, ends: t.ends, power, worst: others, intact };
        match &mut self.lock {
            Some(lock) => {
                let takes_over = match s.capture {
                    Capture::Off | Capture::Ns2 => false,
                    Capture::First => now.since(lock.began) < s.preamble,
                    Capture::Any => true,
                };
                if understood && takes_over && fresh.intact {
                    self.lock = Some(fresh);
                } else {
                    let others = self.energy - lock.power;
                    lock.worst = lock.worst.max(others);
                    lock.intact &= survives(lock.power, others);
                }
            }
            None if understood => self.lock = Some(fresh),
            None => self.undecoded |= heard.sensed && t.frame != Frame::Noise,
        }
    }
    /// A signal arrives, by ns-2's rules: the receiver locks onto the first signal that it senses, and of colliding ones onto
    /// the longest.
    fn follow(&mut self, now: Time, s: &Settings, heard: &Heard, t: &Transmission, understood: bool) {
        if !heard.sensed {
            return;
        }
        let intact = understood && !self.sending;
        let fresh = Lock { serial: t.serial, began: now, ends: t.ends, power: heard.power, worst: 0.0, intact };
        match &mut self.lock {
            None => self.lock = Some(fresh),
            // Weak signals are left out of the reception and of the sensed signals: a reservation replaces them.
            Some(lock) if lock.power >= s.capture_factor * heard.power => self.nav = self.nav.max(t.ends + s.eifs),
            Some(lock) if lock.ends >= t.ends => lock.intact = false,
            Some(lock) => *lock = Lock { intact: false, ..fresh },
        }
    }
    /// A signal ends. If it was in reception: returns whether it is intact, and its SINR.
    pub(super) fn heard_all(&mut self, now: Time, s: &Settings, heard: &Heard, serial: u32) -> Option<(bool, f64)> {
        self.signals -= 1;
        self.energy = if self.signals == 0 { 0.0 } else { self.energy - heard.power };
        if heard.sensed {
            self.count_others(now);
            self.sensed -= 1;
            if !self.is_busy() {
                self.idle_since = now;
            }
        }
        let lock = self.lock.filter(|l| l.serial == serial)?;
        self.lock = None;
        Some((lock.intact, lock.power / (s.noise + lock.worst)))
    }
}
