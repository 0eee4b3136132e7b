//! Options of sockets and interfaces.

use std::ffi::CString;
use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::check;

/// Sets a socket option to a value that is plain data.
pub(super) fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes of a value that outlives the call.
    let length = length_of(&value);
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), length) }).map(drop)
}
/// How long a value is that the kernel reads or writes.
pub(super) fn length_of<T>(value: &T) -> libc::socklen_t {
    size_of_val(value) as libc::socklen_t
}

/// Room for this many bytes in a socket's buffers, past the system's limit if that is allowed.
pub fn grow_buffers(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    for (forced, asked) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        set_option(socket, libc::SOL_SOCKET, forced, bytes)
            .or_else(|_| set_option(socket, libc::SOL_SOCKET, asked, bytes))?;
    }
    Ok(())
}

/// Datagrams tell their TTL and ECN field from now on.
pub fn tell_ttl_and_ecn(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1i32)?;
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1i32)?;
    // Never fragmented: a packet that is too long is an error, not two packets.
    set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
}

/// What the kernel believes that a path carries in one packet, bytes of IP: the interface's, or less if a router has said so. The
/// socket has to be connected.
pub fn path_mtu(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut value: libc::c_int = 0;
    let mut length = length_of(&value);
    // SAFETY: the kernel writes at most `length` bytes of an int that outlives the call.
    check(unsafe {
        let out = ptr::from_mut(&mut value).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MTU, out, &mut length)
    })?;
    Ok(value.max(0) as usize)
}

/// Whether a datagram was refused because it is longer than what the kernel believes that the path carries.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// The index of a network interface of this thread's namespace.
pub fn interface_index(name: &str) -> io::Result<i32> {
    let name = CString::new(name)?;
    // SAFETY: the name is a C string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as i32),
    }
}

/// Whether the interface of this index is gone from this thread's namespace; its name and state may change.
pub fn interface_gone(index: i32) -> bool {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: there is room for the longest name.
    let found = unsafe { !libc::if_indextoname(index as u32, name.as_mut_ptr()).is_null() };
    !found && io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO)
}

/// A request about an interface.
fn request(interface: &str) -> libc::ifreq {
    // SAFETY: plain data.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}
/// Asks the kernel about an interface, or tells it something.
fn ask(command: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: a new descriptor, owned by nobody else; the request and what it leads to outlive the call.
    unsafe {
        let socket =
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?);
        check(libc::ioctl(socket.as_raw_fd(), command, request)).map(drop)
    }
}

/// The longest packet that an interface sends in one frame, bytes.
pub(super) fn mtu(interface: &str) -> io::Result<usize> {
    let mut request = request(interface);
    ask(libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: what that command fills in.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
}

/// Whether an interface leads nowhere but back to this host.
pub fn is_loopback(interface: &str) -> io::Result<bool> {
    let mut request = request(interface);
    ask(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: what that command fills in.
    Ok(unsafe { request.ifr_ifru.ifru_flags } as libc::c_int & libc::IFF_LOOPBACK != 0)
}

/// The offloads of an interface that put packets together, by `ethtool`'s words.
pub fn offloads(interface: &str) -> Vec<&'static str> {
    // ETHTOOL_GTSO, GGSO, GGRO of linux/ethtool.h; who cannot say has none.
    let on = |command: u32| {
        let mut value = [command, 0];
        let mut request = request(interface);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        ask(SIOCETHTOOL, &mut request).is_ok() && value[1] != 0
    };
    [(0x1e, "tso"), (0x23, "gso"), (0x2b, "gro")]
        .into_iter()
        .filter(|(command, _)| on(*command))
        .map(|(_, word)| word)
        .collect()
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Switches segmentation, its reverse and checksums by hardware off, as `ethtool -K DEV tso off gso off gro off tx off` does.
pub fn offloads_off(interface: &str) -> io::Result<()> {
    // ETHTOOL_STXCSUM, STSO, SGSO, SGRO of linux/ethtool.h.
    for command in [0x17u32, 0x1f, 0x24, 0x2c] {
        let mut value = [command, 0u32];
        let mut request = request(interface);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        ask(SIOCETHTOOL, &mut request)?;
    }
    Ok(())
}
