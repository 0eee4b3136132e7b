//! Warnings: settings that cause one, and settings that do not.

use std::path::Path;

use explicate_scenario::model::Scenario;

use crate::support::{SMALL, messages, parse};

fn warnings(text: &str) -> Vec<String> {
    messages(&parse(text).warnings).into_iter().map(str::to_string).collect()
}

/// `SMALL` with its bottleneck replaced.
fn bottleneck(keys: &str) -> String {
    SMALL.replace("bottleneck = { rate = \"10Mbit/s\", delay = \"20ms\" }", keys)
}

/// A plain router is no slip where the scenario asks for one.
#[test]
fn plain_routers_on_request() {
    assert_eq!(warnings(&bottleneck("bottleneck = { router = \"none\" }")), [""; 0]);
    assert_eq!(warnings(&format!("{SMALL}[[link]]\nname = \"s0->r1\"\nrouter = \"none\"")), [""; 0]);
    let class = |router: &str| format!("[{{ match = \"explicit\"{router} }}, {{ match = \"other\" }}]");
    let by_class = bottleneck(&format!("bottleneck = {{ classes = {} }}", class(", router = \"none\"")));
    assert_eq!(warnings(&by_class), [""; 0]);
    let by_link = bottleneck(&format!("bottleneck = {{ router = \"none\", classes = {} }}", class("")));
    assert_eq!(warnings(&by_link), [""; 0]);
    // On one link it was asked for, on the other another protocol's router runs.
    let both = bottleneck("bottleneck = { router = \"none\" }\naccess = { router = \"vcp\" }");
    let said = "the flows of `one` use xcp, but no xcp router runs on s0->r1, r2->d0; write `router = \"xcp\"` there, or \"none\" if \
                that is meant";
    assert_eq!(warnings(&both), [said]);
    let radio = |router: &str| {
        let air = format!("[[medium]]\nname = \"air\"\nlayout = {{ kind = \"chain\", stations = 2 }}\n{router}\n");
        let flow = "[[flows]]\nname = \"f\"\nprotocol = \"xcp\"\nfrom = \"n1\"\nto = \"n2\"\n";
        warnings(&format!("{air}{flow}"))
    };
    assert_eq!(radio("router = \"none\""), [""; 0]);
    let [said] = &radio("router = \"vcp\"")[..] else { panic!("one warning") };
    assert!(
        said.starts_with("the flows of `f` use xcp, but no xcp router runs on n1->n2; write `router = \"xcp\"` there")
    );
}

/// A host's port sees the packets of one window in one of several intervals.
#[test]
fn round_trips_of_two_intervals() {
    let far = SMALL.replace("20ms\"", "1.5s\"");
    let said = |link: &str| {
        format!(
            "the flows of `one` may never grow: their round trip (3.004s) takes at least twice the `max_interval` (1s) of the xcp \
             router on {link}; set a longer one there and on the rest of the path, like `router = {{ kind = \"xcp\", max_interval = \
             \"4s\" }}`"
        )
    };
    assert_eq!(warnings(&far), [said("s0->r1")]);
    let router =
        |link: &str| format!("[[link]]\nname = {link:?}\nrouter = {{ kind = \"xcp\", max_interval = \"1.6s\" }}\n");
    let first = far.clone() + &router("s0->r1");
    assert_eq!(warnings(&first), [said("r2->d0")]);
    let not = [
        SMALL.replace("20ms\"", "990ms\""),
        first + &router("r2->d0"),
        far.replace("xcp/reno", "newreno"),
        far.replace("xcp/reno", "vcp"),
    ];
    for text in &not {
        assert_eq!(warnings(text), [""; 0], "{text}");
    }
}

/// Four senders, of whose links two or one fill the bottleneck exactly. At 5 Mbit/s two of four flows got 4.7 Mbit/s and two none with
/// three of five seeds; at 4.999 and 5.001 Mbit/s each flow got its share.
#[test]
fn links_of_senders_that_fill_the_bottleneck_exactly() {
    let four = |rate: &str| {
        let pairs = format!("pairs = 4\naccess = {{ rate = \"{rate}\" }}");
        SMALL.replace("xcp/reno", "reno").replace("pairs = 2", &pairs) + "count = 4\n"
    };
    let said = |text: &str| warnings(text).iter().any(|w| w.starts_with("flows may move in step on r1->r2: "));
    // The other one is about the senders' own queues.
    let step = |text: &str| -> Vec<String> { warnings(text).into_iter().filter(|w| w.contains("in step")).collect() };
    let [warning] = &step(&four("5Mbit/s"))[..] else { panic!("{:?}", warnings(&four("5Mbit/s"))) };
    assert!(warning.contains("2 of the senders' links (s0->r1, s1->r1 and 2 others) fill it exactly"), "{warning}");
    assert!(step(&four("10Mbit/s"))[0].contains("one of the senders' links"));
    // A random start does not matter to a full link.
    assert!(said(&(four("5Mbit/s") + "start = { uniform = \"1s\" }")));
    let not = [
        four("5.01Mbit/s"),
        four("7Mbit/s"),
        // All four find room.
        four("2.5Mbit/s"),
        four("5Mbit/s").replace("20ms\"", "20ms\", queue = \"red\""),
        four("5Mbit/s").replace("\"reno\"", "\"xcp\""),
        four("5Mbit/s") + "[[flows]]\nname = \"web\"\nprotocol = \"reno\"\nsize = { mean = \"10kB\" }",
        four("5Mbit/s") + "[[link]]\nname = \"s0->r1\"\nchannel = [{ kind = \"random_loss\", rate = \"1%\" }]",
    ];
    for text in &not {
        assert!(!said(text), "{text}\n{:?}", warnings(text));
    }
}

/// The rates of ten equal flows over drop-tail depend on the order of their packets if nothing is random.
#[test]
fn phase_effects() {
    let small = format!("processing = \"none\"\n{SMALL}");
    let reno = small.replace("xcp/reno", "reno").replace("pairs = 2", "pairs = 4") + "count = 4\n";
    let said = |text: &str| warnings(text).iter().any(|w| w.starts_with("phase effects are likely on r1->r2: "));
    let [warning] = &warnings(&reno)[..] else { panic!("one warning: {:?}", warnings(&reno)) };
    assert!(warning.starts_with("phase effects are likely on r1->r2: 4 flows (`one`) have the same round-trip time"));
    assert!(warning.contains("`processing = \"auto\"`"), "{warning}");
    let two = reno.replace("count = 4", "[[flows]]\nname = \"two\"\nprotocol = \"newreno\"");
    assert!(warnings(&two).iter().any(|w| w.contains("r1->r2: 2 flows (`one`, `two`)")), "{:?}", warnings(&two));
    let still = [
        // Starts at fixed times, an unused random channel, a loss rate of nothing.
        reno.clone() + "start = { spread = \"1s\" }",
        reno.clone() + "[[link]]\nname = \"d0->r2\"\nchannel = [{ kind = \"random_loss\", rate = 0 }]",
        reno.clone() + "[[link]]\nname = \"d0->r2\"\nchannel = [{ kind = \"outages\", random = false }]",
        // The header says nothing to a plain router.
        small.replace("20ms\"", "20ms\", router = \"none\"") + "count = 4\n",
    ];
    for text in &still {
        assert!(said(text), "{text}");
    }
    let spread = "pairs = 4\naccess = { delay = { from = \"1ms\", to = \"4ms\" } }";
    let not = [
        // Unequal round-trip times; one flow; one flow for each bottleneck.
        reno.replace("pairs = 4", spread),
        reno.replace("count = 4", "count = 1"),
        reno.replace("dumbbell", "star").replace("pairs = 4", "hosts = 3").replace("bottleneck", "link")
            + "path = \"out\"\n",
        // A queue that draws or is never full.
        reno.replace("20ms\"", "20ms\", queue = \"red\""),
        reno.replace("20ms\"", "20ms\", queue = \"unlimited\""),
        reno.replace("pairs = 4", "pairs = 4\naccess = { rate = \"2Mbit/s\" }"),
        // A router that reports rates.
        small.clone() + "count = 4\n",
        // Senders that take a random time for each packet; one group of them is enough.
        reno.replace("processing = \"none\"\n", ""),
        reno.clone() + "[[flows]]\nname = \"two\"\nprotocol = \"reno\"\nprocessing = \"0.8ms\"",
        // A channel that draws, for data or acknowledgements.
        reno.clone() + "[[link]]\nname = \"s0->r1\"\nchannel = [{ kind = \"jitter\", mean = \"1ms\" }]",
        reno.clone() + "[[link]]\nname = \"d0->r2\"\nchannel = [{ kind = \"random_loss\", rate = \"1%\" }]",
        // Random starts, lengths and pauses.
        reno.clone() + "start = { uniform = \"1s\" }",
        reno.replace("count = 4", "arrivals = \"50/s\""),
        reno.clone() + "size = { mean = \"10MB\" }",
        reno.clone() + "on_off = { on = \"1s\", off = \"1s\", random = true }",
        // Other flows at the queue do all that.
        reno.clone() + "[[flows]]\nname = \"web\"\nprotocol = \"reno\"\nsize = { mean = \"10kB\" }",
    ];
    for text in &not {
        assert!(!said(text), "{text}\n{:?}", warnings(text));
    }
}

/// What has no line is named by its key: overrides, defaults, and scenarios that a program made. Templates are texts with lines.
#[test]
fn places_without_a_line() {
    let starts = |text: &str, origin: &str, sets: &[(&str, &str)]| -> Vec<String> {
        let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let read = Scenario::parse(text, origin, Path::new(""), &sets).unwrap().warnings;
        read.iter().map(|w| w.split(": ").next().unwrap().to_string()).collect()
    };
    let reno = SMALL.replace("xcp/reno", "newreno");
    let queue = ("topology.bottleneck.queue.kind", "pi");
    assert_eq!(starts(&reno, "x.toml", &[queue]), ["--set topology.bottleneck.queue.kind"]);
    assert_eq!(starts(&reno, "x.toml", &[("warmup", "10s")]), ["--set warmup"]);
    // The default topology, and a default that the duration makes too long.
    let bare = "processing = \"none\"\n[[flows]]\nname = \"f\"\nprotocol = \"newreno\"\ncount = 2\n";
    assert_eq!(starts(bare, "x.toml", &[]), ["topology.bottleneck"]);
    assert_eq!(
        starts(&(bare.replace("count = 2", "") + "[sampling]\n"), "x.toml", &[("duration", "50ms")]),
        ["x.toml:6:1"]
    );
    // A table of keys and values that a program wrote as text.
    let made = reno.clone() + "start = \"10s\"\n[[link]]\nname = \"r1->r2\"\nqueue = { kind = \"pi\" }\n";
    assert_eq!(starts(&made, "<scenario>", &[]), ["link.r1->r2.queue", "flows.one.start"]);
    assert_eq!(starts(&made, "x.toml", &[]), ["x.toml:14:9", "x.toml:11:9"]);
    let channel = reno.clone() + "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"outages\", up = \"10s\" }]\n";
    assert_eq!(starts(&channel, "<scenario>", &[]), ["link.r1->r2.channel.outages.up"]);
    assert_eq!(
        starts(&channel, "<scenario>", &[("warmup", "12s")]),
        ["--set warmup", "link.r1->r2.channel.outages.up"]
    );
}
