//! The laws of protocols, one test each.

use explicate_core::registry::PROTOCOLS;
use explicate_laws::{agents, flows, parameters, pools, promises, routers, senders};

#[test]
fn parameters_are_sound() {
    PROTOCOLS.iter().for_each(|p| parameters::parameters_are_sound(*p));
}

#[test]
fn senders_keep_a_window() {
    PROTOCOLS.iter().for_each(|p| senders::senders_keep_a_window(*p));
}

#[test]
fn feedback_on_duplicates_moves_the_window() {
    PROTOCOLS.iter().for_each(|p| senders::feedback_on_duplicates_moves_the_window(*p));
}

#[test]
fn senders_keep_their_promises() {
    PROTOCOLS.iter().for_each(|p| promises::senders_keep_their_promises(*p));
}

#[test]
fn routers_never_raise_a_request() {
    PROTOCOLS.iter().for_each(|p| routers::routers_never_raise_a_request(*p));
}

#[test]
fn every_recovery_delivers_everything() {
    PROTOCOLS.iter().for_each(|p| flows::every_recovery_delivers_everything(*p));
}

#[test]
fn variants_deliver_everything() {
    PROTOCOLS.iter().for_each(|p| flows::variants_deliver_everything(*p));
}

#[test]
fn delayed_acknowledgements_deliver_everything() {
    PROTOCOLS.iter().for_each(|p| flows::delayed_acknowledgements_deliver_everything(*p));
}

#[test]
fn what_arrives_twice_counts_once() {
    PROTOCOLS.iter().for_each(|p| flows::what_arrives_twice_counts_once(*p));
}

#[test]
fn a_refusal_falls_back() {
    PROTOCOLS.iter().for_each(|p| flows::a_refusal_falls_back(*p));
}

#[test]
fn flows_survive_any_packet() {
    PROTOCOLS.iter().for_each(|p| flows::flows_survive_any_packet(*p));
}

#[test]
fn senders_that_say_so_need_no_feedback() {
    let tried = PROTOCOLS.iter().filter(|p| promises::senders_that_say_so_need_no_feedback(**p)).count();
    assert!(tried >= 1, "{tried} protocols");
}

#[test]
fn receivers_that_say_so_echo() {
    let tried = PROTOCOLS.iter().filter(|p| promises::receivers_that_say_so_echo(**p)).count();
    assert!(tried >= 1, "{tried} protocols");
}

#[test]
fn routers_that_say_so_are_order_independent() {
    let tried = PROTOCOLS.iter().filter(|p| promises::routers_that_say_so_are_order_independent(**p)).count();
    assert!(tried >= 1, "{tried} protocols");
}

#[test]
fn an_interval_hands_out_no_more_than_its_pools_hold() {
    let tried = PROTOCOLS.iter().filter(|p| pools::an_interval_hands_out_no_more_than_its_pools_hold(**p)).count();
    assert!(tried >= 4, "{tried} protocols");
}

#[test]
fn agents_survive_any_message() {
    let tried = PROTOCOLS.iter().filter(|p| agents::agents_survive_any_message(**p)).count();
    assert!(tried >= 1, "{tried} protocols");
}
