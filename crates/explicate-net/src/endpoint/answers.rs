//! Whether routers add feedback to the packets of a flow, as seen by its receiver.

use explicate_core::registry;
use explicate_core::wire::Packet;

/// Consecutive packets without a router's mark after which routers count as absent.
const SILENT: u32 = 64;

/// The state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    explicit: bool,
    /// Whether routers add feedback; unknown at first.
    pub known: Option<bool>,
    silent: u32,
}

impl Answers {
    /// The state of a flow of this protocol.
    pub fn new(protocol: &str) -> Answers {
        let explicit = registry::resolve(protocol).is_ok_and(|resolved| resolved.protocol.explicit());
        Answers { explicit, known: None, silent: 0 }
    }
    /// Handles a data packet. Returns whether the state has changed.
    pub fn take(&mut self, packet: &Packet) -> bool {
        let marked = packet.mark().is_set();
        self.silent = if marked { 0 } else { self.silent.saturating_add(1) };
        let known = match self.known {
            _ if !self.explicit => return false,
            None | Some(false) => marked,
            Some(true) => self.silent < SILENT,
        };
        let changed = self.known != Some(known);
        self.known = Some(known);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::units::Time;
    use explicate_core::wire::{Congestion, Format};

    #[test]
    fn a_change_is_told_once() {
        let plain = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        let mut marked = plain;
        marked.set_mark(marked.mark().after(Time::ZERO));
        let mut answers = Answers::new("xcp");
        let mut take = |packet: &Packet| (answers.take(packet), answers.known);
        assert_eq!((take(&plain), take(&plain)), ((true, Some(false)), (false, Some(false))));
        assert_eq!((take(&marked), take(&marked)), ((true, Some(true)), (false, Some(true))));
        assert!((1..SILENT).all(|_| take(&plain) == (false, Some(true))));
        assert_eq!((take(&plain), take(&plain)), ((true, Some(false)), (false, Some(false))));
        assert!(!Answers::new("cubic").take(&marked));
    }
}
