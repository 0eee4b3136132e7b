//! The pseudo-code, by hand. Unless a test says otherwise: packets of 1500 bytes, 1000 of them a second, 100 ms, so a
//! product of 100.

use super::probe_bw::AckPhase;
use super::*;
use crate::params::Values;
use crate::testing;
use crate::wire::{Congestion as Header, Transport};

fn sender() -> Bbr3Sender {
    let values = Values::default();
    Bbr3Sender::new(&SenderInit { values: &values, packet: 1500.0, initial_window: 10.0, interface: Rate::mbps(100) })
}

/// It knows its path, and cruises with the product in flight.
fn informed() -> Bbr3Sender {
    let mut s = sender();
    (s.max_bw, s.bw, s.best, s.selective) = (1000.0, 1000.0, [1000.0, 0.0], true);
    (s.rtt.min, s.rtt.min_s, s.rtt.recent) = (Time::millis(100), 0.1, Time::millis(100));
    (s.full.reached, s.cwnd, s.pacing) = (true, 100.0, 990.0);
    s.start_down(Time::ZERO);
    s.enter(State::Cruise);
    s.cycle.ack_phase = AckPhase::Init;
    s
}

/// An acknowledgement echoes the last of the packets with these notes; none if no packet is known.
fn pass(flight: &mut Flight, ack: &Ack<'_>, notes: &[Note]) {
    let before = notes.len().saturating_sub(1);
    (0..before).for_each(|n| flight.overtake(ack, notes[n], (before - 1 - n) as u32));
    flight.pass(ack, notes.last(), before as u32);
}

fn at(ms: u64) -> Shown {
    Shown { now: Time::millis(ms), in_flight: 100.0, before: 101.0, arrived: 1, ..Shown::default() }
}

/// This number of packets is found to be lost. When each of them left, 100 packets were in flight, itself included.
fn lose(s: &mut Bbr3Sender, lost: u32) {
    lose_of(s, 100, lost);
}
fn lose_of(s: &mut Bbr3Sender, in_flight: u32, lost: u32) {
    let note = s.flight.on_send(&testing::sent(Time::ZERO, in_flight - 1), false);
    let ack = testing::ack(Time::ZERO, &Header::NONE);
    pass(&mut s.flight, &ack, &std::vec![note; lost as usize + 1]);
    s.lose(lost, Time::millis(50));
}

/// Section 5.6.2: the initial window in a round trip, times 4 ln 2 = 2.772589: 277.2589 packets of 12,000 bits a
/// second.
#[test]
fn it_starts_at_the_gain_of_startup() {
    let mut s = sender();
    s.on_start(Time::ZERO, Time::millis(100));
    let Allowance { cwnd, pacing } = s.allowance();
    assert_eq!((cwnd, pacing.expect("it paces").0 / 1000), (10.0, 3327));
}

/// Section 5.6.1: the table of gains and bounds. The window is gain times 100, and two more in UP; of a longterm of 120
/// a sixth is free.
#[test]
fn gains_and_bounds_are_those_of_the_table() {
    let of = |state, longterm| {
        let mut s = informed();
        s.enter(state);
        (s.cwnd, s.inflight_longterm) = (1e4, longterm);
        s.set_cwnd(&at(0));
        s.set_pacing(s.pacing_gain);
        (s.cwnd, s.pacing)
    };
    for (state, gain, open, bounded) in [
        (State::Startup, STARTUP_GAIN, 200.0, 200.0),
        (State::Drain, 0.5, 200.0, 200.0),
        (State::Down, 0.9, 200.0, 120.0),
        (State::Cruise, 1.0, 200.0, 102.0),
        (State::Refill, 1.0, 200.0, 120.0),
        (State::Up, 1.25, 227.0, 120.0),
        (State::ProbeRtt, 1.0, 50.0, 50.0),
    ] {
        let ((window, pacing), (most, _)) = (of(state, f64::INFINITY), of(state, 120.0));
        assert_eq!((window, most), (open, bounded), "{state:?}");
        assert!((pacing - 990.0 * gain).abs() < 1e-9, "{state:?}: {pacing}");
    }
}

/// Section 5.6.3: 1000 packets a second are one in a millisecond, so a quantum has two and the budget six; at 30,000
/// there are 30 and 90.
#[test]
fn bursts_have_a_budget() {
    let mut s = informed();
    s.rtt.min_s = 1e-3;
    assert_eq!(s.inflight(1000.0, 1.0), 4.0, "packets leave singly");
    s.bursts = true;
    assert_eq!(s.inflight(1000.0, 1.0), 6.0);
    s.pacing = 30_000.0;
    assert_eq!(s.inflight(1000.0, 1.0), 90.0);
    s.pacing = 1e6;
    assert!((s.inflight(1000.0, 1.0) - 3.0 * 65_536.0 / 1500.0).abs() < 1e-9, "64 kB at most");
}

/// Section 5.3.1.2: 124 is less than a quarter more than 100; 125 is that, 156 no quarter more than 125.
#[test]
fn three_rounds_without_a_quarter_more_fill_the_pipe() {
    let mut s = sender();
    let rates = [(100.0, false), (124.0, false), (125.0, false), (130.0, false), (140.0, false), (156.0, true)];
    for (rate, full) in rates {
        s.check_full(&Shown { rate, limited: true, ..at(0) });
        s.check_full(&Shown { rate, ..at(0) });
        assert_eq!((s.full.now, s.full.reached), (full, full), "{rate}");
    }
    s.check_startup_done(&at(0));
    assert_eq!(s.state, State::Drain);
}

/// Section 5.3.1.3: losses in six acknowledgements of a round, and 3 of 100, end Startup with what was delivered in
/// flight.
#[test]
fn losses_end_startup_and_an_undo_resumes_it() {
    let mut s = informed();
    s.full.reached = false;
    s.enter(State::Startup);
    s.save_upon_loss();
    s.congestion.inflight_latest = 130.5;
    let round = |s: &mut Bbr3Sender, ranges: u32, lost: f64| {
        let shown = Shown { newly_lost: 1, recovering: true, tx_in_flight: 100.0, lost, ..at(0) };
        for range in 1..=ranges {
            s.congestion.round_start = range == ranges;
            s.check_startup_done(&shown);
        }
        s.state
    };
    assert_eq!(round(&mut s, 5, 3.0), State::Startup, "five ranges");
    assert_eq!(round(&mut s, 6, 2.0), State::Startup, "2 %");
    assert_eq!(round(&mut s, 6, 3.0), State::Drain);
    assert_eq!((s.inflight_longterm, s.full.now), (130.0, true));
    s.undo();
    assert_eq!((s.state, s.full.reached, s.inflight_longterm), (State::Startup, false, f64::INFINITY));
    s.selective = false;
    assert_eq!(round(&mut s, 1, 1.0), State::Drain, "without SACK any loss does");
}

/// Section 5.3.2: until the product is in flight, or for three round trips.
#[test]
fn drain_ends_by_flight_or_rounds() {
    let of = |in_flight: f64, rounds: u32| {
        let mut s = informed();
        s.enter(State::Drain);
        (s.drain_round, s.round) = (7, 7 + rounds);
        s.check_drain_done(&Shown { in_flight, ..at(0) });
        s.state
    };
    assert_eq!([of(101.0, 0), of(101.0, 3)], [State::Drain; 2]);
    assert_eq!([of(100.0, 0), of(101.0, 4)], [State::Down; 2]);
}

/// Section 5.3.3.9: DOWN ends with 100 in flight, and 0.85 of the longterm; here 110 less 16.5.
#[test]
fn down_ends_with_the_queue_and_with_headroom() {
    let of = |in_flight: f64, longterm: f64| {
        let mut s = informed();
        s.start_down(Time::ZERO);
        s.inflight_longterm = longterm;
        s.update_cycle(&Shown { in_flight, ..at(10) });
        s.state
    };
    assert_eq!([of(101.0, f64::INFINITY), of(94.0, 110.0)], [State::Down; 2]);
    assert_eq!([of(100.0, f64::INFINITY), of(93.0, 110.0)], [State::Cruise; 2]);
}

/// Section 5.3.3.8: after two to three seconds, or as many rounds as the product has segments, 63 at most.
#[test]
fn cruising_lasts_two_seconds_or_sixty_three_rounds() {
    let mut s = informed();
    let mut draws = [0; 2];
    for second in 0..400 {
        s.start_down(Time::secs(second));
        assert!(s.cycle.wait >= Time::secs(2) && s.cycle.wait < Time::secs(3), "{}", s.cycle.wait);
        draws[s.cycle.rounds as usize] += 1;
    }
    assert!(draws[0] > 150 && draws[1] > 150, "{draws:?}");
    let of = |bw: f64, rounds: u32, ms: u64| {
        let mut s = informed();
        (s.bw, s.max_bw, s.cycle.rounds) = (bw, bw, rounds);
        s.cycle.wait = Time::millis(2500);
        s.update_cycle(&at(ms));
        s.state
    };
    assert_eq!([of(1000.0, 62, 2500), of(200.0, 19, 2500)], [State::Cruise; 2]);
    assert_eq!([of(1000.0, 63, 10), of(200.0, 20, 10), of(1000.0, 0, 2501)], [State::Refill; 3]);
}

/// Section 5.3.3.9: a round of REFILL without short-term bounds, then UP until the pipe is full.
#[test]
fn refill_takes_a_round_and_up_ends_when_the_pipe_is_full() {
    let mut s = informed();
    (s.congestion.bw_shortterm, s.congestion.inflight_shortterm) = (500.0, 50.0);
    s.start_refill();
    assert_eq!((s.congestion.bw_shortterm, s.congestion.inflight_shortterm), (f64::INFINITY, f64::INFINITY));
    s.update_cycle(&at(10));
    assert_eq!((s.state, s.cycle.is_sample), (State::Refill, false));
    s.round_start = true;
    s.update_cycle(&Shown { rate: 990.0, ..at(20) });
    assert_eq!((s.state, s.cycle.is_sample, s.full.bandwidth), (State::Up, true, 990.0));
    for round in 0..3 {
        assert_eq!(s.state, State::Up, "{round}");
        s.check_full(&Shown { rate: 1000.0, ..at(100) });
        s.update_cycle(&at(100));
    }
    assert_eq!((s.state, s.cycle.since), (State::Down, Time::millis(100)));
}

/// Section 5.3.3.5: inflight_longterm grows by one segment in the first round, two in the second, four in the third.
#[test]
fn longterm_grows_by_doublings() {
    let mut s = informed();
    s.inflight_longterm = 100.0;
    s.start_up(&at(0));
    let mut grown = [0.0; 3];
    for more in &mut grown {
        let before = s.inflight_longterm;
        s.cwnd = before;
        s.filled = [false, true];
        for acked in 1..=before as u32 {
            s.round_start = acked == before as u32;
            s.cwnd = s.inflight_longterm;
            s.probe_longterm_upward(&at(0));
        }
        *more = s.inflight_longterm - before;
    }
    assert_eq!(grown, [1.0, 2.0, 4.0]);
    s.filled = [false, false];
    s.probe_longterm_upward(&Shown { arrived: 1000, ..at(0) });
    assert_eq!(s.inflight_longterm, 107.0, "a window that is not full shows nothing");
}

/// Section 5.5.10.2: of 100 in flight the third loss is more than 2 %. 99 + (0.02 * 99 - 2) / 0.98 = 98.98 were safe.
/// Of 50 it is the second; 48.98 are less than 0.7 of the product.
#[test]
fn more_than_two_percent_lost_set_the_longterm() {
    let mut s = informed();
    s.start_up(&at(0));
    s.cycle.is_sample = true;
    lose(&mut s, 2);
    assert_eq!((s.state, s.inflight_longterm), (State::Up, f64::INFINITY));
    lose(&mut s, 1);
    // The third left after two were lost.
    assert_eq!((s.state, s.inflight_longterm), (State::Up, f64::INFINITY));
    let three = |in_flight: u32, lost: u32| {
        let mut s = informed();
        s.start_up(&at(0));
        s.cycle.is_sample = true;
        s.save_upon_loss();
        lose_of(&mut s, in_flight, lost);
        s
    };
    let mut s = three(100, 3);
    assert_eq!((s.state, s.inflight_longterm, s.cycle.too_high), (State::Down, 98.0, true));
    s.undo();
    assert_eq!((s.state, s.inflight_longterm), (State::Refill, f64::INFINITY));
    assert_eq!(three(50, 2).inflight_longterm, 70.0);
    assert_eq!(three(100, 40).inflight_longterm, 98.0, "it is set once in a probe");
    let mut s = informed();
    lose(&mut s, 10);
    assert_eq!(s.inflight_longterm, f64::INFINITY, "no probe");
}

/// Section 5.3.3.6: after a probe that was too high the next one ends with inflight_longterm in flight, and goes on a
/// round later.
#[test]
fn a_cautious_probe_goes_on_if_it_loses_nothing() {
    let probe = |too_high: bool| {
        let mut s = informed();
        (s.cwnd, s.inflight_longterm, s.cycle.too_high) = (98.0, 98.0, true);
        s.start_up(&at(0));
        s.update_cycle(&Shown { before: 97.0, ..at(10) });
        assert_eq!(s.state, State::Up);
        s.update_cycle(&Shown { before: 98.0, ..at(20) });
        assert_eq!((s.state, s.cycle.precautionary, s.cycle.too_high), (State::Down, true, false));
        (s.round_start, s.cycle.too_high) = (true, too_high);
        s.update_cycle(&Shown { in_flight: 97.0, ..at(120) });
        s.state
    };
    assert_eq!([probe(false), probe(true)], [State::Refill, State::Down]);
}

/// Section 5.5.10.3: at the end of a round with losses the maxima of the round, and 0.7 of what was, are the bounds.
#[test]
fn losses_bound_rate_and_volume_for_the_short_term() {
    let mut s = informed();
    let round = |s: &mut Bbr3Sender, rate: f64, delivered: f64| {
        s.congestion.lost = true;
        (s.congestion.bw_latest, s.congestion.inflight_latest) = (rate, delivered);
        let shown = Shown { prior_delivered: s.congestion.round_end as i64, ..at(0) };
        s.update_latest_delivery_signals(&shown);
        s.update_congestion_signals(&shown);
        [s.congestion.bw_shortterm, s.congestion.inflight_shortterm]
    };
    assert_eq!(round(&mut s, 800.0, 60.0), [800.0, 70.0]);
    assert_eq!(round(&mut s, 300.0, 65.0), [560.0, 65.0]);
    s.set_cwnd(&at(0));
    assert_eq!(s.cwnd, 65.0);
    for state in [State::Startup, State::Refill, State::Up] {
        s.enter(state);
        assert_eq!(round(&mut s, 100.0, 10.0), [560.0, 65.0], "{state:?}");
    }
}

/// Section 5.5.6: the maximum of this cycle and the one before. Samples that the application limits count if they are
/// higher.
#[test]
fn the_bandwidth_is_the_maximum_of_two_cycles() {
    let mut s = sender();
    let mut take = |rate: f64, limited: bool, ends: bool| {
        if ends {
            s.advance_max_bw();
        }
        s.update_max_bw(&Shown { rate, limited, ..at(0) });
        s.max_bw
    };
    assert_eq!([take(100.0, false, false), take(80.0, false, true), take(70.0, true, false)], [100.0; 3]);
    assert_eq!([take(60.0, false, true), take(50.0, false, true), take(90.0, true, false)], [80.0, 60.0, 90.0]);
    assert_eq!([take(10.0, true, true), take(10.0, true, true)], [90.0; 2], "cycles without a sample");
}

/// Section 5.3.4: 5 s without a lower round trip: half of the product for 200 ms and a round. The minimum of 10 s
/// stays.
#[test]
fn the_round_trip_is_measured_with_half_of_the_product() {
    let mut s = informed();
    let mut ack = |ms: u64, in_flight: u32, round_start: bool| {
        let now = Time::millis(ms);
        s.round_start = round_start;
        s.update_min_rtt(now, Time::millis(120));
        s.check_probe_rtt(&Shown { in_flight: in_flight as f64, ..at(ms) }, in_flight);
        s.set_cwnd(&Shown { arrived: 0, ..at(ms) });
        (s.state, s.cwnd)
    };
    assert_eq!(ack(5000, 100, true), (State::Cruise, 100.0));
    assert_eq!(ack(5001, 100, true), (State::ProbeRtt, 50.0));
    assert_eq!([ack(5050, 51, true), ack(5100, 50, true)], [(State::ProbeRtt, 50.0); 2]);
    assert_eq!([ack(5200, 49, true), ack(5300, 49, false)], [(State::ProbeRtt, 50.0); 2], "200 ms from 5.1 s on");
    assert_eq!(ack(5301, 49, false), (State::Cruise, 100.0));
    assert_eq!((s.rtt.min, s.rtt.recent), (Time::millis(100), Time::millis(120)));
    assert_eq!((s.rtt.recent_at, s.cycle.since), (Time::millis(5301), Time::millis(5301)), "the next one in 5 s");
    s.update_min_rtt(Time::millis(10_001), Time::millis(130));
    assert_eq!((s.rtt.min, s.rtt.min_at), (Time::millis(120), Time::millis(5301)));
}

/// Section 5.4.1: at the bandwidth, and without measuring the round trip, for which silence has made room.
#[test]
fn after_an_idle_time_it_goes_on_at_its_bandwidth() {
    let mut s = informed();
    s.enter(State::Down);
    s.set_pacing(s.pacing_gain);
    assert_eq!(s.pacing, 891.0);
    s.on_idle(Time::secs(6), Time::secs(6), Time::secs(1));
    assert_eq!(s.pacing, 990.0);
    s.update_min_rtt(Time::secs(6), Time::millis(110));
    s.check_probe_rtt(&Shown { delivered: 1.0, ..at(6000) }, 1);
    assert_eq!((s.state, s.idle_restart), (State::Down, false));
    assert!(s.delivery.limited(), "what comes first measures the application");
}

/// Section 5.6.4.4: one segment, then slow start; the window returns when all that had left is acknowledged.
#[test]
fn a_timeout_by_hand() {
    let mut s = informed();
    s.on_loss(&testing::loss(Time::millis(1), LossKind::Mark, 20));
    assert_eq!(s.cwnd, 100.0, "marks do not count");
    for n in 0..100 {
        let mut packet = Packet::EMPTY;
        packet.transport.set_packet_number(n);
        s.on_send(&mut packet, &testing::sent(Time::ZERO, n));
    }
    assert!(s.filled[1]);
    s.on_loss(&testing::loss(Time::millis(300), LossKind::Timeout, 100));
    assert_eq!(s.cwnd, 1.0);
    let mut ack = |number: u32, cumulative: u32| {
        let mut transport = Transport::EMPTY;
        transport.set_packet_number(number);
        let ack = testing::ack(Time::millis(400 + number as u64), &Header::NONE);
        s.on_ack(&Ack { transport: &transport, cumulative, highest_sent: 100, selective: true, ..ack });
        s.cwnd
    };
    assert_eq!(ack(1, 50), 4.0);
    assert!(ack(2, 100) > 60.0);
}

mod flight {
    use super::*;

    fn sent(flight: &mut Flight, packets: u32) -> std::vec::Vec<Note> {
        (0..packets).map(|n| flight.on_send(&testing::sent(Time::ZERO, n), false)).collect()
    }
    fn ack(newly_acked: u32, in_flight: u32) -> Ack<'static> {
        let ack = testing::ack(Time::ZERO, &Header::NONE);
        Ack { newly_acked, in_flight, highest_sent: 20, cumulative: 0, selective: true, ..ack }
    }

    /// Of ten packets 0 and 1 are lost, which the acknowledgement of 4 shows after those of 2 and 3.
    #[test]
    fn the_oldest_without_an_answer_are_lost() {
        let mut flight = Flight::default();
        let notes = sent(&mut flight, 10);
        assert_eq!((notes[0].in_flight, notes[9].in_flight), (1, 10));
        pass(&mut flight, &ack(1, 9), &notes[..3]);
        assert_eq!(flight.losses(&ack(1, 9), 1), 0);
        pass(&mut flight, &ack(1, 8), &notes[3..4]);
        assert_eq!(flight.losses(&ack(1, 8), 1), 0);
        pass(&mut flight, &ack(1, 5), &notes[4..5]);
        assert_eq!(flight.losses(&ack(1, 5), 1), 2);
        assert_eq!([flight.lose(), flight.lose(), flight.lose()], [notes[0], notes[1], notes[4]]);
        assert_eq!(flight.lost_since(&notes[0]), 3.0);
        assert_eq!(flight.on_send(&testing::sent(Time::ZERO, 5), false).in_flight, 6);
    }

    /// Delayed acknowledgements account for the packet before; one that arrives late is missing no more.
    #[test]
    fn what_arrives_is_not_missing() {
        let mut flight = Flight::default();
        let notes = sent(&mut flight, 10);
        pass(&mut flight, &ack(2, 8), &notes[..2]);
        // 2 is late: 3 and 4 come first.
        pass(&mut flight, &ack(1, 7), &notes[2..4]);
        pass(&mut flight, &ack(1, 6), &notes[4..5]);
        pass(&mut flight, &ack(1, 5), &[]); // of 2, which is known no more
        assert_eq!((flight.losses(&ack(1, 5), 5), flight.lose()), (0, notes[4]));
    }

    /// What a timer finds between two acknowledgements shows when a packet leaves; a timeout loses all; without reports
    /// an episode is one loss.
    #[test]
    fn timers_and_episodes() {
        let mut flight = Flight::default();
        let notes = sent(&mut flight, 10);
        let after = flight.on_send(&testing::sent(Time::ZERO, 8), false);
        assert_eq!((after.in_flight, flight.lost_since(&after)), (9, 0.0));
        pass(&mut flight, &ack(1, 8), &notes[..1]);
        assert_eq!(flight.losses(&ack(1, 8), 1), 2);
        assert_eq!(flight.on_timeout(), 8);
        flight.on_episode();
        let plain = Ack { selective: false, ..ack(1, 0) };
        assert_eq!([flight.losses(&plain, 1), flight.losses(&plain, 1)], [1, 0]);
    }
}
