//! The flows of a port and what they send: how much of a capacity a flow may have.
//!
//! The share is max-min fair among demands: twice what each other flow sent in a second, and no bound for the flow that
//! asks. A flow that sends less than half of its share leaves the rest to the others, and has room to double. Flows that
//! send as much as advised, or all that congestion control allows, count as one each, so n of them get 1 / n.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes of a flow in this window and in the one before.
#[derive(Clone, Copy, Default)]
struct Sent {
    now: u64,
    before: u64,
}

/// What flows send.
#[derive(Default)]
pub(super) struct Flows(BTreeMap<u32, Sent>);

impl Flows {
    /// A packet of a flow left.
    pub(super) fn count(&mut self, flow: u32, bytes: u16) {
        self.0.entry(flow).or_default().now += u64::from(bytes);
    }
    /// A window ends; with `idle`, another one passed without a packet.
    pub(super) fn next_window(&mut self, idle: bool) {
        self.0.retain(|_, sent| {
            *sent = Sent { now: 0, before: if idle { 0 } else { sent.now } };
            sent.before > 0
        });
    }
    /// Flows that sent in this window or the one before.
    #[cfg(test)]
    fn number(&self) -> usize {
        self.0.len()
    }
    /// The share of a flow in this capacity, bytes in a window.
    pub(super) fn share(&self, flow: u32, capacity: f64) -> f64 {
        let others = self.0.iter().filter(|(other, _)| **other != flow);
        let mut demands: Vec<f64> = others.map(|(_, sent)| 2.0 * sent.now.max(sent.before) as f64).collect();
        demands.sort_unstable_by(f64::total_cmp);
        let mut left = capacity;
        for (satisfied, demand) in demands.iter().enumerate() {
            let share = left / (demands.len() + 1 - satisfied) as f64;
            if *demand >= share {
                return share;
            }
            left -= demand;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows 1, 2, ... that send this much in a window.
    fn flows(sent: &[u16]) -> Flows {
        let mut flows = Flows::default();
        (1..).zip(sent).for_each(|(flow, bytes)| flows.count(flow, *bytes));
        flows
    }

    /// Of 1200: demands of 1200 and of 800 exceed 400 each. Beside one of 200 the others have 500 each; beside 200 and
    /// 300 a third has 700. Alone, all of it.
    #[test]
    fn shares_by_hand() {
        assert_eq!(flows(&[600, 400, 200]).share(1, 1200.0), 400.0);
        assert_eq!(flows(&[600, 600, 100]).share(1, 1200.0), 500.0);
        assert_eq!(flows(&[600, 600, 100]).share(3, 1200.0), 400.0, "what a flow sends does not bound its own share");
        assert_eq!(flows(&[600, 150, 100]).share(1, 1200.0), 700.0);
        assert_eq!(flows(&[600]).share(1, 1200.0), 1200.0);
        assert_eq!(flows(&[600]).share(9, 1200.0), 600.0, "a flow that begins");
        assert_eq!(flows(&[]).share(1, 1200.0), 1200.0);
    }

    /// n flows that send from half of their share on count fully.
    #[test]
    fn equal_flows_have_equal_shares() {
        for n in 1..=20_u16 {
            for sent in [1000 / n, 500 / n + 1] {
                let flows = flows(&alloc::vec![sent; n as usize]);
                assert!((flows.share(1, 1000.0) - 1000.0 / f64::from(n)).abs() < 1e-9, "{n} {sent}");
            }
        }
    }

    #[test]
    fn a_flow_counts_for_a_window_after_its_last_packet() {
        let mut flows = flows(&[600, 600]);
        flows.next_window(false);
        flows.count(1, 600);
        assert_eq!((flows.share(1, 1000.0), flows.number()), (500.0, 2));
        flows.next_window(false);
        assert_eq!((flows.share(1, 1000.0), flows.number()), (1000.0, 1));
        flows.next_window(true);
        assert_eq!(flows.number(), 0);
    }
}
