//! System calls that the standard library does not have: the only folder with unsafe code.
//!
//! Everything here is a thin, safe function over one call. Buffers belong to the types that the kernel writes into
//! ([`Batch`], [`PacketSocket`]), and live as long as the call or the mapping.
#![allow(unsafe_code)]

use std::io;

mod file;
mod messages;
mod packet;
mod process;
mod socket;
mod tcp;
mod time;

pub use file::{
    create_at, find_at, forget_cached, is_link, make_folder_at, move_at, open_file_at, open_folder_at, remove_at,
    space, user,
};
pub use messages::{BATCH, Batch, Message, Outgoing, send};
pub use packet::{OFFLOAD_LEN, PacketSocket, Transmitter, put_tag, take_tag};
pub use process::{
    catch_signals, die_with_parent, drop_privileges, enter_namespace, go_first, go_last, processors, stay_on, stopped,
};
pub use socket::{
    grow_buffers, interface_gone, interface_index, is_loopback, is_too_long, offloads, offloads_off, path_mtu,
    tell_ttl_and_ecn,
};
pub use tcp::{TcpInfo, tcp_connect, tcp_info};
pub use time::{Polled, monotonic, set_timer, sharpen_timers, sleep_until, thread_cpu, timer, wall_ahead};

/// Turns the -1 of a call into its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
