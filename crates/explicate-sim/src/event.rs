//! Events: one word beside the packet in its slot.

use explicate_core::port::Slot;

use crate::arena::NIL;

/// The arrival of a packet at the end of a link, or a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Event(u32);

const _: () = assert!(size_of::<Event>() == 4, "a slot has four bytes for it");

/// The kind of a timer's owner: a flow, link, node, medium or change of routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// A flow's sending end.
    Flow(u32),
    /// A flow's application.
    Source(u32),
    /// A port whose departures are polled.
    Port(u32),
    /// The agent of a node.
    Agent(u32),
    /// A flow's receiving end.
    Receiver(u32),
    /// A wireless medium.
    Medium(u32),
    /// A change of routes.
    Reroute(u32),
    /// Acknowledgements wait to be fused with their senders.
    Waiting,
    /// A packet of this flow leaves its host; `again` if it is a retransmission.
    Held { flow: u32, again: bool },
}

impl Event {
    /// Set in timers. Places of routes are below.
    const TIMER: u32 = 0x8000_0000;
    /// Set in arrivals of a packet that has not yet been turned into its acknowledgement at the place where it
    /// arrived.
    const TURNED: u32 = 0x4000_0000;
    /// The kind of a timer in the upper bits, its owner in the lower ones.
    const KIND: u32 = 0xf000_0000;
    const WAITING: u32 = 0xefff_ffff;
    const HELD: u32 = 0xf000_0000;
    const AGAIN: u32 = 0x0800_0000;
    /// Places of routes are below.
    pub(crate) const PLACES: u32 = Event::TURNED;

    /// A packet reaches the end of the link at this place of a route.
    #[inline(always)]
    pub(crate) const fn arrival(place: u32) -> Event {
        Event(place)
    }
    /// The acknowledgement of a packet reaches the end of the link at this place of its route, and has not been
    /// written yet.
    #[inline(always)]
    pub(crate) const fn turned(place: u32) -> Event {
        Event(place | Event::TURNED)
    }
    /// A timer expires.
    #[inline(always)]
    pub(crate) const fn timer(timer: Timer) -> Event {
        Event(match timer {
            Timer::Flow(flow) => 0x8000_0000 | flow,
            Timer::Source(flow) => 0x9000_0000 | flow,
            Timer::Port(link) => 0xa000_0000 | link,
            Timer::Agent(node) => 0xb000_0000 | node,
            Timer::Receiver(flow) => 0xc000_0000 | flow,
            Timer::Medium(medium) => 0xd000_0000 | medium,
            Timer::Reroute(change) => 0xe000_0000 | change,
            Timer::Waiting => Event::WAITING,
            Timer::Held { flow, again } => Event::HELD | if again { Event::AGAIN } else { 0 } | flow,
        })
    }

    /// Whether it is a timer; otherwise it is an arrival.
    #[inline(always)]
    pub(crate) fn is_timer(self) -> bool {
        self.0 & Event::TIMER != 0
    }
    /// Whether it is an arrival of a packet that has not yet been turned.
    #[inline(always)]
    pub(crate) fn is_turned(self) -> bool {
        self.0 & (Event::TIMER | Event::TURNED) == Event::TURNED
    }
    /// The place of an arrival.
    #[inline(always)]
    pub(crate) fn place(self) -> u32 {
        self.0 & !Event::TURNED
    }
    /// The timer that expires, if it is one.
    #[inline]
    pub(crate) fn expires(self) -> Option<Timer> {
        let owner = self.0 & !Event::KIND;
        Some(match self.0 & Event::KIND {
            _ if !self.is_timer() => return None,
            _ if self.0 == Event::WAITING => Timer::Waiting,
            0x8000_0000 => Timer::Flow(owner),
            0x9000_0000 => Timer::Source(owner),
            0xa000_0000 => Timer::Port(owner),
            0xb000_0000 => Timer::Agent(owner),
            0xc000_0000 => Timer::Receiver(owner),
            0xd000_0000 => Timer::Medium(owner),
            0xe000_0000 => Timer::Reroute(owner),
            _ => Timer::Held { flow: owner & !Event::AGAIN, again: owner & Event::AGAIN != 0 },
        })
    }
    /// The flow whose timer expires, if it is one of a sending end.
    #[inline(always)]
    pub(crate) fn flow(self) -> Option<u32> {
        (self.0 & Event::KIND == Event::TIMER).then_some(self.owner())
    }
    /// The number of a timer's owner, of any kind.
    #[inline(always)]
    pub(crate) fn owner(self) -> u32 {
        self.0 & !Event::KIND
    }
    /// The rank of a timer among events of one time: its kind and owner. All packets that a host holds for one flow
    /// have one rank, so packets that are due at the same time keep their order.
    #[inline(always)]
    pub(crate) fn timer_rank(self) -> u32 {
        if self.0 & Event::KIND == Event::HELD { self.0 & !Event::AGAIN } else { self.0 }
    }

    /// The event of a slot.
    #[inline(always)]
    pub(crate) fn of(slot: &Slot) -> Event {
        Event(slot.event)
    }
    /// Makes it the event of a slot.
    #[inline(always)]
    pub(crate) fn put(self, slot: &mut Slot) {
        slot.event = self.0;
    }
    /// Makes it the event of a slot, due at `time`, with no slot after it.
    #[inline(always)]
    pub(crate) fn schedule(self, slot: &mut Slot, time: u64) {
        (slot.time, slot.event, slot.next) = (time, self.0, NIL);
    }
}

/// Remaining work of an event: a packet to forward from a place; a flow that may send, after it has taken the
/// acknowledgement in the slot, if any; or nothing.
pub(crate) struct Due {
    slot: u32,
    what: Event,
}

const _: () = assert!(size_of::<Due>() == 8, "it is returned in a register");

impl Due {
    /// Nothing.
    pub(crate) const NOTHING: Due = Due { slot: NIL, what: Event::arrival(0) };

    /// The packet in this slot continues from this place.
    #[inline(always)]
    pub(crate) fn forward(slot: u32, place: u32) -> Due {
        Due { slot, what: Event::arrival(place) }
    }
    /// A flow may send.
    #[inline(always)]
    pub(crate) fn send(flow: u32) -> Due {
        Due::answer(NIL, flow)
    }
    /// A flow may send, after it has taken the acknowledgement in this slot.
    #[inline(always)]
    pub(crate) fn answer(slot: u32, flow: u32) -> Due {
        Due { slot, what: Event::timer(Timer::Flow(flow)) }
    }
    /// The slot of the packet, if any.
    #[inline(always)]
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }
    /// The flow that may send, if there is one.
    #[inline(always)]
    pub(crate) fn flow(&self) -> Option<u32> {
        self.what.is_timer().then(|| self.what.owner())
    }
    /// The place from which the packet continues, if there is one to forward.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        self.what.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::wire::Packet;

    #[test]
    fn timers_are_told_apart() {
        const LAST: u32 = 0x07ff_ffff;
        let timers = [
            Timer::Flow(LAST),
            Timer::Source(LAST),
            Timer::Port(LAST),
            Timer::Agent(LAST),
            Timer::Receiver(LAST),
            Timer::Medium(LAST),
            Timer::Reroute(LAST),
            Timer::Waiting,
            Timer::Held { flow: LAST, again: false },
            Timer::Held { flow: LAST, again: true },
        ];
        for timer in timers {
            let event = Event::timer(timer);
            assert_eq!((event.expires(), event.is_timer(), event.is_turned()), (Some(timer), true, false));
            assert_eq!(event.flow(), (timer == Timer::Flow(LAST)).then_some(LAST));
        }
        let held = |again| Event::timer(Timer::Held { flow: 3, again }).timer_rank();
        assert_eq!(held(false), held(true), "retransmissions of a flow do not overtake");
        assert_ne!(held(true), Event::timer(Timer::Flow(3)).timer_rank());
    }

    #[test]
    fn arrivals_have_places() {
        let last = Event::PLACES - 1;
        for (event, turned) in [(Event::arrival(last), false), (Event::turned(last), true)] {
            assert_eq!((event.place(), event.is_turned(), event.is_timer()), (last, turned, false));
            assert_eq!(event.expires(), None);
            let mut slot = Slot::of(Packet::EMPTY);
            event.schedule(&mut slot, 5);
            assert_eq!((Event::of(&slot), slot.time, slot.next), (event, 5, NIL));
        }
    }

    #[test]
    fn work_is_a_packet_a_flow_or_nothing() {
        assert_eq!((Due::NOTHING.slot(), Due::NOTHING.flow()), (NIL, None));
        let due = Due::forward(7, 9);
        assert_eq!((due.slot(), due.place(), due.flow()), (7, 9, None));
        assert_eq!((Due::answer(7, 2).slot(), Due::answer(7, 2).flow()), (7, Some(2)));
        assert_eq!((Due::send(2).slot(), Due::send(2).flow()), (NIL, Some(2)));
    }
}
