//! What limits the transfers now, from two reports ([`status`](super::status)) with some time between them.
//!
//! A cause is named only if transfers would go faster, or connections open, without it. Each has an estimate of how many times as fast
//! they may go then, by which the best one comes first. The estimates are not checked by removing the causes.
//!
//! | cause | what is measured | threshold |
//! | --- | --- | --- |
//! | peer down, key wrong | the peer is not connected; why the last call failed | none |
//! | source fails | what the source of the rate said last | none |
//! | limit of connections | open connections; refused ones meanwhile | all that `limits` permits |
//! | window held | bytes that hosts here have not read, of those that [`credit`](super::credit) leaves to them | `HELD` of `UNREAD_PART` |
//! | host does not read | how long bytes wait for it, here or there | `SHARE` of the time; `UNREAD` |
//! | told too high | the guard's signs of a narrower line | the guard's |
//! | losses | packets lost after repair | the `air_loss` that a limited window bears, else `LOST` |
//! | parity off | the same, with `parity = false` | the same |
//! | MTU | lengths that the path has ceased to carry | one |
//! | queue elsewhere | round trip above the least one, while the own line is not full | `QUEUE` and `QUEUE_SHARE` |
//! | line full | bytes that left the port | `FULL` of the rate |

use serde_json::Value;

use super::explain::{in_force, mbps, number};

/// Share of the rate at which the line is full.
const FULL: f64 = 0.9;
/// Share of the packets whose loss costs throughput although the window is not limited.
const LOST: f64 = 0.03;
/// Fewer packets say nothing of losses.
const FEWEST: f64 = 50.0;
/// Round trips above the least one, ms, and as a share of it (as [`guard`](explicate_core::guard) has them).
const QUEUE: f64 = 25.0;
const QUEUE_SHARE: f64 = 0.25;
/// Share of what credit leaves to hosts that do not read which they may hold.
const HELD: f64 = 0.9;
/// And that, as a share of `peer_bytes`: the other half is for hosts that keep reading.
const UNREAD_PART: f64 = 0.5;
/// A connection waits for a host if it does so for this share of the time.
const SHARE: f64 = 0.9;
/// The host of a connection without credit for so many seconds and two round trips does not read.
const UNREAD: f64 = 1.0;
/// Most connections that are named.
const NAMED: usize = 10;

/// A cause.
#[derive(Clone, PartialEq, Debug)]
pub struct Cause {
    /// Its name.
    pub name: &'static str,
    /// How many times as fast transfers may go without it; infinite where nothing goes at all.
    pub gain: f64,
    /// What was measured, and what to do.
    pub sentence: String,
}

fn cause(name: &'static str, gain: f64, sentence: impl Into<String>) -> Cause {
    Cause { name, gain, sentence: sentence.into() }
}

/// Two reports.
struct Looks<'a> {
    before: &'a Value,
    after: &'a Value,
    seconds: f64,
    /// The rate of the port and what it sent, bit/s; a rate of 0 is none.
    rate: f64,
    used: f64,
}

impl<'a> Looks<'a> {
    fn new(before: &'a Value, after: &'a Value) -> Looks<'a> {
        let seconds = (number(after, "time_s") - number(before, "time_s")).max(1e-3);
        let bytes = number(&after["port"], "bytes") - number(&before["port"], "bytes");
        let rate = number(&after["port"], "rate_bps");
        Looks { before, after, seconds, rate, used: 8.0 * bytes / seconds }
    }
    fn full(&self) -> bool {
        self.rate > 0.0 && self.used > FULL * self.rate
    }
    /// How many times as fast the line may go.
    fn room(&self) -> f64 {
        if self.full() {
            return 1.0;
        }
        if self.rate > 0.0 { (self.rate / self.used.max(self.rate / 1e3)).max(1.0) } else { 2.0 }
    }
    fn more(&self, key: &str) -> f64 {
        number(self.after, key) - number(self.before, key)
    }
}

/// A peer in two reports.
struct OfPeer<'a> {
    looks: &'a Looks<'a>,
    before: &'a Value,
    after: &'a Value,
    name: &'a str,
}

impl OfPeer<'_> {
    fn more(&self, key: &str) -> f64 {
        number(self.after, key) - number(self.before, key)
    }
    fn is(&self, key: &str) -> bool {
        self.after[key] == true
    }
    /// Share of the packets that were lost.
    fn lost(&self) -> f64 {
        let sent = self.more("packets_sent");
        if sent < FEWEST { 0.0 } else { self.more("packets_lost") / sent }
    }
    /// Whether losses cost throughput.
    fn is_lossy(&self) -> bool {
        // A report of an older gateway has no `air_loss`.
        let borne = self.after["air_loss"].as_f64().unwrap_or(LOST);
        self.lost() > if self.is("limited") { borne } else { LOST.max(borne) }
    }
}

/// What may limit all transfers of the gateway.
const OF_GATEWAY: [fn(&Looks<'_>) -> Option<Cause>; 3] = [source, connections, line];
/// What may limit those with a peer that is connected.
const OF_PEERS: [fn(&OfPeer<'_>) -> Option<Cause>; 4] = [told_too_high, losses, mtu, queue_elsewhere];

/// The causes, the one whose removal gains most first.
pub fn causes(before: &Value, after: &Value) -> Vec<Cause> {
    let looks = Looks::new(before, after);
    let mut found: Vec<Cause> = OF_GATEWAY.iter().filter_map(|find| find(&looks)).collect();
    let earlier = |name: &Value| before["peers"].as_array().into_iter().flatten().find(|peer| peer["name"] == *name);
    for peer in after["peers"].as_array().into_iter().flatten() {
        let name = peer["name"].as_str().unwrap_or("");
        if peer["connected"] != true {
            found.push(down(name, peer));
            continue;
        }
        let of_peer =
            OfPeer { looks: &looks, before: earlier(&peer["name"]).unwrap_or(&Value::Null), after: peer, name };
        found.extend(OF_PEERS.iter().filter_map(|find| find(&of_peer)));
        found.extend(hosts(&of_peer));
    }
    found.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    found
}

/// The same in words, or that there is none.
pub fn why(before: &Value, after: &Value) -> Vec<String> {
    let found: Vec<String> = causes(before, after).into_iter().map(|cause| cause.sentence).collect();
    if found.is_empty() {
        return vec!["nothing here: the hosts send less than the line carries, or wait for each other".to_string()];
    }
    found
}

fn down(name: &str, peer: &Value) -> Cause {
    match peer["failure"].as_str() {
        // TLS says no more of a key (RFC 8446 section 6.2).
        Some(failure) if failure.contains("certificate") => cause(
            "key",
            f64::INFINITY,
            format!(
                "path to {name}: not connected, a key is wrong ({failure}); compare `key` in [[peer]] at each end with what \
                 `explicated gateway check` prints at the other"
            ),
        ),
        Some(failure) => {
            let remedy = "see whether it runs, whether its `address` is right, and whether its UDP port is open";
            cause("peer down", f64::INFINITY, format!("path to {name}: not connected ({failure}); {remedy}"))
        }
        None => cause("peer down", f64::INFINITY, format!("path to {name}: not connected")),
    }
}

fn source(looks: &Looks<'_>) -> Option<Cause> {
    let failure = looks.after["capacity"]["failure"].as_str()?;
    let sentence = format!("capacity source: it fails ({failure}); {}", in_force(&looks.after["capacity"]));
    // The rate that it would give is unknown.
    Some(cause("source", 2.0, sentence))
}

fn connections(looks: &Looks<'_>) -> Option<Cause> {
    let (open, most) = (number(looks.after, "connections"), number(looks.after, "limit_connections"));
    if most == 0.0 || open < most || looks.more("refused") + looks.more("direct") <= 0.0 {
        return None;
    }
    let sentence = format!(
        "limit of connections: {open} of {most} are open, and others are refused; raise `limits.connections`, or see who has them \
         by `explicated gateway status --watch`"
    );
    Some(cause("limit of connections", f64::INFINITY, sentence))
}

fn line(looks: &Looks<'_>) -> Option<Cause> {
    if !looks.full() {
        return None;
    }
    Some(cause("line full", 1.0, format!("line: full, {} of {} Mbit/s", mbps(looks.used), mbps(looks.rate))))
}

fn told_too_high(of: &OfPeer<'_>) -> Option<Cause> {
    if !of.is("limited") || of.is_lossy() {
        return None;
    }
    let sentence = format!(
        "path to {}: losses or delay as before a line that is narrower than `rate`, {} Mbit/s: TCP's window is the limit, at {} Mbit/s; \
         lower `rate` to what the path carries, or have it measured",
        of.name,
        mbps(of.looks.rate),
        mbps(of.looks.used)
    );
    Some(cause("told too high", of.looks.room(), sentence))
}

fn losses(of: &OfPeer<'_>) -> Option<Cause> {
    if !of.is_lossy() {
        return None;
    }
    let lost = 100.0 * of.lost();
    let what = format!("path to {}: {lost:.1} % of the packets are lost", of.name);
    let gain = if of.is("limited") { of.looks.room() } else { 1.0 / (1.0 - of.lost()).max(0.1) };
    if of.after["parity"] == false {
        let remedy = "`parity = true` in [wan] repairs the air's";
        return Some(cause("parity off", gain, format!("{what}; {remedy}")));
    }
    let remedy = if of.is("limited") {
        format!(
            ", and TCP's window is the limit; if it is the air that loses them, write air_loss = {:.2} in [wan]",
            lost / 50.0
        )
    } else {
        String::new()
    };
    Some(cause("losses", gain, what + &remedy))
}

fn mtu(of: &OfPeer<'_>) -> Option<Cause> {
    let (before, now) = (number(of.before, "path_mtu"), number(of.after, "path_mtu"));
    if of.more("black_holes") <= 0.0 && (before == 0.0 || now >= before) {
        return None;
    }
    let sentence = format!(
        "path to {}: it has ceased to carry packets of {before} bytes without a word, {now} bytes pass; restore the MTU of the path",
        of.name
    );
    Some(cause("mtu", of.looks.room(), sentence))
}

fn queue_elsewhere(of: &OfPeer<'_>) -> Option<Cause> {
    let (now, least) = (number(of.after, "rtt_ms"), number(of.after, "min_rtt_ms"));
    let above = now - least;
    if least == 0.0 || above <= QUEUE.max(QUEUE_SHARE * least) || of.is("limited") || of.looks.full() {
        return None;
    }
    let sentence = format!(
        "path to {}: a round trip takes {now:.0} ms, and {least:.0} ms without a queue: others fill a queue on the path; let their packets \
         go through this port (`wan.interface`), or have the path give this tunnel a queue of its own",
        of.name
    );
    Some(cause("queue elsewhere", now / least, sentence))
}

/// A connection that waits for hosts.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// Its two hosts, for messages.
    pub who: String,
    /// The host that does not read.
    pub host: &'a str,
    /// Bytes that wait for it.
    pub bytes: f64,
}

/// The connections that hold the window of a peer, most bytes first, if they leave others nothing; and what they hold.
pub fn holders<'a, 'b>(streams: &'b [Stream<'a>], window: f64) -> Option<(Vec<&'b Stream<'a>>, f64)> {
    let held: f64 = streams.iter().map(|stream| stream.bytes).sum();
    if streams.is_empty() || held < HELD * window {
        return None;
    }
    let mut all: Vec<&Stream<'_>> = streams.iter().collect();
    all.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    Some((all, held))
}

/// No credit again and again.
const SLOW: &str = "the far host reads slowly, or `connection_bytes` or `peer_bytes` there is too small for the path";

/// The connections with a peer that wait for hosts, here or there.
fn hosts(of: &OfPeer<'_>) -> Vec<Cause> {
    let looks = of.looks;
    let of_peer = |wait: &&Value| wait["name"] == of.after["name"];
    let all: Vec<&Value> = looks.after["waiting"].as_array().into_iter().flatten().filter(of_peer).collect();
    let share = |wait: &Value, whose: &str| {
        let earlier = looks.before["waiting"].as_array().into_iter().flatten().find(|w| w["number"] == wait["number"]);
        (number(&wait[whose], "sum_s") - earlier.map_or(0.0, |w| number(&w[whose], "sum_s"))) / looks.seconds
    };
    let here = |wait: &&Value| share(wait, "host") >= SHARE;
    let read_by = UNREAD + 2e-3 * number(of.after, "rtt_ms");
    let unread = |wait: &&Value| number(&wait["peer"], "now_s") >= read_by;
    let slow = |wait: &&Value| !looks.full() && !unread(wait) && share(wait, "peer") >= SHARE;
    let near: Vec<&Value> = all.iter().copied().filter(here).collect();
    let (far, slowly): (Vec<&Value>, Vec<&Value>) =
        (all.iter().copied().filter(unread).collect(), all.iter().copied().filter(slow).collect());
    let mut found = Vec::new();
    if !near.is_empty() {
        let streams: Vec<Stream<'_>> = near.iter().map(|wait| of_wait(wait)).collect();
        let message = "the host here does not read, or slowly";
        let (name, gain) = match holders(&streams, UNREAD_PART * number(of.after, "peer_bytes")) {
            Some(_) => ("window held", f64::INFINITY),
            None => ("near host", looks.room()),
        };
        found.push(cause(name, gain, named(of, &near, "host", message)));
    }
    if !far.is_empty() {
        found.push(cause("far host", looks.room(), named(of, &far, "peer", "the far host does not read")));
    }
    if !slowly.is_empty() {
        // What is on the way says which of the two it is: a window's worth, or less.
        let under_way = looks.used / 8.0 * number(of.after, "rtt_ms") / 1e3 / slowly.len() as f64;
        let fills = looks.rate > 0.0 && under_way >= 0.5 * number(of.after, "connection_bytes");
        let (name, message) = match fills {
            true => ("window", "`connection_bytes` or `peer_bytes` at the far gateway is too small for the path"),
            false => ("far host", SLOW),
        };
        found.push(cause(name, looks.room(), named(of, &slowly, "peer", message)));
    }
    found
}

fn of_wait(wait: &Value) -> Stream<'_> {
    let text = |key: &str| wait[key].as_str().unwrap_or("");
    let who = format!("{} to {}", text("client"), text("destination"));
    Stream { who, host: text("client"), bytes: number(wait, "held_bytes") }
}

/// A line that names connections which wait.
fn named(of: &OfPeer<'_>, all: &[&Value], whose: &str, message: &str) -> String {
    let one = |wait: &&Value| format!("{} ({:.0} s)", of_wait(wait).who, number(&wait[whose], "now_s"));
    let mut names: Vec<String> = all.iter().take(NAMED).map(one).collect();
    if all.len() > NAMED {
        names.push(format!("{} more", all.len() - NAMED));
    }
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let bytes: f64 = all.iter().map(|wait| number(wait, "held_bytes")).sum();
    let held = match (whose, all.len()) {
        // What waits at the far end is in its own report.
        ("host", count) => format!(
            " {} {} of {}",
            if count == 1 { "holds" } else { "hold" },
            megabytes(bytes),
            megabytes(number(of.after, "peer_bytes"))
        ),
        _ => String::new(),
    };
    let connections = if all.len() == 1 { "connection" } else { "connections" };
    format!("window of {}: {} {connections}{held}; {message}: {}", of.name, all.len(), names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(time: f64, bytes: u64, more: Value) -> Value {
        let mut peer = json!({ "name": "hub", "connected": true, "packets_sent": 0, "packets_lost": 0,
                               "rtt_ms": 200.0, "min_rtt_ms": 195.0, "path_mtu": 1428, "black_holes": 0, "parity": true, "air_loss": 0.02 });
        more.as_object().unwrap().iter().for_each(|(key, value)| peer[key] = value.clone());
        json!({ "time_s": time, "port": { "rate_bps": 8e6, "bytes": bytes }, "connections": 3, "limit_connections": 4096,
                "refused": 0, "direct": 0, "peers": [peer] })
    }
    fn names(before: &Value, after: &Value) -> Vec<&'static str> {
        causes(before, after).iter().map(|cause| cause.name).collect()
    }

    #[test]
    fn each_cause_has_its_sign_and_the_best_one_is_first() {
        let before = report(1.0, 0, json!({}));
        let of = |bytes: u64, more: Value| names(&before, &report(2.0, bytes, more));
        assert!(of(100_000, json!({ "packets_sent": 70 })).is_empty());
        assert_eq!(of(990_000, json!({ "packets_sent": 700, "packets_lost": 7 })), ["line full"]);
        assert_eq!(of(100_000, json!({ "packets_sent": 700, "packets_lost": 70 })), ["losses"]);
        assert_eq!(of(100_000, json!({ "packets_sent": 10, "packets_lost": 1 })), [""; 0], "one packet says nothing");
        assert_eq!(of(100_000, json!({ "packets_sent": 700, "packets_lost": 15 })), [""; 0], "2 % are borne");
        assert_eq!(of(100_000, json!({ "packets_sent": 700, "packets_lost": 18, "limited": true })), ["losses"]);
        assert_eq!(
            of(100_000, json!({ "packets_sent": 700, "packets_lost": 18, "limited": true, "parity": false })),
            ["parity off"]
        );
        assert_eq!(of(100_000, json!({ "packets_sent": 700, "packets_lost": 9, "limited": true })), ["told too high"]);
        assert_eq!(of(100_000, json!({ "rtt_ms": 260.0 })), ["queue elsewhere"]);
        assert_eq!(of(100_000, json!({ "rtt_ms": 230.0 })), [""; 0], "less than a quarter");
        assert_eq!(of(990_000, json!({ "rtt_ms": 260.0 })), ["line full"]);
        assert_eq!(of(100_000, json!({ "path_mtu": 1200, "black_holes": 1 })), ["mtu"]);
        assert_eq!(of(0, json!({ "connected": false })), ["peer down"]);
        assert_eq!(of(0, json!({ "connected": false, "failure": "no answer for 10 s" })), ["peer down"]);
        assert_eq!(of(0, json!({ "connected": false, "failure": "invalid peer certificate: x" })), ["key"]);
        let mut after = report(2.0, 990_000, json!({ "connected": false }));
        after["capacity"] = json!({ "failure": "no such file", "at_floor": true });
        assert_eq!(names(&before, &after), ["peer down", "source", "line full"]);
        let mut after = report(2.0, 990_000, json!({}));
        (after["connections"], after["limit_connections"], after["refused"]) = (json!(9), json!(9), json!(4));
        assert_eq!(names(&before, &after), ["limit of connections", "line full"]);
        after["refused"] = json!(0);
        assert_eq!(names(&before, &after), ["line full"], "no connection was refused");
    }

    #[test]
    fn those_who_hold_a_window_are_named_only_when_nothing_is_left() {
        let streams: Vec<Stream<'_>> =
            [5.0, 90.0, 3.0].map(|bytes| Stream { who: format!("{bytes}"), host: "10.1.0.2", bytes }).into();
        assert!(holders(&streams, 200.0).is_none() && holders(&[], 0.0).is_none());
        let (all, held) = holders(&streams, 100.0).unwrap();
        assert_eq!((all[0].who.as_str(), held), ("90", 98.0));
    }

    #[test]
    fn hosts_that_do_not_read_are_named() {
        let report = |time: f64, bytes: u64, waits: &[(u64, &str, f64, f64)]| {
            let waiting = waits.iter().map(|(number, whose, now, sum)| {
                json!({ "number": number, "name": "hub", "client": format!("10.1.0.2:{number}"), "destination": "10.2.0.2:80",
                        "held_bytes": 1 << 20, *whose: { "now_s": now, "sum_s": sum } })
            });
            json!({
                "time_s": time,
                "port": { "rate_bps": 8e6, "bytes": bytes },
                "waiting": waiting.collect::<Vec<_>>(),
                "peers": [{ "name": "hub", "connected": true, "rtt_ms": 600.0,
                            "connection_bytes": 32 << 20, "peer_bytes": 256 << 20 },
                          { "name": "other", "connected": true }],
            })
        };
        let before = report(1.0, 0, &[(1, "host", 5.0, 5.0), (3, "host", 0.0, 5.0), (5, "peer", 0.1, 9.0)]);
        let of = |bytes: u64, waits: &[_]| why(&before, &report(3.0, bytes, waits)).join("; ");
        let paused = [(1, "host", 7.0, 7.0), (2, "host", 0.1, 1.95), (3, "host", 0.0, 5.2)];
        assert_eq!(
            of(0, &paused),
            "window of hub: 2 connections hold 2.1 MB of 268.4 MB; the host here does not read, or slowly: \
             10.1.0.2:1 to 10.2.0.2:80 (7 s), 10.1.0.2:2 to 10.2.0.2:80 (0 s)"
        );
        // Two round trips and a second are 2.2 s.
        let unread = "window of hub: 1 connection; the far host does not read: 10.1.0.2:4 to 10.2.0.2:80 (3 s)";
        assert_eq!(of(0, &[(4, "peer", 2.6, 2.6)]), unread);
        assert_eq!(of(1_990_000, &[(4, "peer", 2.1, 2.1)]), "line: full, 8.0 of 8.0 Mbit/s");
        assert_eq!(of(1_990_000, &[(4, "peer", 2.6, 2.6)]), format!("line: full, 8.0 of 8.0 Mbit/s; {unread}"));
        assert!(
            of(0, &[(5, "peer", 0.1, 10.95)])
                .contains("`connection_bytes` or `peer_bytes` there is too small for the path: 10.1.0.2:5")
        );
        assert_eq!(of(1_990_000, &[(5, "peer", 0.1, 10.95)]), "line: full, 8.0 of 8.0 Mbit/s");
        let many: Vec<(u64, &str, f64, f64)> = (10..22).map(|number| (number, "host", 9.0, 9.0)).collect();
        assert!(of(0, &many).ends_with("10.1.0.2:19 to 10.2.0.2:80 (9 s), 2 more"));
        // By hand: credit leaves 128 MiB to hosts that do not read, of which 116 are held, or 115.
        for (mebibytes, wanted) in [(116, "window held"), (115, "near host")] {
            let mut after = report(3.0, 0, &[(1, "host", 7.0, 7.0)]);
            after["waiting"][0]["held_bytes"] = json!(mebibytes << 20);
            assert_eq!(names(&before, &after), [wanted]);
        }
    }
}
