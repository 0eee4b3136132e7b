//! Laws of congestion-control protocols: invariants under random operations, for protocols of this project and of other crates.
//!
//! A test of a crate with a protocol of its own registers the protocol and calls [`check`]:
//!
//! ```no_run
//! # fn register() -> Result<(), explicate_core::registry::RegisterError> { Ok(()) }
//! register().unwrap();
//! explicate_laws::check("aimd");
//! ```
//!
//! A law is a function that panics with the difference it found. The tests of this crate apply the laws to every registered
//! protocol, and others to recoveries, queue disciplines, channels, estimators and parsers.

pub mod agents;
pub mod flows;
pub mod parameters;
pub mod pools;
pub mod promises;
pub mod queue;
pub mod random;
pub mod routers;
pub mod senders;

use explicate_core::registry;

/// Applies all laws to the protocol of this name. Panics if there is no such protocol, or if it breaks a law.
pub fn check(name: &str) {
    let p = registry::protocol(name).unwrap_or_else(|| panic!("no protocol `{name}` is registered"));
    parameters::parameters_are_sound(p);
    senders::senders_keep_a_window(p);
    senders::feedback_on_duplicates_moves_the_window(p);
    promises::senders_keep_their_promises(p);
    promises::senders_that_say_so_need_no_feedback(p);
    promises::receivers_that_say_so_echo(p);
    routers::routers_never_raise_a_request(p);
    promises::routers_that_say_so_are_order_independent(p);
    pools::an_interval_hands_out_no_more_than_its_pools_hold(p);
    agents::agents_survive_any_message(p);
    flows::every_recovery_delivers_everything(p);
    flows::variants_deliver_everything(p);
    flows::delayed_acknowledgements_deliver_everything(p);
    flows::what_arrives_twice_counts_once(p);
    flows::a_refusal_falls_back(p);
    flows::flows_survive_any_packet(p);
}
