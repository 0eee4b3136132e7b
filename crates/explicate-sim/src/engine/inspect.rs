//! Inspection from outside: ports that have caught up, packet traces, hop counts, and the audit of packet conservation.

use explicate_core::units::Time;
use explicate_core::wire::Packet;

use super::{Engine, NIL};
use crate::error::{Counts, Imbalance};
use crate::event::Event;
use crate::packet_log::PacketLog;

impl Engine {
    /// Lets every port catch up to the present.
    pub fn catch_up_all(&mut self) {
        self.catch_up_media(None);
        for index in 0..self.links.len() {
            self.catch_up(index);
        }
    }
    /// Lets one port catch up to the present, after the ports that it is fused to.
    pub fn catch_up(&mut self, index: usize) {
        let feeder = self.links[index].fused_to;
        if feeder != NIL {
            self.catch_up(feeder as usize);
        }
        self.links[index].port.catch_up(self.now, &mut self.arena);
        self.catch_up_media(Some(index));
    }
    /// Starts a packet trace. Call before the first event.
    pub fn follow(&mut self, log: PacketLog) {
        // The log reads each packet as it departs, so nothing may be deferred.
        self.defer(false);
        self.arena.log = Some(Box::new(log));
    }
    /// The packet trace.
    pub fn followed(&mut self) -> Option<PacketLog> {
        self.arena.log.take().map(|b| *b)
    }
    /// Packet-hops so far: packets carried over one link, data and acknowledgements.
    pub fn hops(&self) -> u64 {
        self.delivered().iter().sum()
    }
    /// Packets that reached the end of each link. Packets that continue over a fused link are counted when they arrive there.
    fn delivered(&self) -> Vec<u64> {
        let mut delivered: Vec<u64> = self.links.iter().map(|l| l.port.stats.delivered).collect();
        for link in self.links.iter().filter(|l| l.fused_to != NIL) {
            delivered[link.fused_to as usize] += link.port.stats.arrived;
        }
        delivered
    }

    /// Reports every packet that is in transit on a link, in no order: the link, the packet, and when it reaches the
    /// end. Exact in a network without fusion; otherwise a packet may be reported on a later link. Call `catch_up_all`
    /// first.
    pub fn packets_under_way(&self, mut put: impl FnMut(usize, &Packet, Time)) {
        for slot in self.wheel.slots(&self.arena) {
            let pending = self.arena.slot(slot);
            let event = Event::of(pending);
            if !event.is_timer() {
                put(self.routes[event.place() as usize].index(), &pending.packet, Time(pending.time));
            }
        }
    }

    /// Checks packet conservation: on every link, each arrival was delivered, was dropped for a recorded cause, or is still
    /// there; and every slot of the arena is in use or free. Call `catch_up` first.
    ///
    /// # Errors
    /// The link, interface or slots that do not agree.
    pub fn audit(&self) -> Result<(), Imbalance> {
        let waiting = self.wheel.slots(&self.arena);
        let mut on_link = vec![0u64; self.links.len()];
        let mut timers = 0;
        for &slot in &waiting {
            let event = Event::of(self.arena.slot(slot));
            // A packet that its host holds is a timer here: it is on no link.
            if event.is_timer() { timers += 1 } else { on_link[self.routes[event.place() as usize].index()] += 1 }
        }
        let mut hosts = 0;
        for index in 0..self.links.len() {
            // In the event queue, predicted packets are on the last fused link; in fact they are on an earlier one,
            // or in their host.
            let feeder = self.links[index].fused_to;
            let predicted = self.links[index].port.predicted() as u64;
            on_link[index] = on_link[index].wrapping_sub(predicted);
            match on_link.get_mut(feeder as usize) {
                Some(on_feeder) => *on_feeder = on_feeder.wrapping_add(predicted),
                None => hosts += predicted,
            }
        }
        let delivered = self.delivered();
        let mut slots = timers + hosts + self.audit_media(&on_link, &delivered)?;
        for (index, link) in self.links.iter().enumerate() {
            let not_arrived = if link.port.is_scheduled() { link.port.len() } else { link.port.losses_ahead() } as u64;
            let inside = on_link[index] + not_arrived;
            let stats = &link.port.stats;
            if self.radio(index as u32).is_some() {
                continue;
            }
            let (came, dropped) = (stats.arrived + stats.total().copies, stats.total().lost_or_dropped());
            let counts = Counts { came, delivered: delivered[index], dropped, inside };
            if !counts.balance() {
                return Err(Imbalance::Link { link: index, counts });
            }
            slots += inside;
        }
        let used = self.arena.live() as u64;
        if slots != used {
            return Err(Imbalance::Slots { used, accounted: slots });
        }
        Ok(())
    }
}
