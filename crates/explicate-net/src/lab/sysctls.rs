//! Settings of the kernel's TCP in the namespaces of hosts.
//!
//! Buffers of sockets must not limit a flow: a segment takes about twice its length of memory, a sender doubles its window
//! in slow start, and a receiver keeps what comes after a loss. So the largest buffers are eight times what the path and its
//! queues hold. What the kernel remembers of earlier connections would make runs depend on each other.

use std::collections::BTreeMap;
use std::fs;

use explicate_build::paths::flow_paths;
use explicate_core::units::Time;
use explicate_scenario::model::{Link, Scenario};

use super::netns::{self, SETTINGS};
use crate::error::{Error, Result};

/// What the buffers are of what a path holds.
const TIMES: f64 = 8.0;
/// Largest buffer that the kernel's arithmetic takes, bytes.
const LARGEST: f64 = (1 << 30) as f64;
/// Minimum, first and largest length by default, bytes (tcp_init of net/ipv4/tcp.c).
const SENDING: [u64; 3] = [4096, 16384, 4 << 20];
const RECEIVING: [u64; 3] = [4096, 131_072, 6 << 20];

/// Names and values.
pub(super) fn of_hosts(scenario: &Scenario) -> Result<[(&'static str, String); 3]> {
    let enough = (TIMES * held(scenario)?).min(LARGEST) as u64;
    // Never less than hosts have.
    let buffers = |[least, first, most]: [u64; 3]| format!("{least} {first} {}", most.max(enough));
    Ok([("tcp_wmem", buffers(SENDING)), ("tcp_rmem", buffers(RECEIVING)), ("tcp_no_metrics_save", "1".to_string())])
}

/// The most that the path of a flow and its queues hold, bytes: bandwidth-delay product and limits of queues. Queues without
/// limit do not count.
fn held(scenario: &Scenario) -> Result<f64> {
    let mut most: f64 = 0.0;
    for routes in scenario.routes() {
        let paths = flow_paths(scenario, routes).map_err(|error| Error::Failed(error.to_string()))?;
        for (there, back) in paths.iter().flat_map(|group| (0..group.len()).map(|i| group.get(i))) {
            let link = |index: &u32| &scenario.links[*index as usize];
            let rate = there.iter().map(|index| fastest(link(index))).fold(f64::INFINITY, f64::min);
            let round = there.iter().chain(back).fold(Time::ZERO, |sum, index| sum + link(index).delay);
            let queues: f64 = there.iter().chain(back).filter_map(|index| limit(link(index))).sum();
            most = most.max(rate * round.as_secs_f64() + queues);
        }
    }
    Ok(most)
}

/// The highest rate of a link, bytes/s.
fn fastest(link: &Link) -> f64 {
    let steps = link.channel.iter().filter_map(|channel| channel.values.steps.as_deref()).flatten();
    steps.map(|(_, rate)| rate.bytes_per_sec()).fold(link.rate.bytes_per_sec(), f64::max)
}

fn limit(link: &Link) -> Option<f64> {
    let queue = link.queue.as_ref()?;
    queue.values.number("limit").filter(|limit| limit.is_finite())
}

/// All settings of TCP in a namespace, as the kernel has them.
pub(super) fn read_back(namespace: &str) -> Result<BTreeMap<String, String>> {
    netns::inside(namespace, || {
        let entries = fs::read_dir(SETTINGS).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        // The key of Fast Open is not a setting.
        let names = names.filter(|name| name.starts_with("tcp_") && name != "tcp_fastopen_key");
        let value = |name: String| {
            let text = fs::read_to_string(format!("{SETTINGS}/{name}")).ok()?;
            Some((name, text.split_whitespace().collect::<Vec<_>>().join(" ")))
        };
        Ok(names.filter_map(value).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn settings(text: &str) -> [(&'static str, String); 3] {
        of_hosts(&Scenario::parse(text, "t", Path::new("."), &[]).expect("valid")).expect("connected")
    }

    const LONG: &str = r#"
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "20Mbit/s", delay = "298ms", queue = { kind = "droptail", limit = "1500000B" } }
access = { rate = "100Mbit/s", delay = "1ms", queue = "unlimited" }
[[flows]]
name = "f"
protocol = "cubic"
"#;

    /// 20 Mbit/s over 600 ms are 1.5 MB, as much as its queue holds; the queue of the way back holds as much again.
    #[test]
    fn buffers_are_eight_times_what_the_path_holds() {
        let [send, receive, metrics] = settings(LONG);
        assert_eq!(send, ("tcp_wmem", format!("4096 16384 {}", 8 * 3 * 1_500_000)));
        assert_eq!(receive, ("tcp_rmem", format!("4096 131072 {}", 8 * 3 * 1_500_000)));
        assert_eq!(metrics, ("tcp_no_metrics_save", "1".to_string()));
    }

    #[test]
    fn short_paths_have_the_kernels_defaults() {
        let [send, receive, _] = settings(&LONG.replace("298ms", "3ms").replace("1500000B", "15kB"));
        assert_eq!((send.1.as_str(), receive.1.as_str()), ("4096 16384 4194304", "4096 131072 6291456"));
    }

    #[test]
    fn a_rate_that_rises_counts() {
        let channel = r#"channel = [{ kind = "rate_steps", steps = [{ at = "0s", rate = "20Mbit/s" }, { at = "1s", rate = "40Mbit/s" }] }]"#;
        let [send, ..] = settings(&LONG.replace("bottleneck = {", &format!("bottleneck = {{ {channel},")));
        assert_eq!(send.1, format!("4096 16384 {}", 8 * 4 * 1_500_000));
    }

    /// The kernel takes lengths below 2 GiB.
    #[test]
    fn no_buffer_is_longer_than_the_kernel_can_count() {
        let [send, ..] = settings(&LONG.replace("20Mbit/s", "10Gbit/s").replace("100Mbit/s", "100Gbit/s"));
        assert_eq!(send.1, "4096 16384 1073741824");
    }
}
