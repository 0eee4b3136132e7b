//! What the kernel remembers of carried connections when the program that carried them has gone.
//!
//! Both ends of a carried connection have the same addresses and ports, and other sequence numbers. A segment of one end that is
//! routed meets the socket of the other: it is answered by acknowledgements for ever, or taken as data of it. So a table of its own
//! remembers the addresses and ports of segments that sockets of the gateway received, for [`REMEMBERED`] after the last one.
//! While there is such a socket, it gets them; later ones are answered by a reset (RST), in either direction, because the other
//! gateway may have lost its memory. A segment that opens a connection (SYN) ends the memory of the one before it.

use std::fmt::Write as _;

/// Name of the table.
pub const TABLE: &str = "explicate_carried";
/// How long after its last segment a connection is remembered, in units of nft: longer than the kernel's longest time between two
/// segments of a connection that waits for an answer (2 min), and than the keep-alive questions of a gateway ([`intercept`](super::intercept), 2 min).
pub const REMEMBERED: &str = "15m";
/// Connections of a family that are remembered. Further ones are carried, but not remembered.
const MOST: u32 = 65_536;
/// A segment that opens a connection.
pub const SYN: &str = "tcp flags & (fin | syn | rst | ack) == syn";

/// The addresses and ports of a segment, and those of a segment in the other direction.
pub fn ways(family: &str) -> [String; 2] {
    let [from, to] = ["s", "d"].map(|of| format!("{family} {of}addr . tcp {of}port"));
    [format!("{from} . {to}"), format!("{to} . {from}")]
}

/// The commands of nft for its table, which keep what it remembers; a gateway that runs adds to it.
pub fn table(runs: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "table inet {TABLE} {{");
    for family in ["ipv4", "ipv6"] {
        let _ = writeln!(
            text,
            "  set {family} {{\n    type {family}_addr . inet_service . {family}_addr . inet_service\n    \
             size {MOST}; flags dynamic, timeout; timeout {REMEMBERED};\n  }}"
        );
    }
    let _ = writeln!(text, "  chain own {{\n  }}");
    let _ = writeln!(text, "  chain prerouting {{\n    type filter hook prerouting priority mangle - 1;\n  }}\n}}");
    let _ = writeln!(text, "flush table inet {TABLE}");
    let _ = writeln!(text, "table inet {TABLE} {{\n  chain own {{");
    // The listener itself is no connection.
    let _ = writeln!(text, "    socket wildcard 1 return");
    let sets = ["ip", "ip6"].map(|family| (ways(family), if family == "ip" { "ipv4" } else { "ipv6" }));
    for ([way, _], set) in &sets {
        let _ = writeln!(text, "    update @{set} {{ {way} }}");
    }
    let _ = writeln!(text, "    accept\n  }}\n  chain prerouting {{");
    for (ways, set) in &sets {
        for way in ways {
            let _ = writeln!(text, "    {SYN} delete @{set} {{ {way} }}");
        }
    }
    let _ = writeln!(text, "    {SYN} accept");
    if runs {
        let _ = writeln!(text, "    meta l4proto tcp socket transparent 1 jump own");
    }
    for (ways, set) in &sets {
        for way in ways {
            let _ = writeln!(text, "    {way} @{set} reject with tcp reset");
        }
    }
    text + "  }\n}\n"
}

/// The commands of nft that remove it, if it is there.
pub fn without_table() -> String {
    format!("table inet {TABLE}\ndelete table inet {TABLE}\n")
}

/// How many connections it remembers, given what nft lists of it.
pub fn count(listed: &str) -> usize {
    listed.matches(" expires ").count()
}
