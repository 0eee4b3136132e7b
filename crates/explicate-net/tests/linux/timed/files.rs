//! How soon a full disk ends a transfer. Needs root, so `make measure` runs it.

use super::measured::measured;
use crate::figures::{Better, figure};
use crate::files::{Full, fills_up};

/// The receiver answers the first segment that it cannot write; the rest of the file would take more than a minute.
#[test]
#[ignore = "needs root: make measure"]
fn a_full_disk_ends_a_transfer_at_once() {
    measured(|| {
        let Full { seconds, held, sent } = fills_up();
        figure("files: end on a full disk, quic", seconds, "s", Better::Less);
        assert!(seconds < 3.0, "{seconds} s");
        assert!(sent < held + 30_000_000, "{sent} bytes were sent, and {held} before the disk was full");
    });
}
