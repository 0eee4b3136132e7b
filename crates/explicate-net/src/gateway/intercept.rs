//! Sockets of intercepted connections: listeners that accept connections to any address, and connections from any address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::config::ClientAddress;
use super::preface::Preface;
use crate::sys;

/// Connections that wait to be accepted, per listener.
const BACKLOG: u32 = 1024;
/// A host that has been silent for so long is asked whether it still has the connection, again in these intervals, and is gone after so
/// many questions: a host that vanished holds its place for 2 minutes. Its answers keep the connection in the kernel's memory
/// ([`carried`](super::carried)).
const KEEP_ALIVE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_AGAIN: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TRIES: u32 = 6;

/// The listener of intercepted connections of one family. Needs CAP_NET_ADMIN or CAP_NET_RAW.
pub fn listen(port: u16, ipv6: bool) -> io::Result<TcpListener> {
    let socket = if ipv6 { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    socket.set_reuseaddr(true)?;
    sys::make_transparent(socket.as_fd(), ipv6)?;
    if ipv6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    let any = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    // What it accepts inherits that: a connection that no task has taken yet also ends by a reset when the program is killed.
    end_by_reset(&socket)?;
    socket.bind(SocketAddr::new(any, port))?;
    socket.listen(BACKLOG)
}

/// Connects to the destination of a client.
pub async fn connect(preface: &Preface, from: ClientAddress) -> io::Result<TcpStream> {
    let ipv6 = preface.destination.is_ipv6();
    let socket = if ipv6 { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    if from == ClientAddress::Keep {
        sys::make_transparent(socket.as_fd(), ipv6)?;
        socket.set_reuseaddr(true)?;
        // A port that is taken here is not a reason to refuse: the address is what the far host needs to know.
        socket.bind(preface.client).or_else(|_| socket.bind(SocketAddr::new(preface.client.ip(), 0)))?;
    }
    end_by_reset(&socket)?;
    let stream = socket.connect(preface.destination).await?;
    prepare(&stream);
    Ok(stream)
}

/// Sends at once what is written, notices hosts that are gone, and has the connection end by a reset if it is not [`release`]d:
/// the kernel closes the connections of a killed program.
pub fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_AGAIN);
    let _ = sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_TRIES);
    let _ = end_by_reset(stream);
}

/// Has a socket end by a reset however the program ends, and not by a FIN behind a part of the bytes.
fn end_by_reset(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
}

/// Lets a connection that was [`prepare`]d end orderly.
pub fn release(stream: TcpStream) {
    let _ = sockopt::set_socket_linger(&stream, None);
}

/// Closes a connection by a reset (RST).
pub fn reset(stream: TcpStream) {
    let _ = end_by_reset(&stream);
}
