//! Keeps the processors awake until a signal comes or its parent dies, for measurements that are made by scripts.

use std::io;
use std::time::Duration;

use explicate_net::awake::Awake;
use explicate_net::sys;

fn main() -> io::Result<()> {
    sys::die_with_parent()?;
    sys::catch_signals();
    let _awake = Awake::keep();
    while !sys::stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
