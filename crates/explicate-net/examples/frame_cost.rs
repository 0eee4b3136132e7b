//! What a frame costs a router besides its system calls: read, queued, controlled, written, its checksum corrected.
//!
//! `frame_cost CONTROLLER FRAMES` prints nanoseconds of CPU a frame; `CONTROLLER` may be `none`. Their difference is what a
//! controller costs, with the classes that a router's ports have by default. More words: `one-queue` is without classes;
//! `quic` sends datagrams of another program, one of 64 with a SCONE packet, and `scone` advises rates to them.
//! `bench/router_cost.py` runs it, and callgrind can count it.
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

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let known = ["one-queue", "quic", "scone"];
    let (controller, frames, more) = match words.as_slice() {
        [_, controller, frames, more @ ..] if more.iter().all(|word| known.contains(&&**word)) => {
            (controller, frames, more)
        }
        _ => return Err("say: frame_cost CONTROLLER FRAMES [one-queue] [quic] [scone]".into()),
    };
    let [one_queue, quic, scone] = known.map(|word| more.iter().any(|w| w == word));
    let (frames, apart): (usize, bool) = (frames.parse()?, !one_queue);
    let text = format!(
        "node = [{{ name = \"here\", kind = \"router\" }}, {{ name = \"there\" }}]\n\
         link = [{{ name = \"l\", from = \"here\", to = \"there\", rate = \"500Mbit/s\", delay = \"0s\", \
         queue = {{ kind = \"droptail\", limit = \"2MB\" }}, router = \"{controller}\", share_by_flows = {apart} }}, {{ from = \"there\", to = \"here\" }}]\n\
         flows = [{{ name = \"f\", protocol = \"newreno\", from = \"here\", to = \"there\" }}]\n",
    );
    let scenario = Scenario::parse(&text, "link", Path::new("."), &[]).map_err(|problems| problems.to_string())?;
    let mut output = Output::new(port(&scenario.links[0], 0, 1, u64::MAX, None), Time::ZERO);
    output.scone = scone.then(|| Box::new(Scone::new(Basis::Fair, 1)));

    // Packets of flows of many speeds, with different demands.
    let mut rng = Rng::stream(1, "frame_cost");
    let kinds: Vec<Vec<u8>> = (0..64)
        .map(|number| {
            let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
            packet.congestion.set_rtt(seconds_to_units(0.02 + 0.1 * rng.uniform()));
            packet.congestion.set_x(seconds_to_units(1200.0 / (1e5 + 1e6 * rng.uniform())));
            packet.congestion.set_delta_throughput(50_000 + (rng.next_u64() >> 46) as i32);
            let (stations, addresses) = (([1; 6], [2; 6]), ([10, 0, 0, 1], [10, 0, 0, 2]));
            let mut frame = make(&packet, &SackRanges::NONE, &[0; 1200 - 72], stations, addresses, (5000, UDP_PORT));
            if quic {
                let rest = &mut frame[IP + 22..];
                rest[..2].copy_from_slice(&443u16.to_be_bytes());
                rest[6..].fill(0x40);
                rest[4..6].fill(1); // a checksum, which is corrected though it is wrong
                if number == 0 {
                    rest[6..13].copy_from_slice(&[0xff, 0xef, 0x7d, 0xc0, 0xfd, 0, 0]);
                }
            }
            frame
        })
        .collect();

    let (mut pool, mut ready, mut sum) = (Pool::new(1 << 16), Vec::new(), 0);
    let mut now = Time::ZERO;
    let began = thread_cpu();
    for turn in 0..frames / TOGETHER {
        for i in 0..TOGETHER {
            let handle = pool.take(&kinds[(turn * TOGETHER + i) % kinds.len()]).ok_or("no room")?;
            pool.packet(handle).ttl -= 1;
            output.enqueue(now, handle, &mut pool);
        }
        now = Time(now.0 + TOGETHER as u64 * GAP.0);
        output.run(now, now, &mut pool, &mut ready);
        for handle in ready.drain(..) {
            pool.finish(handle);
            sum += pool.bytes(handle)[IP + 26] as u64; // of the checksum
            pool.release(handle);
        }
    }
    let spent = thread_cpu() - began;
    assert!(sum > 0, "something depends on all of it");
    println!("{:.1}", spent as f64 / frames as f64);
    Ok(())
}
