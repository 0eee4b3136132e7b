//! Queue disciplines. To add one, write its file and add its line here.

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::common::QueueLimit;
use crate::api::{PortView, Probe};
use crate::params::{Conflict, Info, Values};
use crate::rng::Rng;
pub use crate::transit::DropCause;
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
    step::Step,
    dualpi2::DualPi2,
}

/// A queue discipline: one file, registered by one line in `qdisc/mod.rs`.
pub trait QdiscKind: Sync {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// It marks ECN-capable packets, unless a parameter `mark` of its own says otherwise.
    const MARKS: bool = true;
    /// Packets with ECT(1) or CE (RFC 9331) wait apart from the others: a flow's packets keep their order only among
    /// those of one kind.
    const L4S_APART: bool = false;
    /// A discipline for one queue.
    fn build(&self, init: &QdiscInit<'_>) -> Discipline;
    /// Parameters of one queue of which one makes another useless. Each discipline states its own; the scenario warns of them.
    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let _ = queue;
        Vec::new()
    }
}

/// The parameters of a queue when `auto` and `bdp` have values.
pub struct ResolvedQueue<'a> {
    /// Values of the parameters of [`QdiscKind::INFO`]; lengths in bytes.
    pub values: &'a Values,
    /// Nominal capacity, bytes/s.
    pub capacity: f64,
    /// Typical length of a packet, bytes.
    pub mean_packet: f64,
}

/// Any [`QdiscKind`].
pub type AnyQdiscKind = dyn QdiscKindObject;

mod object {
    use super::*;
    use crate::api::object::described;

    /// A [`QdiscKind`] as an object; other crates cannot name it.
    pub trait QdiscKindObject: Sync {
        described!();
        fn marks(&self) -> bool;
        fn l4s_apart(&self) -> bool;
        fn build(&self, init: &QdiscInit<'_>) -> Discipline;
        fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict>;
    }
    impl<K: QdiscKind> QdiscKindObject for K {
        fn info(&self) -> &'static Info {
            &K::INFO
        }
        fn marks(&self) -> bool {
            K::MARKS
        }
        fn l4s_apart(&self) -> bool {
            K::L4S_APART
        }
        fn build(&self, init: &QdiscInit<'_>) -> Discipline {
            QdiscKind::build(self, init)
        }
        fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
            QdiscKind::conflicts(self, queue)
        }
    }
}
use object::QdiscKindObject;

/// The two forms of a queue discipline.
pub enum Discipline {
    /// Decides when a packet arrives. Admitted packets depart in order, so departures are known in advance.
    Arrival(Box<dyn Qdisc>),
    /// Decides when the line becomes free, so its port is polled.
    Departure(Box<dyn ActiveQueue>),
}

/// Arguments for making a queue discipline.
pub struct QdiscInit<'a> {
    /// Values of the parameters of [`QdiscKind::INFO`]; lengths in bytes.
    pub values: &'a Values,
    /// Nominal capacity, bytes/s.
    pub capacity: f64,
    /// Typical length of a packet, bytes, for the conversion between lengths in packets and in bytes.
    pub mean_packet: f64,
    /// The random stream of the queue.
    pub rng: Rng,
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with its ECN field set to CE.
    Mark,
    /// It is dropped.
    Drop(DropCause),
}

/// Admission to a FIFO queue: admitted packets depart in order.
pub trait Qdisc: Send {
    /// A packet arrived. `idle_since` is the time when this queue last became empty, `None` while it is not.
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, idle_since: Option<Time>) -> Verdict;
    /// A packet's last bit leaves.
    fn on_departure(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// A promise: this discipline only drops packets that exceed this limit together with the waiting packets, and none
    /// while no packet is in service. Called once; a port may then apply the limit itself. A law checks it.
    fn queue_limit(&self) -> Option<QueueLimit> {
        None
    }
    /// The timer of [`Qdisc::next_timer`] expired.
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// When [`Qdisc::on_timer`] is to be called; it changes only there.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}

/// A packet as an [`ActiveQueue`] stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// Its handle in the port.
    pub handle: u32,
    /// IP length, bytes.
    pub bytes: u16,
    /// It may be marked instead of dropped.
    pub capable: bool,
    /// When it arrived.
    pub since: Time,
}

/// Packets that an [`ActiveQueue`] dropped.
pub type Dropped = Vec<(Queued, DropCause)>;

/// A queue that stores its packets: it selects the next one when the line becomes free, and may then drop or mark.
pub trait ActiveQueue: Send {
    /// A packet with the headers `packet` arrived. Packets without room are `dropped`: this one or others. The port
    /// counts the waiting packets, and requests packets until none waits.
    fn enqueue(&mut self, queued: Queued, packet: &Packet, dropped: &mut Dropped);
    /// The packet to send now, and whether it is to be marked; `None` if the queue is empty. Dropped packets are
    /// `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<(Queued, bool)>;
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}
