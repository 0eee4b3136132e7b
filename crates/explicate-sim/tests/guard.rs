//! An explicit flow that no router answers behaves as TCP: what CUBIC has beside each explicit protocol.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;
#[path = "common/explicit.rs"]
mod names;
#[path = "common/outcome.rs"]
mod outcome;
use common::{numbers, tables};
use names::explicit;
use outcome::{Outcome, mean, run};

/// Two hosts before a router `g`, a wide link to `h`, a narrow one of 40 Mbit/s with a buffer of `buffer` to `i`, and two hosts
/// behind; 40 ms there and back. Controllers are where `routers` says: nowhere, before the wide link ("half"), or everywhere.
fn path(routers: &str, wide: &str, buffer: &str) -> String {
    let mut text = "duration = \"60s\"\nwarmup = \"5s\"\n".to_string();
    for node in ["a", "b", "g", "h", "i", "c", "d"] {
        text += &format!("[[node]]\nname = \"{node}\"\n");
    }
    let mut link = |from: &str, to: &str, more: &str, equipped: bool| {
        let router = if equipped { "auto" } else { "none" };
        text += &format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = true\nrouter = \"{router}\"\n{more}\n");
    };
    let access = "rate = \"200Mbit/s\"\ndelay = \"1ms\"";
    let all = routers == "all";
    for (from, to) in [("a", "g"), ("b", "g"), ("i", "c"), ("i", "d")] {
        link(from, to, access, all);
    }
    let queue = |limit: &str| format!("queue = {{ kind = \"droptail\", limit = \"{limit}\" }}");
    link("g", "h", &format!("rate = \"{wide}\"\ndelay = \"2ms\"\n{}", queue("300pkt")), all || routers == "half");
    link("h", "i", &format!("rate = \"40Mbit/s\"\ndelay = \"16ms\"\n{}", queue(buffer)), all);
    text
}
fn flows(name: &str, count: u32, protocol: &str, ends: (&str, &str), start: &str, more: &str) -> String {
    let (from, to) = ends;
    format!(
        "[[flows]]\nname = \"{name}\"\ncount = {count}\nprotocol = \"{protocol}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start}\"\n{more}\n"
    )
}

/// Mean goodput of `count` CUBIC flows beside one of `protocol` that comes 5 s later, Mbit/s, and what that has itself.
fn beside(path: &str, count: u32, protocol: &str, more: &str) -> (f64, f64) {
    let cubic = flows("cubic", count, "cubic", ("a", "c"), "0s", "");
    let text = path.to_string() + &cubic + &flows("other", 1, protocol, ("b", "d"), "5s", more);
    // One CUBIC flow's luck is that of few losses: the mean of three runs.
    let seeds = if count == 1 { 1..=3 } else { 1..=1 };
    let runs: Vec<Outcome> = seeds.map(|seed| run(&format!("seed = {seed}\n{text}"))).collect();
    let of = |name: &str| mean(&runs.iter().flat_map(|done| done.flows(name, "goodput_bps")).collect::<Vec<_>>()) / 1e6;
    (of("cubic"), of("other"))
}

/// CUBIC keeps 0.8 of what it has beside one more CUBIC.
fn keeps_its_share(what: &str, path: &str) {
    let mut poor = Vec::new();
    for count in [1, 9] {
        let due = beside(path, count, "cubic", "").0;
        for protocol in explicit() {
            let (got, other) = beside(path, count, protocol, "");
            let share = got / due;
            println!("{what}, {count} beside {protocol}: {got:.2} of {due:.2} Mbit/s ({share:.2}), it has {other:.2}");
            if share < 0.8 {
                poor.push(format!("{count} beside {protocol} {share:.2}"));
            }
        }
    }
    assert!(poor.is_empty(), "{what}: {poor:?}");
}

#[test]
fn on_a_plain_path() {
    keeps_its_share("plain", &path("none", "200Mbit/s", "1.0bdp"));
}

#[test]
fn on_a_plain_path_with_a_short_buffer() {
    keeps_its_share("plain, short", &path("none", "200Mbit/s", "20pkt"));
}

#[test]
fn behind_a_wide_router() {
    keeps_its_share("half", &path("half", "100Mbit/s", "1.0bdp"));
}

#[test]
fn behind_a_router_hardly_wider() {
    keeps_its_share("half, 44", &path("half", "44Mbit/s", "1.0bdp"));
}

/// The narrow link and its router are gone after 20 s, and a plain one takes their place.
#[test]
fn after_a_router_has_died() {
    let link = |from: &str, to: &str| {
        format!(
            "[[node]]\nname = \"{from}{to}\"\n[[link]]\nfrom = \"{from}\"\nto = \"{from}{to}\"\nduplex = true\n\
             router = \"none\"\nrate = \"200Mbit/s\"\ndelay = \"15ms\"\n[[link]]\nfrom = \"{from}{to}\"\nto = \"{to}\"\n\
             duplex = true\nrouter = \"none\"\nrate = \"40Mbit/s\"\ndelay = \"2ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"1.0bdp\" }}\n"
        )
    };
    let change = "[[reroute]]\nat = \"20s\"\nwithout = [\"h->i\", \"i->h\"]\n";
    let text =
        path("all", "200Mbit/s", "1.0bdp").replace("warmup = \"5s\"", "warmup = \"20s\"") + &link("h", "i") + change;
    keeps_its_share("router died", &text);
}

/// Where all routers answer, a guarded flow is the same as one that is not.
#[test]
fn costs_nothing_where_routers_answer() {
    let text = path("all", "200Mbit/s", "1.0bdp");
    for protocol in explicit() {
        let done = |guard: &str| {
            let more = format!("params = {{ guard = \"{guard}\" }}");
            let (a, b) =
                (flows("f", 2, protocol, ("a", "c"), "0s", &more), flows("g", 1, protocol, ("b", "d"), "3s", &more));
            let tables = tables(&(text.replace("60s", "20s") + &a + &b));
            (tables.flows, tables.links)
        };
        let (on, off) = (done("on"), done("off"));
        if protocol.starts_with("video") {
            // Paced, it has no window to begin with, and a guarded one has: the first round trips differ.
            for (on, off) in numbers(&on.0, "goodput_bps").iter().zip(numbers(&off.0, "goodput_bps")) {
                assert!((on / off - 1.0).abs() < 1e-3, "{protocol}: {on} {off}");
            }
            continue;
        }
        for column in ["goodput_bps", "sent_packets", "retransmissions", "timeouts"] {
            assert_eq!(numbers(&on.0, column), numbers(&off.0, column), "{protocol}, {column}");
        }
        assert_eq!(numbers(&on.1, "queue_mean_packets"), numbers(&off.1, "queue_mean_packets"), "{protocol}");
    }
}

/// Two gateways with routers, and between them a satellite link with losses that has none: 19 of its 20 Mbit/s are the routers'.
#[test]
fn loss_of_the_air_is_no_sign() {
    let text = |guard: &str| {
        let mut text = "duration = \"300s\"\n".to_string();
        for node in ["a", "g", "l", "m", "c"] {
            text += &format!("[[node]]\nname = \"{node}\"\n");
        }
        for (from, to, more) in [
            ("a", "g", "rate = \"1Gbit/s\"\nrouter = \"none\""),
            ("g", "l", "rate = \"19Mbit/s\"\nqueue = { kind = \"droptail\", limit = \"1500kB\" }"),
            (
                "l",
                "m",
                "rate = \"20Mbit/s\"\ndelay = \"300ms\"\nrouter = \"none\"\nchannel = [{ kind = \"random_loss\", rate = \"1%\" }]",
            ),
            ("m", "c", "rate = \"1Gbit/s\"\nrouter = \"none\""),
        ] {
            text += &format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = true\n{more}\n");
        }
        let more = format!("params = {{ guard = \"{guard}\" }}");
        text + &flows("f", 1, "LR-LMXCP", ("a", "c"), "0s", &more)
    };
    let goodput = |guard: &str| mean(&run(&text(guard)).flows("f", "goodput_bps")) / 1e6;
    let (on, off) = (goodput("auto"), goodput("off"));
    println!("LR-LMXCP over a lossy satellite link: {on:.2} Mbit/s, unguarded {off:.2}");
    assert!(on >= 0.99 * off && on > 13.0, "{on} {off}");
}
