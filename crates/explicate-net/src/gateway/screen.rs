//! One screen of a gateway: its line, the sites behind its peers, who uses the line, and who waits for whom.

use std::collections::BTreeMap;

use serde_json::Value;

use super::explain::{mbps, number, of_line};

/// A line that has no more characters than the screen has columns.
pub fn cut(line: &str, columns: usize) -> String {
    line.chars().take(columns).collect()
}

/// The lines of a screen with so many rows and columns; rates are those since the report before.
pub fn lines(report: &Value, before: Option<&Value>, (rows, columns): (usize, usize)) -> Vec<String> {
    let mut all = vec![format!(
        "{} connections open of {}, {} wait; since the start {} from the site, {} from peers, {} refused, {} reset, {} direct",
        report["connections"],
        report["limit_connections"],
        report["waiting_connections"],
        report["intercepted"],
        report["onward"],
        report["refused"],
        report["resets"],
        report["direct"],
    )];
    all.extend(of_line(report, before));
    let lists = [sites(report, before), users(report, before), waits(report)];
    // An empty line and a heading before each.
    let room = rows.saturating_sub(all.len() + 2 * lists.len());
    let shares = share(room, [0, 1, 2].map(|list| lists[list].rows.len()));
    for (list, share) in lists.into_iter().zip(shares) {
        all.extend([String::new(), list.heading]);
        all.extend(shortened(list.rows, share));
    }
    all.truncate(rows);
    all.iter().map(|line| cut(line, columns).trim_end().to_string()).collect()
}

/// A part of the screen.
struct List {
    heading: String,
    rows: Vec<String>,
}

/// Divides rows among lists that want so many: a third each, and what one leaves to the others.
fn share(room: usize, wanted: [usize; 3]) -> [usize; 3] {
    let mut shares = wanted.map(|wanted| wanted.min(room / 3));
    for (share, wanted) in (0..3).map(|list| (list, wanted[list])).collect::<Vec<_>>() {
        let left = room - shares.iter().sum::<usize>();
        shares[share] += left.min(wanted - shares[share]);
    }
    shares
}

/// The first `most` rows; if there are more, the last of these rows says how many are left out.
fn shortened(mut rows: Vec<String>, most: usize) -> Vec<String> {
    let more = rows.len().saturating_sub(most);
    if more > 0 && most > 0 {
        rows.truncate(most - 1);
        rows.push(format!("... and {} more", more + 1));
    }
    rows.truncate(most);
    rows
}

fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().into_iter().flatten()
}
fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or("")
}

/// Seconds between two reports.
fn seconds(report: &Value, before: &Value) -> f64 {
    (number(report, "time_s") - number(before, "time_s")).max(1e-3)
}

/// The peers, and what goes to them and comes from them.
fn sites(report: &Value, before: Option<&Value>) -> List {
    let heading =
        format!("{:<20} {:<28} {:>10} {:>11} {:>11}", "peer", "address", "round trip", "to, Mbit/s", "from, Mbit/s");
    let of = |peer: &Value| {
        let name = text(peer, "name");
        if peer["connected"] != true {
            return format!("{name:<20} not connected: {}", peer["failure"].as_str().unwrap_or("it has not called"));
        }
        let earlier = before.and_then(|before| list(before, "peers").find(|other| other["name"] == peer["name"]));
        let rate = |key: &str| {
            let (earlier, before) = earlier.filter(|earlier| earlier["connected"] == true).zip(before)?;
            // A new tunnel counts from 0.
            let bytes = number(peer, key) - number(earlier, key);
            (bytes >= 0.0).then(|| mbps(8.0 * bytes / seconds(report, before)))
        };
        let [to, from] = ["sent_bytes", "received_bytes"].map(|key| rate(key).unwrap_or("-".to_string()));
        let trip = format!("{:.1} ms", number(peer, "rtt_ms"));
        format!("{name:<20} {:<28} {trip:>10} {to:>11} {from:>11}", text(peer, "address"))
    };
    List { heading, rows: list(report, "peers").map(of).collect() }
}

/// What a host's connections with a peer have carried between two reports.
#[derive(Default)]
struct Use {
    connections: u32,
    from: f64,
    to: f64,
}

/// The hosts that use the line, those with the most bytes first.
fn users(report: &Value, before: Option<&Value>) -> List {
    let heading =
        format!("{:<40} {:<20} {:>11} {:>11} {:>11}", "client", "peer", "connections", "from, Mbit/s", "to, Mbit/s");
    let earlier: BTreeMap<u64, &Value> = before
        .into_iter()
        .flat_map(|before| list(before, "carrying"))
        .filter_map(|one| Some((one["number"].as_u64()?, one)))
        .collect();
    let mut hosts: BTreeMap<(&str, &str), Use> = BTreeMap::new();
    for one in list(report, "carrying") {
        let host = text(one, "client").rsplit_once(':').map_or("", |(host, _)| host);
        let used = hosts.entry((host, text(one, "name"))).or_default();
        let before = one["number"].as_u64().and_then(|number| earlier.get(&number));
        let bytes = |key: &str| number(one, key) - before.map_or(0.0, |before| number(before, key));
        used.connections += 1;
        used.from += bytes("from_client_bytes").max(0.0);
        used.to += bytes("to_client_bytes").max(0.0);
    }
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    hosts.sort_by(|(_, a), (_, b)| (b.from + b.to).total_cmp(&(a.from + a.to)));
    let rows = hosts.into_iter().map(|((host, name), used)| {
        let rate = |bytes: f64| before.map_or("-".to_string(), |before| mbps(8.0 * bytes / seconds(report, before)));
        let (from, to) = (rate(used.from), rate(used.to));
        format!("{host:<40} {name:<20} {:>11} {from:>12} {to:>11}", used.connections)
    });
    List { heading, rows: rows.collect() }
}

/// The connections that wait for a host now, the longest waits first.
fn waits(report: &Value) -> List {
    let heading = format!("{:>8}  {:<44} {}", "waits", "connection", "for");
    let rows = list(report, "waiting").filter_map(|one| {
        let (client, destination) = (text(one, "client"), text(one, "destination"));
        let [here, there] = ["host", "peer"].map(|end| number(&one[end], "now_s"));
        if here.max(there) <= 0.0 {
            return None;
        }
        // A host at this end has bytes before it, or the one at the other end takes none.
        let is_client = one["near"].as_bool().map(|near| near == (here >= there));
        let host = match is_client {
            Some(true) => client,
            Some(false) => destination,
            None => "a host",
        };
        let held = number(one, "held_bytes") / 1e3;
        let place = if here >= there { format!("here, {held:.0} kB") } else { format!("at {}", text(one, "name")) };
        let connection = format!("{client} > {destination}");
        Some(format!("{:>6.1} s  {connection:<44} {host} {place}", here.max(there)))
    });
    List { heading, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn carrying(number: u32, client: &str, name: &str, from: u64, to: u64) -> Value {
        json!({ "number": number, "client": client, "name": name, "destination": "10.2.0.2:80",
                "from_client_bytes": from, "to_client_bytes": to })
    }
    fn report(time: f64, bytes: u64) -> Value {
        json!({
            "time_s": time, "connections": 3, "limit_connections": 4096, "waiting_connections": 2,
            "intercepted": 7, "onward": 0, "direct": 1, "resets": 3, "refused": 4,
            "port": { "rate_bps": 2e6, "bytes": bytes, "queue_packets": 5, "plain": { "bits_per_second": 64e3, "dropped": 9 } },
            "peers": [{ "name": "hub", "connected": false, "failure": "no answer for 10 s" },
                      { "name": "far", "connected": true, "address": "192.0.2.2:49407", "rtt_ms": 612.34,
                        "sent_bytes": bytes, "received_bytes": 2 * bytes }],
            "carrying": [carrying(1, "10.1.0.2:4000", "far", bytes, 0), carrying(2, "10.1.0.2:4001", "far", 1000, 0),
                         carrying(3, "[fd00:1::2]:4000", "far", 0, 2 * bytes)],
            "waiting": [{ "client": "10.1.0.2:4000", "destination": "10.2.0.2:80", "name": "far", "near": true,
                          "host": { "now_s": 0.0, "sum_s": 9.0 }, "peer": { "now_s": 12.34, "sum_s": 13.0 }, "held_bytes": 0 },
                        { "client": "10.1.0.2:4001", "destination": "10.2.0.2:80", "name": "far", "near": true,
                          "host": { "now_s": 3.0, "sum_s": 3.0 }, "peer": { "now_s": 0.0, "sum_s": 0.0 }, "held_bytes": 64_000 },
                        { "client": "10.1.0.2:4002", "destination": "10.2.0.2:80", "name": "far", "near": true,
                          "host": { "now_s": 0.0, "sum_s": 3.0 }, "peer": { "now_s": 0.0, "sum_s": 0.0 }, "held_bytes": 0 }],
        })
    }

    #[test]
    fn the_screen_has_the_line_the_sites_their_users_and_who_waits() {
        let expected = "\
3 connections open of 4096, 2 wait; since the start 7 from the site, 0 from peers, 4 refused, 3 reset, 1 direct
line: 1.2 of 2.0 Mbit/s, 5 packets wait; other packets 0.064 Mbit/s, 9 dropped

peer                 address                      round trip  to, Mbit/s from, Mbit/s
hub                  not connected: no answer for 10 s
far                  192.0.2.2:49407                612.3 ms         1.2         2.4

client                                   peer                 connections from, Mbit/s  to, Mbit/s
[fd00:1::2]                              far                            1        0.000         2.4
10.1.0.2                                 far                            2          1.2       0.000

   waits  connection                                   for
  12.3 s  10.1.0.2:4000 > 10.2.0.2:80                  10.2.0.2:80 at far
   3.0 s  10.1.0.2:4001 > 10.2.0.2:80                  10.1.0.2:4001 here, 64 kB";
        let shown = lines(&report(3.0, 500_000), Some(&report(1.0, 200_000)), (usize::MAX, usize::MAX));
        assert_eq!(shown.join("\n"), expected);
        let first = lines(&report(3.0, 500_000), None, (usize::MAX, usize::MAX)).join("\n");
        assert!(first.contains("612.3 ms           -           -\n"), "no rates yet: {first}");
    }

    /// As many rows and columns as there are, however few.
    #[test]
    fn it_fits_the_terminal() {
        let mut many = report(3.0, 500_000);
        let one = |n: u32| carrying(n, &format!("10.1.{}.{}:4000", n / 250, n % 250), "far", n as u64, 0);
        many["carrying"] = (0..3000).map(one).collect();
        for (rows, columns) in [(24, 80), (10, 40), (3, 5), (1, 1), (200, 200)] {
            let shown = lines(&many, None, (rows, columns));
            assert!(shown.len() <= rows && shown.iter().all(|line| line.chars().count() <= columns), "{shown:?}");
            let whole = rows >= 24;
            assert_eq!(whole, shown.iter().any(|line| line.contains("10.1.11.249")), "the busiest: {shown:?}");
            assert_eq!(
                whole,
                shown.iter().any(|line| line.contains("... and ") && line.ends_with(" more")),
                "{shown:?}"
            );
            assert!(!whole || shown.iter().any(|line| line.contains("10.1.0.2:4001 > ")), "those that wait: {shown:?}");
        }
        assert_eq!(lines(&many, None, (24, 80)).len(), 24);
        assert_eq!(share(10, [1, 100, 2]), [1, 7, 2]);
        assert_eq!(share(9, [100; 3]), [3; 3]);
    }
}
