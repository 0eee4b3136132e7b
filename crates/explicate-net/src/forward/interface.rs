//! An interface of a forwarder.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::output::Output;
use crate::error::{Context, Result};
use crate::sys::{self, PacketSocket};

/// Bytes of received frames that an interface's ring holds, if there are few interfaces...
pub const HELD_BY_FEW: usize = 16 << 20;
/// ... and if there are many.
const HELD_BY_MANY: usize = 4 << 20;

/// Where the frames of an interface come from and go to: a packet socket, whose methods these are, or a simulated one.
pub trait Frames {
    /// Whether a frame has arrived.
    fn has_frame(&self) -> bool;
    /// Moves the oldest frame into `to`, as [`PacketSocket::receive`].
    fn receive(&mut self, to: &mut Vec<u8>) -> Option<u64>;
    /// Sends the first of these frames, as [`PacketSocket::send`]. Returns how many were taken.
    fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize>;
    /// Frames dropped because the ring was full, since the last call.
    fn drops(&self) -> u64;
}

impl Frames for PacketSocket {
    fn has_frame(&self) -> bool {
        PacketSocket::has_frame(self)
    }
    fn receive(&mut self, to: &mut Vec<u8>) -> Option<u64> {
        PacketSocket::receive(self, to)
    }
    fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        PacketSocket::send(self, frames)
    }
    fn drops(&self) -> u64 {
        PacketSocket::drops(self)
    }
}

/// An interface with its output queue.
pub struct Interface<S = PacketSocket> {
    /// Its name.
    pub name: String,
    index: i32,
    pub(super) socket: S,
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
        Ok(Interface { index, ..Interface::over(name, socket, output) })
    }
    /// Whether it has been removed; a later interface of the same name is another one.
    pub fn is_gone(&self) -> bool {
        sys::interface_gone(self.index)
    }
}

impl<S> Interface<S> {
    /// An interface over this socket.
    pub fn over(name: &str, socket: S, output: Output) -> Interface<S> {
        Interface { name: name.to_string(), index: 0, socket, output, input: None }
    }
    /// Both ports.
    pub(super) fn ports(&self) -> impl Iterator<Item = &Output> {
        self.input.iter().chain([&self.output])
    }
}

impl<S: AsFd> AsFd for Interface<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
