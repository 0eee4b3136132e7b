//! Random small scenarios: topologies, queues, controllers, channels, classes and applications of every kind, combined by chance.
#![allow(dead_code, reason = "each test file uses a part")]

use explicate_core::rng::Rng;

/// Words of a scenario, drawn by a seed.
pub(crate) struct Random {
    rng: Rng,
}

const PROTOCOLS: &[&str] = &[
    "xcp",
    "xcp",
    "xcp/newreno",
    "xcp_window",
    "p_xcp",
    "xcp_r",
    "xcp_i",
    "vcp",
    "vcp-bise",
    "xtcp",
    "LR-LMXCP",
    "tahoe",
    "reno",
    "newreno",
    "sack",
    "cubic",
    "bic",
    "hstcp",
    "hybla",
    "westwood",
    "vegas",
    "fast",
    "new_jersey",
    "bbr",
    "video",
    "video_xtcp",
    "greedy",
    "abc",
    "rcp",
    "dctcp",
    "prague",
    "bbr3",
];
const QUEUES: &[&str] = &["droptail", "red", "rem", "pi", "avq", "codel", "fq_codel", "step", "dualpi2"];
const LIMITS: &[&str] = &["3pkt", "12pkt", "40pkt", "0.5bdp", "1.0bdp", "20kB"];
const CHANNELS: &[&str] = &[
    r#"{ kind = "random_loss", rate = "2%" }"#,
    r#"{ kind = "random_loss", rate = "1%", law = "pareto", shape = 2.5, of = "data", place = "kernel" }"#,
    r#"{ kind = "burst_loss", rate = "1%", length = 3 }"#,
    r#"{ kind = "gilbert_elliott", clock = "time", good_time = "200ms", bad_time = "10ms", loss_bad = 0.5 }"#,
    r#"{ kind = "gilbert_elliott", good = 200, bad = 3 }"#,
    r#"{ kind = "rate_steps", steps = [{ at = "0s", rate = "5Mbit/s" }, { at = "300ms", rate = "0bit/s" }], period = "400ms" }"#,
    r#"{ kind = "jitter", mean = "2ms", law = "normal", keep_order = true, of = "acks" }"#,
    r#"{ kind = "corruption", rate = "1%" }"#,
    r#"{ kind = "reordering", rate = "1%", by = "3ms" }"#,
    r#"{ kind = "duplication", rate = "1%", after = "1ms" }"#,
    r#"{ kind = "outages", up = "200ms", down = "20ms", random = true }"#,
    r#"{ kind = "fading", fec_data = 0.8 }"#,
    "\"wire\"",
];

impl Random {
    /// The draws of this number.
    pub(crate) fn new(number: u64) -> Random {
        Random { rng: Rng::stream(number, "random scenario") }
    }
    fn below(&mut self, n: usize) -> usize {
        (self.rng.uniform() * n as f64) as usize
    }
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
    fn chance(&mut self, p: f64) -> bool {
        self.rng.uniform() < p
    }

    /// A scenario of half a second or a second of simulated time.
    pub(crate) fn scenario(&mut self) -> String {
        let duration = self.one(&["500ms", "800ms", "1s"]);
        let warmup = self.one(&["0s", "100ms", "250ms"]);
        let processing = self.one(&["auto", "none", "none", "1ms"]);
        let seed = self.below(1 << 20);
        let mut text =
            format!("seed = {seed}\nduration = \"{duration}\"\nwarmup = \"{warmup}\"\nprocessing = \"{processing}\"\n");
        let explicit = self.chance(0.2);
        text += &if explicit { self.triangle() } else { self.generated() };
        for group in 0..1 + self.below(4) {
            text += &self.flows(group, explicit);
        }
        if self.chance(0.6) {
            let every = self.one(&["7ms", "20ms", "50ms", "100ms"]);
            text += &format!(
                "[sampling]\nevery = \"{every}\"\nof = [\"queue\", \"throughput\", \"cwnd\", \"rtt\", \"goodput\", \"router\", \"flow\"]\n"
            );
        }
        text
    }

    fn generated(&mut self) -> String {
        let kind = self.one(&["dumbbell", "dumbbell", "dumbbell", "chain", "parking_lot", "star"]);
        let middle = if kind == "dumbbell" { "bottleneck" } else { "link" };
        let mut text = format!("[topology]\nkind = \"{kind}\"\n");
        if kind != "star" {
            text += &format!("pairs = {}\n", 1 + self.below(5));
        }
        if kind == "chain" || kind == "parking_lot" {
            text += &format!("hops = {}\n", 1 + self.below(4));
        }
        text += &format!("[topology.{middle}]\n{}", self.link(&["0s", "1ms", "5ms", "10ms", "20ms"]));
        if kind != "star" {
            let rate = self.one(&["10Mbit/s", "40Mbit/s", "100Mbit/s"]);
            let delay = self.one(&["\"0s\"", "\"1ms\"", "\"3ms\"", "{ from = \"1ms\", to = \"9ms\" }"]);
            text += &format!("[topology.access]\nrate = \"{rate}\"\ndelay = {delay}\n");
            if self.chance(0.2) {
                text += &self.queue();
            }
            text += &self.own_way(if kind == "dumbbell" { "r1->r2" } else { "s0->r1" });
        }
        text
    }

    /// Now and then one direction of a link is not like the other.
    fn own_way(&mut self, name: &str) -> String {
        if self.chance(0.7) {
            return String::new();
        }
        let channel = self.one(CHANNELS);
        format!("[[link]]\nname = \"{name}\"\n{}channel = [{channel}]\n", self.queue())
    }

    /// Three nodes with a way round, and perhaps a change of routes.
    fn triangle(&mut self) -> String {
        let mut text = String::new();
        for node in ["a", "b", "m"] {
            text += &format!("[[node]]\nname = \"{node}\"\n");
        }
        for (from, to) in [("a", "m"), ("m", "b"), ("a", "b")] {
            text += &format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = true\n");
            text += &self.link(&["0s", "1ms", "4ms", "10ms"]);
        }
        if self.chance(0.5) {
            text += "[[reroute]]\nat = \"300ms\"\nwithout = [\"a->b\", \"b->a\"]\n";
        }
        text
    }

    fn link(&mut self, delays: &[&str]) -> String {
        let rate = self.one(&["1Mbit/s", "3Mbit/s", "5Mbit/s", "8Mbit/s", "10Mbit/s", "20Mbit/s"]);
        let delay = self.one(delays);
        let mut text = format!("rate = \"{rate}\"\ndelay = \"{delay}\"\n");
        text += &self.queue();
        if self.chance(0.25) {
            let mut channels = vec![self.one(CHANNELS)];
            if self.chance(0.3) {
                channels.push(self.one(CHANNELS));
            }
            text += &format!("channel = [{}]\n", channels.join(", "));
        }
        if self.chance(0.1) {
            text += "capacity = [{ at = \"100ms\", factor = 0.8 }, { at = \"400ms\", factor = 1.2 }]\n";
        }
        if self.chance(0.1) {
            text += &format!("clock_tick = \"{}\"\n", self.one(&["1ms", "10ms"]));
        }
        if self.chance(0.1) {
            text += "half_duplex = true\n";
        }
        if self.chance(0.1) {
            text += self.one(&[
                "share_by_flows = true\nrouter = \"xcp\"\n",
                "classes = [{ match = \"explicit\" }, { match = \"other\", queue = \"red\" }]\n",
                "classes = [{ match = \"explicit\" }, { match = \"other\", weight = 2 }]\nkappa = 0.1\n",
            ]);
        }
        text
    }

    fn queue(&mut self) -> String {
        let kind = self.one(QUEUES);
        let limit = self.one(LIMITS);
        match self.below(6) {
            0 => String::new(),
            1 => "queue = \"unlimited\"\n".to_string(),
            2 => format!("queue = {{ kind = \"{kind}\", limit = \"{limit}\" }}\n"),
            3 => format!("queue = \"{kind}\"\n"),
            _ => format!("queue = {{ kind = \"droptail\", limit = \"{limit}\" }}\n"),
        }
    }

    fn flows(&mut self, group: usize, explicit: bool) -> String {
        let (count, protocol) = (1 + self.below(4), self.one(PROTOCOLS));
        let packet = self.one(&["576B", "1000B", "1500B"]);
        let start = self.one(&["\"0s\"", "{ spread = \"200ms\" }", "{ uniform = \"300ms\" }", "\"50ms\""]);
        let mut text = format!("[[flows]]\nname = \"f{group}\"\nprotocol = \"{protocol}\"\npacket = \"{packet}\"\n");
        if explicit {
            text +=
                self.one(&["from = \"a\"\nto = \"b\"\n", "from = \"b\"\nto = \"a\"\n", "from = \"m\"\nto = \"b\"\n"]);
        }
        let many = format!("count = {count}\nstart = {start}\n");
        text += &match self.below(8) {
            0 => format!("{many}on_off = {{ on = \"100ms\", off = \"50ms\", random = true }}\n"),
            1 => format!("{many}size = \"{}kB\"\n", 5 + self.below(200)),
            2 => "arrivals = \"30/s\"\nsize = { mean = \"20kB\", law = \"pareto\", shape = 1.3 }\n".to_string(),
            3 => format!("{many}session = {{ duration = \"150ms\", random = true, pause = \"30ms\" }}\n"),
            4 => format!("{many}paced = true\n"),
            5 => format!("{many}params = {{ receiver_window = 20, ecn = true }}\n"),
            _ => many,
        };
        text
    }
}
