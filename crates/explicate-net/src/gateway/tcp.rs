//! A TCP connection with a host, at the kernel or, in tests, at a simulated one.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;

#[cfg(feature = "simulated")]
use crate::simulated::{
    faults::{Fault, is_back},
    tcp::End,
};
use crate::sys;

/// A host that has been silent for so long is asked whether it still has the connection, again in these intervals, and is gone after so
/// many questions: a host that vanished holds its place for 2 minutes. Its answers keep the connection in the kernel's memory
/// ([`carried`](super::carried)).
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// See there.
pub const KEEP_ALIVE_AGAIN: Duration = Duration::from_secs(10);
/// See there.
pub const KEEP_ALIVE_TRIES: u32 = 6;
/// A host for which bytes wait is not asked so, but is gone after the same time without an acknowledgement, by two looks so far apart at
/// which the kernel waits for one. `TCP_USER_TIMEOUT` would also end the connections of hosts that pause: their kernels acknowledge, but
/// their window is closed (tcp(7), Linux from 5.11).
const LOOK: Duration = KEEP_ALIVE_AGAIN;

/// A connection; dropped without [`Tcp::release`] after [`Tcp::prepare`], it ends by a reset (RST).
pub enum Tcp {
    /// Of the kernel.
    Kernel(TcpStream),
    /// Of a simulated host.
    #[cfg(feature = "simulated")]
    Simulated(End),
}

impl Tcp {
    /// Sends at once what is written, notices hosts that are gone, and has the connection end by a reset if it is not released:
    /// the kernel closes the connections of a killed program.
    pub fn prepare(&self) {
        match self {
            Tcp::Kernel(stream) => {
                let _ = stream.set_nodelay(true);
                // The urgent byte keeps its place among the others, as RFC 6093 section 6 asks of those who read it.
                let _ = sockopt::set_socket_oobinline(stream, true);
                let _ = sockopt::set_socket_keepalive(stream, true);
                let _ = sockopt::set_tcp_keepidle(stream, KEEP_ALIVE);
                let _ = sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_AGAIN);
                let _ = sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_TRIES);
                let _ = end_by_reset(stream);
            }
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.keep_alive(KEEP_ALIVE + KEEP_ALIVE_TRIES * KEEP_ALIVE_AGAIN),
        }
    }
    /// Completes when the connection has failed, whether or not it still has bytes to be read, or its host is gone.
    pub async fn failed(&self) {
        tokio::select! {
            biased;
            () = self.broken() => {}
            () = self.unanswered() => {}
        }
    }
    /// Completes when the host has not acknowledged for too long what waits for it.
    async fn unanswered(&self) {
        #[cfg(feature = "simulated")]
        if is_back(Fault::Waiting) || is_back(Fault::Cancel) {
            return std::future::pending().await;
        }
        let mut before = false;
        loop {
            tokio::time::sleep(LOOK).await;
            let unacked = self.unacked();
            if before && unacked.is_some_and(|time| time >= KEEP_ALIVE + KEEP_ALIVE_TRIES * KEEP_ALIVE_AGAIN) {
                return;
            }
            before = unacked.is_some();
        }
    }
    /// The time since the last acknowledgement, if one is due.
    fn unacked(&self) -> Option<Duration> {
        match self {
            Tcp::Kernel(stream) => {
                let info = sys::tcp_info(stream.as_fd()).ok().filter(|info| info.is_unanswered);
                info.map(|info| Duration::from_millis(info.unacked_ms as u64))
            }
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.unacked(),
        }
    }
    async fn broken(&self) {
        match self {
            Tcp::Kernel(stream) => {
                let none = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
                while stream.ready(Interest::ERROR).await.is_ok() && matches!(stream.take_error(), Ok(None)) {
                    // The error was taken by another call, or there was none: waits for the next one.
                    let _ = stream.try_io(Interest::ERROR, none);
                }
            }
            #[cfg(feature = "simulated")]
            Tcp::Simulated(_) if is_back(Fault::Cancel) => std::future::pending().await,
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.failed().await,
        }
    }
    /// Reads some bytes; 0 at the end.
    pub async fn read(&self, block: &mut [u8]) -> io::Result<usize> {
        match self {
            Tcp::Kernel(stream) => loop {
                stream.readable().await?;
                match stream.try_read(block) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                }
            },
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.read(block).await,
        }
    }
    /// Writes what there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Tcp::Kernel(stream) => stream.try_write(bytes),
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.try_write(bytes),
        }
    }
    /// Completes when there may be room.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Tcp::Kernel(stream) => stream.writable().await,
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => {
                end.writable().await;
                Ok(())
            }
        }
    }
    /// Sends nothing more (FIN).
    pub fn finish(&self) -> io::Result<()> {
        match self {
            Tcp::Kernel(stream) => Ok(shutdown(stream, Shutdown::Write)?),
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.finish(),
        }
    }
    /// Lets a connection that was [prepared](Tcp::prepare) end orderly.
    pub fn release(self) {
        match self {
            Tcp::Kernel(stream) => drop(sockopt::set_socket_linger(&stream, None)),
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => end.release(),
        }
    }
    /// Closes the connection by a reset (RST).
    pub fn reset(self) {
        match self {
            Tcp::Kernel(stream) => drop(end_by_reset(&stream)),
            #[cfg(feature = "simulated")]
            Tcp::Simulated(end) => drop(end),
        }
    }
}

/// Has a socket end by a reset however the program ends, and not by a FIN behind a part of the bytes.
pub fn end_by_reset(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
}

#[cfg(test)]
mod tests {
    use rustix::net::{SendFlags, send};
    use tokio::net::TcpListener;

    use super::*;

    /// The byte that is urgent is read in its place.
    #[tokio::test]
    async fn urgent_bytes_are_among_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let tcp = Tcp::Kernel(listener.accept().await.unwrap().0);
        tcp.prepare();
        for (bytes, flags) in [("abc", SendFlags::empty()), ("!", SendFlags::OOB), ("def", SendFlags::empty())] {
            assert_eq!(send(&client, bytes.as_bytes(), flags).unwrap(), bytes.len());
        }
        drop(client);
        let (mut all, mut block) = (Vec::new(), [0; 64]);
        loop {
            match tcp.read(&mut block).await.unwrap() {
                0 => break,
                read => all.extend_from_slice(&block[..read]),
            }
        }
        assert_eq!(all, b"abc!def");
    }
}
