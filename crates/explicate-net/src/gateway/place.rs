//! Where a peer is: its address, and one that it may have moved to (RFC 9000 section 9).
//!
//! A NAT that gives a calling gateway, or a sender of files, another port or address makes its datagrams come from there.
//! QUIC goes after the newest one that it can decrypt, and validates the path by a challenge. Who may move, and how often, is decided before QUIC sees a datagram, by the number of
//! the connection in it, which QUIC would know it by, too:
//!
//! - a peer that is allowed to, to one address at a time, at most once in [`REST`];
//! - while datagrams still come from where it was, it has not moved: the others are copies. Those from the new address are then
//!   dropped until it may move again, and QUIC goes back by the next datagram;
//! - it has moved for good when none has come from there for 10 s, and QUIC is still at the new address: it has then
//!   validated the path. Answers to challenges are no sign of that: they may belong to a path before. Until then a host that
//!   repeats old datagrams from the old address, or sends copies, can have the peer's dropped for a second, again and again.
//!
//! Datagrams with other numbers are left to QUIC: calls, and connections from before a restart.

use std::net::SocketAddr;

use explicate_core::units::Time;

/// Between two moves.
pub const REST: Time = Time::secs(1);
/// A peer that was found nowhere else for so long has moved. Each end sends something every 3 s, and QUIC gives up a path
/// without answers after three probe timeouts, some seconds; over slower paths it may still wait for an answer.
const SETTLED: Time = Time::secs(10);

/// The number of a connection, by which its datagrams are known: quinn's are of eight bytes.
pub type Number = [u8; 8];

/// The number in a packet of QUIC with a short header (RFC 9000 section 17.3): all but those of the handshake.
pub fn number(contents: &[u8]) -> Option<Number> {
    let (first, rest) = contents.split_first()?;
    let is_short = first & 0x80 == 0;
    rest.first_chunk().filter(|_| is_short).copied()
}

/// An address that a peer may have moved to.
#[derive(Clone, Copy)]
struct Candidate {
    address: SocketAddr,
    /// Datagrams have come from the old address since.
    old_lives: bool,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is taken.
    Yes,
    /// It is taken from an address that the peer may have moved to just now; the one before that is forgotten.
    Moves(Option<SocketAddr>),
    /// It is dropped.
    No,
}

/// The place of a peer.
#[derive(Default)]
pub struct Place {
    home: Option<SocketAddr>,
    candidate: Option<Candidate>,
    /// When it moved last.
    moved: Option<Time>,
    /// It may move.
    pub may_move: bool,
    /// The number of the connection.
    pub number: Option<Number>,
    /// An address from which datagrams were dropped because it may not move.
    refused: Option<SocketAddr>,
}

impl Place {
    /// The peer is here, and has shown its key.
    pub fn settle(&mut self, home: SocketAddr) {
        (self.home, self.candidate) = (Some(home), None);
    }
    /// Where it is, once it has shown its key.
    pub fn home(&self) -> Option<SocketAddr> {
        self.home
    }
    /// Whether a datagram from an address is taken; `knows` says that it has the number of the connection.
    pub fn takes(&mut self, from: SocketAddr, knows: bool, now: Time) -> Taken {
        if self.home.is_none_or(|home| home == from) {
            // A header without a number can be forged.
            if let Some(candidate) = self.candidate.as_mut().filter(|_| knows) {
                candidate.old_lives = true;
            }
            return Taken::Yes;
        }
        let before = self.candidate;
        if before.is_some_and(|candidate| candidate.address == from && !candidate.old_lives) {
            return Taken::Yes;
        }
        if !knows || !self.may_move {
            self.refused = self.refused.or(Some(from).filter(|_| knows));
            return Taken::No;
        }
        if self.moved.is_some_and(|moved| now.since(moved) < REST) {
            return Taken::No;
        }
        (self.candidate, self.moved) = (Some(Candidate { address: from, old_lives: false }), Some(now));
        Taken::Moves(before.map(|candidate| candidate.address).filter(|address| *address != from))
    }
    /// Whether QUIC has gone to an address from which no datagram with the number of the connection has come: the peer moved during the
    /// handshake, before that number was known. That address is then one that it may have moved to; if it may not, what comes from
    /// there is dropped from now on.
    pub fn notices(&mut self, address: SocketAddr, now: Time) -> bool {
        let new = self.candidate.is_none() && self.home.is_some_and(|home| home != address);
        if new && self.may_move {
            (self.candidate, self.moved) = (Some(Candidate { address, old_lives: false }), Some(now));
        } else if new {
            self.refused = self.refused.or(Some(address));
        }
        new
    }
    /// QUIC is at this address now: the one where the peer was, if it has moved for good.
    pub fn confirm(&mut self, address: SocketAddr, now: Time) -> Option<SocketAddr> {
        self.candidate.filter(|candidate| candidate.address == address && !candidate.old_lives)?;
        self.moved.filter(|moved| now.since(*moved) >= SETTLED)?;
        self.candidate = None;
        self.home.replace(address)
    }
    /// The first address from which datagrams were dropped because the peer may not move.
    pub fn take_refused(&mut self) -> Option<SocketAddr> {
        self.refused.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }
    /// A peer at port 1.
    fn place(may_move: bool) -> Place {
        let mut place = Place { may_move, ..Place::default() };
        place.settle(at(1));
        place
    }

    #[test]
    fn a_peer_has_moved_after_ten_seconds_elsewhere() {
        let mut place = place(true);
        assert_eq!(place.takes(at(1), true, Time::ZERO), Taken::Yes);
        assert_eq!(place.takes(at(2), true, Time::ZERO), Taken::Moves(None));
        assert_eq!(place.takes(at(2), false, Time::millis(1)), Taken::Yes, "parity from there, too");
        assert_eq!([place.confirm(at(3), Time::secs(10)), place.confirm(at(2), Time::millis(9999))], [None; 2]);
        assert_eq!(place.confirm(at(2), Time::secs(10)), Some(at(1)));
        assert_eq!(place.takes(at(2), false, Time::secs(11)), Taken::Yes);
        assert_eq!(place.takes(at(1), false, Time::secs(19)), Taken::No, "where it was");
    }

    #[test]
    fn a_peer_that_moves_during_the_handshake_is_where_quic_finds_it() {
        let mut place = place(true);
        assert!(!place.notices(at(1), Time::ZERO) && place.notices(at(2), Time::ZERO));
        assert_eq!(place.takes(at(2), false, Time::ZERO), Taken::Yes);
        assert!(!place.notices(at(2), Time::secs(1)), "it is known");
        assert_eq!(place.confirm(at(2), Time::secs(10)), Some(at(1)));
        assert!(!Place::default().notices(at(2), Time::ZERO), "it has not shown its key");
    }

    #[test]
    fn a_peer_that_may_not_move_is_not_heard_where_quic_finds_it() {
        let mut place = place(false);
        assert!(!place.notices(at(1), Time::ZERO) && place.take_refused().is_none());
        assert!(place.notices(at(2), Time::ZERO));
        assert_eq!(place.take_refused(), Some(at(2)));
        assert_eq!([false, true].map(|knows| place.takes(at(2), knows, Time::ZERO)), [Taken::No; 2]);
        assert_eq!((place.confirm(at(2), Time::secs(99)), place.home()), (None, Some(at(1))));
    }

    #[test]
    fn a_peer_moves_at_most_once_a_second() {
        let mut place = place(true);
        let mut takes = |port, ms| place.takes(at(port), true, Time::millis(ms));
        assert_eq!([takes(2, 5000), takes(3, 5001), takes(3, 5999)], [Taken::Moves(None), Taken::No, Taken::No]);
        assert_eq!([takes(2, 5999), takes(3, 6000)], [Taken::Yes, Taken::Moves(Some(at(2)))]);
        assert_eq!(takes(2, 6001), Taken::No, "the place before");
        assert_eq!(place.takes(at(2), true, Time::millis(6999)), Taken::No);
        assert_eq!(place.takes(at(2), true, Time::millis(7000)), Taken::Moves(Some(at(3))));
    }

    #[test]
    fn old_datagrams_that_are_repeated_hold_up_a_move_until_they_end() {
        let mut place = place(true);
        for second in 0..20 {
            let ms = |ms: u64| Time::millis(1000 * second + ms);
            assert_eq!(place.takes(at(2), true, ms(0)), Taken::Moves(None), "one passes a second");
            assert_eq!(place.takes(at(1), true, ms(1)), Taken::Yes, "repeated");
            assert_eq!(place.takes(at(2), true, ms(2)), Taken::No);
            assert_eq!(place.confirm(at(2), ms(3)), None);
        }
        assert_eq!(place.takes(at(2), true, Time::secs(20)), Taken::Moves(None));
        assert_eq!(place.takes(at(2), true, Time::millis(20_001)), Taken::Yes);
        assert_eq!(place.confirm(at(2), Time::secs(30)), Some(at(1)));
        assert_eq!(
            place.takes(at(1), true, Time::secs(31)),
            Taken::Moves(None),
            "who comes from there now has to move"
        );
    }

    #[test]
    fn a_copied_datagram_moves_nobody_whose_own_datagrams_still_come() {
        let mut place = place(true);
        assert_eq!(place.takes(at(2), true, Time::ZERO), Taken::Moves(None));
        assert_eq!(place.takes(at(1), false, Time::millis(1)), Taken::Yes);
        assert_eq!(place.takes(at(2), true, Time::millis(2)), Taken::Yes, "a forged header says nothing");
        assert_eq!(place.takes(at(1), true, Time::millis(3)), Taken::Yes);
        assert_eq!(place.takes(at(2), true, Time::millis(4)), Taken::No);
        assert_eq!(place.confirm(at(2), Time::secs(99)), None);
        assert_eq!(place.takes(at(2), true, Time::secs(1)), Taken::Moves(None), "a second later it may try again");
    }

    #[test]
    fn a_peer_that_may_not_move_or_does_not_know_the_number_is_dropped() {
        let mut place = place(false);
        assert_eq!(place.takes(at(2), false, Time::ZERO), Taken::No);
        assert_eq!(place.take_refused(), None);
        assert_eq!(place.takes(at(2), true, Time::ZERO), Taken::No);
        assert_eq!([place.take_refused(), place.take_refused()], [Some(at(2)), None]);
        place.may_move = true;
        assert_eq!(place.takes(at(2), false, Time::ZERO), Taken::No);
    }

    #[test]
    fn only_short_headers_have_a_number() {
        assert_eq!(number(&[0x41, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Some([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!([number(&[0xc1, 1, 2, 3, 4, 5, 6, 7, 8]), number(&[0x41; 8]), number(&[])], [None; 3]);
    }
}
