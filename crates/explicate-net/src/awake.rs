//! Keeps processors from halting during measurements in real time.
//!
//! An idle processor is halted, and wakes up for the next timer: after microseconds on most machines, but after
//! milliseconds on a virtual machine whose host has given the processor to others meanwhile. A thread on each
//! processor that does nothing, and runs only when no other thread is ready, prevents this. On a machine with two
//! virtual processors it removes nine of ten stalls longer than 1 ms (docs/linux.md).
//!
//! The kernel may schedule each session as a group (`sched_autogroup_enabled`, see sched(7)). There the policy of such a
//! thread holds within the group only: the loops would take time from all other sessions and from the kernel's own
//! threads. Then the kernel is asked to wake processors without latency, which it does by polling instead of halting.

use std::fs::{self, File, OpenOptions};
use std::hint;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::sys;

/// Keeps the processors of this thread from halting until it is dropped.
pub struct Awake {
    halt: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// The request holds while this is open.
    _latency: Option<File>,
}

impl Awake {
    /// Starts a thread on each of these processors, or asks the kernel for short latency if sessions are scheduled as
    /// groups. Does nothing if processor time is limited, because both would use up the limit, or if the user may not
    /// ask.
    pub fn keep() -> Awake {
        let (rationed, grouped) = (rationed(), grouped());
        let processors = if rationed || grouped { Vec::new() } else { sys::processors() };
        let halt = Arc::new(AtomicBool::new(false));
        let spin = |processor| {
            let halt = Arc::clone(&halt);
            thread::spawn(move || {
                // Without the idle policy the loop would take time from other threads.
                if sys::go_last().and_then(|()| sys::stay_on(processor)).is_err() {
                    return;
                }
                while !halt.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            })
        };
        let threads = processors.into_iter().map(spin).collect();
        Awake { halt, threads, _latency: (grouped && !rationed).then(no_latency).and_then(Result::ok) }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.halt.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Whether the kernel schedules this session as a group.
fn grouped() -> bool {
    let on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() != "0");
    // Empty outside of any session's group.
    on && fs::read_to_string("/proc/self/autogroup").is_ok_and(|group| !group.trim().is_empty())
}

/// Asks for a latency of 0 us (the PM QoS interface of Linux).
fn no_latency() -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&0i32.to_ne_bytes())?;
    Ok(file)
}

/// Whether the processor time of this process or a group above it is limited (`cpu.max` of cgroups).
fn rationed() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let limited = |folder: &Path| fs::read_to_string(folder.join("cpu.max")).is_ok_and(|max| !max.starts_with("max"));
    root.join(own).ancestors().take_while(|folder| folder.starts_with(root)).any(limited)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop that outlived its owner would consume a processor's idle time.
    #[test]
    fn its_threads_end_with_their_owner() {
        let awake = Awake::keep();
        let halt = Arc::clone(&awake.halt);
        assert_eq!(awake.threads.len(), if rationed() || grouped() { 0 } else { sys::processors().len() });
        drop(awake);
        assert_eq!(Arc::strong_count(&halt), 1, "a thread has not ended");
    }
}
