//! What a frame costs a router besides its system calls: read, queued, controlled, written, its checksum corrected.
//!
//! `frame_cost CONTROLLER FRAMES` prints nanoseconds of CPU a frame; `CONTROLLER` may be `none`. Their difference is what a
//! controller costs, with the classes that a router's ports have by default. More words: `one-queue` is without classes;
//! `quic` sends datagrams of another program, `opening` such ones with a SCONE packet, each from a flow of its own; `ipv6`
//! puts both into IPv6; `scone` advises rates to them. `bench/router_cost.py` runs it, and `bench/scone_cost.py` counts it.
#![expect(clippy::print_stdout, reason = "its result")]

use std::error::Error;
use std::path::Path;

use explicate_build::ports::port;
use explicate_core::port::Store;
use explicate_core::protocols::rate_header::seconds_to_units;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Format, Packet, SackRanges, UDP_PORT};
use explicate_net::forward::frame::IP;
use explicate_net::forward::made::make;
use explicate_net::forward::output::Output;
use explicate_net::forward::pool::Pool;
use explicate_net::forward::scone::{Basis, Scone};
use explicate_net::sys::thread_cpu;
use explicate_scenario::model::Scenario;

/// What a 1200-byte packet takes on a line of 500 Mbit/s, and a little more: the queue stays short.
const GAP: Time = Time(20_000);
/// Frames that come together.
const TOGETHER: usize = 8;
/// Frames before those that are measured: 0.12 s, after which a port has a rate to advise.
const FIRST: usize = 6000;
/// Words that may follow the number of frames.
const WORDS: [&str; 5] = ["one-queue", "quic", "opening", "ipv6", "scone"];

/// A router's output, and what it is sent.
struct Router {
    output: Output,
    pool: Pool,
    ready: Vec<u32>,
    now: Time,
    kinds: Vec<Vec<u8>>,
    /// Where a number makes each frame another flow's, if it is to be one.
    number: Option<usize>,
    sent: u32,
}

impl Router {
    fn new(controller: &str, has: impl Fn(&str) -> bool) -> Result<Router, Box<dyn Error>> {
        let apart = !has("one-queue");
        let text = format!(
            "node = [{{ name = \"here\", kind = \"router\" }}, {{ name = \"there\" }}]\n\
             link = [{{ name = \"l\", from = \"here\", to = \"there\", rate = \"500Mbit/s\", delay = \"0s\", \
             queue = {{ kind = \"droptail\", limit = \"2MB\" }}, router = \"{controller}\", \
             share_by_flows = {apart} }}, {{ from = \"there\", to = \"here\" }}]\n\
             flows = [{{ name = \"f\", protocol = \"newreno\", from = \"here\", to = \"there\" }}]\n",
        );
        let scenario = Scenario::parse(&text, "link", Path::new("."), &[]).map_err(|problems| problems.to_string())?;
        let mut output = Output::new(port(&scenario.links[0], 0, 1, u64::MAX, None), Time::ZERO);
        output.scone = has("scone").then(|| Box::new(Scone::new(Basis::Fair, 1)));
        let number = has("opening").then_some(IP + if has("ipv6") { 20 } else { 12 });
        let (pool, now, kinds) = (Pool::new(1 << 16), Time::ZERO, kinds(has));
        Ok(Router { output, pool, ready: Vec::new(), now, kinds, number, sent: 0 })
    }

    /// SCONE packets that were rewritten so far.
    fn lowered(&self) -> u64 {
        self.output.scone.as_ref().map_or(0, |scone| scone.counters().lowered)
    }

    /// Forwards so many frames; returns a number that depends on all of them.
    fn forward(&mut self, frames: usize) -> Result<u64, &'static str> {
        let mut sum = 0;
        for _ in 0..frames / TOGETHER {
            for _ in 0..TOGETHER {
                let kind = self.sent as usize % self.kinds.len();
                if let Some(at) = self.number {
                    self.kinds[kind][at..at + 4].copy_from_slice(&self.sent.to_be_bytes());
                }
                self.sent += 1;
                let handle = self.pool.take(&self.kinds[kind]).ok_or("no room")?;
                self.pool.packet(handle).ttl -= 1;
                self.output.enqueue(self.now, handle, &mut self.pool);
            }
            self.now = Time(self.now.0 + TOGETHER as u64 * GAP.0);
            self.output.run(self.now, self.now, &mut self.pool, &mut self.ready);
            for handle in self.ready.drain(..) {
                self.pool.finish(handle);
                sum += self.pool.bytes(handle)[IP + 26] as u64; // of the checksum, or an address
                self.pool.release(handle);
            }
        }
        Ok(sum)
    }
}

/// Frames of flows of many speeds, with different demands.
fn kinds(has: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut rng = Rng::stream(1, "frame_cost");
    let kind = |_: i32| {
        let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        packet.congestion.set_rtt(seconds_to_units(0.02 + 0.1 * rng.uniform()));
        packet.congestion.set_x(seconds_to_units(1200.0 / (1e5 + 1e6 * rng.uniform())));
        packet.congestion.set_delta_throughput(50_000 + (rng.next_u64() >> 46) as i32);
        let (stations, addresses) = (([1; 6], [2; 6]), ([10, 0, 0, 1], [10, 0, 0, 2]));
        let mut frame = make(&packet, &SackRanges::NONE, &[0; 1200 - 72], stations, addresses, (5000, UDP_PORT));
        if has("quic") || has("opening") {
            let rest = &mut frame[IP + 22..];
            rest[..2].copy_from_slice(&443u16.to_be_bytes());
            rest[6..].fill(0x40);
            rest[4..6].fill(1); // a checksum, which is corrected though it is wrong
            if has("opening") {
                rest[6..13].copy_from_slice(&[0xff, 0xef, 0x7d, 0xc0, 0xfd, 0, 0]);
            }
        }
        if has("ipv6") {
            let udp = frame.split_off(IP + 20);
            frame.truncate(IP - 2);
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((udp.len() as u16).to_be_bytes());
            frame.extend([17, 64]);
            frame.extend([0xfd; 32]);
            frame.extend(udp);
        }
        frame
    };
    (0..64).map(kind).collect()
}

/// What callgrind counts.
#[inline(never)]
fn counted_span(router: &mut Router, frames: usize) -> Result<u64, &'static str> {
    router.forward(frames)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().collect();
    let (controller, frames, more) = match given.as_slice() {
        [_, controller, frames, more @ ..] if more.iter().all(|word| WORDS.contains(&&**word)) => {
            (controller, frames.parse()?, more)
        }
        _ => return Err(format!("say: frame_cost CONTROLLER FRAMES [{}]", WORDS.join("] [")).into()),
    };
    let has = |word: &str| more.iter().any(|given| given == word);
    let mut router = Router::new(controller, has)?;
    router.forward(FIRST)?;
    let before = router.lowered();
    let began = thread_cpu();
    let sum = counted_span(&mut router, frames)?;
    let spent = thread_cpu() - began;
    assert!(sum > 0, "something depends on all of it");
    let lowered = router.lowered() - before;
    if has("opening") && has("scone") && lowered < frames as u64 * 9 / 10 {
        return Err(format!("only {lowered} SCONE packets were rewritten: flows share limits; say fewer frames").into());
    }
    println!("{:.1}", spent as f64 / frames as f64);
    Ok(())
}
