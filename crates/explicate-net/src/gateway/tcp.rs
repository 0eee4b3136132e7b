//! A TCP connection with a host, at the kernel or, in tests, at a simulated one.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::patience::Patience;
#[cfg(feature = "simulated")]
use crate::simulated::{
    faults::{Fault, is_back},
    tcp::End,
};
use crate::sys;

/// A host for which bytes wait is not asked by TCP's keepalive. It is gone when it has acknowledged nothing for the user timeout, by two
/// looks so far apart, or a sixth of that, at which the kernel waits for an acknowledgement. `TCP_USER_TIMEOUT` would also end the connections
/// of hosts that pause: their kernels acknowledge, but their window is closed (tcp(7), Linux from 5.11).
const LOOK: Duration = Duration::from_secs(10);

/// A connection; dropped without [`Tcp::release`] after [`Tcp::prepare`], it ends by a reset (RST).
pub struct Tcp {
    of: Kind,
    patience: Patience,
    /// When bytes were last read or written, ns of the monotonic clock.
    moved: AtomicU64,
    bytes: Arc<Bytes>,
}

/// Bytes that a connection has carried so far.
#[derive(Default, Debug)]
pub struct Bytes {
    /// From its host.
    pub read: AtomicU64,
    /// To it.
    pub written: AtomicU64,
}

enum Kind {
    /// Of the kernel.
    Kernel(TcpStream),
    /// Of a simulated host.
    #[cfg(feature = "simulated")]
    Simulated(End),
}

impl From<TcpStream> for Tcp {
    fn from(stream: TcpStream) -> Tcp {
        Tcp::of(Kind::Kernel(stream))
    }
}

#[cfg(feature = "simulated")]
impl From<End> for Tcp {
    fn from(end: End) -> Tcp {
        Tcp::of(Kind::Simulated(end))
    }
}

impl Tcp {
    fn of(of: Kind) -> Tcp {
        Tcp { of, patience: Patience::default(), moved: AtomicU64::new(sys::monotonic()), bytes: Arc::default() }
    }
    /// Sends at once what is written, notices hosts that are gone, and has the connection end by a reset if it is not released:
    /// the kernel closes the connections of a killed program.
    pub fn prepare(&mut self, patience: Patience) {
        self.patience = patience;
        match &self.of {
            Kind::Kernel(stream) => {
                let _ = stream.set_nodelay(true);
                // The urgent byte keeps its place among the others, as RFC 6093 section 6 asks of those who read it.
                let _ = sockopt::set_socket_oobinline(stream, true);
                let _ = sockopt::set_socket_keepalive(stream, true);
                let _ = sockopt::set_tcp_keepidle(stream, patience.keepalive());
                let _ = sockopt::set_tcp_keepintvl(stream, patience.keepalive_interval());
                let _ = sockopt::set_tcp_keepcnt(stream, patience.keepalive_probes);
                let _ = end_by_reset(stream);
            }
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => {
                end.keep_alive(patience.keepalive() + patience.keepalive_probes * patience.keepalive_interval())
            }
        }
    }
    /// Completes when the connection has failed, whether or not it still has bytes to be read, or its host is gone, or it was idle for too
    /// long.
    pub async fn failed(&self) {
        tokio::select! {
            biased;
            () = self.broken() => {}
            () = self.unanswered() => {}
            () = self.idle() => {}
        }
    }
    /// Completes when nothing was read or written for the idle timeout, if there is one.
    async fn idle(&self) {
        let Some(timeout) = self.patience.idle_timeout() else { return std::future::pending().await };
        loop {
            let idle = Duration::from_nanos(sys::monotonic().saturating_sub(self.moved.load(Ordering::Relaxed)));
            match timeout.checked_sub(idle) {
                None | Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
            }
        }
    }
    /// What it has carried, which goes on to count.
    pub fn bytes(&self) -> Arc<Bytes> {
        self.bytes.clone()
    }
    /// Bytes were read or written.
    fn moves(&self, done: io::Result<usize>, counter: &AtomicU64) -> io::Result<usize> {
        if let Ok(bytes) = done {
            counter.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        if let (Ok(1..), Some(_)) = (&done, self.patience.idle_timeout) {
            self.moved.store(sys::monotonic(), Ordering::Relaxed);
        }
        done
    }
    /// Completes when the host has not acknowledged for too long what waits for it.
    async fn unanswered(&self) {
        #[cfg(feature = "simulated")]
        if is_back(Fault::Waiting) || is_back(Fault::Cancel) {
            return std::future::pending().await;
        }
        let (mut before, timeout) = (false, self.patience.user_timeout());
        loop {
            tokio::time::sleep(LOOK.min(timeout / 6)).await;
            let unacked = self.unacked();
            if before && unacked.is_some_and(|time| time >= timeout) {
                return;
            }
            before = unacked.is_some();
        }
    }
    /// The time since the last acknowledgement, if one is due.
    fn unacked(&self) -> Option<Duration> {
        match &self.of {
            Kind::Kernel(stream) => {
                let info = sys::tcp_info(stream.as_fd()).ok().filter(|info| info.is_unanswered);
                info.map(|info| Duration::from_millis(info.unacked_ms as u64))
            }
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => end.unacked(),
        }
    }
    async fn broken(&self) {
        match &self.of {
            Kind::Kernel(stream) => {
                let none = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
                while stream.ready(Interest::ERROR).await.is_ok() && matches!(stream.take_error(), Ok(None)) {
                    // The error was taken by another call, or there was none: waits for the next one.
                    let _ = stream.try_io(Interest::ERROR, none);
                }
            }
            #[cfg(feature = "simulated")]
            Kind::Simulated(_) if is_back(Fault::Cancel) => std::future::pending().await,
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => end.failed().await,
        }
    }
    /// Reads some bytes; 0 at the end.
    pub async fn read(&self, block: &mut [u8]) -> io::Result<usize> {
        let read = match &self.of {
            Kind::Kernel(stream) => loop {
                stream.readable().await?;
                match stream.try_read(block) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    done => break done,
                }
            },
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => end.read(block).await,
        };
        self.moves(read, &self.bytes.read)
    }
    /// Writes what there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &self.of {
            Kind::Kernel(stream) => stream.try_write(bytes),
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => end.try_write(bytes),
        };
        self.moves(written, &self.bytes.written)
    }
    /// Completes when there may be room.
    pub async fn writable(&self) -> io::Result<()> {
        match &self.of {
            Kind::Kernel(stream) => stream.writable().await,
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => {
                end.writable().await;
                Ok(())
            }
        }
    }
    /// Sends nothing more (FIN).
    pub fn finish(&self) -> io::Result<()> {
        match &self.of {
            Kind::Kernel(stream) => Ok(shutdown(stream, Shutdown::Write)?),
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => end.finish(),
        }
    }
    /// Lets a connection that was [prepared](Tcp::prepare) end orderly.
    pub fn release(self) {
        match self.of {
            Kind::Kernel(stream) => drop(sockopt::set_socket_linger(&stream, None)),
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => end.release(),
        }
    }
    /// Closes the connection by a reset (RST).
    pub fn reset(self) {
        match self.of {
            Kind::Kernel(stream) => drop(end_by_reset(&stream)),
            #[cfg(feature = "simulated")]
            Kind::Simulated(end) => drop(end),
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
    use tokio::time::Instant;

    use super::*;

    /// The byte that is urgent is read in its place.
    #[tokio::test]
    async fn urgent_bytes_are_among_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut tcp = Tcp::from(listener.accept().await.unwrap().0);
        tcp.prepare(Patience::default());
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

    /// In a time that moves when all wait, while a host says a word every hour, and then no more.
    #[test]
    fn an_idle_connection_ends_after_its_timeout_and_not_sooner() {
        let record = std::sync::Arc::new(crate::simulated::record::Record::new(
            1,
            crate::simulated::record::Limits { connection: i64::MAX, all: i64::MAX },
        ));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let lives = |idle_timeout: Option<u32>| {
            runtime.block_on(async {
                let _clock = crate::simulated::clock::Simulated::begin();
                use crate::simulated::{record::Who, tcp};
                let plan = tcp::Plan { capacity: 1000, delay: 1, number: 0, who: [Who::Client, Who::Near] };
                let [host, near] = tcp::pair(plan, &record);
                let mut near = Tcp::from(near);
                near.prepare(Patience { idle_timeout, ..Patience::default() });
                let began = Instant::now();
                let talks = async {
                    for _ in 0..5 {
                        tokio::time::sleep(Duration::from_secs(3600)).await;
                        host.write_all(b"x").await.unwrap();
                        assert_eq!(near.read(&mut [0; 9]).await.unwrap(), 1);
                    }
                    std::future::pending::<()>().await
                };
                let ends = tokio::time::timeout(Duration::from_secs(1_000_000), near.failed());
                tokio::select! {
                    biased;
                    () = talks => None,
                    ended = ends => ended.ok().map(|()| began.elapsed().as_secs()),
                }
            })
        };
        assert_eq!(lives(Some(7440)), Some(5 * 3600 + 7440));
        assert_eq!(lives(None), None);
    }
}
