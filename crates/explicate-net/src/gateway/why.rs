//! What limits the transfers now, from two reports ([`status`](super::status)) with some time between them.
//!
//! A cause is named only if removing it helps: if transfers go at least [`WORTH`] times as fast without it, round trips are shorter by
//! as much, or connections open. Each has an estimate of that, by which the best one comes first. `simulated::why` removes each cause
//! in simulated time, and measures.
//!
//! What makes the window or the line slow counts only while bytes wait for them in QUIC, by `WAITS`; and hosts only while none do.
//!
//! | cause | what is measured | threshold |
//! | --- | --- | --- |
//! | peer down, key | the peer is not connected, and why the last call failed; or nothing arrives, although packets leave | `UNANSWERED` |
//! | limit of connections | open connections; refused ones meanwhile | all that `limits` permits |
//! | window held | what [`credit`] leaves to growing windows, while hosts here do not read | a bandwidth-delay product |
//! | near host, far host | how long bytes wait for a host, here or there, while the line of the direction has room | `SHARE` of the time; `UNREAD` |
//! | window | the same, with half a window under way | `connection_bytes` |
//! | mtu | lengths that the path has ceased to carry | one |
//! | losses | packets lost after repair | the `air_loss` that a limited window bears |
//! | | those, and what parity takes of a full line | [`WORTH`], beside the parity without losses |
//! | parity off | the same, with `parity = false` | what parity would leave of them |
//! | told too high | the guard's signs of a narrower line | the guard's |
//! | queue elsewhere | round trip above the least one, while this end does not fill the path | `QUEUE` and `QUEUE_SHARE` |
//! | source | the rate is the limit, and its source fails | none |
//! | told too low | what trains of the port have shown that the line carries | [`WORTH`] |
//! | line full | bytes that left the port | `FULL` of the rate |

use serde_json::Value;

use super::config::Limits;
use super::credit;
use super::explain::{in_force, mbps, number};
use super::parity;
use super::reasons;

/// The causes, in the order of `docs/gateway.md`.
pub const NAMES: [&str; 15] = [
    "peer down",
    "key",
    "limit of connections",
    "window held",
    "near host",
    "far host",
    "window",
    "mtu",
    "losses",
    "parity off",
    "told too high",
    "queue elsewhere",
    "source",
    "told too low",
    "line full",
];

/// A cause is named if removing it makes transfers so many times as fast, or round trips so many times as short, at least.
pub const WORTH: f64 = 1.1;
/// Share of the rate at which the line is full.
const FULL: f64 = 0.9;
/// Bytes of hosts wait for the window or the line if some do as this share of the packets is acknowledged.
const WAITS: f64 = 2.0 / 3.0;
/// What a full line gains by one that is twice as fast, and what is taken for a cause whose gain cannot be known.
const TWICE: f64 = 2.0;
/// Datagrams of parity behind a block, each of which repairs one.
const PARITY: i32 = 2;
/// Share of packets whose loss makes trains useless. A train has ten datagrams: one that is lost makes the line look a tenth slower (or faster,
/// where an older peer does not count them), and with more losses four trains are likely to lose two.
const SHORTENS: f64 = 0.02;
/// Fewer packets say nothing of losses.
const FEWEST: f64 = 50.0;
/// And these nothing of what waits.
const FEWEST_ARRIVED: f64 = 10.0;
/// Packets that leave while nothing arrives: a silent path. An idle tunnel sends one every 3 s, and a silent one every second.
const UNANSWERED: f64 = 2.0;
/// Round trips above the least one, ms, and as a share of it (as [`guard`](explicate_core::guard) has them).
const QUEUE: f64 = 25.0;
const QUEUE_SHARE: f64 = 0.25;
/// Acknowledgements are so late at most, ms, and the own port's queue has so many bytes (see [`controller`](super::controller) and
/// [`queues`](super::queues)).
const LATE: f64 = 20.0;
const PORT: f64 = 4_500.0;
/// Share of packets whose loss is not the air's (as [`guard`](explicate_core::guard) has it).
const MOST_LOST: f64 = 0.2;
/// A peer that sends more than this share of its rate has a queue of its own.
const SENDS: f64 = 0.25;
/// A connection waits for a host if it does so for this share of the time.
const SHARE: f64 = 0.9;
/// The host of a connection without credit for so many seconds and two round trips does not read.
const UNREAD: f64 = 1.0;
/// Bytes that each connection has from its beginning (see [`credit`]).
const BASE: f64 = 16_384.0;
/// Most connections that are named.
const NAMED: usize = 10;

/// A cause.
#[derive(Clone, PartialEq, Debug)]
pub struct Cause {
    /// Its name, of [`NAMES`].
    pub name: &'static str,
    /// How many times as fast transfers may go without it; infinite where nothing goes at all.
    pub gain: f64,
    /// What was measured, and what to do.
    pub sentence: String,
}

fn cause(name: &'static str, gain: f64, sentence: impl Into<String>) -> Cause {
    debug_assert!(NAMES.contains(&name), "{name}");
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
        room(self.rate, self.used)
    }
    fn more(&self, key: &str) -> f64 {
        number(self.after, key) - number(self.before, key)
    }
    fn peers(&self) -> impl Iterator<Item = OfPeer<'_>> {
        let earlier = |after: &Value| {
            let peers = self.before["peers"].as_array().into_iter().flatten();
            peers.into_iter().find(|peer| peer["name"] == after["name"])
        };
        let all = self.after["peers"].as_array().into_iter().flatten();
        all.map(move |after| {
            let (before, name) = (earlier(after).unwrap_or(&Value::Null), after["name"].as_str().unwrap_or(""));
            OfPeer { looks: self, before, after, name }
        })
    }
}

/// How many times as fast a line of this rate may go, bit/s.
fn room(rate: f64, used: f64) -> f64 {
    if rate == 0.0 {
        TWICE
    } else if used > FULL * rate {
        1.0
    } else {
        rate / used.max(rate / 1e3)
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
    fn is_connected(&self) -> bool {
        self.is("connected")
    }
    /// Whether bytes of hosts wait for the window or the line: QUIC had more to send when packets were acknowledged, or none were. A
    /// report of an older gateway does not say.
    fn waits(&self) -> bool {
        let arrived = self.more("packets_arrived");
        let enough = arrived >= FEWEST_ARRIVED && self.more("arrived_while_more_waited") >= WAITS * arrived;
        enough || self.after["packets_arrived"].is_null()
    }
    /// Share of the packets that were lost.
    fn lost(&self) -> f64 {
        let sent = self.more("packets_sent");
        if sent < FEWEST { 0.0 } else { self.more("packets_lost") / sent }
    }
    /// The same before repair, as the peer measures it: over some hundreds of packets.
    fn lost_before_repair(&self) -> f64 {
        number(self.after, "lost_before_repair").max(self.lost())
    }
    /// Datagrams of a block that parity follows. A report of an older gateway does not say.
    fn block(&self) -> Option<u8> {
        self.after["parity_block"].as_u64().map(|block| block as u8)
    }
    /// Share of the datagrams of the port that are parity. Where the window or hosts leave the line idle, blocks end early, and it is more than
    /// that of whole blocks.
    fn parity_sent(&self) -> f64 {
        let more = |key: &str| number(&self.looks.after["port"], key) - number(&self.looks.before["port"], key);
        more("parity") / more("sent").max(1.0)
    }
    /// How many times as much of a full line transfers would have without losses: of what is sent again, and of what parity takes beyond that of
    /// the longest blocks.
    fn spared(&self) -> f64 {
        let sent_again = 1.0 / (1.0 - self.lost()).max(0.1);
        let block = self.block().filter(|_| self.looks.full()).unwrap_or(parity::BLOCK);
        sent_again * (1.0 - parity_takes(parity::BLOCK)) / (1.0 - parity_takes(block))
    }
    /// What the air may lose beyond repair. A report of an older gateway does not say.
    fn borne(&self) -> f64 {
        self.after["air_loss"].as_f64().unwrap_or(0.02)
    }
    /// How many times the least round trip the present one is, if a queue is on the path; else 1. Acknowledgements may come late, and the
    /// own port's queue takes its time.
    fn queue(&self) -> f64 {
        let (now, least) = (number(self.after, "rtt_ms"), number(self.after, "min_rtt_ms"));
        let port = if self.looks.rate > 0.0 { 8e3 * PORT / self.looks.rate } else { 0.0 };
        let queued = least > 0.0 && now - least - LATE - port > QUEUE.max(QUEUE_SHARE * least);
        if queued { now / least } else { 1.0 }
    }
    /// Whether the path is narrower than what this end was told: the guard limits the window, and losses of the air alone are not the
    /// reason.
    fn is_narrow(&self) -> bool {
        let (lost, queue) = (self.lost(), self.queue());
        // TCP's law keeps what a narrower line drops low, and parity may repair it.
        let drops = self.lost_before_repair() > 0.0 && queue > 1.0;
        let signs = if self.looks.full() { drops } else { self.is("limited_by_delay") };
        self.is("limited") && self.waits() && (signs || lost > MOST_LOST)
    }
    /// How many times as fast the peer may send.
    fn room_there(&self) -> f64 {
        room(number(self.after, "peer_rate_bps"), 8.0 * self.more("received_bytes") / self.looks.seconds)
    }
}

/// What may limit all transfers of the gateway.
const OF_GATEWAY: [fn(&Looks<'_>) -> Option<Cause>; 3] = [connections, source, line];
/// What may limit those with a peer that is connected.
const OF_PEERS: [fn(&OfPeer<'_>) -> Option<Cause>; 4] = [mtu, losses, told_too_high, queue_elsewhere];

/// The causes, the one whose removal gains most first.
pub fn causes(before: &Value, after: &Value) -> Vec<Cause> {
    let looks = Looks::new(before, after);
    let mut found: Vec<Cause> = OF_GATEWAY.iter().filter_map(|find| find(&looks)).collect();
    for of in looks.peers() {
        if let Some(down) = down(&of) {
            found.push(down);
            continue;
        }
        found.extend(OF_PEERS.iter().filter_map(|find| find(&of)));
        found.extend(hosts(&of));
    }
    found.retain(|cause| cause.gain >= WORTH);
    found.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    found
}

/// The same in words, or that there is none.
pub fn why(before: &Value, after: &Value) -> Vec<String> {
    let found: Vec<String> = causes(before, after).into_iter().map(|cause| cause.sentence).collect();
    if found.is_empty() {
        return vec![
            "nothing here: the hosts send less than the line carries, or wait for each other; what comes from a peer is limited there: \
             ask by `explicated gateway why` at that gateway"
                .to_string(),
        ];
    }
    found
}

fn down(of: &OfPeer<'_>) -> Option<Cause> {
    let peer = format!("peer {}", of.name);
    if of.is_connected() {
        let (sent, arrived) = (of.more("packets_sent"), of.more("received_bytes"));
        let silent = of.before["received_bytes"].is_number() && arrived <= 0.0 && sent >= UNANSWERED;
        let sentence = format!(
            "{peer}: silent, {sent:.0} packets left in {:.1} s and none came; see whether the path and its machine are up. After 60 s of that \
             its connections are reset",
            of.looks.seconds
        );
        return silent.then(|| cause("peer down", f64::INFINITY, sentence));
    }
    let direct = of.looks.more("direct");
    let direct =
        if direct > 0.0 { format!(", {direct:.0} connections went without the tunnel") } else { String::new() };
    let (name, sentence) = match of.after["failure"].as_str() {
        Some(failure) if reasons::is_of_keys(failure) => {
            // A reason of `reasons` says what to compare.
            let remedy = match failure.contains("[[peer]]") {
                true => "",
                false => {
                    "; compare `key` in [[peer]] at each end with the line that `explicated gateway check` prints at the other"
                }
            };
            ("key", format!("{peer}: not connected{direct}, a key is wrong: {failure}{remedy}"))
        }
        Some(failure) => {
            let remedy = "see whether it runs, whether `address` is right here or there, and whether the UDP port of `listen` is open";
            ("peer down", format!("{peer}: not connected{direct} ({failure}); {remedy}"))
        }
        None => {
            let remedy =
                "it has to call: see there what `explicated gateway why` says, and here what the log has refused";
            ("peer down", format!("{peer}: not connected{direct}; {remedy}"))
        }
    };
    Some(cause(name, f64::INFINITY, sentence))
}

fn connections(looks: &Looks<'_>) -> Option<Cause> {
    let refused = looks.more("refused");
    let (open, limit) = (number(looks.after, "connections"), number(looks.after, "limit_connections"));
    // Each connection with a peer needs credit from its beginning.
    let have_credit = |of: OfPeer<'_>| {
        let limits = Limits {
            connections: limit as u32,
            peer_bytes: of.after["peer_bytes"].as_u64()? as u32,
            ..Limits::default()
        };
        Some(credit::most_connections(limits) as f64)
    };
    let by_credit = looks.peers().filter_map(have_credit).sum::<f64>();
    let raise = if by_credit > 0.0 && by_credit < limit { "limits.peer_bytes" } else { "limits.connections" };
    let most = if by_credit > 0.0 { limit.min(by_credit) } else { limit };
    if limit == 0.0 || open < most || refused <= 0.0 {
        return None;
    }
    let sentence = format!(
        "limit of connections: {open} of {most} are open, and {refused:.0} were refused in {:.1} s; raise `{raise}`, or end connections of \
         hosts that have too many",
        looks.seconds
    );
    Some(cause("limit of connections", f64::INFINITY, sentence))
}

fn source(looks: &Looks<'_>) -> Option<Cause> {
    let failure = looks.after["capacity"]["failure"].as_str()?;
    let limits = looks.full() || looks.peers().any(|of| of.is("limited") && of.waits());
    let sentence = format!(
        "capacity source: it fails ({failure}); {}, and it limits the transfers; repair the source, or write a fixed `rate`",
        in_force(&looks.after["capacity"])
    );
    // The rate that it would give is unknown, and may be more than twice as much.
    limits.then(|| cause("source", TWICE, sentence))
}

fn line(looks: &Looks<'_>) -> Option<Cause> {
    let plain = number(&looks.after["port"]["plain"], "bits_per_second") > (1.0 - FULL) * looks.rate;
    let narrow = looks.peers().any(|of| of.is_connected() && of.is_narrow());
    if narrow || !looks.full() || !(plain || looks.peers().any(|of| of.is_connected() && of.waits())) {
        return None;
    }
    let full = format!("line: full, {} of {} Mbit/s", mbps(looks.used), mbps(looks.rate));
    let port = &looks.after["port"];
    let carries = number(port, "carries_bps");
    let lossy = looks.peers().any(|of| of.is_connected() && of.lost_before_repair() > SHORTENS);
    if carries >= WORTH * looks.rate && !lossy {
        let told = if looks.after["capacity"].is_object() { "what the capacity source says" } else { "`rate`" };
        let sentence = format!(
            "{full}, but trains of datagrams crossed the path at {} Mbit/s; raise {told} in steps, and ask again, or have it measured",
            mbps(carries)
        );
        return Some(cause("told too low", carries / looks.rate, sentence));
    }
    let more = match (carries > 0.0, looks.after["capacity"].is_null()) {
        (true, _) if lossy => "; whether the path carries more could not be seen: trains of datagrams lost some",
        (true, _) => ", and trains of datagrams show no more",
        (false, true) => "; whether the path carries more could not be seen: the peer returned no marks, or too late",
        (false, false) => "",
    };
    Some(cause("line full", TWICE, format!("{full}{more}; only a faster line or less traffic helps")))
}

fn mtu(of: &OfPeer<'_>) -> Option<Cause> {
    let (before, now) = (number(of.before, "path_mtu"), number(of.after, "path_mtu"));
    if of.more("black_holes") <= 0.0 && (before == 0.0 || now >= before) {
        return None;
    }
    let sentence = format!(
        "path to {}: it has ceased to carry datagrams of {before} bytes without a word, {now} bytes pass; restore the MTU of the path",
        of.name
    );
    Some(cause("mtu", 1.0 / (1.0 - of.lost()).max(0.1), sentence))
}

/// Share of the line that parity of such blocks takes.
fn parity_takes(block: u8) -> f64 {
    PARITY as f64 / (block as f64 + PARITY as f64)
}

/// What parity leaves of independent losses of this share. Its blocks follow them as far as the air may lose so many.
fn after_parity(lost: f64, air_loss: f64) -> f64 {
    let count = parity::block(lost, air_loss) as i32 + PARITY;
    let (mut chance, mut repaired) = ((0..count).fold(1.0, |chance, _| chance * (1.0 - lost)), 0.0);
    for losses in 1..=PARITY {
        chance *= lost / (1.0 - lost).max(1e-9) * (count - losses + 1) as f64 / losses as f64;
        repaired += chance * losses as f64 / count as f64;
    }
    (lost - repaired).max(0.0)
}

fn losses(of: &OfPeer<'_>) -> Option<Cause> {
    // Without parity the peer's measure is that of all losses, and by more packets.
    let lost = if of.block().is_some() { of.lost() } else { of.lost_before_repair() };
    let limited = of.is("limited");
    if !of.waits() || of.is_narrow() || mtu(of).is_some() {
        return None;
    }
    let (path, percent) = (format!("path to {}", of.name), |share: f64| format!("{:.1} %", 100.0 * share));
    let limit = format!(
        "more than `air_loss` when TCP's window became the limit, {} of {} Mbit/s",
        mbps(of.looks.used),
        mbps(of.looks.rate)
    );
    let window = if limited { of.looks.room() } else { 1.0 };
    // Without the limit, parity would take more than it spares.
    if limited && of.after["parity"] == false && after_parity(lost, of.borne()) <= of.borne() {
        let takes = parity_takes(parity::block(lost, of.borne()));
        let sentence = format!(
            "{path}: {} of the packets are lost, {limit}, and `parity` is off; `parity = true` in [wan] repairs them, and takes {:.0} % of the line",
            percent(lost),
            100.0 * takes
        );
        return Some(cause("parity off", window * (1.0 - takes), sentence));
    }
    let what = match of.block() {
        Some(block) => format!(
            "{path}: {} of the packets are lost; parity, 2 for {block} and {:.0} % of the datagrams, leaves {}",
            percent(of.lost_before_repair()),
            100.0 * of.parity_sent(),
            percent(lost)
        ),
        None => format!("{path}: {} of the packets are lost", percent(lost)),
    };
    let remedy = if limited {
        format!(
            ", {limit}; if the air loses them, write air_loss = {:.2} in [wan]; if a short queue drops them before a line narrower than `rate`, lower \
             `rate`, or have it measured; else look for the hop that drops them",
            (125.0 * of.lost_before_repair().max(2.0 * of.borne())).ceil() / 100.0
        )
    } else {
        "; look for the hop that drops them".to_string()
    };
    Some(cause("losses", window.max(of.spared()), what + &remedy))
}

fn told_too_high(of: &OfPeer<'_>) -> Option<Cause> {
    if !of.is_narrow() {
        return None;
    }
    let (lost, queue) = (of.lost_before_repair(), of.queue());
    let sentence = format!(
        "path to {}: round trips of {:.0} ms, {:.0} ms without a queue, and losses of {:.1} % before repair, as before a line that is narrower \
         than the {} Mbit/s told, or that others fill; TCP's window is the limit, and {} Mbit/s arrive, with headers and parity; tell about that as \
         `rate`, or have it measured",
        of.name,
        number(of.after, "rtt_ms"),
        number(of.after, "min_rtt_ms"),
        100.0 * lost,
        mbps(of.looks.rate),
        mbps((1.0 - lost) * of.looks.used)
    );
    Some(cause("told too high", queue.max(of.spared()).max(WORTH), sentence))
}

fn queue_elsewhere(of: &OfPeer<'_>) -> Option<Cause> {
    let queue = of.queue();
    let (rate, received) = (number(of.after, "peer_rate_bps"), 8.0 * of.more("received_bytes") / of.looks.seconds);
    if of.is_narrow() || rate > 0.0 && received > SENDS * rate {
        return None;
    }
    let (now, least) = (number(of.after, "rtt_ms"), number(of.after, "min_rtt_ms"));
    let sentence = format!(
        "path to {}: a round trip takes {now:.0} ms, {least:.0} ms without a queue: others fill a queue on the \
         path, or {} does (ask `why` there); let their packets go through this port (`wan.interface`), or give the tunnel a queue of its own",
        of.name, of.name
    );
    Some(cause("queue elsewhere", queue, sentence))
}

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
    let waits = of.waits();
    let unread = |wait: &&Value| !waits && number(&wait["peer"], "now_s") >= read_by;
    let slow = |wait: &&Value| !waits && !unread(wait) && share(wait, "peer") >= SHARE;
    let near: Vec<&Value> = all.iter().copied().filter(here).collect();
    let (far, slowly): (Vec<&Value>, Vec<&Value>) =
        (all.iter().copied().filter(unread).collect(), all.iter().copied().filter(slow).collect());
    let mut found = Vec::new();
    if !near.is_empty() {
        let (one, held) = (near.len() == 1, held(&near));
        let sentence = format!(
            "hosts here: {} with {} wait{} for {}, and hold{} {:.1} of {:.1} MB; see what holds up {}: {}",
            connections_of(&near),
            of.name,
            if one { "s" } else { "" },
            if one { "a program that does not read, or slowly" } else { "programs that do not read, or slowly" },
            if one { "s" } else { "" },
            held / 1e6,
            number(of.after, "peer_bytes") / 1e6,
            if one { "that host" } else { "these hosts" },
            names(&near, "host")
        );
        found.push(cause("near host", of.room_there(), sentence));
        found.extend(window_held(of, &near));
    }
    if !far.is_empty() {
        found.push(cause("far host", looks.room(), far_hosts(of, &far, "does not read")));
    }
    if !slowly.is_empty() {
        // What is on the way says which of the two it is: a window's worth, or less.
        let under_way = looks.used / 8.0 * number(of.after, "rtt_ms") / 1e3 / slowly.len() as f64;
        let fills = looks.rate > 0.0 && under_way >= 0.5 * number(of.after, "connection_bytes");
        let window = format!(
            "window of {}: {} use{} all that may be on the way, and the path takes more; raise `connection_bytes` or `peer_bytes` at the gateway \
             there: {}",
            of.name,
            connections_of(&slowly),
            if slowly.len() == 1 { "s" } else { "" },
            names(&slowly, "peer")
        );
        found.push(match fills {
            true => cause("window", looks.room(), window),
            false => cause("far host", looks.room(), far_hosts(of, &slowly, "reads slowly")),
        });
    }
    found
}

/// What hosts that do not read leave to the windows of others is less than the path needs.
fn window_held(of: &OfPeer<'_>, near: &[&Value]) -> Option<Cause> {
    let (rate, trip) = (number(of.after, "peer_rate_bps"), number(of.after, "rtt_ms") / 1e3);
    let left = of.after["growth_left_bytes"].as_f64()?;
    let gain = rate / 8.0 * trip / (left + BASE);
    let sentence = format!(
        "window of {}: {} with hosts here that do not read hold{} {:.1} of {:.1} MB and leave{} {:.2} MB to the windows of others, where the path \
         takes {:.2} MB; end these connections, or raise `limits.peer_bytes`: {}",
        of.name,
        connections_of(near),
        if near.len() == 1 { "s" } else { "" },
        held(near) / 1e6,
        number(of.after, "peer_bytes") / 1e6,
        if near.len() == 1 { "s" } else { "" },
        left / 1e6,
        rate / 8e6 * trip,
        names(near, "host")
    );
    Some(cause("window held", gain, sentence))
}

fn far_hosts(of: &OfPeer<'_>, all: &[&Value], what: &str) -> String {
    let (waits, host) =
        if all.len() == 1 { ("waits", "a host there that") } else { ("wait", "hosts there, each of which") };
    format!(
        "far hosts: {} with {} {waits} for {host} {what}; see there what holds it up: {}",
        connections_of(all),
        of.name,
        names(all, "peer")
    )
}

fn connections_of(all: &[&Value]) -> String {
    format!("{} connection{}", all.len(), if all.len() == 1 { "" } else { "s" })
}

/// Bytes that wait here for the hosts of these connections.
fn held(all: &[&Value]) -> f64 {
    all.iter().map(|wait| number(wait, "held_bytes")).sum()
}

/// The hosts of connections which wait, and for how long now.
fn names(all: &[&Value], whose: &str) -> String {
    let one = |wait: &&Value| {
        let (text, now) = (|key: &str| wait[key].as_str().unwrap_or(""), number(&wait[whose], "now_s"));
        let since = if now < 1.0 { String::new() } else { format!(" ({now:.0} s)") };
        format!("{} to {}{since}", text("client"), text("destination"))
    };
    let mut names: Vec<String> = all.iter().take(NAMED).map(one).collect();
    if all.len() > NAMED {
        names.push(format!("{} more", all.len() - NAMED));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests;
