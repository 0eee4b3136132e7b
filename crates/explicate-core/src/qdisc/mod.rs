//! Queue disciplines. To add one, write its file and add its line here.

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::common::Room;
use crate::api::{DropCause, PortView, Probe};
use crate::params::{Param, Values};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

pub mod common;

macro_rules! qdiscs {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every queue discipline, in the order of this list.
        pub static QDISCS: &[&dyn QdiscKind] = &[$(&$module::$unit),*];
    };
}

qdiscs! {
    droptail::DropTail,
    red::Red,
    rem::Rem,
    pi::Pi,
    avq::Avq,
    codel::CoDel,
    fq_codel::FqCoDel,
}

/// A queue discipline: one file, registered by one line in `qdisc/mod.rs`.
pub trait QdiscKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Paper or RFC.
    fn source(&self) -> &'static str;
    /// Parameters.
    fn params(&self) -> &'static [Param];
    /// A discipline for one queue.
    fn build(&self, init: &QdiscInit<'_>) -> Discipline;
}

/// The two forms of a queue discipline.
pub enum Discipline {
    /// Decides when a packet comes. What it admits departs in order, so that departures are known in advance.
    Arrival(Box<dyn Qdisc>),
    /// Decides when the line falls free, so its port is polled.
    Departure(Box<dyn ActiveQueue>),
}

/// What a queue discipline is made from.
pub struct QdiscInit<'a> {
    /// Values of [`QdiscKind::params`]; lengths in bytes.
    pub values: &'a Values,
    /// Nominal capacity, bytes/s.
    pub capacity: f64,
    /// Typical length of a packet, bytes: turns lengths in packets to bytes and back.
    pub mean_packet: f64,
    /// The queue's own stream.
    pub rng: Rng,
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with its ECN field set to CE.
    Mark,
    /// It is dropped.
    Drop(DropCause),
}

/// Admission to a first-in first-out queue: packets that were admitted depart in order.
pub trait Qdisc: Send {
    /// A packet came. `idle_since` is when this queue had nothing more to send, `None` while it has.
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, idle_since: Option<Time>) -> Verdict;
    /// A packet's last bit leaves.
    fn on_departure(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// Whether [`Qdisc::on_departure`] does anything: asked once.
    fn minds_departures(&self) -> bool {
        true
    }
    /// The room that this discipline is, if all that it does is to drop what does not fit behind the packets that wait, and
    /// nothing while no packet is in service: asked once, and never for anything else.
    fn room(&self) -> Option<Room> {
        None
    }
    /// The timer asked for by [`Qdisc::next_timer`] expired.
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// When this discipline wants [`Qdisc::on_timer`]; it changes there only.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

/// A packet as an [`ActiveQueue`] keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// What the port knows it by.
    pub handle: u32,
    /// IP length, bytes.
    pub bytes: u16,
    /// It may be marked instead of dropped.
    pub capable: bool,
    /// When it came.
    pub since: Time,
}

/// Packets that an [`ActiveQueue`] gave up.
pub type Gone = Vec<(Queued, DropCause)>;

/// A queue that holds its packets itself: it chooses which one goes next when the line falls free, and may then drop or mark.
pub trait ActiveQueue: Send {
    /// A packet came, of which `packet` are the headers. What finds no room is `gone`: this packet or others. The port counts
    /// what waits, and asks for packets until none does.
    fn enqueue(&mut self, queued: Queued, packet: &Packet, gone: &mut Gone);
    /// The packet to send now, and whether it is to be marked; `None` if nothing is left. Dropped ones are `gone`.
    fn dequeue(&mut self, now: Time, gone: &mut Gone) -> Option<(Queued, bool)>;
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}
