//! How soon a transfer finds the packet length of its path, and goes on after an outage. Needs root, so `make measure` runs it.

use super::measured::measured;
use crate::figures::{Better, figure};
use crate::mtu::{behind_a_black_hole, behind_a_router_of_1400_bytes, over_an_outage};

/// An outage of 20 s: 5 MB take 2 s afterwards, and the timer of retransmissions 5 s at most.
#[test]
#[ignore = "needs root: make measure"]
fn the_length_is_found_and_an_outage_outlasted_within_seconds() {
    type Seconds = fn() -> f64;
    let cases: [(&str, Seconds, f64); 3] = [
        ("3 MB behind a router that reports its MTU", behind_a_router_of_1400_bytes, 5.0),
        ("3 MB behind a black hole", behind_a_black_hole, 6.0),
        ("5 MB over an outage, from its end", over_an_outage, 10.0),
    ];
    for (what, measure, most) in cases {
        measured(|| {
            let seconds = measure();
            figure(&format!("mtu: {what}"), seconds, "s", Better::Less);
            assert!(seconds < most, "{what}: {seconds} s");
        });
    }
}
