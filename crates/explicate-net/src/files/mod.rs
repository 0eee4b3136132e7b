//! Files and folders over QUIC: encrypted, between ends that were paired once.
//!
//! - [`pairing`] holds this end's key and the keys that it trusts, [`message`] is what streams begin with, and [`tree`] lists what
//!   is sent;
//! - [`prober`] measures a path, for `explicated probe` and `advise`, and [`probed`] answers it;
//! - [`socket`] opens QUIC under the law and with the headers of [`gateway`](crate::gateway);
//! - [`sending`] and [`receiving`] are the two ends. What arrives goes into a [`part`] of a [`store`], by threads that wait for the disk.
//!
//! A file has a stream of its own. The sender offers it, the receiver refuses it or says how much of it it has, and the sender sends the
//! rest. The receiver's verdict follows when the file is on its disk, was read back, and has the offered SHA-256.

pub mod message;
pub mod pairing;
pub mod part;
pub mod probed;
pub mod prober;
pub mod receiving;
pub mod sending;
pub mod socket;
pub mod store;
pub mod tree;
