//! Flows and their sessions.

use super::{cases, plus, with};

#[test]
fn flows() {
    cases(vec![
        (with(9, "protocol = \"xcp/renno\""), 9, vec!["no recovery is called `renno`", "did you mean `xcp/reno`?"]),
        (with(9, "protocol = \"xpc\""), 9, vec!["no protocol is called `xpc`", "there are", "did you mean `xcp`?"]),
        (
            plus("params = { min_rtt = \"1s\" }"),
            11,
            vec!["unknown parameter `min_rtt` of xcp/reno", "did you mean `min_rto`?"],
        ),
        (plus("params = { min_rto = 1 }"), 11, vec!["`min_rto` is a time and needs a unit"]),
        (plus("params = { min_rto = \"100s\" }"), 11, vec!["`min_rto` is \"100s\"", "from \"1us\" to \"60s\""]),
        (
            plus("params = { rto = \"ns2_timestamp\" }"),
            11,
            vec!["`rto` cannot be `ns2_timestamp`", "did you mean `ns2_timestamps`?"],
        ),
        (plus("params = { on_loss = \"half\" }"), 11, vec!["`on_loss` cannot be `half`", "did you mean `halve`?"]),
        (plus("params = { ecn = 1 }"), 11, vec!["`ecn` is true or false"]),
        (plus("params = { aging = \"150%\" }"), 11, vec!["`aging` is 1.5", "from 0 to 1"]),
        (plus("params = { aging = \"a lot\" }"), 11, vec!["is not a ratio", "\"1%\""]),
        (plus("params = { initial_window = \"3kB\" }"), 11, vec!["is not a number of packets", "\"50pkt\""]),
        (plus("params = 5"), 11, vec!["`params` is a table"]),
        (plus("paced = true\nparams = { paced = false }"), 11, vec!["set twice"]),
        (plus("start = { spread = \"1s\", uniform = \"1s\" }"), 11, vec!["one of `at`, `spread` and `uniform`"]),
        (
            plus("processing = \"nnoe\""),
            11,
            vec!["`processing` cannot be `nnoe`, only a word or a time like \"0.8ms\"; did you mean `none`?"],
        ),
        (plus("processing = \"2s\""), 11, vec!["`processing` time has to be at most 1s"]),
        (plus("processing = 1"), 11, vec!["`processing` is a time and needs a unit"]),
        (plus("processing = true"), 11, vec!["`processing` is a time"]),
        (plus("start = { spraed = \"1s\" }"), 11, vec!["did you mean `spread`?"]),
        (plus("arrivals = 5"), 11, vec!["`arrivals = \"5/s\"`"]),
        (plus("arrivals = \"5/s\"\nstart = { spread = \"1s\" }"), 11, vec!["`arrivals` determines when flows start"]),
        (plus("arrivals = \"0/s\""), 11, vec!["from 1e-9/s"]),
        (plus("arrivals = \"1e9/s\""), 7, vec!["flows arrive; lower `arrivals`"]),
        (plus("size = \"1MB\"\non_off = { on = \"1s\", off = \"1s\" }"), 12, vec!["exclude each other"]),
        (plus("size = \"0B\""), 11, vec!["from 1B"]),
        (plus("size = { distribution = \"pareto\" }"), 11, vec!["needs `mean`"]),
        (plus("size = { mean = \"1kB\", distribution = \"paretto\" }"), 11, vec!["did you mean `pareto`?"]),
        (plus("size = { mean = \"1kB\", distribution = \"pareto\", shape = 1 }"), 11, vec!["greater than 1"]),
        (plus("size = { mean = \"1kB\", shape = 2 }"), 11, vec!["`shape` belongs to the distribution \"pareto\""]),
        (plus("on_off = { on = \"1s\" }"), 11, vec!["needs `off`"]),
        (plus("on_off = { on = \"0s\", off = \"1s\" }"), 11, vec!["at least 1us"]),
    ]);
}

#[test]
fn sessions() {
    cases(vec![
        (
            plus("session = { pause = { from = \"2s\", to = \"1s\" } }"),
            11,
            vec!["the shortest pause, `from`, is longer than `to`"],
        ),
        (plus("session = { pause = \"0s\" }"), 11, vec!["has to be at least 1ms"]),
        (plus("session = { timeouts = 0 }"), 11, vec!["`timeouts` is a whole number from 1"]),
        (plus("session = { random = true }"), 11, vec!["`random` needs the `duration`"]),
        (plus("session = { puase = \"1s\" }"), 11, vec!["unknown key `puase`", "did you mean `pause`?"]),
        (plus("size = \"1MB\"\nsession = {}"), 12, vec!["`size` and `session` exclude each other"]),
    ]);
}
