//! An interface of a forwarder.

use std::os::fd::{AsFd, BorrowedFd};

use super::output::Output;
use crate::error::{Context, Result};
use crate::sys::{self, PacketSocket};

/// Bytes of received frames that an interface's ring holds, if there are few interfaces...
pub const HELD_BY_FEW: usize = 16 << 20;
/// ... and if there are many.
const HELD_BY_MANY: usize = 4 << 20;

/// An interface with its output queue.
pub struct Interface {
    /// Its name.
    pub name: String,
    index: i32,
    pub(super) socket: PacketSocket,
    /// Its output.
    pub output: Output,
    /// A link that ends here, if it is emulated at its end: received frames pass it first.
    pub input: Option<Output>,
}

impl Interface {
    /// Opens an interface of this thread's namespace.
    pub fn open(name: &str, output: Output) -> Result<Interface> {
        Interface::holding(HELD_BY_MANY, name, output)
    }
    /// Opens an interface whose ring holds this number of bytes of frames.
    pub fn holding(bytes: usize, name: &str, output: Output) -> Result<Interface> {
        let index = sys::interface_index(name).or_fail(|| format!("find the interface `{name}`"))?;
        let socket = PacketSocket::open(name, index, bytes).or_fail(|| format!("open a packet socket on `{name}`"))?;
        Ok(Interface { name: name.to_string(), index, socket, output, input: None })
    }
    /// Whether it has been removed; a later interface of the same name is another one.
    pub fn is_gone(&self) -> bool {
        sys::interface_gone(self.index)
    }
    /// Both ports.
    pub(super) fn ports(&self) -> impl Iterator<Item = &Output> {
        self.input.iter().chain([&self.output])
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
