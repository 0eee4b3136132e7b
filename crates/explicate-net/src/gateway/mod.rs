//! A gateway: carries the TCP connections of a site to another gateway over one QUIC connection under explicit congestion control.
//!
//! [`config`] reads `gateway.toml`, [`identity`] holds keys, [`intercept`] accepts connections on behalf of their destinations,
//! [`peers`] keeps one QUIC connection per peer, [`relay`] joins a TCP connection and a QUIC stream, [`preface`] is what a
//! stream begins with, [`kernel`] changes and restores nftables, routes and sysctls.

pub mod config;
pub mod identity;
pub mod intercept;
pub mod kernel;
pub mod peers;
pub mod preface;
pub mod relay;
pub mod run;
pub mod status;
pub mod transport;

pub use run::run;
