//! System calls that the standard library does not have: the only file with unsafe code.
//!
//! Everything here is a thin, safe function over one call. Buffers belong to the types that the kernel writes into
//! ([`Batch`], [`Outgoing`]), and live as long as the call.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Turns the -1 of a call into its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn clock(id: libc::clockid_t) -> u64 {
    // SAFETY: a timespec is plain data, and the kernel fills it.
    let mut t: libc::timespec = unsafe { zeroed() };
    unsafe { libc::clock_gettime(id, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread, nanoseconds.
pub fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Timers of this thread expire when they are due, not some microseconds later.
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}

/// This thread goes before all that are not so privileged, as a router's does in a kernel.
pub fn go_first() -> io::Result<()> {
    // SAFETY: a sched_param is plain data, read while it lives.
    unsafe {
        let mut param: libc::sched_param = zeroed();
        param.sched_priority = 1;
        check(libc::sched_setscheduler(0, libc::SCHED_RR, &param)).map(drop)
    }
}

/// This thread runs on this processor alone.
pub fn stay_on(processor: usize) -> io::Result<()> {
    // SAFETY: a cpu_set_t is plain data, read while it lives; CPU_SET ignores numbers beyond it.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(processor % libc::CPU_SETSIZE as usize, &mut set);
        check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)).map(drop)
    }
}

/// This thread and those that it starts have no capability any more, and get none by starting programs.
pub fn drop_privileges() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0u32; 6];
    // SAFETY: PR_SET_NO_NEW_PRIVS takes numbers; capset reads a header of two words and six words of sets.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize))?;
        check(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) as libc::c_int).map(drop)
    }
}

// ------------------------------------------------------------------------------------------------ signals

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// SIGINT, SIGTERM and SIGHUP only set a flag from now on, which [`stopped`] reads.
pub fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does nothing but store to an atomic. Without SA_RESTART calls that wait return.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Whether a signal asked to stop.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

// --------------------------------------------------------------------------------------------- namespaces

/// This thread works in the network namespace behind `fd` from now on.
pub fn enter_namespace(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes a descriptor and a number.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Sends SIGTERM to a child when this process dies, whatever it dies of.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
}

// ------------------------------------------------------------------------------------------------ sockets

/// Sets a socket option to a value that is plain data.
fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes of a value that outlives the call.
    let length = size_of::<T>() as libc::socklen_t;
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), length) }).map(drop)
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

/// The index of a network interface of this thread's namespace.
pub fn interface_index(name: &str) -> io::Result<i32> {
    let name = CString::new(name)?;
    // SAFETY: the name is a C string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as i32),
    }
}

/// What the kernel tells of a TCP connection.
#[derive(Clone, Copy, Default, Debug)]
pub struct TcpInfo {
    /// Segments not acknowledged.
    pub unacked: u32,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Segments sent.
    pub segments_out: u32,
}

/// Asks the kernel about a TCP connection.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    /// struct tcp_info of linux/tcp.h, up to tcpi_segs_out: eight bytes, then words.
    const WORDS: usize = 36;
    let mut words = [0u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of plain data.
    check(unsafe {
        let out = words.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, out, &mut length)
    })?;
    // Bytes 24, 68, 80, 100 and 136.
    Ok(TcpInfo {
        unacked: words[6],
        rtt_us: words[17],
        cwnd: words[20],
        retransmitted: words[25],
        segments_out: words[34],
    })
}

/// Connects with a congestion control of the kernel's, and segments of at most so many bytes.
pub fn tcp_connect(to: std::net::SocketAddr, law: &str, segment: u16) -> io::Result<std::net::TcpStream> {
    let std::net::SocketAddr::V4(to) = to else { return Err(io::Error::from(io::ErrorKind::Unsupported)) };
    // SAFETY: a new descriptor, owned by nobody else; the name and the address are read while they live.
    unsafe {
        let socket =
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?);
        let name = law.as_ptr().cast();
        let length = law.len() as libc::socklen_t;
        check(libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, length))?;
        set_option(std::os::fd::AsFd::as_fd(&socket), libc::IPPROTO_TCP, libc::TCP_MAXSEG, (segment + 12) as i32)?;
        let mut address: libc::sockaddr_in = zeroed();
        address.sin_family = libc::AF_INET as u16;
        address.sin_port = to.port().to_be();
        address.sin_addr.s_addr = u32::from(*to.ip()).to_be();
        let length = size_of_val(&address) as libc::socklen_t;
        check(libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length))?;
        Ok(std::net::TcpStream::from(socket))
    }
}

/// Switches segmentation, its reverse and checksums by hardware off, as `ethtool -K DEV tso off gso off gro off tx off` does.
pub fn offloads_off(interface: &str) -> io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // ETHTOOL_STXCSUM, STSO, SGSO, SGRO of linux/ethtool.h.
    for command in [0x17u32, 0x1f, 0x24, 0x2c] {
        let mut value = [command, 0u32];
        // SAFETY: an ifreq is plain data; its pointer leads to two words that outlive the call.
        unsafe {
            let mut request: libc::ifreq = zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
                *to = from as libc::c_char;
            }
            request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
            let socket = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0))?);
            check(libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request))?;
        }
    }
    Ok(())
}

/// `PACKET_IGNORE_OUTGOING` and `PACKET_VNET_HDR` of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_VNET_HDR: libc::c_int = 15;
/// Length of the virtio header in front of every frame of a packet socket, which tells of offloads.
pub const OFFLOAD_LEN: usize = 10;

/// A socket for all frames that come in by an interface, and for any to go out by it. Each has an offload header in front.
pub fn packet_socket(interface: i32) -> io::Result<OwnedFd> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: with protocol 0 nothing comes in before the socket is bound to its interface.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
    let fd = std::os::fd::AsFd::as_fd(&socket);
    set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1i32)?;
    set_option(fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1i32)?;
    set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32)?;
    grow_buffers(fd, 16 << 20)?;
    // SAFETY: plain data whose other fields may be zero.
    let (mut address, mut member): (libc::sockaddr_ll, libc::packet_mreq) = unsafe { (zeroed(), zeroed()) };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = interface;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is read while it lives.
    check(unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) })?;
    member.mr_ifindex = interface;
    member.mr_type = libc::PACKET_MR_PROMISC as u16;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, member)?;
    Ok(socket)
}

/// Frames that a packet socket's buffer had no room for since the last call.
pub fn packet_drops(socket: BorrowedFd<'_>) -> u64 {
    let mut stats = [0u32; 2];
    let mut length = size_of_val(&stats) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, a tpacket_stats of two words.
    let result = unsafe {
        let out = stats.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, out, &mut length)
    };
    if result == 0 { stats[1] as u64 } else { 0 }
}

/// Messages to one call.
pub const BATCH: usize = 32;
const CONTROL: usize = 128;

/// Buffers for messages to receive, many to a call.
pub struct Batch {
    bytes: Vec<u8>,
    room: usize,
    control: Vec<[u64; CONTROL / 8]>,
    names: Vec<libc::sockaddr_in>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    /// How far the clock of the kernel's time stamps is ahead of the monotonic one. Asked for with every call, for it may be set.
    real_ahead: u64,
}

// SAFETY: its pointers lead into its own vectors, which move with it (their heap does not).
unsafe impl Send for Batch {}

/// A message that was received.
pub struct Message<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// It was longer than the buffer.
    pub cut: bool,
    /// Who sent it, if that has an IPv4 address.
    pub from: Option<SocketAddrV4>,
    /// The IP header's TTL, if asked for.
    pub ttl: u8,
    /// The IP header's traffic class, if asked for.
    pub tos: u8,
    /// When the kernel got it, nanoseconds of the monotonic clock, if asked for.
    pub at: Option<u64>,
}

impl Batch {
    /// Buffers for messages of up to `room` bytes.
    pub fn new(room: usize) -> Batch {
        // SAFETY: all plain data.
        let (name, vector, header) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Batch {
            bytes: vec![0; BATCH * room],
            room,
            control: vec![[0; CONTROL / 8]; BATCH],
            names: vec![name; BATCH],
            vectors: vec![vector; BATCH],
            headers: vec![header; BATCH],
            real_ahead: 0,
        }
    }
    /// Receives what there is; how many messages that were. Does not wait.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for i in 0..BATCH {
            let base = self.bytes[i * self.room..].as_mut_ptr();
            self.vectors[i] = libc::iovec { iov_base: base.cast(), iov_len: self.room };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = ptr::from_mut(&mut self.names[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = &mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = self.control[i].as_mut_ptr().cast();
            header.msg_controllen = CONTROL;
            header.msg_flags = 0;
        }
        // SAFETY: all pointers lead into vectors of this value, whose lengths they carry.
        let flags = libc::MSG_DONTWAIT;
        let result = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), BATCH as u32, flags, ptr::null_mut())
        };
        self.real_ahead = clock(libc::CLOCK_REALTIME).saturating_sub(monotonic());
        match check(result) {
            Ok(n) => Ok(n as usize),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            // What an earlier message met with on its way, such as a port that nobody listens at.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ECONNREFUSED | libc::ENETDOWN)) => Ok(0),
            Err(e) => Err(e),
        }
    }
    /// A message of the last call.
    pub fn message(&self, i: usize) -> Message<'_> {
        let header = &self.headers[i];
        let (mut ttl, mut tos, mut at_real) = (0, 0, None);
        // SAFETY: the kernel has filled the control buffer with messages whose lengths it tells.
        unsafe {
            let mut at = libc::CMSG_FIRSTHDR(&header.msg_hdr);
            while !at.is_null() {
                match ((*at).cmsg_level, (*at).cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_TTL) => {
                        ttl = ptr::read_unaligned(libc::CMSG_DATA(at).cast::<libc::c_int>()) as u8;
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => tos = *libc::CMSG_DATA(at),
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let t = ptr::read_unaligned(libc::CMSG_DATA(at).cast::<libc::timespec>());
                        at_real = Some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64);
                    }
                    _ => {}
                }
                at = libc::CMSG_NXTHDR(&header.msg_hdr, at);
            }
        }
        let name = &self.names[i];
        let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
        let known = header.msg_hdr.msg_namelen > 0 && name.sin_family == libc::AF_INET as u16;
        let first = i * self.room;
        Message {
            bytes: &self.bytes[first..first + (header.msg_len as usize).min(self.room)],
            cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            from: known.then(|| SocketAddrV4::new(ip, u16::from_be(name.sin_port))),
            ttl,
            tos,
            at: at_real.map(|real| real.saturating_sub(self.real_ahead)),
        }
    }
}

/// A message to send.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where to, and with which traffic class, on a UDP socket.
    pub to: Option<(SocketAddrV4, u8)>,
}

/// Sends messages, at most [`BATCH`] of them; how many were taken. Does not wait. An error means that the first was refused.
pub fn send(socket: BorrowedFd<'_>, messages: &[Outgoing<'_>]) -> io::Result<usize> {
    const SPACE: usize = 24; // CMSG_SPACE of an int
    let count = messages.len().min(BATCH);
    // SAFETY: all plain data.
    let (name, vector, header): (libc::sockaddr_in, libc::iovec, libc::mmsghdr) =
        unsafe { (zeroed(), zeroed(), zeroed()) };
    let (mut names, mut vectors, mut headers) = ([name; BATCH], [vector; BATCH], [header; BATCH]);
    let mut control = [[0u64; SPACE / 8]; BATCH];
    for (i, message) in messages[..count].iter().enumerate() {
        vectors[i] = libc::iovec { iov_base: message.bytes.as_ptr().cast_mut().cast(), iov_len: message.bytes.len() };
        let header = &mut headers[i].msg_hdr;
        header.msg_iov = &mut vectors[i];
        header.msg_iovlen = 1;
        let Some((to, tos)) = message.to else { continue };
        names[i].sin_family = libc::AF_INET as u16;
        names[i].sin_port = to.port().to_be();
        names[i].sin_addr.s_addr = u32::from(*to.ip()).to_be();
        header.msg_name = ptr::from_mut(&mut names[i]).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        if tos != 0 {
            header.msg_control = control[i].as_mut_ptr().cast();
            header.msg_controllen = SPACE;
            // SAFETY: the buffer has room for one header and an int, and is aligned for it.
            unsafe {
                let first = libc::CMSG_FIRSTHDR(header);
                (*first).cmsg_level = libc::IPPROTO_IP;
                (*first).cmsg_type = libc::IP_TOS;
                (*first).cmsg_len = libc::CMSG_LEN(4) as usize;
                ptr::write_unaligned(libc::CMSG_DATA(first).cast::<libc::c_int>(), tos as libc::c_int);
            }
        }
    }
    // SAFETY: all pointers lead into arrays above and into the callers' bytes, which the kernel only reads.
    let result = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    check(result).map(|n| n as usize)
}

// ------------------------------------------------------------------------------------------------ waiting

/// A timer as a descriptor.
pub fn timer() -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor, owned by nobody else.
    unsafe {
        let fd = check(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The timer expires at this time of the monotonic clock, nanoseconds.
pub fn set_timer(timer: BorrowedFd<'_>, at: u64) -> io::Result<()> {
    // SAFETY: plain data, read while it lives. An all-zero time would disarm.
    unsafe {
        let mut spec: libc::itimerspec = zeroed();
        spec.it_value.tv_sec = (at / 1_000_000_000) as i64;
        spec.it_value.tv_nsec = (at % 1_000_000_000).max(1) as i64;
        check(libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &spec, ptr::null_mut())).map(drop)
    }
}

/// Descriptors to wait for.
#[derive(Default)]
pub struct Polled(Vec<libc::pollfd>);

impl Polled {
    /// Waits until one of the descriptors can be read, at most so many nanoseconds.
    pub fn wait(&mut self, fds: &[BorrowedFd<'_>], nanoseconds: u64) -> io::Result<()> {
        self.0.clear();
        self.0.extend(fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }));
        let limit = libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as i64,
            tv_nsec: (nanoseconds % 1_000_000_000) as i64,
        };
        let (all, count) = (self.0.as_mut_ptr(), self.0.len() as libc::nfds_t);
        // SAFETY: the vector outlives the call and has the length that it says.
        match check(unsafe { libc::ppoll(all, count, &limit, ptr::null()) }) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                self.0.clear();
                Ok(())
            }
            result => result.map(drop),
        }
    }
    /// Whether the descriptor of this number had something when the last wait ended.
    pub fn is_readable(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|p| p.revents != 0)
    }
}
