//! The window by a peer's feedback, losses and silence.

use explicate_core::guard::AIR_LOSS;
use explicate_core::presets::{DEFAULT_EXPLICIT, DEFAULT_FALLBACK};

use super::*;

fn controller(name: &str) -> WindowController {
    let config = ControllerConfig::new(registry::protocol(name).unwrap(), AIR_LOSS);
    WindowController::new(&config, 1500, Rate::mbps(20), Clock::start())
}

#[test]
fn feedback_of_the_peer_moves_the_window_once_and_losses_do_not() {
    let mut controller = controller("xcp");
    controller.on_ack(1500, Time::millis(600), Time::millis(600));
    controller.on_end_acks(0, false);
    assert_eq!(controller.window(), 10.0);
    // 25 kB/s for 0.6 s are ten packets.
    for _ in 0..2 {
        controller.returned(25_000);
        controller.on_end_acks(0, false);
        assert_eq!(controller.window(), 20.0, "the same sum again says nothing new");
    }
    controller.on_loss(1500, Time(1), false);
    controller.on_loss(1500, Time(1), true);
    assert_eq!(controller.window(), 20.0);
    controller.returned(0u32.wrapping_sub(1000));
    controller.on_end_acks(0, false);
    assert!((controller.window() - 9.6).abs() < 1e-9, "26 kB/s less: {}", controller.window());
}

/// Behind an outage the window is full of lost packets; an acknowledgement from before it changes nothing of that.
#[test]
fn probes_pass_the_window_until_one_of_them_is_acknowledged() {
    let (mut controller, trip) = (controller("xcp"), Time::millis(600));
    controller.on_ack(1500, trip, trip);
    let before = controller.allowed();
    controller.allow_probe(1500);
    controller.on_ack(1500, trip, trip);
    assert_eq!(controller.allowed(), before + FIRST_PROBE);
    controller.allow_probe(1500);
    assert_eq!(controller.allowed(), before + FIRST_PROBE + NEXT_PROBE);
    controller.on_ack(1500, trip, Time::ZERO);
    assert_eq!(controller.allowed(), before);
}

#[test]
fn a_start_takes_what_the_port_has_to_spare() {
    let mut controller = controller("xcp");
    controller.header(2.5e6);
    assert_eq!(controller.window(), 10.0, "the round trip is unknown");
    controller.on_ack(1500, Time::millis(600), Time::millis(600));
    let header = controller.header(2.5e6);
    assert!((controller.window() - 1000.0).abs() < 1e-6, "2.5 MB/s for 0.6 s: {}", controller.window());
    assert!(header.congestion.is_standard() && header.congestion.rtt() > 0);
    controller.header(5e6);
    assert!(controller.window() < 1001.0, "it is not idle now");
}

/// Round trips of 100 packets: `lost` of them are lost, and `wait` is the time in the own port's queue, ms.
fn rounds(controller: &mut WindowController, count: usize, lost: u64, rtt: u64, wait: u64) {
    for _ in 0..count {
        // The packets are made before this clock began.
        controller.left_port = [(Time::ZERO, Time::millis(wait))].into();
        controller.on_ack(1500 * (100 - lost), Time(1), Time::millis(rtt));
        controller.on_loss(1500 * lost, Time(1), false);
        controller.on_end_acks(0, false);
    }
}

#[test]
fn the_rule_of_the_guard_makes_tcp_the_limit() {
    let limited = |cases: &[(usize, u64, u64, u64)]| {
        let mut controller = controller("xcp");
        controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
        cases.iter().for_each(|&(count, lost, rtt, wait)| rounds(&mut controller, count, lost, rtt, wait));
        assert_eq!(controller.is_limited(), controller.window() < 500.0, "{cases:?}: {}", controller.window());
        controller.is_limited()
    };
    assert!(limited(&[(3, 30, 100, 0)]) && !limited(&[(2, 30, 100, 0)]), "a fifth, three times");
    assert!(limited(&[(4, 10, 100, 0)]) && !limited(&[(3, 10, 100, 0)]), "8 beyond the air each time");
    assert!(!limited(&[(1000, 2, 100, 0)]), "the stated loss of the air");
    assert!(!limited(&[(1, 0, 100, 0), (50, 0, 124, 0)]) && limited(&[(1, 0, 100, 0), (3, 0, 126, 0)]), "delay");
    assert!(!limited(&[(1, 0, 100, 0), (50, 0, 160, 40)]), "delay in the own port");
}

/// A code or a flag that the peer returns moves the window of a protocol without a congestion header.
#[test]
fn codes_and_flags_move_the_window() {
    use explicate_core::wire::{Ecn, flag};
    let after = |name: &str, word: u32| {
        let mut controller = controller(name);
        controller.on_ack(1500 * 40, Time::millis(100), Time::millis(100));
        controller.sender.resume(controller.clock.now(), 100.0, Time::millis(100));
        controller.returned(word);
        controller.on_end_acks(1500 * 100, false);
        controller.window()
    };
    let [low, high, over] = [Ecn::Capable1, Ecn::Capable0, Ecn::Marked].map(|code| after("vcp", code as u32));
    assert!((101.0..102.0).contains(&low) && (100.0..101.0).contains(&high), "{low} {high}");
    assert_eq!(over, 87.5, "cut once");
    assert_eq!(after("vcp", 0), 100.0, "no router has answered");
    assert!(after("xtcp", 0) > 100.0 && after("xtcp", (flag::CONGESTED as u32) << 8) < 60.0);
}

/// Routers grant 10 MB/s at once: without an own port at most 1024 packets are under way, and then eight times those that arrive.
#[test]
fn wide_routers_grant_no_more_than_eight_times_what_arrives() {
    let granted = |guard: bool, port: bool, arrived: u64| {
        let config = ControllerConfig { guard, ..ControllerConfig::new(registry::protocol("xcp").unwrap(), AIR_LOSS) };
        let mut controller = WindowController::new(&config, 1500, Rate::mbps(100_000), Clock::start());
        if !port {
            controller.expect_no_port();
        }
        controller.answered(1);
        controller.on_ack(1500 * arrived, Time::secs(1), Time::secs(1));
        controller.returned(10_000_000);
        controller.on_end_acks(0, false);
        controller.allowed()
    };
    assert_eq!(granted(true, false, 10), 1024.0);
    assert_eq!(granted(true, false, 200), 1600.0);
    for unbounded in [granted(true, true, 10), granted(false, false, 10)] {
        assert!(unbounded > 6000.0, "{unbounded}");
    }
}

/// Packets beyond it would fill a short queue for good. With an own port they wait there.
#[test]
fn without_an_own_port_no_more_is_in_flight_than_the_window_of_tcp() {
    for name in ["xcp", "vcp", DEFAULT_TCP] {
        let mut controller = controller(name);
        rounds(&mut controller, 1, 0, 100, 0);
        assert!(controller.allowed() > controller.window() + 30.0, "{name}");
        controller.expect_no_port();
        let held: Vec<f64> = std::iter::repeat_with(|| {
            controller.on_end_acks(0, false);
            controller.window() - controller.allowed()
        })
        .take(100)
        .collect();
        assert!(held.iter().all(|held| (0.0..=HELD).contains(held)), "{name}: {held:?}");
        assert!(held.iter().any(|held| *held < 0.5) && held.iter().any(|held| *held > 1.5), "{name}: {held:?}");
    }
}

/// RFC 9002 section 7.3.2: a loss of a packet sent before the last reaction is no news, and the window does not grow until one is
/// acknowledged that was sent after it.
#[test]
fn losses_of_a_window_count_once_for_tcp() {
    for name in ["xcp", DEFAULT_TCP] {
        let mut controller = controller(name);
        controller.expect_no_port();
        rounds(&mut controller, 20, 0, 100, 0);
        let (late, long) = (Time(1), Time::secs(1000));
        controller.on_end_acks(1500 * 24, false);
        controller.on_loss(1500, late, false);
        let reduced = controller.window();
        controller.on_loss(1500, long, false);
        controller.on_ack(1500 * 10, Time::millis(100), long);
        controller.on_end_acks(1500 * 24, false);
        assert_eq!(controller.window(), reduced, "{name}: the same window");
        controller.on_ack(1500 * 10, Time::millis(100), late);
        controller.on_end_acks(1500 * 24, false);
        assert!(controller.window() > reduced, "{name}: repaired");
        let grown = controller.window();
        controller.on_loss(1500, late, false);
        assert!(controller.window() < grown, "{name}: the next window");
    }
}

/// Routers that grant 4 packets of 40 ms: half as many may wait for an acknowledgement at the peer, not 32 in a queue.
#[test]
fn without_an_own_port_routers_bound_what_is_in_flight_on_a_short_path() {
    let mut controller = controller("xcp");
    controller.expect_no_port();
    let mut acknowledge = |sum: u32| {
        controller.answered(1);
        controller.on_ack(1500, Time::millis(40), Time::millis(40));
        controller.returned(sum);
        controller.on_end_acks(0, false);
        (controller.window(), controller.allowed())
    };
    assert_eq!(acknowledge(0u32.wrapping_sub(1_000_000)), (4.0, 6.0));
    let (window, allowed) = acknowledge(4_000_000);
    assert!(window > 100.0 && allowed == window + 32.0, "{window} {allowed}");
}

/// Acknowledgements of a few packets come after [`ACK_DELAY`]: that is the round trip of a shorter path for routers and for the window.
#[test]
fn without_an_own_port_a_round_trip_is_no_shorter_than_the_delay_of_acknowledgements() {
    for (ms, reckoned, waits) in [(1, 20, 0.05), (10, 20, 0.5), (20, 20, 1.0), (40, 40, 0.5)] {
        let mut controller = controller("xcp");
        controller.expect_no_port();
        controller.answered(1);
        controller.on_ack(1500, Time::millis(ms), Time::millis(ms));
        controller.on_end_acks(0, false);
        let (window, allowed) = (controller.window(), controller.allowed());
        assert!((allowed - (1.0 + waits) * window).abs() < 1e-6, "{ms} ms: {allowed} of {window}");
        let told = controller.header(0.0).congestion.rtt();
        let mut longer = self::controller("xcp");
        longer.on_ack(1500, Time::millis(reckoned), Time::millis(reckoned));
        assert_eq!(told, longer.header(0.0).congestion.rtt(), "{ms} ms");
    }
}

/// A limit would last for good on a path whose air loses something in each window.
#[test]
fn losses_of_the_air_do_not_stop_the_growth_of_a_limit() {
    let mut controller = controller("xcp");
    controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
    rounds(&mut controller, 3, 30, 100, 0);
    assert!(controller.is_limited());
    let limit = controller.tcp.allowance().cwnd;
    for _ in 0..20 {
        controller.on_loss(1500, Time(1), false);
        controller.on_ack(1500 * 10, Time::millis(100), Time::millis(100));
        controller.on_end_acks(1500 * 100, false);
    }
    assert!(controller.tcp.allowance().cwnd > limit, "{limit}");
}

/// What shares a queue takes each loss for a sign. A buffer of 10 ms behind a router that is hardly wider left CUBIC 0.35 of its share while a
/// limited sender bore 2 % of losses there.
#[test]
fn losses_beside_a_short_queue_are_not_those_of_the_air() {
    let after = |rtt| {
        let mut controller = controller("xcp");
        controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
        rounds(&mut controller, 3, 30, 100, 0);
        let limit = controller.tcp.allowance().cwnd;
        rounds(&mut controller, 20, 1, rtt, 0);
        controller.tcp.allowance().cwnd / limit
    };
    assert!(after(104) >= 1.0, "one of a hundred, and no queue: {}", after(104));
    assert!(after(106) < 0.5, "a queue of 6 ms: {}", after(106));
}

#[test]
fn datagrams_leave_in_batches_where_no_router_answers() {
    let mut controller = controller("xcp");
    controller.expect_no_port();
    let mut acknowledged = |packets: u64, answered: u32| {
        controller.answered(answered);
        controller.on_ack(1500 * packets, Time(1), Time(1));
        controller.on_end_acks(0, false);
        controller.sends_singly()
    };
    assert_eq!(
        [(99, 0), (1, 0), (1, 1), (99, 1)].map(|(packets, count)| acknowledged(packets, count)),
        [true, false, true, true]
    );
    let mut tcp = self::controller(DEFAULT_TCP);
    tcp.expect_no_port();
    assert!(!tcp.sends_singly());
}

#[test]
fn without_a_guard_neither_silence_nor_losses_make_tcp_the_law() {
    let config =
        ControllerConfig { guard: false, ..ControllerConfig::new(registry::protocol("xcp").unwrap(), AIR_LOSS) };
    let mut controller = WindowController::new(&config, 1500, Rate::mbps(20), Clock::start());
    controller.expect_no_port();
    controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
    rounds(&mut controller, 10, 40, 300, 0);
    assert_eq!((controller.window(), controller.in_force()), (1000.0, ActiveController::Own));
}

/// CUBIC of the stack `linux`: a loss leaves 717/1024 of the window; of RFC 9438, 0.7 of the 800 packets in flight. The start has no
/// HyStart, which would take acknowledgements for many packets for a queue, and it grows though QUIC does not say what was outstanding.
#[test]
fn tcp_is_that_of_the_stack() {
    for (stack, kept) in [("linux", f64::floor(1610.0 * 717.0 / 1024.0)), ("ns2", 0.7 * 800.0)] {
        let mut config = ControllerConfig::new(registry::protocol(DEFAULT_TCP).unwrap(), AIR_LOSS);
        assert_eq!(config.stack.map(|stack| stack.name), Some("linux"));
        config.stack = explicate_core::stacks::stack(stack);
        let mut controller = WindowController::new(&config, 1500, Rate::mbps(20), Clock::start());
        for rtt in 100..116 {
            controller.on_ack(1500 * 100, Time::millis(rtt), Time::millis(rtt));
            controller.on_end_acks(1500 * 800, false);
        }
        let grown = controller.window();
        controller.on_loss(1500, Time(1), false);
        assert_eq!((controller.window(), grown > 20.0), (kept, true), "{stack}, {grown}");
    }
}

/// TCP's law has no routers that answer: quinn's losses move its window.
#[test]
fn tcp_is_no_limit_to_itself() {
    let mut controller = controller(DEFAULT_TCP);
    rounds(&mut controller, 10, 40, 100, 0);
    assert!(!controller.is_limited() && controller.window() < INITIAL * 100.0);
}

#[test]
fn the_registry_says_which_protocols_a_connection_follows() {
    let names: Vec<&str> =
        registry::protocols().filter(|p| ControllerConfig::can_follow(*p)).map(|p| p.name()).collect();
    for name in [DEFAULT_TCP, DEFAULT_FALLBACK, DEFAULT_EXPLICIT, "vcp", "xtcp"] {
        assert!(names.contains(&registry::resolve(name).unwrap().protocol.name()), "{name} of {names:?}");
    }
    assert!(names.len() < registry::protocols().count() / 2, "{names:?}");
    for name in names {
        let mut controller = controller(name);
        rounds(&mut controller, 3, 0, 100, 0);
        assert!(controller.window() >= LEAST && controller.allowed().is_finite(), "{name}");
    }
}

/// Losses have made the window smaller than what is under way.
#[test]
fn a_probe_passes_what_is_under_way_however_small_the_window_is() {
    let mut controller = controller("xtcp");
    controller.on_ack(1350, Time::millis(100), Time::millis(100));
    controller.on_end_acks(10 * 1350, false);
    (0..100).for_each(|_| controller.left(1350));
    (0..1000).for_each(|_| controller.left(100));
    let allowed = controller.allowed();
    assert!(allowed < 60.0, "{allowed}");
    controller.allow_probe(1350);
    assert!((112.0..116.0).contains(&controller.allowed()), "{} packets", controller.allowed());
    controller.allow_probe(1350);
    assert!(controller.allowed() < 120.0, "{} packets", controller.allowed());
    controller.on_ack(1350, Time::millis(100), Time::ZERO);
    controller.on_end_acks(0, false);
    assert!(controller.allowed() <= allowed + 1.0, "{}", controller.allowed());
}

/// 32 packets more than the window are more than a narrow path and its queue hold: half of those that wait for an acknowledgement have left it.
#[test]
fn little_is_added_to_a_window_that_is_limited() {
    let mut controller = controller("xcp");
    controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
    assert!(controller.allowed() >= controller.window() + 32.0);
    rounds(&mut controller, 4, 30, 100, 0);
    assert!(controller.is_limited());
    let most = controller.window() + f64::from(PER_ACK) / 2.0;
    assert!(controller.allowed() <= most, "{} of {most}", controller.allowed());
}
