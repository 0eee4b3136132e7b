//! A transfer that goes on by another connection when one is lost, until the sender's patience ends.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::sending::{Content, Counters, Failure, Sending};
use super::socket::{Close, TURN};
use crate::clock::Clock;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};
use crate::sys;

/// What may be the cause of a silence.
const SILENT: &str = "is `explicated recv` running there, and does UDP reach its port?";
/// Between two attempts to go on.
const AGAIN: Duration = Duration::from_secs(1);
/// A call without an answer is given up after this time, for another one: QUIC doubles the time between its probes (RFC 9002 section 6.2.1), and
/// would notice half a minute late that the path carries again. A first call takes two round trips.
const CALL: Duration = Duration::from_secs(20);

/// The program that sends.
pub trait Program {
    /// A new connection to the receiver.
    fn connect(&mut self) -> impl Future<Output = Result<Sending, Failure>> + Send;
    /// Pairs with the receiver, the first time.
    fn pair(&mut self, sending: &Sending) -> impl Future<Output = Result<(), Failure>> + Send;
    /// Looks at a connection, now and then and at its end. Its failure ends the transfer.
    fn look(&mut self, sending: &Sending) -> Result<(), String>;
    /// A connection has ended.
    fn ended(&mut self, sending: &Sending);
    /// The transfer goes on although it was interrupted, and why it was.
    fn goes_on(&mut self, why: &str);
}

/// Sends everything to a receiver that the user calls `peer`; what has ended well is removed from `content`. The transfer ends if
/// the receiver is silent for longer than `patience`.
pub async fn complete(
    program: &mut impl Program,
    (peer, patience): (&str, Duration),
    counters: &Counters,
    content: &mut Content,
) -> Result<(), String> {
    let mut moved = (Clock::start(), 0);
    loop {
        let left = patience.saturating_sub(moved.0.elapsed());
        let why = match once(program, peer, [left, patience], content).await {
            Err(Failure::Lost(why)) => why,
            other => return other.map_err(|failure| failure.to_string()),
        };
        let written = counters.written.load(Ordering::Relaxed);
        if written > moved.1 {
            moved = (Clock::start(), written);
        }
        if moved.0.elapsed() + AGAIN > patience || sys::stopped() || matches!(content, Content::Filler(..)) {
            return Err(why);
        }
        program.goes_on(&why);
        tokio::time::sleep(AGAIN).await;
    }
}

/// Calls until there is an answer.
async fn call(program: &mut impl Program) -> Result<Sending, Failure> {
    #[cfg(feature = "simulated")]
    if is_back(Fault::CalledOnce) {
        return program.connect().await;
    }
    loop {
        if let Ok(connected) = tokio::time::timeout(CALL, program.connect()).await {
            return connected;
        }
    }
}

/// Sends by one connection, unless it takes too long until there is one, or until something is heard by it.
async fn once(
    program: &mut impl Program,
    peer: &str,
    [connected, heard_of]: [Duration; 2],
    content: &mut Content,
) -> Result<(), Failure> {
    let sending = tokio::select! {
        biased;
        connected = call(program) => Arc::new(connected?),
        () = tokio::time::sleep(connected) => {
            return Err(Failure::Final(format!("{peer} does not answer; {SILENT}")));
        }
        () = stop() => return Err(Failure::Final("interrupted".to_string())),
    };
    tokio::select! {
        biased;
        paired = program.pair(&sending) => paired?,
        () = tokio::time::sleep(heard_of) => return Err(Failure::Final(format!("{peer} does not answer any more"))),
        () = stop() => return Err(Failure::Final("interrupted".to_string())),
    }
    let work = sending.send(content);
    tokio::pin!(work);
    let mut heard = (Clock::start(), 0);
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut work => break outcome,
            () = tokio::time::sleep(TURN) => {}
        }
        sending.fit_window();
        if let Err(e) = program.look(&sending) {
            break Err(Failure::Final(e));
        }
        let arrived = sending.connection.stats().udp_rx.datagrams;
        if arrived != heard.1 {
            heard = (Clock::start(), arrived);
        }
        if sys::stopped() {
            break Err(Failure::Final("interrupted".to_string()));
        }
        if heard.0.elapsed() > heard_of {
            break Err(Failure::Final(format!("{peer} does not answer any more")));
        }
    };
    let outcome = outcome.and(program.look(&sending).map_err(Failure::Final));
    program.ended(&sending);
    sending.close(if outcome.is_ok() { Close::Done } else { Close::Stopped });
    outcome
}

/// Ends when a signal came.
async fn stop() {
    while !sys::stopped() {
        tokio::time::sleep(TURN).await;
    }
}
