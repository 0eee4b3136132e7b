//! What a gateway has of its machine, beside sockets of QUIC: tests have another one.

use std::sync::Arc;

use quinn::{Runtime, TokioRuntime};

use super::intercept::Hosts;
use super::kernel;
use super::told::Marked;

/// Parts of the machine.
pub struct System {
    /// Where the kernel gets addresses that peers have told.
    pub marked: Marked,
    /// Where connections to hosts are opened.
    pub hosts: Hosts,
    /// Where tasks run.
    pub runtime: Arc<dyn Runtime>,
}

impl System {
    /// This machine.
    pub fn kernel() -> System {
        System { marked: Marked::open(kernel::TOLD), hosts: Hosts::Kernel, runtime: Arc::new(TokioRuntime) }
    }
}
