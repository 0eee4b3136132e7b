//! Quantities, counts and sums that no run could carry out.

use super::{cases, check, plus, with};

#[test]
fn quantities() {
    cases(vec![
        (with(2, "duration = 10"), 2, vec![":2:12:", "`duration` is a time and needs a unit", "`duration = \"10s\"`"]),
        (with(2, "duration = \"10\""), 2, vec!["needs a unit", "`duration = \"10s\"`"]),
        (with(2, "duration = \"10sec\""), 2, vec!["there is no unit `sec`", "units: s, ms, us, ns, min"]),
        (with(2, "duration = \"-1s\""), 2, vec!["is negative"]),
        (with(2, "duration = \"1e30 s\""), 2, vec!["`1e30 s` is too long", "100000000s"]),
        (with(2, "duration = \"1e999s\""), 2, vec!["not a finite number"]),
        (with(2, "duration = nan"), 2, vec!["`duration` is a time, like \"80ms\", not nan"]),
        (with(2, "duration = \"nan s\""), 2, vec!["is not a time"]),
        (with(2, "duration = true"), 2, vec!["`duration` is a time, like \"80ms\", not true or false"]),
        (with(2, "duration = \"0s\""), 2, vec!["at least 1us"]),
        (with(2, "duration = 1979-05-27"), 2, vec!["not a date"]),
        (with(6, "bottleneck = { rate = \"0Mbit/s\" }"), 6, vec!["`0Mbit/s` is out of range", "10bit/s"]),
        (with(6, "bottleneck = { rate = \"-5Mbit/s\" }"), 6, vec!["is negative"]),
        (
            with(6, "bottleneck = { rate = \"5mbit/s\" }"),
            6,
            vec!["there is no unit `mbit/s`", "did you mean \"5Mbit/s\"?"],
        ),
        // A hint never changes the quantity.
        (with(6, "bottleneck = { rate = \"5Mb/s\" }"), 6, vec!["did you mean \"5Mbit/s\"?"]),
        (with(6, "bottleneck = { rate = \"5Kb/s\" }"), 6, vec!["did you mean \"5kbit/s\"?"]),
        (with(6, "bottleneck = { rate = \"5mB/s\" }"), 6, vec!["did you mean \"5MB/s\"?"]),
        (with(6, "bottleneck = { rate = \"5Mibit/s\" }"), 6, vec!["no unit `Mibit/s`; write it like"]),
        (with(2, "duration = \"1h\""), 2, vec!["there is no unit `h`; write it like \"80ms\" (units: s, ms"]),
        (with(2, "duration = \"1m\""), 2, vec!["there is no unit `m`; write it like"]),
        (with(6, "bottleneck = { rate = 5e6 }"), 6, vec!["needs a unit", "Mbit/s"]),
    ]);
}

#[test]
fn packets() {
    cases(vec![
        (
            with(10, "packet = \"0B\""),
            10,
            vec!["`packet` is 0", "from 73B (72 bytes of headers and one of payload) to 65535B"],
        ),
        (with(10, "packet = \"72B\""), 10, vec!["`packet` is 72B", "from 73B"]),
        (with(10, "packet = \"65536B\""), 10, vec!["to 65535B"]),
        (with(10, "packet = \"999.5B\""), 10, vec!["a whole number"]),
        (with(10, "packet = 1000"), 10, vec!["`packet = \"1000B\"`"]),
    ]);
}

#[test]
fn counts() {
    cases(vec![
        (with(1, "runs = 0"), 1, vec!["`runs` is a whole number from 1 to 1000000, not 0"]),
        (with(1, "runs = 2.0"), 1, vec!["`runs` is a whole number from 1 to 1000000, not 2.0"]),
        (with(1, "seed = -1"), 1, vec!["`seed` is a whole number from 0"]),
        (with(1, "seed = \"1\""), 1, vec!["without quotes"]),
        (with(1, "runs = 3\nseed = 9223372036854775806"), 2, vec!["for 3 of them it is at most 9223372036854775805"]),
        (with(5, "pairs = 1000001"), 5, vec!["from 1 to 1000000, not 1000001"]),
        (plus("count = 1.5"), 11, vec!["`count` is a whole number", "not 1.5"]),
        (plus("count = 0"), 11, vec!["from 1 to 1000000000"]),
    ]);
    let lot = with(4, "kind = \"parking_lot\"\ncross = 1000000\nhops = 1000").replace("bottleneck", "link");
    check(&[(&lot, 3, &["more than 1000000 pairs of hosts"])]);
}

#[test]
fn absurd_sums() {
    let fat = with(6, "bottleneck = { rate = \"100Gbit/s\" }").replace("10s", "90000000s");
    check(&[(&fat, 2, &["a run would move about", "shorten `duration`"])]);
    let fine = plus("[sampling]\nevery = \"1us\"").replace("\"10s\"", "\"1000s\"");
    check(&[(&fine, 11, &["rows; lengthen `every`"])]);
}
