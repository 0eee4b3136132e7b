//! Privileges, signals, namespaces: what a process is allowed, told and shown.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::check;

/// This thread goes before all that are not so privileged, as a router's does in a kernel.
pub fn go_first() -> io::Result<()> {
    // SAFETY: a sched_param is plain data, read while it lives.
    unsafe {
        let mut param: libc::sched_param = zeroed();
        param.sched_priority = 1;
        check(libc::sched_setscheduler(0, libc::SCHED_RR, &param)).map(drop)
    }
}

/// This thread runs when no other wants to.
pub fn go_last() -> io::Result<()> {
    // SAFETY: a sched_param is plain data, read while it lives.
    unsafe {
        let param: libc::sched_param = zeroed();
        check(libc::sched_setscheduler(0, libc::SCHED_IDLE, &param)).map(drop)
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

/// The processors that this thread may run on, by their numbers; none if the kernel does not say.
pub fn processors() -> Vec<usize> {
    // SAFETY: a cpu_set_t is plain data, written while it lives; CPU_ISSET is asked within its size.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&processor| libc::CPU_ISSET(processor, &set)).collect()
    }
}

/// Sends SIGTERM to this process when its parent dies, whatever that dies of.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
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

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// SIGINT, SIGTERM and SIGHUP only set a flag from now on, which [`stopped`] reads. One that is ignored stays so: `nohup`.
pub fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does nothing but store to an atomic. Without SA_RESTART calls that wait return.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            libc::sigaction(signal, ptr::null(), &mut action);
            if action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action = zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Whether a signal asked to stop.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// This thread works in the network namespace behind `fd` from now on.
pub fn enter_namespace(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes a descriptor and a number.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}
