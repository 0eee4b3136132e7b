//! Tasks of a program, which end with it.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::task::AbortHandle;

use super::memory;
use super::record::{Record, Rule};

/// Tasks of a program.
#[derive(Clone)]
pub struct Tasks {
    /// Number of its machine.
    number: u8,
    handles: Arc<Mutex<Vec<AbortHandle>>>,
    record: Arc<Record>,
}

thread_local! {
    static CURRENT: RefCell<Option<Tasks>> = const { RefCell::new(None) };
}

/// The tasks of the simulated program that now runs in this thread; `None` outside of a simulation.
pub fn current() -> Option<Tasks> {
    CURRENT.with_borrow(Clone::clone)
}

/// Restores whose task ran before, also behind a panic, which it reports.
struct Watched(Option<Tasks>, Arc<Record>);

impl Drop for Watched {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
        if std::thread::panicking() {
            self.1.broke(Rule::Panics, "a task of a program panics");
        }
    }
}

impl Tasks {
    /// None yet, of the program of a machine.
    pub fn of(number: u8, record: Arc<Record>) -> Tasks {
        Tasks { number, handles: Arc::default(), record }
    }
    /// Ends them.
    pub fn abort(&self) {
        let handles = std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner));
        handles.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tasks")
    }
}

impl Runtime for Tasks {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }
    fn spawn(&self, mut future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let tasks = self.clone();
        let spawned = tokio::spawn(poll_fn(move |cx| {
            let _watched = Watched(CURRENT.replace(Some(tasks.clone())), tasks.record.clone());
            memory::of(Some(tasks.number), || future.as_mut().poll(cx))
        }));
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.retain(|handle| !handle.is_finished());
        handles.push(spawned.abort_handle());
    }
    fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}
