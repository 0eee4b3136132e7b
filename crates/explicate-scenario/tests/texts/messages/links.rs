//! Links: queues, routers, channels, traces and classes.

use super::{cases, check, plus, with};
use crate::support::{self, SMALL, problems};

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
        (
            bottleneck("queue = { limit = 5 }"),
            6,
            vec!["needs a unit", "\"5pkt\" (packets), \"5B\" (bytes) or \"5bdp\""],
        ),
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
        (bottleneck("router = { kind = \"auto\" }"), 6, vec!["`auto` takes no parameters; write `router = \"auto\"`"]),
        (
            bottleneck("queue = { kind = \"unlimited\" }"),
            6,
            vec!["`unlimited` takes no parameters; write `queue = \"unlimited\"`"],
        ),
        (bottleneck("router = { gamma = 0 }"), 6, vec!["`router` needs `kind`", "xcp"]),
        (
            bottleneck("router = { kind = \"xcp\", gama = 0 }"),
            6,
            vec!["unknown parameter `gama` of router `xcp`", "`gamma`?"],
        ),
        (bottleneck("router = { kind = \"xcp\", gamma = 2 }"), 6, vec!["`gamma` is 2; it has to be from 0 to 1"]),
        (bottleneck("router = { kind = \"xcp\", alpha = nan }"), 6, vec!["`alpha` is a number, not nan"]),
        (bottleneck("router = false"), 6, vec!["`router` is \"auto\""]),
        (bottleneck("scone = \"fair\""), 6, vec!["`scone` is { advise = \"45Mbit/s\" }", "not a text"]),
        (bottleneck("scone = {}"), 6, vec!["`scone` needs `advise`"]),
        (
            bottleneck("scone = { advise = \"fair\", every = \"5s\" }"),
            6,
            vec!["unknown key `every` in `scone`", "there are advise"],
        ),
        (
            bottleneck("scone = { advise = \"fiar\" }"),
            6,
            vec!["`advise` is a rate like \"45Mbit/s\", \"fair\" or \"measured\", not `fiar`", "did you mean `fair`?"],
        ),
        (bottleneck("scone = { advise = 45 }"), 6, vec!["`advise` is a rate and needs a unit"]),
        (
            bottleneck("scone = { advise = \"99kbit/s\" }"),
            6,
            vec!["`advise` is 99kbit/s", "SCONE's rates go from 100kbit/s to 199.5Gbit/s"],
        ),
        (bottleneck("scone = { advise = \"200Gbit/s\" }"), 6, vec!["`advise` is 200Gbit/s", "to 199.5Gbit/s"]),
        (
            bottleneck("scone = { advise = \"fair\" }, router = \"none\""),
            6,
            vec![
                "`advise = \"fair\"` needs a router that divides the line",
                "r1->r2 has no router",
                "or advise \"measured\"",
            ],
        ),
        (
            bottleneck("scone = { advise = \"fair\" }, router = \"vcp\""),
            6,
            vec!["the vcp router of r1->r2 does not", "write `router = \"rcp\"` or \"xcp\""],
        ),
        (
            bottleneck(
                "scone = { advise = \"fair\" }, router = \"xcp\", classes = [{ match = \"other\", router = \"none\" }]",
            ),
            6,
            vec!["r1->r2 has no router in its class `other`"],
        ),
        (
            bottleneck("scone = { advise = \"fair\" }, router = \"xcp\", share_by_flows = true"),
            6,
            vec!["r1->r2 has a queue without a router, by `share_by_flows`"],
        ),
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
            vec!["would never send again", "`period`"],
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
        (bottleneck("capacity = {}"), 6, vec!["`capacity` has either a `factor` or `measured`"]),
        (bottleneck("capacity = { factor = 1, window = \"1s\" }"), 6, vec!["`window` belongs to `measured`"]),
        (bottleneck("capacity = { measured = \"airtime\" }"), 6, vec!["`measured`", "`air_time`"]),
        (
            bottleneck("capacity = { measured = \"air_time\", window = \"1us\" }"),
            6,
            vec!["`window` is a time from 1ms to 100s"],
        ),
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
fn fading() {
    let with = |params: &str| with(6, &format!("bottleneck = {{ channel = [{{ kind = \"fading\", {params} }}] }}"));
    cases(vec![
        (with("snr = \"20\""), 6, vec!["`snr` is a ratio in decibels", "write `snr = 20`, without quotes"]),
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
        (b"1\n99999999999999\n", "t:2:1: `99999999999999` is too large; a trace has at most 100000000000 milliseconds"),
        (b"99999999999999999999999\n", "t:1:1: `99999999999999999999999` is too large"),
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
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(
        warning.starts_with("x.toml:6:26: the flows of `one` use xcp, but no xcp router runs on r1->r2"),
        "{warning}"
    );
}
