//! Sends explicit packets of 1200 bytes to a host at a steady rate, in bursts as an interface hands them to its driver, and
//! listens to no feedback: load for `bench/router_cost.py`, the same whatever a router does to it.
//!
//! `flood ADDRESS PACKETS_PER_SECOND SECONDS BURST` prints how many packets it sent.
#![expect(clippy::print_stdout, reason = "its result")]

use std::error::Error;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::protocols::rate_header::seconds_to_units;
use explicate_core::wire::{Congestion, Format, IP_UDP_LEN, Packet, SackRanges, UDP_PORT};
use explicate_net::sys::{self, BATCH, Outgoing};

const PACKET: usize = 1200;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, address, rate, seconds, burst] = words.as_slice() else {
        return Err("say: flood ADDRESS PACKETS_PER_SECOND SECONDS BURST".into());
    };
    let (rate, seconds, burst) =
        (rate.parse::<f64>()?, seconds.parse::<f64>()?, burst.parse::<usize>()?.clamp(1, BATCH));
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    sys::sharpen_timers();
    let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
    // 40 ms of round trip, 600 kB/s, and a wish for more.
    packet.congestion.set_rtt(seconds_to_units(0.04));
    packet.congestion.set_x(seconds_to_units(PACKET as f64 / 600e3));
    packet.congestion.set_delta_throughput(100_000);
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(&packet, &SackRanges::NONE, &mut headers);
    let mut bytes = [0; PACKET - IP_UDP_LEN];
    bytes[..length].copy_from_slice(&headers[..length]);
    let to = Some((SocketAddrV4::new(address.parse()?, UDP_PORT), 0));
    let start = sys::monotonic();
    let end = start + (seconds * 1e9) as u64;
    let (mut sent, mut turns) = (0, 0u64);
    while sys::monotonic() < end {
        let due = start + (turns as f64 * burst as f64 / rate * 1e9) as u64;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(sys::monotonic())));
        sent += sys::send(socket.as_fd(), &[Outgoing { bytes: &bytes, to }; BATCH][..burst]).unwrap_or(0);
        turns += 1;
    }
    println!("{sent}");
    Ok(())
}
