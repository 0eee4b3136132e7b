//! Every message: where it points, what it says, what it suggests.

mod support;

use support::{SMALL, problems};

/// Asserts that each text gives exactly one problem at `line`, which contains all of `parts`.
fn check(cases: &[(&str, usize, &[&str])]) {
    for (text, line, parts) in cases {
        let found = problems(text, &[]);
        assert_eq!(found.len(), 1, "one problem in\n{text}\n{found:#?}");
        let start = format!("x.toml:{line}:");
        assert!(found[0].starts_with(&start), "line {line} of\n{text}\n{found:#?}");
        for part in *parts {
            assert!(found[0].contains(part), "`{part}` is missing from\n{}\n{text}", found[0]);
        }
    }
}

/// `SMALL` with a line replaced.
fn with(line: usize, text: &str) -> String {
    SMALL.lines().enumerate().map(|(i, l)| format!("{}\n", if i + 1 == line { text } else { l })).collect()
}

/// `SMALL` with lines at its end, inside `[[flows]]`; the first is line 11.
fn plus(text: &str) -> String {
    format!("{SMALL}{text}\n")
}

fn cases(cases: Vec<(String, usize, Vec<&str>)>) {
    for (text, line, parts) in &cases {
        check(&[(text, *line, parts)]);
    }
}

#[test]
fn the_small_scenario_is_good() {
    assert_eq!(problems(SMALL, &[]), Vec::<String>::new());
}

#[test]
fn keys() {
    cases(vec![
        (with(2, "duraton = \"10s\""), 2, vec![":2:1:", "unknown key `duraton`", "did you mean `duration`?"]),
        (with(5, "pears = 2"), 5, vec!["unknown key `pears` in [topology]", "did you mean `pairs`?"]),
        (
            with(6, "bottleneck = { rate = \"10Mbit/s\", delya = \"20ms\" }"),
            6,
            vec![":6:35:", "unknown key `delya` in [topology.bottleneck]", "did you mean `delay`?"],
        ),
        (plus("zzzzzzzz = 1"), 11, vec!["unknown key `zzzzzzzz` in [[flows]] `one`", "there are name, count"]),
        (with(8, "# no name"), 7, vec!["[[flows]] number 1 needs `name`"]),
        (with(9, "# no protocol"), 7, vec!["[[flows]] `one` needs `protocol`"]),
        (with(4, "kind = \"dumbell\""), 4, vec!["`kind` cannot be `dumbell`", "did you mean `dumbbell`?"]),
        (
            with(4, "kind = \"star\"").replace("bottleneck", "link"),
            5,
            vec!["`pairs` has no meaning in a star; its keys are kind, hosts, link"],
        ),
        (with(5, "hops = 2"), 5, vec!["`hops` has no meaning in a dumbbell"]),
        (with(3, "[[topology]]"), 3, vec!["[topology] has to be a table", "not a list"]),
        (with(7, "[flows]"), 7, vec!["write [[flows]] with two brackets"]),
        (plus("[link]\nname = \"r1->r2\""), 11, vec!["write [[link]] with two brackets"]),
        (with(1, "name = 5"), 1, vec!["`name` is a text in quotes, not a number"]),
        (with(1, "name = \"\""), 1, vec!["a name has 1 to 200 bytes"]),
        (
            plus("[sampling]\nof = [\"queue\", \"thruput\"]"),
            12,
            vec!["`of` cannot be `thruput`", "did you mean `throughput`?"],
        ),
        (plus("[sampling]\nof = \"queue\""), 12, vec!["`of` is a list of words"]),
        (plus("[sampling]\nevery = \"0s\""), 12, vec!["at least 1us"]),
    ]);
}

#[test]
fn toml_itself() {
    let found = problems("name = \"x\nduration = 5\n", &[]);
    assert!(found[0].starts_with("x.toml:1:") && found[0].contains("not TOML"), "{found:?}");
    let found = problems(&format!("{SMALL}name = \"two\"\n"), &[]);
    assert!(found[0].starts_with("x.toml:11:1: not TOML: duplicate key"), "{found:?}");
    let found = problems("", &[]);
    assert_eq!(found, ["x.toml:1:1: there are no flows; add a [[flows]] with `name` and `protocol`"]);
}

#[test]
fn quantities() {
    cases(vec![
        (with(2, "duration = 10"), 2, vec![":2:12:", "`duration` is a time and needs a unit", "`duration = \"10ms\"`"]),
        (with(2, "duration = \"10\""), 2, vec!["`10` has no unit", "\"80ms\""]),
        (with(2, "duration = \"10sec\""), 2, vec!["there is no unit `sec`", "units: s, ms, us, ns, min"]),
        (with(2, "duration = \"-1s\""), 2, vec!["is negative"]),
        (with(2, "duration = \"1e30 s\""), 2, vec!["`1e30 s` is too long", "100000000s"]),
        (with(2, "duration = \"1e999s\""), 2, vec!["not a finite number"]),
        (with(2, "duration = nan"), 2, vec!["needs a unit"]),
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
fn names_and_routes() {
    let two = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"c\"\n";
    let link = "[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    let flow = "[[flows]]\nname = \"f\"\nprotocol = \"xcp/reno\"\n";
    let explicit = |middle: &str, end: &str| format!("{two}{link}{middle}{flow}{end}\n");
    cases(vec![
        (
            explicit("[[node]]\nname = \"a\"\n", "from = \"a\"\nto = \"b\""),
            11,
            vec!["a node called `a` exists already"],
        ),
        (explicit("[[link]]\nfrom = \"a\"\nto = \"a\"\n", ""), 12, vec!["goes from `a` to `a`", "another node"]),
        (explicit("[[link]]\nfrom = \"a\"\nto = \"x\"\n", ""), 12, vec!["`to`: no node is called `x`"]),
        (explicit("[[link]]\nfrom = \"a\"\nto = \"b\"\n", ""), 10, vec!["a link called `a->b` exists already"]),
        (explicit("[[link]]\nname = \"a->c\"\n", ""), 11, vec!["no link is called `a->c`", "did you mean `a->b`?"]),
        (explicit("[[link]]\nrate = \"1Mbit/s\"\n", ""), 10, vec!["needs `from` and `to` (a new link) or the `name`"]),
        (explicit("[[link]]\nfrom = \"a\"\n", ""), 10, vec!["needs `to`"]),
        (explicit("", ""), 10, vec!["flows need `from` and `to`"]),
        (explicit("", "from = \"a\""), 13, vec!["`from` and `to` go together"]),
        (explicit("", "from = \"a\"\nto = \"a\""), 14, vec!["a flow goes from `a` to `a`"]),
        (explicit("", "from = \"a\"\nto = \"q\""), 14, vec!["`to`: no node is called `q`"]),
        (explicit("", "from = \"a\"\nto = \"b\""), 10, vec!["no route from `a` to `b` and back", "duplex = true"]),
        (explicit("", "from = [\"a\", \"b\"]\nto = [\"b\", \"c\", \"a\"]"), 14, vec!["2 and 3 nodes"]),
        (explicit("", "path = [\"a\", \"b\", \"a\"]"), 13, vec!["visits `a` twice"]),
        (explicit("", "path = [\"a\", \"c\"]"), 13, vec!["no link leads from `a` to `c`"]),
        (explicit("", "path = [\"a\"]"), 13, vec!["at least two nodes"]),
        (explicit("", "path = \"long\"\nfrom = \"a\""), 13, vec!["exclude each other"]),
        (plus("path = \"lung\""), 11, vec!["no path is called `lung`", "long, reverse"]),
        (plus("[[flows]]\nname = \"one\"\nprotocol = \"xcp/reno\""), 11, vec!["two groups of flows are called `one`"]),
        (plus("from = \"s0\"\nto = \"d9\""), 12, vec!["no node is called `d9`", "did you mean `d0`?"]),
    ]);
}

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
        (plus("params = { on_loss = \"half\" }"), 11, vec!["`on_loss` cannot be `half`", "did you mean `halve`?"]),
        (plus("params = { ecn = 1 }"), 11, vec!["`ecn` is true or false"]),
        (plus("params = { aging = \"150%\" }"), 11, vec!["`aging` is 1.5", "from 0 to 1"]),
        (plus("params = { aging = \"a lot\" }"), 11, vec!["is not a ratio", "\"1%\""]),
        (plus("params = { initial_window = \"3kB\" }"), 11, vec!["is not a number of packets", "\"50pkt\""]),
        (plus("params = 5"), 11, vec!["`params` is a table"]),
        (plus("paced = true\nparams = { paced = false }"), 11, vec!["set twice"]),
        (plus("start = { spread = \"1s\", uniform = \"1s\" }"), 11, vec!["one of `at`, `spread` and `uniform`"]),
        (plus("processing = \"nnoe\""), 11, vec!["`processing` cannot be `nnoe`", "did you mean `none`?", "0.8ms"]),
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

#[test]
fn fading() {
    let with = |params: &str| with(6, &format!("bottleneck = {{ channel = [{{ kind = \"fading\", {params} }}] }}"));
    cases(vec![
        (with("snr = \"20\""), 6, vec!["`20` is not a ratio in decibels", "\"20dB\""]),
        (with("snr = true"), 6, vec!["`snr` is a ratio in decibels"]),
        (with("snr = \"120dB\""), 6, vec!["`snr` is \"120dB\"; it has to be from \"-40dB\" to \"100dB\""]),
        (with("antennas = \"3x1\""), 6, vec!["`antennas` cannot be `3x1`"]),
        (with("fec_data = 0"), 6, vec!["`fec_data` is 0; it has to be from 0.25 to 1"]),
        (with("points = 6"), 6, vec!["`points` (6) is a power of two"]),
        (with("points = 8"), 6, vec!["has to be a multiple of the 3 bits that 8 points carry"]),
        (with("symbol_bits = 16"), 6, vec!["blocks of 255 are of one-byte symbols"]),
    ]);
}

#[test]
fn links() {
    let bottleneck = |props: &str| with(6, &format!("bottleneck = {{ {props} }}"));
    cases(vec![
        (
            bottleneck("queue = \"drptail\""),
            6,
            vec!["no queue discipline is called `drptail`", "did you mean `droptail`?"],
        ),
        (bottleneck("queue = 5"), 6, vec!["`queue` is \"unlimited\"", "not a number"]),
        (bottleneck("queue = { limit = 5 }"), 6, vec!["needs a unit", "\"50pkt\" or \"1.0bdp\""]),
        (bottleneck("queue = { limit = \"5pkts\" }"), 6, vec!["there is no unit `pkts`", "did you mean \"5pkt\"?"]),
        (bottleneck("queue = { limit = \"-1bdp\" }"), 6, vec!["negative"]),
        (
            bottleneck("queue = { limits = \"1bdp\" }"),
            6,
            vec!["unknown parameter `limits` of queue `droptail`", "`limit`?"],
        ),
        (bottleneck("queue = { kind = 1 }"), 6, vec!["`kind` is a text"]),
        (bottleneck("router = \"xpc\""), 6, vec!["no protocol with a router is called `xpc`", "did you mean `xcp`?"]),
        (bottleneck("router = \"reno\""), 6, vec!["no protocol with a router is called `reno`"]),
        (bottleneck("router = { gamma = 0 }"), 6, vec!["`router` needs `kind`", "xcp"]),
        (
            bottleneck("router = { kind = \"xcp\", gama = 0 }"),
            6,
            vec!["unknown parameter `gama` of router `xcp`", "`gamma`?"],
        ),
        (bottleneck("router = { kind = \"xcp\", gamma = 2 }"), 6, vec!["`gamma` is 2; it has to be from 0 to 1"]),
        (bottleneck("router = { kind = \"xcp\", alpha = nan }"), 6, vec!["`alpha` is a number, not nan"]),
        (bottleneck("router = false"), 6, vec!["`router` is \"auto\""]),
        (bottleneck("capacity = 5"), 6, vec!["needs a unit"]),
        (bottleneck("channel = { kind = \"random_loss\" }"), 6, vec!["put it in square brackets"]),
        (bottleneck("channel = [{ rate = \"1%\" }]"), 6, vec!["a channel is a table with `kind`", "random_loss"]),
        (bottleneck("channel = [{ kind = \"rndom_loss\" }]"), 6, vec!["did you mean `random_loss`?"]),
        (
            bottleneck("channel = [{ kind = \"random_loss\", rate = \"101%\" }]"),
            6,
            vec!["`rate` is 1.01", "from 0 to 1"],
        ),
        (bottleneck("channel = [{ kind = \"trace\" }]"), 6, vec!["channel `trace` needs `file`"]),
        (bottleneck("channel = [{ kind = \"rate_steps\" }]"), 6, vec!["channel `rate_steps` needs `steps`"]),
        (
            bottleneck("channel = [{ kind = \"rate_steps\", steps = [] }]"),
            6,
            vec!["`steps` is a list of 1 to 100000 steps"],
        ),
        (
            bottleneck("channel = [{ kind = \"rate_steps\", steps = [{ at = \"0s\", rate = \"0bit/s\" }] }]"),
            6,
            vec!["would rest for ever", "`period`"],
        ),
        (
            bottleneck("channel = [{ kind = \"rate_steps\", steps = [{ at = \"1s\", rate = \"1Mbit/s\" }] }]"),
            6,
            vec!["the first of `steps` has to be at \"0s\""],
        ),
        (
            bottleneck("channel = [{ kind = \"rate_steps\", steps = [{ at = \"0s\" }] }]"),
            6,
            vec!["a step of `steps` needs `rate`"],
        ),
        (
            bottleneck("channel = [\"outages\", \"outages\"]"),
            6,
            vec!["`outages` and `outages` both set the link's rate"],
        ),
        (
            bottleneck("channel = [{ kind = \"gilbert_elliott\", good_time = \"2s\" }]"),
            6,
            vec!["`good_time` and `bad_time` belong to the clock \"time\""],
        ),
        (
            bottleneck("channel = [{ kind = \"burst_loss\", length = 1.5 }]"),
            6,
            vec!["`length` is 1.5; it has to be a whole number"],
        ),
        (bottleneck("capacity = true"), 6, vec!["`capacity` is a rate", "{ factor = 1.2 }"]),
        (bottleneck("capacity = { factor = 0 }"), 6, vec!["`factor` is a number from 0.001 to 1000"]),
        (bottleneck("capacity = { factor = 1, at = \"1s\" }"), 6, vec!["unknown key `at` in `capacity`"]),
        (
            bottleneck("capacity = [{ at = \"1s\", factor = 1.0 }, { at = \"1s\", factor = 2.0 }]"),
            6,
            vec!["have to be in order"],
        ),
        (bottleneck("capacity = [{ at = \"1s\" }]"), 6, vec!["either a `rate` or a `factor`"]),
        (
            plus(
                "from = \"r1\"\nto = \"s0\"\n[[node]]\nname = \"x\"\n[[link]]\nfrom = \"r1\"\nto = \"x\"\nhalf_duplex = true",
            ),
            15,
            vec!["the link `r1->x` says `half_duplex`, but no link leads back"],
        ),
        (bottleneck("channel = [{ kind = \"trace\", file = \"no.such\" }]"), 6, vec!["cannot read `no.such`"]),
        (bottleneck("delay = { from = \"1ms\", to = \"2ms\" }"), 6, vec!["for the `access` links"]),
    ]);
    check(&[(&with(6, "access = { delay = { from = \"1ms\" } }"), 6, &["`delay` needs `to`"])]);
}

#[test]
fn traces() {
    let folder = std::env::temp_dir().join(format!("explicate-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = with(6, "bottleneck = { channel = [{ kind = \"trace\", file = \"t\" }] }");
    let cases: &[(&[u8], &str)] = &[
        (b"", "`t` is empty"),
        (b"0\n0\n", "ends at 0 ms"),
        (b"1\n\n3\n", "t:2:1: an empty line; remove it"),
        (b"# by hand\n1\n", "t:1:1: a trace has no comments; remove the line"),
        (b"1\n5\n4\n", "t:3:1: 4 comes after 5; sort the lines"),
        (b"1\nabc\n", "t:2:1: `abc` is not a whole number of milliseconds"),
        (b"1.5\n", "t:1:1: `1.5` is not a whole number"),
        (b"-1\n", "t:1:1: `-1` is not a whole number"),
        (b"\xff\xfe\n", "`t` is not text"),
    ];
    for (contents, part) in cases {
        std::fs::write(folder.join("t"), contents).unwrap();
        let problems = explicate_scenario::model::Scenario::parse(&text, "x.toml", &folder, &[]).err().unwrap();
        assert_eq!(problems.0.len(), 1, "{problems}");
        let shown = problems.to_string();
        assert!(shown.starts_with("x.toml:6:") && shown.contains(part), "`{part}`: {shown}");
    }
    std::fs::write(folder.join("t"), "1\n2\n2\n4\n").unwrap();
    let s = explicate_scenario::model::Scenario::parse(&text, "x.toml", &folder, &[]).unwrap_or_else(|e| panic!("{e}"));
    let link = support::link(&s, "r1->r2");
    assert_eq!(link.channel[0].values.file.as_deref(), Some(&[1, 2, 2, 4][..]));
    assert_eq!(link.rate.0, 12_000_000);
    assert_eq!(link.capacity, link.rate);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn absurd_sums() {
    let fat = with(6, "bottleneck = { rate = \"100Gbit/s\" }").replace("10s", "90000000s");
    check(&[(&fat, 2, &["a run would move about", "shorten `duration`"])]);
    let fine = plus("[sampling]\nevery = \"1us\"").replace("\"10s\"", "\"1000s\"");
    check(&[(&fine, 11, &["rows; lengthen `every`"])]);
}

#[test]
fn many_at_once_in_order() {
    let text = SMALL.replace("duration", "duratoin").replace("pairs", "pears").replace("packet", "pakcet");
    let lines: Vec<String> = problems(&text, &[]).iter().map(|p| p.split(": ").next().unwrap().to_string()).collect();
    assert_eq!(lines, ["x.toml:2:1", "x.toml:5:1", "x.toml:10:1"]);
}

#[test]
fn warnings() {
    let warning = |text: &str| {
        let s = support::parse(text);
        assert_eq!(s.warnings.len(), 1, "{:?}", s.warnings);
        s.warnings[0].clone()
    };
    assert!(warning(&with(1, "warmup = \"10s\"")).contains("nothing is measured"));
    // Times are said as they were written: 15 s are no 15.000000000000002.
    assert!(warning(&with(1, "warmup = \"15s\"")).contains("the warmup (15s) is not shorter than"));
    let tiny = with(6, "bottleneck = { queue = { limit = \"500B\" } }");
    assert!(warning(&tiny).starts_with("the buffer of r1->r2 is shorter than one packet"));
    let other = with(6, "bottleneck = { router = \"vcp\" }");
    assert_eq!(warning(&other), "the flows of `one` use xcp, but no xcp router runs on r1->r2");
    assert!(warning(&plus("start = \"10s\"")).contains("start after the end"));
    assert!(warning(&plus("start = \"5s\"\nstop = \"5s\"")).contains("stop before they start"));
}

/// Protocols may share a controller; a port has one.
#[test]
fn flows_that_want_different_controllers() {
    let beside = |protocol: &str| support::parse(&plus(&format!("[[flows]]\nname = \"two\"\nprotocol = {protocol:?}")));
    for protocol in ["xcp_r", "video", "greedy", "cubic"] {
        let s = beside(protocol);
        let names: Vec<&str> = s.links[0].routers.iter().map(|r| r.protocol.name()).collect();
        assert_eq!((names, s.warnings.len()), (vec!["xcp"], 0), "{protocol}");
    }
    let torn = beside("xcp_window").warnings;
    let said = "a port has one router, but flows need xcp and xcp_window on ";
    assert!(torn.len() == 1 && torn[0].starts_with(said) && torn[0].ends_with(": xcp runs"), "{torn:?}");
}

/// What measures clouds is the router's, not a port's.
#[test]
fn ports_that_want_their_router_to_measure_differently() {
    let warnings = |estimator: &str| {
        let link = |name: &str, estimator: &str| {
            format!(
                "[[link]]\nname = {name:?}\nrouter = {{ kind = \"xcp_i\", estimator = {estimator:?}, alpha = 0.3 }}\n"
            )
        };
        support::parse(&plus(&(link("r1->r2", "spruce") + &link("r1->s0", estimator)))).warnings
    };
    let said =
        "`r1` has one agent for all its ports, but r1->r2 and r1->s0 differ in `estimator` of xcp_i: r1->r2 goes";
    assert!(warnings("packet_train").iter().any(|w| w == said), "{:?}", warnings("packet_train"));
    assert!(!warnings("spruce").iter().any(|w| w.contains("agent")));
    let one =
        with(6, "bottleneck = { router = { kind = \"xcp_i\", estimator = \"spruce\" } }").replace("xcp/", "xcp_i/");
    assert!(!support::parse(&one).warnings.iter().any(|w| w.contains("agent")), "the others say nothing");
    // Nor does the first port: what the second names counts.
    let second = "[[link]]\nname = \"r1->s0\"\nrouter = { kind = \"xcp_i\", estimator = \"spruce\" }\n";
    let second = plus(second).replace("xcp/", "xcp_i/");
    assert!(!support::parse(&second).warnings.iter().any(|w| w.contains("agent")));
}

#[test]
fn classes() {
    let bad = |classes: &str| with(6, &format!("bottleneck = {{ classes = {classes} }}"));
    cases(vec![
        (bad("\"two\""), 6, vec![":6:26:", "`classes` is a list of tables", "match = \"explicit\"", "not a text"]),
        (bad("[1]"), 6, vec!["`classes` has to be a table (keys: match, queue, router, weight), not a number"]),
        (bad("[{ weight = 1 }]"), 6, vec!["`classes` needs `match`"]),
        (bad("[{ match = \"explict\" }]"), 6, vec!["`match` cannot be `explict`", "did you mean `explicit`?"]),
        (bad("[{ match = \"other\", wieght = 1 }]"), 6, vec!["unknown key `wieght`", "did you mean `weight`?"]),
        (bad("[{ match = \"explicit\" }]"), 6, vec!["a packet that no entry matches", "{ match = \"other\" }"]),
        (bad("[{ match = \"other\" }, { match = \"other\" }]"), 6, vec![":6:48:", "two entries match `other`"]),
        (bad("[{ match = \"other\", weight = 0 }]"), 6, vec!["`weight` is a number from 0.001 to 1000, not 0"]),
        (bad("[{ match = \"other\", weight = \"2\" }]"), 6, vec!["`weight` is a number", "not \"2\""]),
        (bad("[{ match = \"other\", queue = \"rde\" }]"), 6, vec!["no queue discipline is called `rde`"]),
        (bad("[{ match = \"other\", router = \"xpc\" }]"), 6, vec!["no protocol with a router is called `xpc`"]),
    ]);
    cases(vec![
        (with(6, "bottleneck = { kappa = 0.1 }"), 6, vec!["`kappa` moves the weights of two `classes`"]),
        (with(6, "bottleneck = { kappa = 2 }"), 6, vec!["`kappa` is a number from 0 to 1, not 2"]),
        (
            with(6, "bottleneck = { share_by_flows = true, classes = [{ match = \"other\" }] }"),
            6,
            vec!["`share_by_flows` makes its own classes"],
        ),
    ]);
    let sets = [("topology.bottleneck.classes.other.weight", "2")];
    assert!(problems(SMALL, &sets)[0].contains("there is no `classes` here to change; set the whole list"));
    let other =
        with(6, "bottleneck = { classes = [{ match = \"explicit\", router = \"vcp\" }, { match = \"other\" }] }");
    let warnings = support::parse(&other).warnings;
    assert_eq!(warnings, ["the flows of `one` use xcp, but no xcp router runs on r1->r2"]);
}

#[test]
fn changes_of_routes_and_bridges() {
    let reroute = |text: &str| plus(&format!("[[reroute]]\n{text}"));
    cases(vec![
        (reroute("at = \"5s\""), 11, vec!["[[reroute]] needs `without`"]),
        (reroute("without = []"), 11, vec!["[[reroute]] needs `at`"]),
        (reroute("at = \"5s\"\nwithout = \"r1->r2\""), 13, vec!["`without` is a list of names of links"]),
        (reroute("at = \"5s\"\nwithout = [\"r1->r3\"]"), 13, vec!["no link is called `r1->r3`", "did you mean"]),
        (reroute("at = \"0s\"\nwithout = []"), 11, vec!["in order of time"]),
        (reroute("at = \"5s\"\nwithout = [\"r1->r2\"]"), 7, vec!["no route from `s0` to `d0`", "[[reroute]] number 1"]),
        (plus("[reroute]\nat = \"5s\""), 11, vec!["write [[reroute]] with two brackets"]),
        (with(3, "[[node]]\nname = \"x\"\nkind = \"brige\"\n[topology]"), 5, vec!["did you mean `bridge`?"]),
    ]);
    let bridged = |link: &str, flow: &str| {
        format!(
            "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\nkind = \"bridge\"\n[[node]]\nname = \"c\"\n[[link]]\nfrom = \"a\"\n\
             to = \"b\"\nduplex = true\n[[link]]\nfrom = \"b\"\nto = \"c\"\nduplex = true\n{link}\n[[flows]]\nname = \"f\"\n\
             protocol = \"reno\"\n{flow}\n"
        )
    };
    let through = "from = \"a\"\nto = \"c\"";
    assert_eq!(problems(&bridged("", through), &[]), Vec::<String>::new());
    cases(vec![
        (bridged("router = \"xcp\"", through), 12, vec!["`b` is a bridge and has no controllers"]),
        (bridged("", "from = \"a\"\nto = \"b\""), 17, vec!["`b` is a bridge, where no flow begins or ends"]),
    ]);
}
