//! Paper I, figure 2: a plain router that owns the narrow link makes XCP worse than TCP. The scenarios say what was chosen.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::outcome::{Outcome, run};
use explicate_core::endpoint::header_bytes;

/// MB that arrived in order, counted in whole packets as ns-2 counts them.
fn delivered(done: &Outcome, explicit: bool) -> f64 {
    let payload = 1000.0 - f64::from(header_bytes(explicit));
    done.flows("bulk", "goodput_bps")[0] / 8.0 * 60.0 * 1000.0 / payload / 1e6
}

#[test]
fn a_plain_bottleneck_makes_xcp_worse_than_tcp() {
    let a = run(include_str!("../../../../scenarios/paper-001-fig2-a.toml"));
    let b = run(include_str!("../../../../scenarios/paper-001-fig2-b.toml"));
    let c = run(include_str!("../../../../scenarios/paper-001-fig2-c.toml"));
    let (mb_a, mb_b, mb_c) = (delivered(&a, false), delivered(&b, true), delivered(&c, true));
    println!("a {mb_a:.1} MB (paper: 215.0), b {mb_b:.1} MB (223.8), c {mb_c:.1} MB (52.4)");
    assert!(mb_b > mb_a && mb_a > mb_c, "{mb_b} > {mb_a} > {mb_c}");
    assert!(mb_c <= 0.5 * mb_a, "{mb_c} against {mb_a}");
    // The paper's own figures, as far as its text goes: 95.6 % and 99.5 % of what the link could carry.
    assert!((0.88..0.99).contains(&(mb_a / 225.0)), "{mb_a}");
    assert!(mb_b >= 0.98 * 225.0, "{mb_b}");
    assert!(b.drops() == 0.0 && c.drops() > 5.0 * a.drops());
    assert!(c.flows("bulk", "timeouts")[0] > 0.0);
}
