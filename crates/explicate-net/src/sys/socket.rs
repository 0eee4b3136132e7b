//! Options of sockets and interfaces.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use super::{check, zeroed};

/// A value of a socket option without padding: every byte is defined, and any bytes are valid.
pub(super) trait Value: Copy {
    /// Any.
    const EMPTY: Self;
}

impl Value for i32 {
    const EMPTY: i32 = 0;
}
impl<const N: usize> Value for [u32; N] {
    const EMPTY: [u32; N] = [0; N];
}

/// Sets a socket option that rustix does not have.
pub(super) fn set_option<T: Value>(socket: impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads size_of::<T>() bytes of a value that outlives the call. No library has options by number, nor those
    // of packet sockets.
    check(unsafe { libc::setsockopt(fd, level, name, ptr::from_ref(&value).cast(), length) }).map(drop)
}

/// Reads a socket option that rustix does not have; bytes that the kernel does not fill are zero.
pub(super) fn option<T: Value>(socket: impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let (mut value, mut length) = (T::EMPTY, size_of::<T>() as libc::socklen_t);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, and any bytes are a valid value. No library has options by number.
    check(unsafe { libc::getsockopt(fd, level, name, ptr::from_mut(&mut value).cast(), &mut length) })?;
    Ok(value)
}

/// Sets a socket's buffers to this many bytes, above the system's limit if that is permitted.
pub fn grow_buffers(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))?;
    sockopt::set_socket_send_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes))?;
    Ok(())
}

/// Makes the kernel deliver TTL and ECN field of each datagram, and forbids fragmentation of those sent.
pub fn tell_ttl_and_ecn(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1)?;
    sockopt::set_ip_recvtos(socket, true)?;
    // A packet that is too long causes an error, instead of two packets.
    Ok(sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?)
}

/// Permits a socket to have addresses of other hosts (`IP_TRANSPARENT`): as a listener, and as the source of a
/// connection.
pub fn make_transparent(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        return set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1);
    }
    set_option(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)
}

/// Gives packets of a socket a mark of the kernel's (`SO_MARK`). Needs CAP_NET_ADMIN, or CAP_NET_RAW from Linux 5.17 on.
pub fn set_mark(socket: BorrowedFd<'_>, mark: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark as i32)
}

/// A socket for requests about interfaces.
fn any_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// The index of a network interface of this thread's namespace.
pub fn interface_index(name: &str) -> io::Result<i32> {
    Ok(netdevice::name_to_index(any_socket()?, name)? as i32)
}

/// Whether the interface with this index has left this thread's namespace; its name and state may change.
pub fn interface_gone(index: i32) -> bool {
    let Ok(socket) = any_socket() else { return false };
    matches!(netdevice::index_to_name_inlined(socket, index as u32), Err(Errno::NXIO | Errno::NODEV))
}

/// What a request about an interface carries beside its name.
pub(super) enum Argument<'a> {
    Flags(libc::c_int),
    /// A command of ethtool and its value.
    Ethtool(&'a mut [u32; 2]),
}

/// Sends a request about an interface to the kernel, through `to`. Returns its MTU after `SIOCGIFMTU`, its flags after `SIOCGIFFLAGS`.
pub(super) fn request(
    to: impl AsFd,
    command: libc::c_ulong,
    interface: &str,
    argument: Argument<'_>,
) -> io::Result<(i32, i16)> {
    let mut request: libc::ifreq = zeroed();
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    match argument {
        Argument::Flags(flags) => request.ifr_ifru.ifru_flags = flags as i16,
        Argument::Ethtool(words) => request.ifr_ifru.ifru_data = words.as_mut_ptr().cast(),
    }
    // SAFETY: the request, and the two words that it points to for ethtool, outlive the call; the fields read are integers within
    // the union, all of whose bytes are initialised. rustix has no requests about interfaces but their names.
    unsafe {
        check(libc::ioctl(to.as_fd().as_raw_fd(), command as _, &mut request))?;
        Ok((request.ifr_ifru.ifru_mtu, request.ifr_ifru.ifru_flags))
    }
}

/// The maximum length of a packet that an interface sends in one frame, bytes.
pub(super) fn mtu(interface: &str) -> io::Result<usize> {
    let (mtu, _) = request(any_socket()?, libc::SIOCGIFMTU as _, interface, Argument::Flags(0))?;
    Ok(mtu.max(0) as usize)
}

/// Whether an interface is a loopback interface.
pub fn is_loopback(interface: &str) -> io::Result<bool> {
    let (_, flags) = request(any_socket()?, libc::SIOCGIFFLAGS as _, interface, Argument::Flags(0))?;
    Ok(flags as libc::c_int & libc::IFF_LOOPBACK != 0)
}

/// Whether an interface carries frames: it is up, the other end too, and the kernel has noticed both. Until then it drops what is sent.
pub fn is_running(interface: &str) -> io::Result<bool> {
    let (_, flags) = request(any_socket()?, libc::SIOCGIFFLAGS as _, interface, Argument::Flags(0))?;
    let both = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags as libc::c_int & both == both)
}

/// Sends a command of ethtool, which writes zero if it writes. Returns the value after it.
fn ethtool(interface: &str, command: u32) -> io::Result<u32> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let mut words = [command, 0];
    request(any_socket()?, SIOCETHTOOL, interface, Argument::Ethtool(&mut words))?;
    Ok(words[1])
}

/// The offloads of an interface that merge packets, by `ethtool`'s names.
pub fn offloads(interface: &str) -> Vec<&'static str> {
    // ETHTOOL_GTSO, GGSO, GGRO of linux/ethtool.h; an interface that does not support the request has none.
    let on = |command: u32| ethtool(interface, command).is_ok_and(|value| value != 0);
    [(0x1e, "tso"), (0x23, "gso"), (0x2b, "gro")]
        .into_iter()
        .filter(|(command, _)| on(*command))
        .map(|(_, word)| word)
        .collect()
}

/// Disables segmentation, its reverse and checksums by hardware, as `ethtool -K DEV tso off gso off gro off tx off`
/// does.
pub fn offloads_off(interface: &str) -> io::Result<()> {
    // ETHTOOL_STXCSUM, STSO, SGSO, SGRO of linux/ethtool.h.
    [0x17, 0x1f, 0x24, 0x2c].into_iter().try_for_each(|command| ethtool(interface, command).map(drop))
}
