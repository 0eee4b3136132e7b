//! Files and folders over QUIC: encrypted, between ends that were paired once.
//!
//! - [`pairing`] holds this end's key and the keys that it trusts, [`message`] is what streams begin with, and [`tree`] lists what
//!   is sent;
//! - [`prober`] measures a path, for `explicated probe` and `advise`, and [`probed`] answers it;
//! - [`socket`] opens QUIC under the law and with the headers of [`gateway`](crate::gateway);
//! - [`sending`] and [`receiving`] are the two ends, and [`again`] goes on by another connection when one is lost. What arrives goes into
//!   a [`part`] of a [`store`], by threads that wait for the disk.
//!
//! A file has a stream of its own. The sender offers it, the receiver refuses it or says how much of it it has, and the sender sends the
//! rest. The receiver's verdict follows when the file is on its disk, was read back, and has the offered SHA-256.

use std::future::Future;

pub mod again;
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

/// Does something that waits for the disk, in a thread that may wait; in simulated time at once. `None` if it panics.
async fn on_disk<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    #[cfg(feature = "simulated")]
    if crate::simulated::clock::now().is_some() {
        return Some(what());
    }
    tokio::task::spawn_blocking(what).await.ok()
}

/// Starts a task of this program.
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    #[cfg(feature = "simulated")]
    if let Some(tasks) = crate::simulated::tasks::current() {
        return quinn::Runtime::spawn(&tasks, Box::pin(task));
    }
    tokio::spawn(task);
}
