//! The medium as a whole. It has the interface of an agent: `enqueue` takes packets, `poll_timeout` returns when to
//! call `handle_timeout`, and `poll_delivered` returns the packets that have arrived. A packet that arrived is
//! forwarded at once; its sender may continue to send it as a ghost if the acknowledgement was lost.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::air::{Air, Layout};
use super::frame::{Frame, Transmission};
use super::link::AirLink;
pub use super::station::StationStats;
use super::station::{Head, Phase, Station};
use super::{FRAMING, RATES, Settings};
use crate::api::Probe;
use crate::port::{Port, Store};
use crate::rng::{self, Rng};
use crate::units::Time;
use crate::wire::Packet;

/// The driver of a medium, which stores the packets, and the ports of the links over the medium.
pub trait Driver: Store {
    /// The time.
    fn now(&self) -> Time;
    /// The number of a packet's link at the medium, and the length of the packet with the link's coding.
    fn frame(&mut self, handle: u32) -> (u32, u32);
    /// Whether the channels of a link (the driver's number) lose an attempt to send this packet with this length.
    fn attempt_is_lost(&mut self, link: u32, packet: &Packet, bytes: u32) -> bool;
    /// A packet of a link was dropped after its retries.
    fn gave_up(&mut self, link: u32, handle: u32);
}

/// A wireless medium.
pub struct Medium {
    pub(super) settings: Settings,
    pub(super) stations: Vec<Station>,
    pub(super) links: Vec<AirLink>,
    pub(super) air: Air,
    on_air: Vec<Transmission>,
    /// When the timer of each station is due.
    dues: Vec<Time>,
    next: Time,
    serial: u32,
    pub(super) delivered: Vec<u32>,
    /// Key that orders simultaneous events, differently at each time.
    ties: u64,
}

/// A link of a medium: the driver's number, the stations that it connects, and its own rate as an index in [`RATES`],
/// if it has one.
pub struct Over {
    /// The driver's link.
    pub link: u32,
    /// Station that sends.
    pub from: u32,
    /// Station that receives.
    pub to: u32,
    /// Data rate of the link.
    pub rate: Option<u8>,
}

impl Medium {
    /// A medium with the interfaces of its stations, in order, and the links over it.
    pub fn new(layout: &Layout<'_>, ports: Vec<Port>, links: &[Over], seed: u64) -> Medium {
        let settings = Settings::new(layout.values);
        let air = Air::new(layout, &settings, seed);
        let station = |(port, (name, _)): (Port, &(&str, _))| {
            let stream = |what: &str| Rng::stream(seed, &format!("{}/{name}/{what}", layout.name));
            Station::new(port, &settings, stream("backoff"), stream("errors"))
        };
        let link = |l: &Over| AirLink::new(l.link, l.from, l.to, l.rate.unwrap_or(settings.rate));
        Medium {
            stations: ports.into_iter().zip(&layout.stations).map(station).collect(),
            links: links.iter().map(link).collect(),
            on_air: Vec::new(),
            dues: vec![Time::NEVER; layout.stations.len()],
            next: air.next(),
            serial: 0,
            delivered: Vec::new(),
            air,
            settings,
            ties: rng::key(seed, &format!("{}/ties", layout.name)),
        }
    }

    /// When the next event is due.
    pub fn poll_timeout(&self) -> Time {
        self.next
    }
    /// A packet that has reached the other end of its link.
    pub fn poll_delivered(&mut self) -> Option<u32> {
        self.delivered.pop()
    }

    /// A packet joins the interface of the station that the link with this number leaves.
    pub fn enqueue(&mut self, w: &mut impl Driver, number: u32, slot: u32) {
        let from = self.links[number as usize].from;
        let station = &mut self.stations[from as usize];
        station.port.handle_packet(w.now(), slot, w);
        if station.head.is_none() && self.take_head(w, from) {
            self.stations[from as usize].wants_to_send(w.now(), &self.settings);
            self.plan(from);
            self.next = self.next.min(self.dues[from as usize]);
        }
    }

    /// The first packet of a station's queue is to be sent.
    pub(super) fn take_head(&mut self, w: &mut impl Driver, station: u32) -> bool {
        let s = &mut self.stations[station as usize];
        let Some(slot) = s.port.head() else { return false };
        let packet = *w.packet(slot);
        let (link, bytes) = w.frame(slot);
        let (to, bytes) = (self.links[link as usize].to, bytes + FRAMING);
        s.count_others(w.now());
        s.head = Some(Head {
            slot,
            link,
            to,
            bytes,
            packet,
            delivered: false,
            held_before: s.held,
            data_frames: 0,
            spent: Time::ZERO,
            short_tries: 0,
            long_tries: 0,
        });
        true
    }

    pub(super) fn plan(&mut self, station: u32) {
        self.dues[station as usize] = self.stations[station as usize].due(&self.settings);
    }

    /// Processes everything that is due: frames end before others begin.
    pub fn handle_timeout(&mut self, w: &mut impl Driver) {
        loop {
            let place = |number: usize| rng::drawn(rng::drawn(self.ties, w.now().0), number as u64);
            let ended = self.on_air.iter().enumerate().filter(|(_, t)| t.ends <= w.now());
            if let Some((at, _)) = ended.min_by(|(_, a), (_, b)| place(a.from as usize).cmp(&place(b.from as usize))) {
                let done = self.on_air.remove(at);
                self.end(w, &done);
                continue;
            }
            if self.air.next() <= w.now() {
                self.air.drift(w.now());
                if let Some((emitter, span)) = self.air.burst(w.now(), place) {
                    self.disturb(w.now(), emitter, span);
                }
                continue;
            }
            // Timeouts of answers precede new transmissions.
            let due = (0..self.dues.len()).filter(|&i| self.dues[i] <= w.now());
            let begins = |i: usize| self.stations[i].answer_by > w.now();
            let first = due.min_by(|&a, &b| begins(a).cmp(&begins(b)).then_with(|| place(a).cmp(&place(b))));
            let Some(station) = first else { break };
            self.act(w, station as u32);
        }
        let ends = self.on_air.iter().map(|t| t.ends).min().unwrap_or(Time::NEVER);
        let dues = self.dues.iter().copied().min().unwrap_or(Time::NEVER);
        self.next = ends.min(dues).min(self.air.next());
    }

    // ---------------------------------------------------------------------------------------- on the air

    /// An interferer begins a burst.
    fn disturb(&mut self, now: Time, emitter: u32, span: Time) {
        let heard = self.air.heard(emitter);
        self.emit(
            now,
            Transmission {
                serial: 0,
                frame: Frame::Noise,
                from: emitter,
                to: u32::MAX,
                link: 0,
                bytes: 0,
                rate: 0,
                data_rate: 0,
                ends: now + span,
                silent_until: now,
                lost_on_channel: false,
                heard,
            },
        );
    }

    pub(super) fn emit(&mut self, now: Time, mut transmission: Transmission) {
        self.serial = self.serial.wrapping_add(1);
        transmission.serial = self.serial;
        for heard in transmission.heard.iter() {
            let s = &mut self.stations[heard.station as usize];
            s.hears(now, &self.settings, heard, &transmission);
            self.dues[heard.station as usize] = s.due(&self.settings);
        }
        self.on_air.push(transmission);
    }

    /// A frame ends: for its sender, then for all stations that received it.
    fn end(&mut self, w: &mut impl Driver, t: &Transmission) {
        if t.frame != Frame::Noise {
            let s = &mut self.stations[t.from as usize];
            s.ended(w.now());
            match t.frame {
                Frame::Rts => s.phase = Phase::AwaitCts,
                Frame::Data => s.phase = Phase::AwaitAck,
                _ => {}
            }
            if s.phase != Phase::Contend {
                s.answer_by = w.now() + self.settings.answer;
            }
            s.resume(w.now(), &self.settings);
            self.plan(t.from);
        }
        for heard in t.heard.iter() {
            let s = &mut self.stations[heard.station as usize];
            if let Some((mut intact, sinr)) = s.heard_all(w.now(), &self.settings, heard, t.serial) {
                intact &= !(t.lost_on_channel && heard.station == t.to);
                if intact && self.settings.noisy {
                    intact = s.error_rng.uniform() >= self.settings.error(t.bytes, t.rate, sinr);
                }
                s.decoded(w.now(), &self.settings, intact);
                if intact {
                    self.receive(w, heard.station, t);
                } else if matches!(s.phase, Phase::AwaitCts | Phase::AwaitAck) {
                    self.fail(w, heard.station);
                }
            }
            self.stations[heard.station as usize].resume(w.now(), &self.settings);
            self.plan(heard.station);
        }
    }

    // ---------------------------------------------------------------------------------------- inspection

    /// The interface in which a link's packets wait.
    pub fn interface(&self, number: u32) -> &Port {
        &self.stations[self.links[number as usize].from as usize].port
    }
    /// As above, mutably.
    pub fn interface_mut(&mut self, number: u32) -> &mut Port {
        &mut self.stations[self.links[number as usize].from as usize].port
    }
    /// Lets the interface of a link catch up, or all interfaces.
    pub fn catch_up(&mut self, w: &mut impl Driver, link: Option<u32>) {
        let only = link.map(|number| self.links[number as usize].from as usize);
        for (_, s) in self.stations.iter_mut().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i)) {
            s.port.catch_up(w.now(), w);
        }
    }
    /// For each station the driver's links that leave it, and the packets that wait for them or are in transmission.
    pub fn inside(&self) -> impl Iterator<Item = (Vec<u32>, u64)> {
        self.stations.iter().enumerate().map(|(i, s)| {
            let ghost = s.head.as_ref().is_some_and(|h| h.delivered);
            let links = self.links.iter().filter(|l| l.from == i as u32).map(|l| l.link);
            (links.collect(), s.port.len() as u64 - ghost as u64)
        })
    }
    /// The measured span begins.
    pub fn start_measuring(&mut self, now: Time) {
        self.stations.iter_mut().for_each(|s| s.port.start_measuring(now));
        self.links.iter_mut().for_each(|l| l.airtime_before = l.airtime);
    }
    /// Airtime of a link's frames and their answers in the measured span, and in the whole run.
    pub fn airtime(&self, number: u32) -> (Time, Time) {
        let link = &self.links[number as usize];
        (link.airtime - link.airtime_before, link.airtime)
    }
    /// A station's counters of the whole run.
    pub fn station_stats(&self, station: usize) -> StationStats {
        self.stations[station].stats
    }
    /// The present rate of a link, bit/s.
    pub fn phy_rate(&self, number: u32) -> f64 {
        RATES[self.links[number as usize].rate as usize] as f64 * 1e6
    }
    /// Reports a link's variables.
    pub fn probe(&self, number: u32, put: Probe<'_>) {
        let link = &self.links[number as usize];
        put("air_rate_bps", self.phy_rate(number));
        put("air_rate_changes", link.rate_changes as f64);
        put("air_attempts", link.attempts as f64);
        put("air_unanswered", link.unanswered as f64);
        put("air_window_slots", self.stations[link.from as usize].cw as f64);
    }
}
