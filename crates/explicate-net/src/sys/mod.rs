//! System calls that neither the standard library nor a safe library has: the only module with unsafe code.
//!
//! rustix makes most calls, memmap2 maps the ring of a packet socket. What remains is unsafe because of many datagrams per call
//! (`sendmmsg`, `recvmmsg`), the kernel's ring of frames, packet addresses, options and requests of `SOL_PACKET` and
//! ethtool, and scheduling policies. Each block says why no library does it.
#![allow(unsafe_code)]

use std::io;

mod file;
mod messages;
mod packet;
mod process;
mod socket;
mod tcp;
mod time;
mod tun;

pub use file::{
    create_at, find_at, forget_cached, is_link, make_folder_at, move_at, open_file_at, open_folder_at, read_file_at,
    remove_at, space, user,
};
pub use messages::{BATCH, Batch, Message, Outgoing, send};
pub use packet::{OFFLOAD_LEN, PacketSocket, put_tag, take_tag};
pub use process::{
    catch_reload, catch_signals, die_with_parent, drop_privileges, enter_namespace, go_before_the_first, go_first,
    go_last, keep_only_raw, open_many_files, processors, release_memory, stay_on, stopped, take_reload,
};
pub use socket::{
    grow_buffers, interface_gone, interface_index, is_loopback, is_running, make_transparent, offloads, offloads_off,
    set_mark, tell_ttl_and_ecn,
};
pub use tcp::{TcpInfo, tcp_connect, tcp_info};
pub use time::{
    Polled, monotonic, set_timer, sharpen_timers, sleep_until, takes_output, thread_cpu, timer, wall_ahead,
};
pub use tun::{open_tun, raw_sockets};

/// Turns the -1 of a call into its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A structure of the kernel's interface whose bytes may all be zero: integers, and pointers that may be null.
trait Plain {}

impl Plain for libc::ifreq {}
impl Plain for libc::iovec {}
impl Plain for libc::mmsghdr {}
impl Plain for libc::sched_param {}
impl Plain for libc::sigaction {}
impl Plain for libc::sockaddr_in {}
impl Plain for libc::sockaddr_ll {}

fn zeroed<T: Plain>() -> T {
    // SAFETY: `Plain` is private and says so of each type above. libc's types implement no trait such as zerocopy's, and have
    // private padding on some systems, so that they cannot be written out.
    unsafe { std::mem::zeroed() }
}
