//! Measurements that other load disturbs.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::figures::measuring;
use explicate_net::awake::Awake;

/// Measures in real time, up to three times: a machine that stands still for some milliseconds spoils one measurement, a
/// defect spoils all. Prints why a measurement failed. A measurement does not count if the host of a virtual machine took much
/// of the processors; the next one then waits until the host takes less. There are six attempts at most.
pub(crate) fn measured(once: impl Fn()) {
    let _awake = Awake::keep();
    // `make measure` repeats measurements itself, and looks for other load.
    if measuring() {
        return once();
    }
    let mut counted = 0;
    for _ in 0..6 {
        let before = processors();
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&once)).is_ok() {
            return;
        }
        counted += !taken_since(before) as u32;
        if counted == 3 {
            break;
        }
        let quiet = || {
            let before = processors();
            sleep(Duration::from_secs(1));
            !taken_since(before)
        };
        let _ = (0..QUIET_FOR).any(|_| quiet());
    }
    panic!("no measurement held; {counted} of them count, the host took much of the machine from the others");
}

/// A load that disturbs a measurement, as a share of the time of all processors.
const MUCH: f64 = 0.02;
/// For so many seconds at most a measurement waits for a quiet one.
const QUIET_FOR: u32 = 30;

/// Whether the host took much since then.
fn taken_since(before: (f64, f64)) -> bool {
    let after = processors();
    after.0 - before.0 > MUCH * (after.1 - before.1)
}

/// What the host of this virtual machine has given to others, and all that its processors had, in hundredths of a second.
fn processors() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let spent: Vec<f64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
    (spent.get(7).copied().unwrap_or(0.0), spent.iter().sum())
}
