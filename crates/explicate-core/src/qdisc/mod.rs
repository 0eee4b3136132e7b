//! Queue disciplines. To add one, write its file and add its line here.

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::common::Room;
use crate::api::{PortView, Probe};
use crate::params::{Info, Values};
pub use crate::passage::DropCause;
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

pub mod common;

macro_rules! qdiscs {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every queue discipline, in the order of this list.
        pub static QDISCS: &[&AnyQdiscKind] = &[$(&$module::$unit),*];
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
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// A discipline for one queue.
    fn build(&self, init: &QdiscInit<'_>) -> Discipline;
}

/// Any [`QdiscKind`].
pub type AnyQdiscKind = dyn QdiscKindObject;

mod object {
    use super::*;
    use crate::api::object::described;

    /// A [`QdiscKind`] as an object; other crates cannot name it.
    pub trait QdiscKindObject: Sync {
        described!();
        fn build(&self, init: &QdiscInit<'_>) -> Discipline;
    }
    impl<K: QdiscKind> QdiscKindObject for K {
        fn info(&self) -> &'static Info {
            &K::INFO
        }
        fn build(&self, init: &QdiscInit<'_>) -> Discipline {
            QdiscKind::build(self, init)
        }
    }
}
use object::QdiscKindObject;

/// The two forms of a queue discipline.
pub enum Discipline {
    /// Decides when a packet comes. What it admits departs in order, so that departures are known in advance.
    Arrival(Box<dyn Qdisc>),
    /// Decides when the line falls free, so its port is polled.
    Departure(Box<dyn ActiveQueue>),
}

/// What a queue discipline is made from.
pub struct QdiscInit<'a> {
    /// Values of the parameters of [`QdiscKind::INFO`]; lengths in bytes.
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
    /// A promise: all that this discipline does is to drop what does not fit into this room behind the packets that wait, and
    /// nothing while no packet is in service. Asked once; a port may then do it itself. A law checks it.
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
