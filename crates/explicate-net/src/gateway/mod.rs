//! A gateway: carries the TCP connections of a site to another gateway over one QUIC connection under explicit congestion control.
//!
//! - [`config`] reads `gateway.toml` with its [networks](network), [`identity`] holds keys, [`kernel`] changes and restores nftables,
//!   routes and sysctls, and [`carried`] is what it remembers of connections;
//! - [`run`](run()) opens the sockets, [`system`] is what a gateway has of its machine, [`status`] reports, [`explain`] puts reports into words, [`screen`] on a screen, [`service`] talks to systemd;
//! - [`intercept`] accepts connections on behalf of their destinations, [`tcp`] is one of them, [`relay`] joins each to a QUIC stream, [`preface`] is what
//!   a stream begins with, [`destinations`] says which are denied, [`told`] what a gateway tells its peers of itself, [`peers`] keeps one
//!   QUIC connection per peer (and, in `peers::connections`, carries others in it), which [`choice`] finds when both call, [`open`] lists what is carried, and [`reasons`] says why a connection failed;
//! - [`credit`] bounds what a peer may send for hosts that have not taken it, and [`turns`] shares a tunnel among hosts and their connections;
//! - [`controller`] moves the window of a connection by feedback, [`shim`] is what stands before QUIC in a datagram, [`parity`] repairs
//!   losses, [`tunnel`] holds these of one connection, [`place`] is where its peer is,
//!   [`socket`] adds and removes them, [`silence`] ends an outage, and [`answers`] finds out whether routers answer;
//! - [`port`] is where datagrams leave, beside the [`plain`] packets of the site, from [`queues`], at the rate that [`capacity`] takes from
//!   a [`source`], or that [`trains`] of datagrams show.

pub mod answers;
pub mod capacity;
pub mod carried;
pub mod choice;
pub mod config;
pub mod controller;
pub mod credit;
pub mod destinations;
pub mod explain;
pub mod identity;
pub mod intercept;
pub mod kernel;
pub mod mistake;
pub mod network;
pub mod open;
pub mod parity;
pub mod patience;
pub mod peers;
pub mod place;
pub mod plain;
pub mod port;
pub mod preface;
pub mod queues;
pub mod reasons;
pub mod relay;
pub mod run;
pub mod screen;
pub mod service;
pub mod shim;
pub mod silence;
pub mod socket;
pub mod source;
pub mod status;
pub mod system;
pub mod tcp;
pub mod told;
pub mod trains;
pub mod transport;
pub mod tunnel;
pub mod turns;
pub mod warnings;
pub mod why;

pub use run::run;
