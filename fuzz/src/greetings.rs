//! The promises of what ends say to each other besides data: greetings of flows, and probes.

use std::net::SocketAddr;

use explicate_core::datagram;
use explicate_net::endpoint::hello::{self, Hello};
use explicate_net::files::probed::{Probe, Probed};

/// Whatever the bytes, parsing answers; what is accepted is said again and means the same; and without a permission no probe is echoed.
pub(crate) fn greetings(bytes: &[u8]) -> u64 {
    let probe = datagram::read(bytes).ok().and_then(|read| Probe::of(&read.packet));
    if let Some(probe) = probe {
        assert_eq!(Probe::of(&probe.to_packet()), Some(probe));
    }
    assert_eq!(Probed::new().answer(SocketAddr::from(([127, 0, 0, 1], 9)), bytes), None);
    let hello = Hello::parse(bytes);
    if let Some(hello) = &hello {
        assert!(bytes.len() <= hello::LONGEST);
        assert_eq!(hello::version(bytes), Some(hello::VERSION));
        assert_eq!(Hello::parse(hello.words().as_bytes()).as_ref(), Some(hello));
    }
    let greeting =
        hello.map_or(0, |hello| 1 + u64::from(hello.window.is_some()) + 2 * u64::from(hello.refuse_explicit));
    let version = hello::version(bytes).map_or(0, |version| 1 + u64::from(version.min(3)));
    probe.map_or(0, |probe| 1 + u64::from(probe.came.is_some())) << 16 | version << 8 | greeting
}
