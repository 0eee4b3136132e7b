//! Looking in from outside: interfaces, what is on its way, time on the air, variables.

use explicate_core::medium::dcf::RATES;
use explicate_core::port::Port;
use explicate_core::protocol::Probe;
use explicate_core::units::Time;

use super::{Medium, StationStats, World};

impl Medium {
    /// The interface that a link's packets wait at.
    pub fn interface(&self, number: u32) -> &Port {
        &self.stations[self.links[number as usize].from as usize].port
    }
    /// The same to be settled or asked.
    pub(crate) fn interface_mut(&mut self, number: u32) -> &mut Port {
        &mut self.stations[self.links[number as usize].from as usize].port
    }
    /// Settles the interface of a link, or all.
    pub(crate) fn settle(&mut self, w: &mut World<'_>, link: Option<u32>) {
        let only = link.map(|number| self.links[number as usize].from as usize);
        for (_, s) in self.stations.iter_mut().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i)) {
            s.port.settle(w.now, w);
        }
    }
    /// For each station the engine's links that leave it, and the packets that wait for them and have not arrived.
    pub(crate) fn inside(&self) -> impl Iterator<Item = (Vec<u32>, u64)> {
        self.stations.iter().enumerate().map(|(i, s)| {
            let ghost = s.head.as_ref().is_some_and(|h| h.delivered);
            let links = self.links.iter().filter(|l| l.from == i as u32).map(|l| l.link);
            (links.collect(), s.port.len() as u64 - ghost as u64)
        })
    }
    /// The measured span begins.
    pub(crate) fn start_measuring(&mut self, now: Time) {
        self.stations.iter_mut().for_each(|s| s.port.start_measuring(now));
        self.links.iter_mut().for_each(|l| l.airtime_before = l.airtime);
    }
    /// Time on the air of a link's frames and their answers in the measured span, and in the whole run.
    pub fn airtime(&self, number: u32) -> (Time, Time) {
        let link = &self.links[number as usize];
        (link.airtime - link.airtime_before, link.airtime)
    }
    /// What a station counted in the whole run.
    pub fn station_stats(&self, station: usize) -> StationStats {
        self.stations[station].stats
    }
    /// The rate at which a link sends now, bit/s.
    pub fn phy_rate(&self, number: u32) -> f64 {
        RATES[self.links[number as usize].rate as usize] as f64 * 1e6
    }
    /// Tells a link's variables.
    pub(crate) fn probe(&self, number: u32, put: Probe<'_>) {
        let link = &self.links[number as usize];
        put("air_rate_bps", self.phy_rate(number));
        put("air_attempts", link.attempts as f64);
        put("air_unanswered", link.unanswered as f64);
        put("air_window_slots", self.stations[link.from as usize].cw as f64);
    }
}
