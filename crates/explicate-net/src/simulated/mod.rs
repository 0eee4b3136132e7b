//! Gateways, their hosts and the network between them in one process and in simulated time, drawn from one seed;
//! also [`transfers`] and [`router`]s.
//!
//! The programs are the real ones above their sockets: [`machine`] starts a gateway on the UDP sockets of [`network`] and the TCP of
//! [`tcp`]; [`hosts`] do what a [`scene`] says; [`record`] keeps what happens, and [`run`](run()) judges it. tokio's paused clock
//! moves to the next timer whenever all tasks wait, and [`clock`] shows it to what reads the monotonic clock.
//!
//! A seed repeats the same events: times, connections, sizes. The bytes of TLS are others in each run, and nothing depends on them; what
//! else QUIC draws comes from the seed ([`quic`]).
//!
//! turmoil has hosts and sockets in the place of `tokio::net` on the same paused clock, with delays, losses and partitions, but no rates
//! and queues of a line, which a gateway is about, and no NAT. QUIC needs an `AsyncUdpSocket` in any case, and the relay few functions of
//! TCP, so it would replace parts of [`network`] and [`tcp`] and add a framework.
//!
//! madsim replaces the package of tokio, by a flag of the compiler for the whole tree, and intercepts the C library's clock and random
//! numbers. That would repeat even the bytes of TLS, but quinn would have to be built against its copy of tokio, and the tests
//! would run another program than the one that is shipped.

pub mod clock;
pub mod faults;
pub mod flow;
pub mod hosts;
pub mod machine;
pub mod memory;
pub mod network;
pub mod quic;
pub mod record;
pub mod router;
pub mod run;
pub mod scene;
pub mod tasks;
pub mod tcp;
pub mod transfers;

pub use run::{Options, Report, View, run, run_beside};

#[cfg(test)]
mod both;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod why;
