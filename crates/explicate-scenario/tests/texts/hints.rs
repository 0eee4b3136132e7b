//! Hints: what a message tells to write is read, and means what was written. A number without a unit has the unit that tc,
//! iperf and ns-3 give it: bit/s, bytes, seconds.

use explicate_core::units::{Rate, Time};

use crate::support::{SMALL, parse, parse_with, problems, set};

/// A kind of field: the unit of a number without one, and scenarios with `@` in place of the value.
struct Field {
    unit: &'static str,
    text: String,
}

const AIR: &str = "duration = \"5s\"\n[[medium]]\nname = \"air\"\n@\n[[flows]]\nname = \"one\"\nprotocol = \"xcp\"\nfrom = \"n1\"\nto = \"n2\"\n";

fn fields() -> Vec<Field> {
    let below = |unit, keys: &str| Field { unit, text: format!("{SMALL}{keys}\n") };
    let old = "bottleneck = { rate = \"10Mbit/s\", delay = \"20ms\" }";
    let middle = |unit, keys: &str| Field { unit, text: SMALL.replace(old, &format!("bottleneck = {{ {keys} }}")) };
    let head =
        |unit, line: &str| Field { unit, text: format!("{line}\n{}", SMALL.replace("duration = \"10s\"\n", "")) };
    let air = |unit, keys: &str| Field { unit, text: AIR.replace('@', keys) };
    let udp = SMALL.replace("xcp/reno", "greedy");
    let chain = "layout = { kind = \"chain\" }\n";
    vec![
        head("s", "duration = @"),
        below("s", "start = @"),
        below("s", "stop = @"),
        below("s", "start = { uniform = @ }"),
        below("s", "processing = @"),
        below("s", "on_off = { on = @, off = \"1s\" }"),
        below("s", "session = { pause = @ }"),
        below("s", "session = { duration = @, random = true }"),
        below("s", "params = { min_rto = @ }"),
        below("s", "[sampling]\nevery = @"),
        below("s", "[[link]]\nname = \"r1->r2\"\nclock_tick = @"),
        below("s", "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"jitter\", mean = @ }]"),
        below(
            "s",
            "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"rate_steps\", steps = [{ at = \"0s\", rate = \"1Mbit/s\" }, { at = @, rate = \"2Mbit/s\" }] }]",
        ),
        middle("s", "delay = @"),
        middle("s", "queue = { kind = \"codel\", target = @ }"),
        Field {
            unit: "s",
            text: SMALL.replace("pairs = 2", "pairs = 2\naccess = { delay = { from = @, to = \"9ms\" } }"),
        },
        air("s", &format!("{chain}[[medium.interferer]]\nat = [\"0m\", \"0m\"]\non = @\noff = \"1s\"")),
        middle("bit/s", "rate = @"),
        middle("bit/s", "capacity = @"),
        below(
            "bit/s",
            "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"rate_steps\", steps = [{ at = \"0s\", rate = @ }, { at = \"1s\", rate = \"2Mbit/s\" }] }]",
        ),
        Field { unit: "bit/s", text: format!("{udp}params = {{ rate = @ }}\n") },
        Field { unit: "B", text: SMALL.replace("\"1000B\"", "@") },
        below("B", "size = @"),
        below("B", "size = { mean = @ }"),
        middle("B", "queue = { kind = \"codel\", mtu = @ }"),
        below("/s", "count = 5\narrivals = @"),
        air("m", "layout = { kind = \"chain\", spacing = @ }"),
        air("m", &format!("{chain}sense_range = @")),
        air("m", &format!("{chain}[[medium.station]]\nnode = \"n2\"\nat = [@, \"0m\"]")),
        below("", "params = { initial_window = @ }"),
        below("", "count = @"),
        below("", "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = @ }]"),
        middle("", "queue = { kind = \"red\", max_p = @ }"),
        middle("", "queue = { kind = \"rem\", phi = @ }"),
        air("", &format!("{chain}shadowing = @")),
        middle("length", "queue = { limit = @ }"),
        middle("length", "queue = { kind = \"pi\", target = @ }"),
    ]
}

fn numbers() -> Vec<String> {
    let mut all = vec!["0".to_string(), "-1".to_string(), "-2.5".to_string(), "20".to_string(), "60".to_string()];
    for exponent in -9..=12 {
        for digits in ["1", "1.5", "1.2345678"] {
            all.push(format!("{digits}e{exponent}"));
        }
    }
    for plain in ["10", "1500", "65535", "123456789", "10000000", "1000000000000", "0.3", "0.02", "0.000015", "12.5"] {
        all.push(plain.to_string());
    }
    all
}

/// What a message tells to write, as TOML values; those of the second list are examples with other values.
fn suggested(message: &str) -> (Vec<String>, Vec<String>) {
    let (mut meant, mut examples) = (Vec::new(), Vec::new());
    if let Some((_, rest)) = message.split_once("write it like `").or_else(|| message.split_once("write `")) {
        let assignment = rest.split('`').next().unwrap();
        meant.push(assignment.split_once(" = ").unwrap().1.to_string());
    } else if let Some((_, rest)) = message.split_once("did you mean \"") {
        meant.push(format!("\"{}\"", rest.split('"').next().unwrap()));
    } else if let Some((_, rest)) = message.split_once("write it like \"") {
        examples.push(format!("\"{}\"", rest.split('"').next().unwrap()));
    } else if let Some((_, rest)) = message.split_once("; write \"") {
        meant.extend(format!("\"{rest}").split('"').skip(1).step_by(2).map(|text| format!("\"{text}\"")));
    }
    (meant, examples)
}

/// The resolved scenario with this value, or the messages.
fn with(field: &Field, value: &str) -> Result<String, Vec<String>> {
    let text = field.text.replace('@', value);
    parse_with(&text, &[]).map(|s| s.resolved).map_err(|found| found.iter().map(|p| p.to_string()).collect())
}

/// A message about other values does not concern the value itself.
fn of_others(message: &str) -> bool {
    ["a run would move", "would write about", "flows arrive", "have to be in order", "no frame arrives"]
        .iter()
        .any(|part| message.contains(part))
}

#[test]
fn what_a_hint_suggests_is_read_and_means_what_was_written() {
    let (mut exact, mut lists) = (0, 0);
    for field in fields() {
        for number in numbers() {
            for written in [number.clone(), format!("\"{number}\"")] {
                let Err(messages) = with(&field, &written) else {
                    assert!(field.unit.is_empty(), "{written} needs a unit in {}", field.text);
                    continue;
                };
                let [message] = &messages[..] else { panic!("{messages:?}") };
                let (meant, examples) = suggested(message);
                for value in &meant {
                    let read = with(&field, value)
                        .or_else(|m| if m.iter().all(|m| of_others(m)) { Ok(String::new()) } else { Err(m) });
                    let read = read.unwrap_or_else(|m| panic!("{written}: {message}\nbut {value}: {m:?}"));
                    let unit = match field.unit {
                        // A queue may be meant in any of these.
                        "length" => value.trim_matches(|c: char| !c.is_alphabetic() || c == 'e'),
                        unit => unit,
                    };
                    // A percentage of a number above one is no number of its kind.
                    let same = if unit.is_empty() && value.ends_with("%\"") {
                        format!("\"{number}%\"")
                    } else if unit.is_empty() {
                        number.clone()
                    } else {
                        format!("\"{number}{unit}\"")
                    };
                    let same = with(&field, &same).unwrap_or_default();
                    assert_eq!(read, same, "{written}: {message}");
                    exact += 1;
                }
                for value in &examples {
                    with(&field, value).unwrap_or_else(|m| panic!("{message}\nbut {value}: {m:?}"));
                    assert!(message.contains("units: "), "{message}");
                    lists += 1;
                }
            }
        }
    }
    assert!(exact > 2000 && lists > 500, "{exact} hints, {lists} lists of units");
}

/// The unit of a slip keeps the quantity, too.
#[test]
fn slips_in_units() {
    let rate = |written: &str| {
        let text = SMALL.replace("\"10Mbit/s\"", &format!("\"{written}\""));
        match problems(&text, &[]).first() {
            None => Some(parse(&text).links[0].rate),
            Some(message) => {
                let (meant, _) = suggested(message);
                meant.first().map(|value| parse(&SMALL.replace("\"10Mbit/s\"", value)).links[0].rate)
            }
        }
    };
    for same in ["10mbps", "10 Mbps", "10Mb/s", "10mbit/s", "10Mbit", "10000000", "1e7", "10000 kbps"] {
        assert_eq!(rate(same), Some(Rate::mbps(10)), "{same}");
    }
    for unknown in ["10", "10MB", "10M", "10Mib/s", "10ms", "10h"] {
        assert_eq!(rate(unknown), None, "{unknown}");
    }
    // The Greek letter, which keyboards and web pages have, is the micro sign.
    for micro in ["20\u{b5}s", "20\u{3bc}s", "20 \u{3bc}s", "20us"] {
        assert_eq!(parse(&SMALL.replace("20ms", micro)).links[0].delay, Time::micros(20), "{micro}");
    }
    let message = problems(&SMALL.replace("20ms", "20ks"), &[]).remove(0);
    assert!(message.contains("units: s, ms, us, ns, min, \u{b5}s)"), "{message}");
}

#[test]
fn the_usual_numbers() {
    let said = |text: &str| problems(text, &[]).remove(0);
    let bottleneck = |keys: &str| SMALL.replace("rate = \"10Mbit/s\", delay = \"20ms\"", keys);
    let cases = [
        (bottleneck("rate = 10000000"), "write it like `rate = \"10Mbit/s\"` (10000000bit/s)"),
        (
            bottleneck("rate = 10"),
            "`rate` is a rate and needs a unit; write it like \"54Mbit/s\" (units: Gbit/s, Mbit/s,",
        ),
        (bottleneck("delay = 0.02"), "write it like `delay = \"20ms\"` (0.02s)"),
        (bottleneck("delay = 20"), "`delay` is a time and needs a unit; write it like \"80ms\" (units: s, ms, us"),
        (bottleneck("queue = { limit = 50 }"), "write \"50pkt\" (packets), \"50B\" (bytes) or \"50bdp\""),
        (bottleneck("queue = { kind = \"codel\", target = 5 }"), "write it like \"80ms\" (units"),
        (bottleneck("queue = { kind = \"codel\", target = 0.005 }"), "`target = \"5ms\"` (0.005s)"),
        (bottleneck("channel = [{ kind = \"random_loss\", rate = 2 }]"), "for 2 per cent write `rate = \"2%\"`"),
        (SMALL.replace("\"10s\"", "60"), "write it like `duration = \"60s\"`"),
        (SMALL.replace("\"1000B\"", "1500"), "write it like `packet = \"1500B\"`"),
        (format!("{SMALL}size = 1000000"), "write it like `size = \"1MB\"` (1000000B)"),
        (format!("{SMALL}arrivals = 5"), "write it like `arrivals = \"5/s\"`"),
        (format!("{SMALL}count = \"5\""), "`count` is a whole number without quotes, like 5, not a text"),
        (format!("{SMALL}[sweep]\nduration = [60]"), "write it like `duration = \"60s\"`"),
    ];
    for (text, part) in cases {
        assert!(said(&text).contains(part), "{}", said(&text));
    }
    let set_said = |key: &str, value: &str| problems(SMALL, &[(key, value)]).remove(0);
    assert!(set_said("duration", "60").contains("`duration = \"60s\"`"), "{}", set_said("duration", "60"));
    assert_eq!(set(SMALL, &[("duration", "60s")]).duration, Time::secs(60));
    assert!(set_said("topology.bottleneck.rate", "1e9").contains("`rate = \"1Gbit/s\"` (1000000000bit/s)"));
}
