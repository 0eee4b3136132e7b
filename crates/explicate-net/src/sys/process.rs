//! Scheduling, privileges, signals and namespaces of a process.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_getaffinity,
    sched_setaffinity, set_capabilities, set_no_new_privs,
};

use super::{check, zeroed};

/// Schedules this thread before all that are not real-time threads (`SCHED_RR`), as a kernel's router is.
pub fn go_first() -> io::Result<()> {
    set_policy(libc::SCHED_RR, 1)
}

/// Schedules this thread before those that [`go_first`] schedules.
pub fn go_before_the_first() -> io::Result<()> {
    set_policy(libc::SCHED_RR, 2)
}

/// Schedules this thread only when no other is ready (`SCHED_IDLE`).
pub fn go_last() -> io::Result<()> {
    set_policy(libc::SCHED_IDLE, 0)
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let mut param: libc::sched_param = zeroed();
    param.sched_priority = priority;
    // SAFETY: the kernel reads a sched_param that outlives the call. rustix and nix have no sched_setscheduler.
    check(unsafe { libc::sched_setscheduler(0, policy, &param) }).map(drop)
}

/// Restricts this thread to one processor.
pub fn stay_on(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor % CpuSet::MAX_CPU);
    Ok(sched_setaffinity(None, &set)?)
}

/// The numbers of the processors on which this thread may run; none if the kernel does not report them.
pub fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// Sends SIGTERM to this process when its parent dies, whatever the cause.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Drops all capabilities of this thread and of those that it starts; programs that they start get none either.
pub fn drop_privileges() -> io::Result<()> {
    let none = CapabilitySet::empty();
    set_no_new_privs(true)?;
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Drops all capabilities except CAP_NET_RAW, with which sockets may have addresses of other hosts; programs that are
/// started get none.
pub fn keep_only_raw() -> io::Result<()> {
    let (raw, none) = (CapabilitySet::NET_RAW, CapabilitySet::empty());
    set_no_new_privs(true)?;
    Ok(set_capabilities(None, CapabilitySets { effective: raw, permitted: raw, inheritable: none })?)
}

/// Lets this process open as many files as the system permits (RLIMIT_NOFILE). The usual limit, 1024, is for programs that use
/// select(2). Returns how many these are; `None` if there is no limit.
pub fn open_many_files() -> io::Result<Option<u64>> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum)
}

static STOP: AtomicBool = AtomicBool::new(false);
/// SIGHUP sets [`RELOAD`] and not [`STOP`].
static RELOADS: AtomicBool = AtomicBool::new(false);
static RELOAD: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(number: libc::c_int) {
    let reload = number == libc::SIGHUP && RELOADS.load(Ordering::Relaxed);
    (if reload { &RELOAD } else { &STOP }).store(true, Ordering::Relaxed);
}

/// Makes SIGINT, SIGTERM and SIGHUP set a flag, which [`stopped`] reads. An ignored signal stays ignored, as under
/// `nohup`.
pub fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut old: libc::sigaction = zeroed();
        let mut new = old;
        new.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler only stores to an atomic, and both structures outlive the calls. signal-hook sets SA_RESTART, by
        // which blocking calls would go on, and rustix has no handlers.
        unsafe {
            libc::sigaction(signal, ptr::null(), &mut old);
            if old.sa_sigaction != libc::SIG_IGN {
                libc::sigaction(signal, &new, ptr::null_mut());
            }
        }
    }
}

/// Makes SIGHUP request a reload of the configuration, which [`take_reload`] returns, instead of the end.
pub fn catch_reload() {
    RELOADS.store(true, Ordering::Relaxed);
}

/// Whether the configuration is to be reloaded, once per signal.
pub fn take_reload() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

/// Returns memory that is not used any more to the kernel: glibc keeps what lies below something in use. Other C libraries do nothing here.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim may be called at any time (malloc_trim(3)); it touches free memory alone.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether a signal has requested the process to stop.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Moves this thread into the network namespace behind `fd`.
pub fn enter_namespace(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(fd, Some(LinkNameSpaceType::Network))?)
}
