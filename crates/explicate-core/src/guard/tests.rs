//! Tests of the guard as a whole: what limits the window.

use std::vec::Vec;

use super::*;
use crate::api::{AnyProtocol, SenderInit};
use crate::params::Values;
use crate::registry::{self, PROTOCOLS};
use crate::testing::{ack, loss};
use crate::units::Rate;
use crate::wire::{Format, Transport};

pub(super) fn explicit() -> impl Iterator<Item = &'static AnyProtocol> {
    PROTOCOLS.iter().copied().filter(|p| p.explicit())
}
pub(super) fn sender(protocol: &AnyProtocol) -> Box<AnySender> {
    let values = Values::default();
    let init = SenderInit { values: &values, packet: 1000.0, initial_window: 3.0, interface: Rate::mbps(100) };
    let mut sender = protocol.sender(&init);
    sender.on_start(Time::ZERO, Time::millis(100));
    sender
}
fn guarded(protocol: &AnyProtocol) -> Guard {
    let fallback = registry::fallback(None).unwrap().protocol;
    Guard::new(sender(protocol), sender(fallback), true, 1000.0, 0.02)
}
#[test]
fn every_explicit_protocol_and_every_fallback_goes_on_from_a_window() {
    for protocol in explicit().chain([registry::fallback(None).unwrap().protocol]) {
        let mut guard = guarded(protocol);
        guard.own.resume(Time::secs(1), 20.0, Time::millis(100));
        let window = guard.own_window(Time::millis(100));
        assert!((window - 20.0).abs() < 1e-3, "{}: {window}", protocol.name());
    }
}

/// After a timeout the window is one segment: a share of it would let nothing leave, ever.
#[test]
fn a_dip_leaves_one_segment() {
    let mut guard = guarded(registry::protocol("xcp").unwrap());
    (guard.answered, guard.srtt) = (true, Time::millis(100));
    (0..4).for_each(|_| guard.dips.next_round(Time::secs(1), true, true, 0.0));
    for (window, dipped) in [(100.0, 92.0), (1.0, 1.0)] {
        guard.own.resume(Time::secs(1), window, Time::millis(100));
        assert!((guard.allowance().cwnd - dipped).abs() < 1e-9, "{window}: {}", guard.allowance().cwnd);
    }
}

/// Acknowledgements at `ms`, with the packet's number, how many have arrived, and whether routers answered.
fn receive(guard: &mut Guard, ms: u64, number: u32, arrived: u16, marked: bool) {
    let mut header = Congestion::new(Format::MINIMAL);
    if marked {
        header.set_mark(header.mark().after(Time::ZERO));
        header.set_reverse_feedback(30_000); // three packets more in 100 ms
    }
    let mut transport = Transport::EMPTY;
    transport.set_packet_number(number);
    transport.set_arrived(arrived);
    guard.on_ack(&Ack { transport: &transport, in_flight: 9, ..ack(Time::millis(ms), &header) });
}

#[test]
fn routers_come_and_go() {
    let mut guard = guarded(registry::protocol("xcp").unwrap());
    assert_eq!(guard.active_controller(), ActiveController::Fallback);
    receive(&mut guard, 100, 1, 1, false);
    assert_eq!((guard.active_controller(), guard.allowance().cwnd), (ActiveController::Fallback, 4.0), "slow start");
    assert_eq!(guard.own_window(Time::millis(100)), 4.0, "headers say what is so");
    receive(&mut guard, 110, 2, 2, true);
    assert_eq!((guard.active_controller(), guard.allowance().cwnd), (ActiveController::Own, 7.0));
    receive(&mut guard, 200, 3, 3, false);
    assert_eq!(
        (guard.active_controller(), guard.allowance().cwnd),
        (ActiveController::Own, 7.0),
        "not a round trip yet"
    );
    receive(&mut guard, 211, 4, 4, false);
    assert_eq!(guard.active_controller(), ActiveController::Fallback);
    assert_eq!(guard.allowance().cwnd, 7.0 + 1.0 / 7.0, "congestion avoidance from the window that was used");
    guard.on_loss(&loss(Time::millis(220), LossKind::Duplicates, 6));
    assert_eq!(guard.allowance().cwnd, 3.0, "losses count");
}

/// Where delays have become alike nothing contradicts that a queue was full before.
#[test]
fn a_suspicion_that_lapses_leaves_its_evidence() {
    let mut guard = guarded(registry::protocol("xcp").unwrap());
    let header = Congestion::new(Format::MINIMAL);
    let ack = Ack { srtt: Time::millis(40), ..ack(Time::secs(1), &header) };
    let mut next = |number: u32, behind_lost: u64| {
        guard.answered = true;
        let queue = &mut guard.watch.full_queue;
        (0..40).for_each(|i| queue.take(1000 * number + i, Time::millis(40), false));
        (40..42).for_each(|i| queue.take(1000 * number + i, Time::millis(behind_lost), true));
        queue.next_round(false);
        let (began, delay) = (Time::millis(960), Time::ZERO);
        guard.judge(&ack, &Round { began, sent: 42.0, arrived: 40.0, dropped: 0.0, delay, explained: false });
        (guard.active_controller(), guard.watch.full_queue.sum)
    };
    let began = (0..60).find(|&number| next(number, 45).0 == ActiveController::Limited).unwrap();
    let lapsed = (began + 1..began + 20)
        .map(|number| next(number, 40))
        .find(|(active, _)| *active == ActiveController::Own)
        .unwrap();
    assert!(lapsed.1 >= 30.0, "{}", lapsed.1);
}

/// Packets of 1000 B: 4 Mbit/s, the rate of the source, are 50 of them in 100 ms.
#[test]
fn a_fallback_is_paced_by_the_application_only() {
    let mut guard = guarded(registry::resolve("video").unwrap().protocol);
    receive(&mut guard, 100, 1, 1, false);
    assert_eq!(guard.allowance(), Allowance { cwnd: 4.0, pacing: None });
    (2..60).for_each(|i| receive(&mut guard, 100 + i as u64, i, i as u16, false));
    assert_eq!(guard.allowance(), Allowance { cwnd: 62.0, pacing: Some(Rate::mbps(4)) });
}

/// A loss at 110 ms: TCP would repair it until 210 ms.
#[test]
fn a_flow_that_repairs_nothing_stands_still_as_long_as_a_repair_takes() {
    for (reliable, window) in [(true, 5.0), (false, 4.0)] {
        let mut guard = guarded(registry::resolve("video").unwrap().protocol);
        guard.reliable = reliable;
        receive(&mut guard, 100, 1, 1, false);
        guard.on_loss(&loss(Time::millis(110), LossKind::Duplicates, 8));
        (0..8).for_each(|i| receive(&mut guard, 120 + 10 * i, 3 + i as u32, 2 + i as u16, false));
        assert!((guard.allowance().cwnd - window).abs() < 0.8, "{reliable}: {}", guard.allowance().cwnd);
        assert_eq!(guard.allowance().cwnd == 4.0, !reliable, "half of 8");
        receive(&mut guard, 211, 11, 10, false);
        assert!(guard.allowance().cwnd > 4.2, "{reliable}: {}", guard.allowance().cwnd);
    }
}

/// Routers grant 10^4 packets more with each acknowledgement.
#[test]
fn wide_routers_grant_no_more_than_arrives_eight_times() {
    let mut guard = guarded(registry::protocol("xcp").unwrap());
    let mut header = Congestion::new(Format::MINIMAL);
    header.set_mark(header.mark().after(Time::ZERO));
    header.set_reverse_feedback(100_000_000);
    let mut windows = Vec::new();
    for number in 0..1200u16 {
        let ms = 100 + u64::from(number) / 4; // 400 in a round trip of 100 ms
        let mut transport = Transport::EMPTY;
        transport.set_packet_number(number.into());
        transport.set_arrived(number);
        guard.on_ack(&Ack { transport: &transport, ..ack(Time::millis(ms), &header) });
        windows.push(guard.allowance().cwnd.round());
    }
    assert_eq!((windows[10], windows[120], windows[300]), (1024.0, 1024.0, 2400.0), "in the first round trip");
    assert!((3100.0..3300.0).contains(&windows[1199]), "{}", windows[1199]);
}

/// Four of twelve packets a round trip are lost: three round trips make a sign, and half of what arrives is the limit.
#[test]
fn losses_beside_the_routers_make_tcp_the_limit() {
    let mut guard = guarded(registry::protocol("p_xcp").unwrap());
    let (mut number, mut arrived) = (0, 0);
    let mut active = [ActiveController::Own; 6];
    for (round, controller) in active.iter_mut().enumerate() {
        for i in 0..8 {
            number += if i == 0 { 5 } else { 1 };
            arrived += 1;
            receive(&mut guard, 100 * (round as u64 + 1) + 12 * i, number, arrived, true);
        }
        *controller = guard.active_controller();
    }
    assert_eq!(
        active.map(|controller| controller == ActiveController::Limited),
        [false, false, false, true, true, true]
    );
    assert!(guard.allowance().cwnd < 10.0, "{}", guard.allowance().cwnd);
    assert_eq!(guard.allowance().cwnd, guard.own_window(Time::millis(100)), "headers say what is so");
}
