//! One time step.
//!
//! Each class sends as acknowledgements and its window allow; each hop receives the output of the preceding hop's
//! ring. A link that holds T bytes and can send L of them releases the share L/T of both queue and arrivals: fluid is
//! exactly conserved, waits Q/C on average, and mixes with the queue. Departing fluid gets the router's feedback and
//! enters the ring.

use explicate_core::units::Time;
use explicate_scenario::model::{FlowGroup, Scenario};

use crate::error::Imbalance;
use crate::model::{Acks, Parcel, SenderInit};
use crate::network::{Class, Hop, Link, Network};

/// The state of a network.
pub(crate) struct Engine<'a> {
    pub(crate) network: Network,
    groups: &'a [FlowGroup],
    steps: u64,
    pub(crate) measuring: bool,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(scenario: &'a Scenario, network: Network) -> Engine<'a> {
        Engine { network, groups: &scenario.flows, steps: 0, measuring: scenario.warmup == Time::ZERO }
    }
    /// The end of the last step, s.
    pub(crate) fn now(&self) -> f64 {
        self.steps as f64 * self.network.dt
    }

    /// Computes the next step.
    pub(crate) fn step(&mut self) {
        self.steps += 1;
        let now = self.now();
        let Network { links, classes, hops, rings, dt, .. } = &mut self.network;
        for class in classes.iter_mut() {
            if class.over || now < class.begins {
                continue;
            }
            let (first, end) = (class.hops.0 as usize, class.hops.1 as usize);
            let hops = &hops[first..end];
            send(class, &self.groups[class.group as usize], links, hops, rings, (now, *dt));
            arrive(class, links, hops, rings);
        }
        for link in links.iter_mut() {
            serve(link, now, *dt, self.measuring);
        }
        for class in classes.iter_mut() {
            if class.over || now < class.begins {
                continue;
            }
            let (first, end) = (class.hops.0 as usize, class.hops.1 as usize);
            depart(class, links, &mut hops[first..end], rings);
        }
    }
}

impl Engine<'_> {
    /// Checks conservation: the bytes in flight of a class are in its rings and queues, and the queue of a link is the sum over
    /// classes. The error gives the place, and is a defect of the model.
    pub(crate) fn audit(&self) -> Result<(), Imbalance> {
        let Network { links, classes, hops, rings, .. } = &self.network;
        let mut waiting = vec![0.0; links.len()];
        for (number, class) in classes.iter().enumerate() {
            let mut found = 0.0;
            for hop in &hops[class.hops.0 as usize..class.hops.1 as usize] {
                let ring = &rings[hop.ring as usize..(hop.ring + hop.places) as usize];
                found += ring.iter().chain([&hop.waiting]).map(|p| p.bytes + p.lost).sum::<f64>();
                waiting[hop.link as usize] += hop.waiting.bytes * hop.weight as f64;
            }
            let off = (found - class.in_flight).abs();
            // The last acknowledgement of a finished class stays in the ring although it was processed.
            if !class.over && off > 1e-6 * class.stats.sent.max(class.packet) {
                return Err(Imbalance::Class { class: number, in_flight: class.in_flight, found });
            }
        }
        for (number, (link, &found)) in links.iter().zip(&waiting).enumerate() {
            if (link.queue - found).abs() > 1e-6 * (link.stats.total + link.packet) {
                return Err(Imbalance::Link { link: number, queue: link.queue, found });
            }
        }
        Ok(())
    }
}

/// The present output of the ring after a hop.
fn brought(hop: &Hop, rings: &[Parcel]) -> Parcel {
    rings[(hop.ring + hop.at) as usize]
}

/// The sender: processes acknowledgements, and sends as the window allows.
fn send(class: &mut Class, group: &FlowGroup, links: &[Link], hops: &[Hop], rings: &[Parcel], (now, dt): (f64, f64)) {
    let acks = brought(&hops[hops.len() - 1], rings);
    let rtt = class.rtt;
    let sender = class.sender.get_or_insert_with(|| {
        class.model.sender(&SenderInit {
            values: &group.values,
            packet: class.packet,
            initial_window: explicate_core::endpoint::Params::of(&group.values).initial_window,
            interface: links[hops[0].link as usize].rate,
            rtt,
        })
    });
    let per_packet = 1.0 / (class.count * class.packet);
    sender.on_acks(&Acks {
        now,
        dt,
        packets: acks.bytes * per_packet,
        lost: acks.lost * per_packet,
        tags: [acks.tags[0] / class.count, acks.tags[1] / class.count],
        rtt,
    });
    let stats = &mut class.stats;
    stats.lost += acks.lost;
    stats.acked += acks.bytes;
    stats.rtt += acks.bytes * rtt;
    class.in_flight -= acks.bytes + acks.lost;
    let window = sender.window().min(class.most_window);
    let left = if now < class.stop { class.count * class.size - (stats.sent - stats.lost) } else { 0.0 };
    let mut allowed = class.count * window * class.packet - class.in_flight;
    if class.paced || sender.paces(rtt) {
        allowed = allowed.min(class.count * window * class.packet * dt / rtt);
    }
    let bytes = allowed.min(left).max(0.0);
    class.sending = Parcel { bytes, lost: 0.0, tags: sender.tags(bytes / class.packet) };
    stats.sent += bytes;
    class.in_flight += bytes;
    if stats.completed.is_nan() && stats.acked >= class.count * class.size * (1.0 - 1e-9) {
        stats.completed = now - class.start;
    }
    // Nothing is in flight, and nothing more will be sent.
    class.over = class.in_flight < 1e-6 * class.packet && left <= 0.0;
}

/// Arrivals at the links.
fn arrive(class: &mut Class, links: &mut [Link], hops: &[Hop], rings: &[Parcel]) {
    let mut parcel = class.sending;
    let mut rtt = class.base_rtt;
    for (i, hop) in hops.iter().enumerate() {
        if i as u32 == class.data_hops {
            class.stats.delivered += parcel.bytes;
        }
        let link = &mut links[hop.link as usize];
        let bytes = parcel.bytes * hop.weight as f64;
        link.arriving += bytes;
        if hop.data && class.bears_marks {
            link.bearing += bytes;
        }
        rtt += link.queue / link.rate;
        if hop.answered
            && let Some(router) = &mut link.router
        {
            router.on_arrival(&parcel, class.packet, class.rtt);
        }
        parcel = brought(hop, rings);
    }
    class.rtt = rtt;
}

/// Drops, service and controller of a link.
fn serve(link: &mut Link, now: f64, dt: f64, measuring: bool) {
    let service = link.rate * dt;
    let (arriving, bearing) = (link.arriving, if link.tail.marks { link.bearing } else { 0.0 });
    link.fate = link.tail.step(link.queue, arriving, bearing, service, dt);
    let early = link.fate.early * (arriving - bearing);
    let overflow = link.fate.overflow * (arriving - early);
    let total = link.queue + arriving - early - overflow;
    let left = total.min(service);
    link.leaves = if total > service { service / total } else { 1.0 };
    link.queue = total - left;
    if let Some(router) = &mut link.router {
        router.step(now, dt, arriving, link.queue);
    }
    let marked = link.fate.marked * bearing;
    link.stats.step(
        (now, dt),
        measuring,
        left,
        link.queue / link.packet,
        [overflow, early, marked].map(|x| x / link.packet),
    );
    (link.arriving, link.bearing) = (0.0, 0.0);
}

/// Departures from links into their rings, the last hop first, as each hop reads the ring before it.
fn depart(class: &Class, links: &mut [Link], hops: &mut [Hop], rings: &mut [Parcel]) {
    for i in (0..hops.len()).rev() {
        let mut parcel = if i == 0 { class.sending } else { brought(&hops[i - 1], rings) };
        let hop = &mut hops[i];
        let link = &mut links[hop.link as usize];
        // A lost acknowledgement loses its feedback, but the next one still acknowledges its data.
        let mut beside = Parcel::default();
        if link.tail.marks && class.bears_marks && hop.data {
            parcel.tags[0] += link.fate.marked * (parcel.bytes / class.packet - parcel.tags[0]);
        } else if link.fate.early > 0.0 {
            drop(hop.data, &mut parcel, &mut beside, link.fate.early);
        }
        if link.fate.overflow > 0.0 {
            drop(hop.data, &mut parcel, &mut beside, link.fate.overflow);
        }
        hop.waiting.add(&parcel);
        let mut out = hop.waiting;
        if link.leaves < 1.0 {
            out = out.share(link.leaves);
            hop.waiting = hop.waiting.share(1.0 - link.leaves);
        } else {
            hop.waiting = Parcel::default();
        }
        if hop.answered
            && let Some(router) = &mut link.router
        {
            router.on_departure(&mut out);
        }
        let loss = if hop.data { link.loss.0 } else { link.loss.1 };
        if loss > 0.0 {
            link.stats.channel += loss * out.bytes * hop.weight as f64 / link.packet;
            drop(hop.data, &mut out, &mut beside, loss);
        }
        out.add(&beside);
        rings[(hop.ring + hop.at) as usize] = out;
        hop.at = if hop.at + 1 == hop.places { 0 } else { hop.at + 1 };
    }
}

/// A share is lost: data completely; of acknowledgements the feedback, but not the acknowledged data, which stay
/// `beside`.
fn drop(data: bool, parcel: &mut Parcel, beside: &mut Parcel, share: f64) {
    if data {
        parcel.lose(share);
        return;
    }
    let lost = parcel.share(share);
    *parcel = parcel.share(1.0 - share);
    beside.bytes += lost.bytes;
    beside.lost += lost.lost;
}
