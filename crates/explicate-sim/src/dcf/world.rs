//! The part of the engine that a medium can access: packets, links and routes.

use explicate_core::port::{Note, Store};
use explicate_core::units::Time;
use explicate_core::wire::Packet;

use crate::arena::Arena;
use crate::engine::{Hop, Link};

/// The part of the engine that a medium can access.
pub(crate) struct World<'a> {
    pub(crate) now: Time,
    pub(crate) arena: &'a mut Arena,
    pub(crate) links: &'a mut [Link],
    pub(crate) routes: &'a [Hop],
    /// For each link its medium and its number there.
    pub(crate) radios: &'a [(u32, u32)],
}

impl World<'_> {
    /// The link that a packet is on.
    pub(super) fn link_of(&self, slot: u32) -> u32 {
        self.routes[self.arena.get(slot).place as usize].link()
    }
}

/// Reports what an interface does to a packet to the packet's link.
impl Store for World<'_> {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        self.arena.get_mut(handle)
    }
    fn release(&mut self, handle: u32) {
        self.arena.give(handle);
    }
    fn note(&mut self, at: Time, _port: u32, handle: u32, what: Note) {
        let link = self.link_of(handle);
        let port = &mut self.links[link as usize].port;
        match what {
            Note::Arrived => return, // at the link already
            Note::Dropped(cause) => port.refused(cause),
            Note::Marked => port.marked(),
            Note::Departed | Note::Lost | Note::Damaged | Note::Copied => {}
        }
        self.arena.note(at, link, handle, what);
    }
}
