//! A place of a route: a link, and properties of packets there.

use std::ops::BitOr;

/// A link of a route with its marks, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop(u32);

/// A property of a place of a route.
#[derive(Clone, Copy)]
pub(super) struct Mark(u32);

impl Mark {
    /// The route ends with this link.
    pub(super) const LAST: Mark = Mark(0x8000_0000);
    /// The next link is fused to it (`fusing.rs`).
    pub(super) const FUSED: Mark = Mark(0x4000_0000);
    /// An agent inspects the packets that reach its end (`agents.rs`).
    pub(super) const SEEN: Mark = Mark(0x2000_0000);
    /// Packets may be turned ahead at its end (`ack_fusion.rs`).
    pub(super) const TURN: Mark = Mark(0x1000_0000);
    /// Acknowledgements may be processed ahead of their arrival at its end (`sender_fusion.rs`).
    pub(super) const REPLY: Mark = Mark(0x0800_0000);
    /// A flow begins here on a private link (`processing.rs`).
    pub(super) const OWN: Mark = Mark(0x0400_0000);
}

impl BitOr for Mark {
    type Output = Mark;
    #[inline(always)]
    fn bitor(self, other: Mark) -> Mark {
        Mark(self.0 | other.0)
    }
}

impl Hop {
    const LINK: u32 = 0x03ff_ffff;

    /// A link without marks.
    pub(super) fn over(link: u32) -> Hop {
        debug_assert!(link <= Hop::LINK, "links are numbered below 2^26");
        Hop(link)
    }
    /// The link's number.
    #[inline(always)]
    pub(crate) fn link(self) -> u32 {
        self.0 & Hop::LINK
    }
    /// The link's number as an index.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.link() as usize
    }
    /// Whether one of these marks is set.
    #[inline(always)]
    pub(super) fn has(self, marks: Mark) -> bool {
        self.0 & marks.0 != 0
    }
    /// Sets a mark.
    pub(super) fn mark(&mut self, mark: Mark) {
        self.0 |= mark.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_link_stand_apart() {
        let mut hop = Hop::over(Hop::LINK);
        assert!(!hop.has(Mark::LAST | Mark::FUSED | Mark::SEEN | Mark::TURN | Mark::REPLY | Mark::OWN));
        hop.mark(Mark::OWN);
        assert!(hop.has(Mark::OWN) && hop.has(Mark::LAST | Mark::OWN) && !hop.has(Mark::LAST));
        assert_eq!((hop.link(), hop.index()), (Hop::LINK, Hop::LINK as usize));
    }
}
