//! Files and folders over QUIC: encrypted, between ends that were paired once.
//!
//! - [`pairing`] holds this end's key and the keys that it trusts, [`message`] is what streams begin with, and [`tree`] lists what
//!   is sent;
//! - [`probed`] answers `explicated probe` and `advise`;
//! - [`socket`] opens QUIC under the law and with the headers of [`gateway`](crate::gateway);
//! - [`sending`] and [`receiving`] are the two ends. What arrives goes into [`Store`](crate::endpoint::content::store::Store).
//!
//! A file has a stream of its own. The sender offers it, the receiver refuses it or says how much of it it has, and the sender sends the
//! rest. The receiver's verdict follows when the file is on its disk, was read back, and has the offered SHA-256.

pub mod message;
pub mod pairing;
pub mod probed;
pub mod receiving;
pub mod sending;
pub mod socket;
pub mod tree;
