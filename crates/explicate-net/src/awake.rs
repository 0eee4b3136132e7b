//! Keeps processors from halting during measurements in real time.
//!
//! An idle processor is halted, and wakes up for the next timer: after microseconds on most machines, but after
//! milliseconds on a virtual machine whose host has given the processor to others meanwhile. A thread on each
//! processor that does nothing, and runs only when no other thread is ready, prevents this. On a machine with two
//! virtual processors it removes nine of ten stalls longer than 1 ms (docs/linux.md).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::{fs, hint};

use crate::sys;

/// Keeps the processors of this thread from halting until it is dropped.
pub struct Awake {
    halt: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Starts a thread on each of these processors; none if processor time is limited, because they would use up the
    /// limit.
    pub fn keep() -> Awake {
        let halt = Arc::new(AtomicBool::new(false));
        let processors = if rationed() { Vec::new() } else { sys::processors() };
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
        Awake { halt, threads }
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
        assert_eq!(awake.threads.len(), if rationed() { 0 } else { sys::processors().len() });
        drop(awake);
        assert_eq!(Arc::strong_count(&halt), 1, "a thread has not ended");
    }
}
