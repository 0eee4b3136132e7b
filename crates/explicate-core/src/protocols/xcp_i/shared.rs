//! The law of a cloud whose bottleneck other edges share (`law = "shared"`). Paper I leaves this case open (section
//! V-A); the law is ours.
//!
//! The idea: edges do not know of each other, but all of them measure the same spare bandwidth S = C - load. Each
//! steers the load of its own n flows to n k S, as Phantom does per flow (Afek, Mansour, Ostfeld, "Phantom: a simple
//! and effective flow control scheme", SIGCOMM 1996). With N flows in all and L bytes/s of other traffic,
//! S = (C - L) / (1 + k N) is the only fixed point: every flow has k S. An edge that steers to S = 0 as equation 1 is at
//! rest with any share of a full link.
//!
//! A step of alpha h (n k S - y) per control interval has a loop gain of alpha h (1 + k N) over all edges. At the fixed
//! point 1 + k N = (C - L) / S, so h = S / C keeps the gain at alpha or below, without knowledge of N. This h is that of
//! the mean S of earlier results: with that of the same result the load would be k n E(S^2) / E(S), more for edges
//! whose short intervals measure S with more noise. Two bounds hold off the fixed point, where S does not show N.
//! Upwards, an edge gains at most alpha y S / (C - S), its part of the load's alpha S, so that the edges together gain no
//! more than one router would hand out; the factor of y stays within [`GROWTH`], so that late edges grow, and early ones
//! do not outrun the measurement. If the load exceeds the capacity, each edge gives up at least its part of the excess.
//!
//! | symbol | field | unit |
//! | --- | --- | --- |
//! | S | `left`, `mean_left` | bytes/s |
//! | C | `capacity` | bytes/s |
//! | n | `flows` | 1 |
//! | k | `multiple` | 1 |
//! | y | `load` | bytes/s |
//!
//! Limits: `docs/howto/xcp-i.md`.

/// What an edge remembers of a cloud.
#[derive(Default)]
pub(super) struct Memory {
    /// Capacity of the tight link by the last result, if the estimator measures it, bytes/s.
    pub(super) capacity: Option<f64>,
    /// Mean of the results so far, bytes/s.
    mean_left: Option<f64>,
    /// Flows of the edge, 0 while unknown.
    pub(super) flows: f64,
}

impl Memory {
    /// A control interval ends with the result `left` (bytes/s), and `counted` flows by the sum of their inter-packet
    /// times over the interval; that rounds badly with few packets, so a mean counts.
    pub(super) fn end_interval(&mut self, left: f64, counted: f64, multiple: f64) -> Known {
        if counted > 0.0 && counted.is_finite() {
            self.flows += if self.flows > 0.0 { 0.25 } else { 1.0 } * (counted - self.flows);
        }
        let mean_left = self.mean_left.unwrap_or(left);
        self.mean_left = Some(mean_left + (left - mean_left) / 8.0);
        Known { left, mean_left, capacity: self.capacity, flows: self.flows, multiple }
    }
}

/// What an edge knows when a control interval ends.
pub(super) struct Known {
    /// Spare bandwidth of the cloud, bytes/s; negative if the load exceeds the capacity.
    left: f64,
    /// Its mean over earlier results, bytes/s.
    mean_left: f64,
    /// Capacity of the tight link, if the estimator measures it, bytes/s.
    capacity: Option<f64>,
    /// Flows of this edge.
    flows: f64,
    /// Rate of a flow at the fixed point as a multiple of the spare bandwidth.
    multiple: f64,
}

/// Bounds of an increase in one control interval over alpha times the load.
const GROWTH: [f64; 2] = [0.25, 0.5];

/// Least share of a link that counts as spare, by the resolution of measurements.
const LEAST: f64 = 0.0025;

impl Known {
    /// The change in one control interval of the edge's traffic, now `load` bytes/s, before the factor alpha, bytes/s.
    pub(super) fn change(&self, load: f64) -> f64 {
        let left = self.left;
        // An edge that knows no capacity takes the largest load that it has found to fit.
        let capacity = self.capacity.unwrap_or(left + load).max(left).max(1.0);
        // The flows of this edge alone leave no more than this.
        let most = 1.0 / (1.0 + self.multiple * self.flows);
        let share = (self.mean_left / capacity).max(LEAST).min(most);
        let steered = share * (self.flows * self.multiple * left - load);
        let part = left / (capacity - left).max(1.0); // of the load: that of this edge in the spare bandwidth
        let bound = if left > 0.0 { part.clamp(GROWTH[0], GROWTH[1]) } else { part };
        steered.min(load * bound).max(-load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: f64 = 1e6;
    const K: f64 = 10.0;

    fn known(left: f64, mean_left: f64, flows: f64) -> Known {
        Known { left, mean_left, capacity: Some(C), flows, multiple: K }
    }
    fn change(left: f64, flows: f64, load: f64) -> f64 {
        known(left, left, flows).change(load)
    }

    /// Flows of 5, 3 and 4 in three intervals; an interval without packets, and one without length, change nothing. The mean of
    /// results is that of the earlier ones.
    #[test]
    fn intervals_are_remembered() {
        let mut memory = Memory::default();
        let flows = [5.0, 3.0, 0.0, f64::INFINITY, 4.0].map(|counted| memory.end_interval(1.0, counted, K).flows);
        assert_eq!(flows, [5.0, 4.5, 4.5, 4.5, 4.375]);
        assert_eq!([9.0, 1.0].map(|left| memory.end_interval(left, 0.0, K).mean_left), [1.0, 2.0]);
    }

    /// N flows on edges with n each rest at n k S with S = C / (1 + k N), whatever N.
    #[test]
    fn edges_rest_at_equal_rates_of_their_flows() {
        for all in [1.0, 2.0, 8.0, 30.0] {
            let left = C / (1.0 + K * all);
            for flows in [1.0, 3.0, all] {
                let fair = flows * K * left;
                assert!(change(left, flows, fair).abs() < 1e-6 * C);
                assert!(change(left, flows, 0.9 * fair) > 0.0 && change(left, flows, 1.1 * fair) < 0.0);
            }
        }
    }

    /// Results that scatter around S, also below zero, move a load by their mean.
    #[test]
    fn noise_moves_no_load() {
        let left = C / (1.0 + 8.0 * K);
        let fair = K * left;
        let sum: f64 = [-1.0, 0.5, 1.5, 3.0].map(|noisy| known(noisy * left, left, 1.0).change(fair)).iter().sum();
        assert!(sum.abs() < 1e-9 * C, "{sum}");
    }

    /// At the fixed point the loads of all edges together answer a change of the spare bandwidth with its size, for any
    /// number of edges, and less beside other traffic.
    #[test]
    fn the_loop_gain_does_not_grow_with_the_edges() {
        for (edges, other) in [(1.0, 0.0), (2.0, 0.0), (8.0, 0.0), (30.0, 0.0), (2.0, 0.6)] {
            let left = (1.0 - other) * C / (1.0 + K * edges);
            let (fair, small) = (K * left, 1e-4 * left);
            // Every load is larger by its part, so less is left.
            let answer = edges * known(left - small, left, 1.0).change(fair + small / edges) / -small;
            assert!((0.3..=1.01).contains(&answer), "{edges} edges: {answer}");
        }
    }

    /// Edges that find an idle link gain half their loads, not the whole link each.
    #[test]
    fn edges_that_start_together_do_not_each_take_what_is_left() {
        assert_eq!(change(0.9 * C, 1.0, 0.01 * C), 0.005 * C);
        // Two edges fill half of the link: each gains half its load at most, together half of what is left.
        assert!(2.0 * change(0.5 * C, 1.0, 0.25 * C) <= 0.5 * C);
    }

    /// An excess of 20 % is taken from edges in proportion to their loads, together at least once, also if the mean still shows
    /// an idle link or a full one.
    #[test]
    fn an_excess_is_taken_back() {
        for mean in [-0.1, 0.0, 0.01, 0.9] {
            let taken = [0.1, 0.3, 0.8].map(|load| known(-0.2 * C, mean * C, 1.0).change(load * C) / (load * C));
            assert!(taken.iter().all(|part| (-1.0..=-0.2 / 1.2 + 1e-9).contains(part)), "{mean}: {taken:?}");
        }
    }

    #[test]
    fn every_measured_value_makes_a_finite_change() {
        let extremes = [i64::MIN as f64, -1.0, 0.0, 1e-9, 1.0, i64::MAX as f64];
        for (left, mean_left) in extremes.iter().flat_map(|a| extremes.map(|b| (*a, b))) {
            for capacity in [None, Some(0.0), Some(1.0), Some(1e13)] {
                for (flows, load) in [(0.0, 0.0), (0.0, 1e9), (1e9, 0.0), (1e9, 1e9)] {
                    let change = Known { left, mean_left, capacity, flows, multiple: K }.change(load);
                    assert!((-load..=GROWTH[1] * load).contains(&change), "{change}");
                }
            }
        }
    }
}
