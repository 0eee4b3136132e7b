//! SCONE at an output: rewrites the advice in QUIC packets that leave ([`explicate_core::wire::scone`]), and finds the
//! rate to advise.

use explicate_core::port::{Flows, Port};
use explicate_core::units::Time;
use explicate_core::wire::scone::{Advice, Counters, Element};

use super::frame::Parsed;

/// Least interval between two changes of an advice that is not configured.
const INTERVAL: Time = Time::millis(100);
/// Time after which the bytes of flows count half.
const AGE: Time = Time::secs(1);
/// Time over which it is averaged, s. An endpoint follows the lowest advice of a monitoring period, so that a dip of a
/// moment would count for all of it.
const AVERAGED: f64 = 5.0;
/// A measured rate may be that much too low, because packets are cut at the ends of an interval: a port of 100 Mbit/s,
/// which is one of SCONE's rates, advises it and not the next lower one.
const CUT: f64 = 1.005;

/// What an output advises.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Basis {
    /// This rate, bit/s.
    Rate(f64),
    /// What flows [share](Port::shared) at the port, divided by the number of all flows that leave.
    Fair,
    /// The rate at which the port sends while packets wait in it.
    Measured,
}

/// The element of an output.
pub struct Scone {
    element: Element,
    basis: Basis,
    flows: Flows,
    /// The mean of the rates that were found, bytes/s; none before the first.
    mean: Option<f64>,
    /// The end of the last interval, the bytes that had been sent, and whether the queue has been empty since.
    since: Time,
    bytes: u64,
    idle: bool,
}

impl Scone {
    /// An element; `key` is secret, see [`Element::new`].
    pub fn new(basis: Basis, key: u64) -> Scone {
        let mut element = Element::new(key);
        if let Basis::Rate(bits) = basis {
            element.advice = Advice::at_most(bits);
        }
        Scone { element, basis, flows: Flows::default(), mean: None, since: Time::ZERO, bytes: 0, idle: true }
    }
    /// Its advice at present.
    pub fn advice(&self) -> Advice {
        self.element.advice
    }
    /// Its counters.
    pub fn counters(&self) -> Counters {
        self.element.counters
    }

    /// The port has caught up to `now`, and its output has sent this number of IP bytes.
    pub(super) fn observe(&mut self, now: Time, port: &Port, bytes: u64) {
        if matches!(self.basis, Basis::Rate(_)) {
            return;
        }
        let empty = port.backlog().1 == 0;
        self.idle |= empty;
        let elapsed = now.since(self.since);
        if elapsed < INTERVAL {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        let found = match self.basis {
            Basis::Rate(_) => None,
            Basis::Fair => {
                self.flows.age(now.0 / AGE.0 - self.since.0 / AGE.0);
                port.shared().map(|shared| shared / self.flows.number())
            }
            Basis::Measured => (!self.idle).then(|| CUT * (bytes - self.bytes) as f64 / seconds),
        };
        if let Some(rate) = found {
            let before = self.mean.unwrap_or(rate);
            let mean = before + (seconds / AVERAGED).min(1.0) * (rate - before);
            self.mean = Some(mean);
            self.element.advice = Advice::at_most(8.0 * mean);
        }
        (self.since, self.bytes, self.idle) = (now, bytes, empty);
    }

    /// A frame leaves.
    #[inline]
    pub(super) fn pass(&mut self, now: Time, bytes: &mut [u8], parsed: &Parsed) {
        if self.basis == Basis::Fair {
            self.flows.count(&parsed.packet);
        }
        if parsed.is_plain() {
            // A checksum is left to hardware, or the frame holds several datagrams.
            let partial = bytes[0] & 1 != 0 || bytes[1] != 0;
            self.element.pass(now, &mut bytes[parsed.ip as usize..], partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::slice::from_ref;

    use explicate_build::ports::port;
    use explicate_core::port::Store;
    use explicate_core::units::Rate;
    use explicate_core::wire::scone::SconePacket;
    use explicate_scenario::model::Scenario;

    use super::super::frame::IP;
    use super::super::output::Output;
    use super::super::pool::Pool;
    use super::*;

    /// An output, and the frames in it.
    struct Middle {
        output: Output,
        pool: Pool,
        now: Time,
    }

    /// An output of 10 Mbit/s whose port has this controller.
    fn middle(controller: &str, more: &str, basis: Basis) -> Middle {
        let text = format!(
            "node = [{{ name = \"here\", kind = \"router\" }}, {{ name = \"there\" }}]\n\
             link = [{{ name = \"l\", from = \"here\", to = \"there\", rate = \"10Mbit/s\", delay = \"0s\", \
             queue = {{ kind = \"droptail\", limit = \"2MB\" }}, router = \"{controller}\"{more} }}, \
             {{ from = \"there\", to = \"here\" }}]\n\
             flows = [{{ name = \"f\", protocol = \"newreno\", from = \"here\", to = \"there\" }}]\n"
        );
        let scenario = Scenario::parse(&text, "link", Path::new("."), &[]).map_err(|e| e.to_string()).unwrap();
        let mut output = Output::new(port(&scenario.links[0], 0, 1, u64::MAX, None), Time::ZERO);
        output.scone = Some(Box::new(Scone::new(basis, 1)));
        Middle { output, pool: Pool::new(4096), now: Time::ZERO }
    }

    impl Middle {
        /// Sends frames, one each time that `each` has passed, for a span; returns the last one that leaves.
        fn send(&mut self, frames: &[Vec<u8>], each: Time, span: Time) -> Vec<u8> {
            let (mut ready, mut last, until) = (Vec::new(), Vec::new(), self.now + span);
            for frame in frames.iter().cycle() {
                if self.now > until {
                    break;
                }
                let handle = self.pool.take(frame).unwrap();
                self.output.enqueue(self.now, handle, &mut self.pool);
                self.output.run(self.now, self.now, &mut self.pool, &mut ready);
                for handle in ready.drain(..) {
                    self.pool.finish(handle);
                    last = self.pool.bytes(handle).to_vec();
                    self.pool.release(handle);
                }
                self.now += each;
            }
            last
        }
        fn advice(&self) -> Advice {
            self.output.scone.as_ref().unwrap().advice()
        }
        fn counters(&self) -> Counters {
            self.output.scone.as_ref().unwrap().counters()
        }
    }

    /// A frame takes 0.8 ms of the line.
    const APART: Time = Time::micros(900);

    /// A frame of 1000 bytes of IP without checksum: to this UDP port, with a SCONE packet or without.
    fn frame(ipv6: bool, to: u16, scone: bool) -> Vec<u8> {
        let head = if ipv6 { 40 } else { 20 };
        let mut payload = vec![0x40; 1000 - head - 8];
        let packet = SconePacket { advice: Advice::NONE, destination: &[], source: &[], rest: &[0x40] };
        if scone {
            packet.write(&mut payload).unwrap();
        }
        let udp_length = (8 + payload.len()) as u16;
        let kind: [u8; 2] = if ipv6 { [0x86, 0xdd] } else { [8, 0] };
        let ip = if ipv6 {
            [&[0x60, 0, 0, 0][..], &udp_length.to_be_bytes(), &[17, 64], &[0xfd; 32]].concat()
        } else {
            [&[0x45, 0, 3, 0xe8, 0, 1, 0, 0, 64, 17, 0, 0][..], &[10; 8]].concat()
        };
        let udp = [&[0x30, 0x39][..], &to.to_be_bytes(), &udp_length.to_be_bytes(), &[0, 0]].concat();
        [&[0; IP - 2][..], &kind, &ip, &udp, &payload].concat()
    }

    /// The frame leaves with another signal if it is SCONE, whichever IP it is in, and as it came if it is not.
    #[test]
    fn frames_leave_with_the_ports_advice() {
        for ipv6 in [false, true] {
            let mut m = middle("xcp", "", Basis::Rate(45e6));
            let scone = frame(ipv6, 443, true);
            let left = m.send(from_ref(&scone), APART, Time::millis(2));
            let at = IP + 8 + if ipv6 { 40 } else { 20 };
            assert_eq!((&scone[at..at + 2], &left[at..at + 2]), (&[0xff, 0xef][..], &[0xda, 0xef][..]), "{ipv6}");
            assert_eq!((&left[..at], &left[at + 2..]), (&scone[..at], &scone[at + 2..]));
            assert_eq!(m.counters(), Counters { lowered: 2, ..Counters::default() });
            let other = frame(ipv6, 443, false);
            assert_eq!(m.send(from_ref(&other), APART, Time::millis(9)), other);
        }
    }

    /// What a packet socket says of a frame: that its checksum is not computed, that it holds several datagrams (5, with
    /// a bit for ECN), or that its checksum was found right (2), which is no obstacle.
    #[test]
    fn unfinished_checksums_are_left_alone() {
        for ipv6 in [false, true] {
            for offload in [[1, 0], [3, 0], [0, 5], [1, 0x85], [2, 0]] {
                let mut m = middle("xcp", "", Basis::Rate(1e6));
                let mut came = frame(ipv6, 443, true);
                came[..2].copy_from_slice(&offload);
                let left = m.send(from_ref(&came), APART, Time::millis(2));
                let partial = offload != [2, 0];
                assert_eq!(left == came, partial, "{offload:?}");
                let (lowered, partial) = if partial { (0, 2) } else { (2, 0) };
                assert_eq!(m.counters(), Counters { lowered, partial, ..Counters::default() }, "{offload:?}");
            }
        }
    }

    /// Payloads of other frames look like IP, and are none; nor is one of the other version.
    #[test]
    fn only_ip_is_ip() {
        let mut m = middle("xcp", "", Basis::Rate(1e6));
        for kind in [[0x88, 0x47], [8, 6], [0x88, 0xb5], [8, 0], [0x86, 0xdd]] {
            let mut came = frame(kind != [0x86, 0xdd], 443, true);
            came[IP - 2..IP].copy_from_slice(&kind);
            assert_eq!(m.send(from_ref(&came), APART, Time::millis(3)), came, "{kind:x?}");
        }
        assert_eq!(m.counters(), Counters::default());
    }

    /// Four flows of 2 Mbit/s on 10 Mbit/s: 2.5 Mbit/s each, and the next lower signal is 27. One flow: all of it, 40.
    /// Also where the controller has the line alone, though it answers none of these flows.
    #[test]
    fn the_fair_rate_is_the_capacity_by_the_flows() {
        for (controller, more) in [("xcp", ", share_by_flows = true"), ("xcp", ""), ("rcp", "")] {
            for (flows, index) in [(4, 27), (1, 40)] {
                let mut m = middle(controller, more, Basis::Fair);
                let frames: Vec<Vec<u8>> = (0..flows).map(|flow| frame(true, 5000 + flow, true)).collect();
                m.send(&frames, Time::millis(1), Time::secs(20));
                assert_eq!(m.advice().index(), index, "{flows} flows, {controller}{more}");
            }
        }
    }

    #[test]
    fn controllers_divide_their_capacity_or_not() {
        let all = Rate::mbps(10).bytes_per_sec();
        for (controller, has) in [("xcp", true), ("p_xcp", true), ("rcp", true), ("vcp", false), ("abc", false)] {
            let alone = middle(controller, "", Basis::Fair);
            assert_eq!(alone.output.port.shared(), has.then_some(all), "{controller}");
            let divided = middle(controller, ", share_by_flows = true", Basis::Fair);
            assert_eq!(divided.output.port.shared(), Some(all), "{controller}");
        }
    }

    /// A frame of 1000 bytes a millisecond, 8 Mbit/s, measures nothing; one every 0.5 ms measures the line's 10 Mbit/s.
    #[test]
    fn only_a_port_with_a_queue_is_measured() {
        let mut m = middle("xcp", "", Basis::Measured);
        let frames = [frame(false, 443, true)];
        m.send(&frames, Time::millis(1), Time::secs(2));
        assert_eq!((m.advice(), m.counters().lowered), (Advice::NONE, 0));
        m.send(&frames, Time::micros(500), Time::secs(1));
        assert_eq!(m.advice().index(), 40);
    }
}
