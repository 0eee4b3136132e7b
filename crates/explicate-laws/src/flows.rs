//! Whole flows: every protocol with every recovery over a line that loses packets and keeps their order.

use std::collections::VecDeque;

use explicate_core::api::{AnyProtocol, RouterInit};
use explicate_core::endpoint::{self, Event, FlowInit, ReceiverEndpoint, SenderEndpoint};
use explicate_core::params::{Unit, Values};
use explicate_core::port::{Arrival, Class, Port, PortInit, Store};
use explicate_core::qdisc::QdiscInit;
use explicate_core::recovery::{AnyRecoveryKind, COMMON};
use explicate_core::registry::{self, RECOVERIES};
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, Transport, flag};

use crate::random::{Dice, Hash, repeats};

#[derive(Default)]
struct Packets(Vec<Packet>);

impl Store for Packets {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        &mut self.0[handle as usize]
    }
    fn release(&mut self, _handle: u32) {}
}

const LINE: Rate = Rate::mbps(10);
const DELAY: Time = Time::millis(20);

struct World {
    flow: SenderEndpoint,
    receiver: ReceiverEndpoint,
    port: Port,
    packets: Packets,
    /// In flight: arrival time and contents.
    data: VecDeque<(Time, u32)>,
    acks: VecDeque<(Time, Packet, SackRanges)>,
    acks_sent: u64,
    rng: Rng,
    loss: (f64, f64),
    /// Every packet and every acknowledgement arrives twice.
    twice: bool,
    /// Payload of all data packets that arrived.
    arrived: u64,
    hash: Hash,
    now: Time,
}

impl World {
    fn new(
        p: &'static AnyProtocol,
        r: &'static AnyRecoveryKind,
        values: &Values,
        seed: u64,
        loss: (f64, f64),
    ) -> World {
        let fallback = registry::fallback(None).unwrap();
        let init =
            FlowInit { id: 7, protocol: p, fallback, recovery: r, values, packet: 1500, interface: Rate::mbps(100) };
        let defaults = Values::default();
        let capacity = LINE.bytes_per_sec();
        let rng = |name| Rng::stream(seed, name);
        let router = RouterInit { values: &defaults, capacity, delay: DELAY, rng: rng("router") };
        let mut limit = Values::default();
        let droptail = registry::qdisc("droptail").unwrap();
        limit.set(&droptail.params()[0], 50_000.0);
        let qdisc = QdiscInit { values: &limit, capacity, mean_packet: 1500.0, rng: rng("queue") };
        let port = Port::new(PortInit {
            rate: LINE,
            service: None,
            capacity,
            class: Class {
                qdisc: Some(droptail.build(&qdisc)),
                router: registry::controller(p).unwrap_or(p).router(&router),
            },
            before: vec![],
            on_air: vec![],
            number: 0,
        });
        World {
            flow: SenderEndpoint::new(&init),
            receiver: ReceiverEndpoint::new(&init),
            port,
            packets: Packets::default(),
            data: VecDeque::new(),
            acks: VecDeque::new(),
            acks_sent: 0,
            rng: rng("loss"),
            loss,
            twice: false,
            arrived: 0,
            hash: Hash::new(),
            now: Time::ZERO,
        }
    }

    fn send(&mut self) {
        let mut packet = Packet::EMPTY;
        while self.flow.poll_transmit(self.now, &mut packet) {
            self.hash.put(packet.transport.segment() as u64);
            let handle = self.packets.0.len() as u32;
            self.packets.0.push(packet);
            match self.port.handle_packet(self.now, handle, &mut self.packets) {
                Arrival::Departs(at) if self.rng.uniform() >= self.loss.0 => self.data.push_back((at + DELAY, handle)),
                _ => {}
            }
        }
    }

    /// Returns whether an acknowledgement is under way.
    fn answer(&mut self) -> bool {
        let (mut ack, mut sack) = (Packet::EMPTY, SackRanges::default());
        let mut under_way = false;
        while self.receiver.poll_transmit(self.now, &mut ack, &mut sack) {
            self.acks_sent += 1;
            if self.rng.uniform() >= self.loss.1 {
                under_way = true;
                let copies = 1 + self.twice as usize;
                self.acks.extend(core::iter::repeat_n((self.now + DELAY, ack, sack), copies));
            }
        }
        under_way
    }

    /// The copy of a packet arrives; what answers it shares the fate of the first answer.
    fn answer_again(&mut self, handle: u32, under_way: bool) {
        let (mut ack, mut sack) = (Packet::EMPTY, SackRanges::default());
        self.receiver.handle_packet(self.now, &self.packets.0[handle as usize]);
        while self.receiver.poll_transmit(self.now, &mut ack, &mut sack) {
            if under_way {
                self.acks.push_back((self.now + DELAY, ack, sack));
            }
        }
    }

    /// The next event; false when none is left.
    fn step(&mut self) -> bool {
        let at = |t: Option<Time>| t.unwrap_or(Time::NEVER);
        let (d, a) = (at(self.data.front().map(|d| d.0)), at(self.acks.front().map(|a| a.0)));
        let held = self.receiver.poll_timeout();
        let next = d.min(a).min(self.flow.poll_timeout()).min(held);
        if next == Time::NEVER {
            return false;
        }
        self.now = next;
        self.port.catch_up(next, &mut self.packets);
        if d == next {
            let (_, handle) = self.data.pop_front().unwrap();
            let packet = &self.packets.0[handle as usize];
            self.arrived += packet.transport.payload() as u64;
            self.receiver.handle_packet(next, packet);
            let under_way = self.answer();
            if self.twice {
                self.answer_again(handle, under_way);
            }
        } else if held == next {
            self.receiver.handle_timeout(next);
            assert!(self.receiver.poll_timeout() > next, "after {next} the receiver's timer stands still");
            self.answer();
        } else if a == next {
            let (_, packet, sack) = self.acks.pop_front().unwrap();
            self.flow.handle_packet(next, &packet, &sack);
        } else {
            self.flow.handle_timeout(next);
            self.send();
            assert!(self.flow.poll_timeout() > next, "after {next} the sender's timer stands still");
        }
        self.hash.put(next.0);
        self.hash.put_f64(self.flow.cwnd());
        self.send();
        true
    }
}

const BYTES: u64 = 700_123;

/// Transfers [`BYTES`]; panics unless all of them arrive in order within a generous time, or all that are not lost if the
/// recovery does not retransmit.
fn transfer(
    p: &'static AnyProtocol,
    r: &'static AnyRecoveryKind,
    values: &Values,
    seed: u64,
    loss: (f64, f64),
) -> World {
    finish(World::new(p, r, values, seed, loss), p, r, seed)
}

fn finish(mut w: World, p: &'static AnyProtocol, r: &'static AnyRecoveryKind, seed: u64) -> World {
    let what = format!("{}/{} with loss {:?}, seed {seed}, twice: {}", p.name(), r.name(), w.loss, w.twice);
    w.flow.write(BYTES, true);
    w.send();
    while w.flow.poll_event() != Some(Event::Drained) {
        assert!(w.step(), "{what}: stalled at {}", w.now);
        assert!(w.now < Time::secs(5000), "{what}: too slow, {:?}", w.flow.stats());
    }
    let got = w.receiver.stats().payload;
    if r.reliable() {
        assert_eq!(got, BYTES, "{what}: payload in order");
    } else {
        assert_eq!(w.flow.stats().retransmissions, 0, "{what}");
        assert!(got == w.arrived && got <= BYTES && got > BYTES / 2, "{what}: {got} of {} that arrived", w.arrived);
    }
    w
}

/// With every recovery and with losses, everything arrives in order, with a bounded number of retransmissions.
pub fn every_recovery_delivers_everything(p: &'static AnyProtocol) {
    for r in RECOVERIES {
        for loss in [(0.0, 0.0), (0.01, 0.0), (0.05, 0.05), (0.2, 0.2)] {
            for seed in 0..4 {
                let w = transfer(p, *r, &Values::default(), seed, loss);
                let s = w.flow.stats();
                let segments = BYTES / 1448;
                let most = if loss.0 == 0.0 { segments } else { 3 * segments };
                assert!(
                    s.retransmissions <= most,
                    "{}/{} with loss {loss:?}, seed {seed}: {} retransmissions of {segments} segments, at most {most} are allowed",
                    p.name(),
                    r.name(),
                    s.retransmissions,
                );
                assert_eq!(w.hash, transfer(p, *r, &Values::default(), seed, loss).hash, "{}/{}", p.name(), r.name());
            }
        }
    }
}

/// So it is for the other words of choices that start, growth, idle times, acknowledgements and variants have.
pub fn variants_deliver_everything(p: &'static AnyProtocol) {
    let chosen = ["variant", "hystart", "growth", "after_idle", "acks"];
    let params = p.params().iter().chain(endpoint::PARAMS).filter(|param| chosen.contains(&param.name));
    let params: Vec<_> = params.collect();
    for word in [1.0_f64, 2.0] {
        let mut values = Values::default();
        for param in &params {
            if let Unit::Choice(words) = param.unit {
                values.set(param, word.min(words.len() as f64 - 1.0));
            }
        }
        for r in RECOVERIES {
            for (seed, loss) in [(0.0, 0.0), (0.01, 0.0), (0.2, 0.2)].into_iter().enumerate() {
                let w = transfer(p, *r, &values, seed as u64, loss);
                let again = transfer(p, *r, &values, seed as u64, loss);
                assert_eq!(w.hash, again.hash, "{}/{}", p.name(), r.name());
            }
        }
    }
}

/// Packets and acknowledgements that arrive twice change nothing: nothing counts twice, and no copy is taken for a loss.
pub fn what_arrives_twice_counts_once(p: &'static AnyProtocol) {
    for r in RECOVERIES {
        for (seed, loss) in [(0.0, 0.0), (0.02, 0.0), (0.05, 0.05)].into_iter().enumerate() {
            let [once, twice] = [false, true].map(|twice| {
                let mut w = World::new(p, *r, &Values::default(), seed as u64, loss);
                w.twice = twice;
                finish(w, p, *r, seed as u64)
            });
            let what = format!("{}/{} with loss {loss:?}", p.name(), r.name());
            let told = |w: &mut World| {
                let (stats, receiver) = (w.flow.stats(), w.receiver.stats());
                let mut told = vec![receiver.payload as f64, stats.sent as f64, stats.rtt_count as f64];
                w.flow.probe(&mut |_, value| told.push(value));
                told
            };
            let [mut once, mut twice] = [once, twice];
            assert_eq!(told(&mut once), told(&mut twice), "{what}");
            assert!(twice.receiver.stats().received > once.receiver.stats().received, "{what}: nothing came twice");
        }
    }
}

/// Values with one of the parameters that every flow has.
fn with(name: &str, value: f64) -> Values {
    let mut values = Values::default();
    values.set(endpoint::PARAMS.iter().find(|p| p.name == name).unwrap(), value);
    values
}

/// So it does where every second packet is acknowledged.
pub fn delayed_acknowledgements_deliver_everything(p: &'static AnyProtocol) {
    let values = with("ack_every", 2.0);
    for r in RECOVERIES {
        for loss in [(0.0, 0.0), (0.05, 0.05)] {
            let w = transfer(p, *r, &values, 1, loss);
            let (packets, acks) = (w.receiver.stats().received, w.acks_sent);
            assert!(acks >= packets / 2, "{}/{}: {acks} for {packets} packets", p.name(), r.name());
            // Segments out of order are acknowledged at once, so few acknowledgements require that no segment was lost. They
            // also require a window that is not so small that every second one waits for the timer.
            let few = w.flow.stats().retransmissions > 0 || w.flow.cwnd() < 10.0 || acks < packets * 9 / 10;
            assert!(few && acks < packets, "{}/{}: {acks} for {packets} packets", p.name(), r.name());
        }
    }
}

/// Where the other end refuses explicit feedback, packets have no congestion header.
pub fn a_refusal_falls_back(p: &'static AnyProtocol) {
    let values = with("refuse_explicit", 1.0);
    for r in RECOVERIES {
        let mut w = transfer(p, *r, &values, 1, (0.01, 0.01));
        let headers = w.packets.0.iter().skip(1).filter(|p| p.transport.flags() & flag::SYN == 0);
        assert!(headers.clone().count() > 0 && headers.clone().all(|p| !p.congestion.is_present()));
        w.now += Time::secs(1);
    }
}

/// Arbitrary packets do not bring a flow out of its bounds, and the same ones have the same effect.
pub fn flows_survive_any_packet(p: &'static AnyProtocol) {
    for r in RECOVERIES {
        repeats(&format!("{}/{}", p.name(), r.name()), 2, |dice| any_packet(p, *r, dice));
    }
}

fn any_packet(p: &'static AnyProtocol, r: &'static AnyRecoveryKind, dice: &mut Dice) -> Hash {
    let mut values = dice.values(&[p.params(), COMMON, r.params(), endpoint::PARAMS]);
    let window = endpoint::PARAMS.iter().find(|p| p.name == "receiver_window").unwrap();
    values.set(window, (1 + dice.number(500)) as f64); // wild feedback would fill the memory
    let mut w = World::new(p, r, &values, 1, (0.02, 0.02));
    w.flow.write(u64::MAX, false);
    w.send();
    for _ in 0..5_000 {
        if w.now > Time::secs(20_000) {
            break; // a flow that waits for its timer most of the time; controllers do not sleep meanwhile
        }
        if !dice.flip(0.2) {
            w.step();
            continue;
        }
        // Someone else's packet, or a damaged one of ours.
        let mut bytes = [0; 24];
        bytes.fill_with(|| dice.below(256) as u8);
        let mut packet =
            Packet { ip_len: 40 + dice.number(1460) as u16, congestion: dice.congestion(), ..Packet::EMPTY };
        packet.tos = dice.number(256) as u8;
        packet.transport = Transport(bytes);
        let mut sack = SackRanges::default();
        for _ in 0..dice.below(4) {
            let first = dice.number(3000);
            sack.push(first, first + 1 + dice.number(10));
        }
        if dice.flip(0.8) {
            packet.transport.set_flow(7);
            packet.transport.set_segment(dice.number(3000));
            packet.transport.set_window(dice.number(500));
        }
        if dice.flip(0.5) {
            packet.transport.set_flags(flag::ACK | (dice.number(256) as u8 & !flag::SYN));
        }
        if packet.is_ack() {
            w.flow.handle_packet(w.now, &packet, &sack);
            w.send();
        } else {
            w.receiver.handle_packet(w.now, &packet);
            w.receiver.poll_transmit(w.now, &mut packet, &mut sack);
        }
        let cwnd = w.flow.cwnd();
        assert!(cwnd.is_finite() && cwnd >= 1.0, "{}/{}: a window of {cwnd}", p.name(), r.name());
        w.hash.put_f64(cwnd);
    }
    w.hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a timeout slow start ends at half of the window or below (RFC 5681 equation 4): segments that fast recovery sent
    /// beyond the window do not count, during an episode or just after it.
    #[test]
    fn a_timeout_halves_the_window_and_not_what_inflated_it() {
        let mut checked = 0;
        for (law, r) in
            ["reno", "hybla", "vegas", "xtcp"].iter().flat_map(|law| RECOVERIES.iter().map(move |r| (law, r)))
        {
            let p = registry::protocol(law).unwrap();
            for seed in 0..8 {
                let mut w = World::new(p, *r, &Values::default(), seed, (0.04, 0.0));
                w.flow.write(BYTES, true);
                w.send();
                while w.flow.poll_event() != Some(Event::Drained) {
                    let window = w.flow.cwnd();
                    let (timeouts, repeated) = (w.flow.stats().timeouts, w.flow.timeouts_in_a_row() > 0);
                    assert!(w.step());
                    let mut ssthresh = f64::NAN;
                    w.flow.probe(&mut |name, value| ssthresh = if name == "ssthresh" { value } else { ssthresh });
                    if w.flow.stats().timeouts > timeouts && !repeated && w.flow.acked() > 0 {
                        let what = format!("{law}/{} at {}", r.name(), w.now);
                        assert!(
                            ssthresh <= (window / 2.0).max(2.0),
                            "{what}: ssthresh {ssthresh} of a window of {window}"
                        );
                        checked += (window > 4.0) as u32;
                    }
                }
            }
        }
        assert!(checked > 200, "{checked} timeouts of windows above four segments");
    }
}
