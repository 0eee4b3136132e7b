//! A gateway: carries the TCP connections of a site to another gateway over one QUIC connection under explicit congestion control.
//!
//! [`config`] reads `gateway.toml`, [`identity`] holds keys, [`intercept`] accepts connections on behalf of their destinations,
//! [`peers`] keeps one QUIC connection per peer, [`relay`] joins a TCP connection and a QUIC stream, [`preface`] is what a
//! stream begins with, [`kernel`] changes and restores nftables, routes and sysctls.
//! [`law`] moves the window of a connection by feedback, [`shim`] is what stands before QUIC in a datagram, [`parity`] repairs losses, [`socket`] adds and removes
//! it, and [`port`] is the queue that datagrams leave by, beside the [`plain`] packets of the site.
//! [`capacity`] follows the rate of the line.

pub mod capacity;
pub mod config;
pub mod identity;
pub mod intercept;
pub mod kernel;
pub mod law;
pub mod parity;
pub mod peers;
pub mod plain;
pub mod port;
pub mod preface;
pub mod relay;
pub mod run;
pub mod shim;
pub mod socket;
pub mod status;
pub mod transport;
pub mod tunnel;

pub use run::run;
