//! The events of future rotations of the event queue, in order of insertion: for each rotation a list of pieces from
//! a common store. Lists do not link packets, which are scattered in memory, and none reserves more memory than it
//! needs.

use crate::arena::NIL;

/// Events of a piece.
const EVENTS: usize = 255;

/// An event of a rotation.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    /// Its bucket, counted from the beginning of the rotation.
    pub(crate) bucket: u32,
    pub(crate) slot: u32,
}

/// Some events of a rotation.
struct Piece {
    next: u32,
    len: u32,
    events: [Listed; EVENTS],
}

/// The first and the last piece of a list; `NIL` where it is empty.
#[derive(Clone, Copy)]
pub(crate) struct List {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

const EMPTY: List = List { first: NIL, last: NIL };

/// Lists of events, by number.
pub(crate) struct Rotations {
    pieces: Vec<Piece>,
    /// The first piece that is free.
    free: u32,
    lists: Vec<List>,
}

impl Rotations {
    pub(crate) fn new(lists: u64) -> Rotations {
        Rotations { pieces: Vec::new(), free: NIL, lists: vec![EMPTY; lists as usize] }
    }
    pub(crate) fn is_empty(&self, list: u64) -> bool {
        self.lists[list as usize].first == NIL
    }

    /// Adds an event to a list.
    pub(crate) fn push(&mut self, list: u64, bucket: u32, slot: u32) {
        let mut last = self.lists[list as usize].last;
        if last == NIL || self.pieces[last as usize].len as usize == EVENTS {
            let piece = self.take();
            if last == NIL {
                self.lists[list as usize].first = piece;
            } else {
                self.pieces[last as usize].next = piece;
            }
            (self.lists[list as usize].last, last) = (piece, piece);
        }
        let piece = &mut self.pieces[last as usize];
        piece.events[piece.len as usize] = Listed { bucket, slot };
        piece.len += 1;
    }
    fn take(&mut self) -> u32 {
        if self.free == NIL {
            self.pieces.push(Piece { next: NIL, len: 0, events: [Listed { bucket: 0, slot: 0 }; EVENTS] });
            return self.pieces.len() as u32 - 1;
        }
        let piece = self.free;
        self.free = self.pieces[piece as usize].next;
        (self.pieces[piece as usize].next, self.pieces[piece as usize].len) = (NIL, 0);
        piece
    }

    /// Empties a list; returns the first and the last of its pieces, see [`Rotations::piece`].
    pub(crate) fn empty(&mut self, list: u64) -> List {
        let emptied = core::mem::replace(&mut self.lists[list as usize], EMPTY);
        if emptied.last != NIL {
            self.pieces[emptied.last as usize].next = self.free;
            self.free = emptied.first;
        }
        emptied
    }
    /// Events of a piece, and the piece after it. Those of an emptied list can be read until the next event is added.
    pub(crate) fn piece(&self, piece: u32) -> (&[Listed], u32) {
        let piece = &self.pieces[piece as usize];
        (&piece.events[..piece.len as usize], piece.next)
    }

    /// The slots of all events, list by list.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.lists.iter().flat_map(move |&List { first, last }| {
            let after = move |&piece: &u32| (piece != last).then(|| self.pieces[piece as usize].next);
            core::iter::successors((first != NIL).then_some(first), after)
                .flat_map(|piece| self.piece(piece).0.iter().map(|listed| listed.slot))
        })
    }
    /// Empties all lists.
    pub(crate) fn clear(&mut self) {
        for list in 0..self.lists.len() as u64 {
            self.empty(list);
        }
    }
}
