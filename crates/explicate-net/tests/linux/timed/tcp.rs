//! The rate of the kernel's TCP on a path, alone and beside explicit flows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;

use explicate_net::sys::{monotonic, tcp_connect};

use crate::common::Net;

/// Since a time of the monotonic clock in ns, s.
pub(crate) fn since(began: u64) -> f64 {
    (monotonic() - began) as f64 / 1e9
}

/// CUBIC of the kernel from `a` (10.9.0.1) to `b` (10.9.0.2), `flows` of them, until the end of `span` in s: what each delivered
/// within `span`, Mbit/s.
pub(crate) fn cubic(net: &Net, flows: usize, span: (f64, f64)) -> JoinHandle<Vec<f64>> {
    transfers(net, ["a", "b"], "10.9.0.2:5000", (flows, 0), span)
}

/// The same, and one more that paces, the last of the rates.
pub(crate) fn cubic_and_one_that_paces(net: &Net, flows: usize, span: (f64, f64)) -> JoinHandle<Vec<f64>> {
    transfers(net, ["a", "b"], "10.9.0.2:5000", (flows, 1), span)
}

/// The same as `cubic` from the first of these hosts to the second, which has this address.
pub(crate) fn cubic_between(
    net: &Net,
    hosts: [&str; 2],
    address: &str,
    flows: usize,
    span: (f64, f64),
) -> JoinHandle<Vec<f64>> {
    transfers(net, hosts, address, (flows, 0), span)
}

/// So many flows as the kernel has them, and so many that pace.
fn transfers(
    net: &Net,
    [from, to]: [&str; 2],
    address: &str,
    (plain, paced): (usize, usize),
    span: (f64, f64),
) -> JoinHandle<Vec<f64>> {
    let flows = plain + paced;
    let address: SocketAddr = address.parse().unwrap();
    let listener = net.inside(to, move || TcpListener::bind(address).unwrap()).join().unwrap();
    let receiver = std::thread::spawn(move || {
        let counts: Vec<_> = (0..flows)
            .map(|_| listener.accept().unwrap().0)
            .map(|stream| std::thread::spawn(move || delivered(stream, span)))
            .collect();
        // They are accepted in any order.
        let mut rates: Vec<(u8, f64)> = counts.into_iter().map(|count| count.join().unwrap()).collect();
        rates.sort_by_key(|(flow, _)| *flow);
        rates.into_iter().map(|(_, rate)| rate).collect()
    });
    for flow in 0..flows {
        let connecting = net.inside(from, move || tcp_connect(address, "cubic", 1448).unwrap());
        let mut stream = connecting.join().unwrap();
        if flow >= plain {
            pace(&stream);
        }
        // Its first write waits until it is connected.
        stream.set_nonblocking(false).unwrap();
        std::thread::spawn(move || {
            let began = monotonic();
            while since(began) < span.1 && stream.write_all(&[flow as u8; 1 << 14]).is_ok() {}
        });
    }
    receiver
}

/// Makes the kernel pace a socket: it does so itself below any rate that is set (socket(7), `SO_MAX_PACING_RATE`), here 1 Gbit/s.
fn pace(stream: &TcpStream) {
    let bytes_per_second: u32 = 125_000_000;
    let length = size_of_val(&bytes_per_second) as libc::socklen_t;
    let value = (&raw const bytes_per_second).cast();
    // SAFETY: the descriptor is open, and `value` points to `length` bytes that live until the call returns.
    let set =
        unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, length) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// What comes from a stream within `span` in s, Mbit/s, and its number, which is what all of its bytes are.
fn delivered(mut stream: TcpStream, span: (f64, f64)) -> (u8, f64) {
    let (began, mut bytes, mut block) = (monotonic(), 0, vec![0; 1 << 16]);
    while let Ok(read) = stream.read(&mut block)
        && read > 0
    {
        bytes += if (span.0..span.1).contains(&since(began)) { read } else { 0 };
    }
    (block[0], 8e-6 * bytes as f64 / (span.1 - span.0))
}

/// Runs these at the same time.
pub(crate) fn at_once<T: Send>(runs: Vec<impl FnOnce() -> T + Send>) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = runs.into_iter().map(|run| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of single values.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}
