//! Sockets of intercepted connections: listeners that accept connections to any address, and connections from any address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
#[cfg(feature = "simulated")]
use std::sync::Arc;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket};

use super::config::{ClientAddress, Patience};
use super::preface::Preface;
use super::tcp::{Tcp, end_by_reset};
#[cfg(feature = "simulated")]
use crate::simulated::hosts::Site;
use crate::sys;

/// Connections that wait to be accepted, per listener.
const BACKLOG: u32 = 1024;
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

/// How connections to hosts are opened.
#[derive(Default)]
pub enum Hosts {
    /// By the kernel.
    #[default]
    Kernel,
    /// To simulated hosts.
    #[cfg(feature = "simulated")]
    Simulated(Arc<Site>),
}

impl Hosts {
    /// Connects to the destination of a client.
    pub async fn connect(&self, preface: &Preface, from: ClientAddress, patience: Patience) -> io::Result<Tcp> {
        let mut tcp = match self {
            Hosts::Kernel => connect(preface, from).await?,
            #[cfg(feature = "simulated")]
            Hosts::Simulated(site) => site.connect(preface).await?,
        };
        tcp.prepare(patience);
        Ok(tcp)
    }
}

async fn connect(preface: &Preface, from: ClientAddress) -> io::Result<Tcp> {
    let ipv6 = preface.destination.is_ipv6();
    let socket = if ipv6 { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    if from == ClientAddress::Keep {
        sys::make_transparent(socket.as_fd(), ipv6)?;
        socket.set_reuseaddr(true)?;
        // A port that is taken here is not a reason to refuse: the address is what the far host needs to know.
        socket.bind(preface.client).or_else(|_| socket.bind(SocketAddr::new(preface.client.ip(), 0)))?;
    }
    end_by_reset(&socket)?;
    Ok(socket.connect(preface.destination).await?.into())
}
