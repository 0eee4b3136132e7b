//! Faults of gateways, transfers and routers, most of them mended ones, that a test puts back to show that scenes find them.

use std::cell::Cell;

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A reset is not noticed while bytes wait for the other side.
    Cancel,
    /// What the peer's connection before a restart carried stays until that connection times out.
    CalledAnew,
    /// A silent path is probed by QUIC alone, ever more rarely.
    Silence,
    /// What has arrived counts as taken, whether or not its host reads.
    Unread,
    /// Hosts are asked after two hours whether they are still there.
    KeepAlive,
    /// A host that vanishes while bytes wait for it is left to the kernel.
    Waiting,
    /// A gateway that started anew does not reset the connections that it does not know.
    Forgets,
    /// A relay closes orderly behind missing bytes.
    Orderly,
    /// A tunnel stays at the address from which the peer has called, and a transfer at that of its sender.
    Moves,
    /// All streams write into QUIC as they like, keystrokes behind what long transfers have there.
    Ungated,
    /// Two gateways that call each other keep a tunnel of each call.
    BothCall,
    /// A receiver gives a part its name whatever its digest is.
    Unverified,
    /// A receiver keeps a part for a connection that has gone silent.
    KeptPart,
    /// A receiver begins a part anew.
    FromTheFirst,
    /// A sender leaves a call without an answer to QUIC, which repeats it ever more rarely.
    CalledOnce,
    /// A router keeps a frame in memory that it does not forward.
    Keeps,
    /// A frame that the system refuses takes those behind it along, and they are not counted.
    Uncounted,
    /// Frames leave before the delay of their link has passed.
    Early,
    /// A frame that has left its port when another one arrives waits until that one or the next leaves.
    Behind,
}

/// Those of transfers.
pub const TRANSFERS: [Fault; 5] =
    [Fault::Unverified, Fault::KeptPart, Fault::FromTheFirst, Fault::CalledOnce, Fault::Moves];

/// Faults of routers and links. The scenes in [`router`](super::router) find them.
pub const OF_ROUTERS: [Fault; 4] = [Fault::Keeps, Fault::Uncounted, Fault::Early, Fault::Behind];

/// Those of gateways.
pub const ALL: [Fault; 11] = [
    Fault::Cancel,
    Fault::CalledAnew,
    Fault::Silence,
    Fault::Unread,
    Fault::KeepAlive,
    Fault::Waiting,
    Fault::Forgets,
    Fault::Orderly,
    Fault::Moves,
    Fault::Ungated,
    Fault::BothCall,
];

thread_local! {
    static BACK: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Puts a fault back in this thread, or none.
pub fn put_back(fault: Option<Fault>) {
    BACK.set(fault);
}

/// Whether a fault is back.
pub fn is_back(fault: Fault) -> bool {
    BACK.get() == Some(fault)
}
