//! Whose memory is allocated: a gateway's while one of its tasks runs, or that of the world around them.

use std::cell::Cell;

thread_local! {
    static OWNER: Cell<Option<u8>> = const { Cell::new(None) };
}

/// The gateway whose task runs in this thread, if one does.
pub fn owner() -> Option<u8> {
    OWNER.get()
}

/// Restores who ran before, also behind a panic.
struct Before(Option<u8>);

impl Drop for Before {
    fn drop(&mut self) {
        OWNER.set(self.0);
    }
}

/// Does something in the name of a gateway, or of the world.
pub fn of<T>(gateway: Option<u8>, what: impl FnOnce() -> T) -> T {
    let _before = Before(OWNER.replace(gateway));
    what()
}
