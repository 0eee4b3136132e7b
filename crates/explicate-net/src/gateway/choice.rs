//! Which connection to a peer is used, when both gateways call.
//!
//! Each may have the address of the other one and call at the same time, so that two handshakes succeed. Only one connection is used:
//! the headers of a datagram are those of the tunnel at its address ([`socket`](super::socket)).
//!
//! *The rule.* The end with the smaller public key decides. It greets ([`credit`](super::credit)) in one connection at a time, the first
//! one whose handshake it has completed. The other end greets in every one at once, and uses the one in which it is greeted. One end
//! alone decides, and before it has, nothing is carried: the order in which the two see the handshakes does not matter, and the decision
//! breaks no connection of a host. Only completed handshakes count: if calls succeed in one direction alone, the connection of that
//! direction is used.
//!
//! *Late or new.* A gateway calls while it has no connection to the peer, and gives its call up when the peer's handshake completes. So
//! a second connection is one of two kinds, which the end that decides tells apart by an order of events and not by times:
//!
//! - Its call began before the used one was greeted. The peer had completed its handshake, and so the first datagram of it had come,
//!   before the peer greeted in the used one. It is late: it is closed.
//! - Its first datagram came after that greeting. The peer has called although it had greeted, so it has lost the used connection:
//!   its program or its machine has started anew. The new connection takes the place of the old one, which is closed with all that it carries.
//!
//! Between the choice and the greeting of the peer a second connection waits for the outcome, ten seconds at most.

use quinn::{Connection, ConnectionError};
use tokio::sync::watch;

#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Closes a connection beside the one that is used.
pub const BESIDE: u32 = 2;
/// How QUIC tells during a handshake that the application has ended it (RFC 9000 section 10.2.3): the caller has given its call up.
const APPLICATION_ERROR: u64 = 0x0c;

/// The connections to a peer.
#[derive(Default)]
pub struct Choice(watch::Sender<State>);

#[derive(Default)]
struct State {
    /// Connections whose handshake is complete here and that have not ended.
    open: u32,
    chosen: Option<Chosen>,
}

struct Chosen {
    connection: Connection,
    /// Its number among the events of this gateway, once the peer has greeted.
    used: Option<u64>,
}

/// What becomes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It is the one.
    Chosen,
    /// It waits until it is known whether the chosen one can be used.
    Waits,
    /// It is one of a call that began before the used one was greeted.
    Late,
}

impl Verdict {
    /// That of a connection with this beginning; `other` is the one that was chosen, and when it was first used.
    fn of(begun: u64, other: Option<Option<u64>>) -> Verdict {
        match other {
            None => Verdict::Chosen,
            Some(None) => Verdict::Waits,
            Some(Some(used)) if begun < used => Verdict::Late,
            Some(Some(_)) => Verdict::Chosen,
        }
    }
}

impl State {
    fn choose(&mut self, connection: &Connection, used: Option<u64>) {
        let chosen = Chosen { connection: connection.clone(), used };
        let before = self.chosen.replace(chosen);
        let Some(before) = before.filter(|before| before.connection.stable_id() != connection.stable_id()) else {
            return;
        };
        #[cfg(feature = "simulated")]
        if is_back(Fault::CalledAnew) || is_back(Fault::BothCall) {
            return;
        }
        before.connection.close(0u32.into(), b"the peer has called anew");
    }
}

impl Choice {
    /// Waits until there is no connection.
    pub async fn free(&self) {
        #[cfg(feature = "simulated")]
        if is_back(Fault::BothCall) {
            return;
        }
        let _ = self.0.subscribe().wait_for(|state| state.open == 0).await;
    }
    /// Waits until there is one.
    pub async fn taken(&self) {
        #[cfg(feature = "simulated")]
        if is_back(Fault::BothCall) {
            return std::future::pending().await;
        }
        let _ = self.0.subscribe().wait_for(|state| state.open > 0).await;
    }
    /// The handshake of a connection is complete.
    pub fn enter<'a>(&'a self, connection: &'a Connection) -> Entered<'a> {
        self.0.send_modify(|state| state.open += 1);
        Entered { choice: self, connection }
    }
}

/// A connection among those to a peer, until it ends.
pub struct Entered<'a> {
    choice: &'a Choice,
    connection: &'a Connection,
}

impl Entered<'_> {
    /// At the end that decides: whether this is the one, as soon as that is known. `begun` numbers its first event.
    pub async fn choose(&self, begun: u64) -> bool {
        #[cfg(feature = "simulated")]
        if is_back(Fault::BothCall) {
            return true;
        }
        let mut changes = self.choice.0.subscribe();
        loop {
            let mut verdict = Verdict::Waits;
            self.choice.0.send_if_modified(|state| {
                let open = state.chosen.as_ref().filter(|chosen| chosen.connection.close_reason().is_none());
                verdict = Verdict::of(begun, open.map(|chosen| chosen.used));
                if verdict == Verdict::Chosen {
                    state.choose(self.connection, None);
                }
                verdict == Verdict::Chosen
            });
            if verdict != Verdict::Waits {
                return verdict == Verdict::Chosen;
            }
            tokio::select! {
                biased;
                _ = self.connection.closed() => return false,
                _ = changes.changed() => {}
            }
        }
    }
    /// The peer has greeted, which is the event with this number: it is used.
    pub fn used(&self, event: u64) {
        self.choice.0.send_modify(|state| state.choose(self.connection, Some(event)));
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let own = |chosen: &mut Chosen| chosen.connection.stable_id() == self.connection.stable_id();
        self.choice.0.send_modify(|state| {
            state.open -= 1;
            drop(state.chosen.take_if(own));
        });
    }
}

/// Whether a connection has ended beside another one, or because its caller has given the call up.
pub fn is_beside(reason: &ConnectionError) -> bool {
    match reason {
        ConnectionError::ApplicationClosed(closed) => {
            // quinn closes a call that was given up in this way.
            closed.error_code == BESIDE.into() || (closed.error_code == 0u32.into() && closed.reason.is_empty())
        }
        ConnectionError::ConnectionClosed(closed) => u64::from(closed.error_code) == APPLICATION_ERROR,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_began_before_the_greeting_is_late_and_one_after_it_is_new() {
        assert_eq!(Verdict::of(7, None), Verdict::Chosen);
        assert_eq!(Verdict::of(7, Some(None)), Verdict::Waits);
        assert_eq!(Verdict::of(7, Some(Some(8))), Verdict::Late);
        assert_eq!(Verdict::of(9, Some(Some(8))), Verdict::Chosen);
    }
}
