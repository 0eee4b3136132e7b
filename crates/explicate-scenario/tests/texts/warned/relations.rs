//! Settings that make another one useless.

use super::{Case, DETOUR, air, explicit, flow, link, reno};
use crate::support::SMALL;

pub(super) fn cases() -> Vec<Case> {
    let spaced = |metres: u32, more: &str| {
        air(&format!("layout = {{ kind = \"chain\", spacing = \"{metres}m\" }}\n{more}"), "1000B")
    };
    let rates = |at: &str| {
        link(&format!(
            "channel = [{{ kind = \"rate_steps\", steps = [{{ at = \"0s\", rate = \"1Mbit/s\" }}, {{ at = \"{at}\", rate = \"2Mbit/s\" }}] }}]"
        ))
    };
    let loss = |keys: &str| link(&format!("channel = [{{ kind = \"random_loss\", {keys} }}]"));
    let class = |more: &str| link(&format!("classes = [{{ match = \"other\", weight = 2 }}{more}]"));
    let access = |rate: &str, more: &str| {
        flow("").replace("pairs = 2", &format!("pairs = 2\naccess = {{ rate = \"{rate}\"{more} }}"))
    };
    let q = |text: &str| text.to_string();
    vec![
        (
            "`target` of `pi` ≥ `limit`",
            reno("\"pi\""),
            6,
            "its target (200 packets) is not below its limit (55 packets)",
            reno("{ kind = \"pi\", target = \"20pkt\" }"),
        ),
        (
            "`target` of `rem` ≥ `limit`",
            reno("{ kind = \"rem\", limit = \"20pkt\" }"),
            6,
            "its target (20 packets) is not below its limit (20 packets)",
            reno("\"rem\""),
        ),
        (
            "`interval` of `rem` with `interval_packets`",
            reno("{ kind = \"rem\", interval = \"5ms\", interval_packets = 10 }"),
            6,
            "`interval` has no effect beside `interval_packets`",
            reno("{ kind = \"rem\", interval_packets = 10 }"),
        ),
        (
            "`mark_at` of `rem` without `mark`",
            reno("{ kind = \"rem\", mark = false, mark_at = \"departure\" }"),
            6,
            "`mark_at` has no effect without marks",
            reno("{ kind = \"rem\", mark_at = \"departure\" }"),
        ),
        (
            "`min_th` ≥ `limit`",
            reno("{ kind = \"red\", min_th = \"50pkt\", max_th = \"100pkt\", limit = \"20pkt\" }"),
            6,
            "its min_th (50 packets) is not below its limit (20 packets)",
            reno("\"red\""),
        ),
        (
            "`max_th` > `limit`",
            reno("{ kind = \"red\", min_th = \"5pkt\", max_th = \"60pkt\", limit = \"50pkt\" }"),
            6,
            "its max_th (60 packets) is above its limit (50 packets)",
            reno("{ kind = \"red\", min_th = \"5pkt\", max_th = \"50pkt\", limit = \"50pkt\" }"),
        ),
        (
            "`min_th` > `max_th`: refused",
            reno("{ kind = \"red\", min_th = \"50pkt\", max_th = \"10pkt\", limit = \"200pkt\" }"),
            6,
            "`min_th` (50 packets) is above `max_th` (10 packets); exchange them",
            reno("{ kind = \"red\", min_th = \"10pkt\", max_th = \"10pkt\", limit = \"200pkt\" }"),
        ),
        (
            "`target_delay` of `red` without `adaptive`",
            reno("{ kind = \"red\", target_delay = \"2ms\" }"),
            6,
            "`target_delay` has no effect without adaptation",
            reno("{ kind = \"red\", target_delay = \"2ms\", adaptive = true }"),
        ),
        (
            "`drop_above` of `red` without `mark`",
            reno("{ kind = \"red\", drop_above = 0.1, mark = false }"),
            6,
            "`drop_above` has no effect without marks",
            reno("{ kind = \"red\", drop_above = 0.1 }"),
        ),
        (
            "`target` of `codel`, `fq_codel` ≥ time in which `limit` drains",
            reno("{ kind = \"codel\", target = \"20ms\", limit = \"10pkt\" }"),
            6,
            "its limit drains in 8.000 ms, within its target (20.000 ms)",
            reno("\"codel\""),
        ),
        (
            "`mtu` of `codel`, `fq_codel` ≥ `limit`",
            reno("{ kind = \"fq_codel\", mtu = \"20kB\", limit = \"10pkt\" }"),
            6,
            "it leaves `mtu` (20000B) in the queue",
            reno("{ kind = \"fq_codel\", limit = \"10pkt\" }"),
        ),
        (
            "`limit` < the longest packet",
            reno("{ limit = \"900B\" }"),
            6,
            "is shorter than one packet: it is 900B, and packets have up to 1000B",
            reno("{ limit = \"2000B\" }"),
        ),
        (
            "`limit` < two packets",
            reno("{ limit = \"1pkt\" }"),
            6,
            "the buffer of r1->r2 holds one packet",
            reno("{ limit = \"2pkt\" }"),
        ),
        (
            "`interval` of queues and routers ≥ `duration`",
            reno("{ kind = \"codel\", interval = \"20s\" }"),
            6,
            "nothing happens at the end of an `interval`",
            reno("{ kind = \"codel\", interval = \"1s\" }"),
        ),
        (
            "`queue` of a host whose link is the slowest",
            format!("stack = \"ns2\"\n{}", access("5Mbit/s", "")),
            7,
            "the queue of host s0 is unlimited and its link s0->r1 is the slowest",
            access("5Mbit/s", ""),
        ),
        (
            "`host_queue` where the host's port has a `queue`",
            access("100Mbit/s", ", queue = \"droptail\"") + "params = { host_queue = \"fifo\" }\n",
            13,
            "`host_queue` has no effect on the flows of `one`: s0->r1 has a `queue`",
            access("100Mbit/s", "") + "params = { host_queue = \"fifo\" }\n",
        ),
        (
            "`classes` with one class: `weight`",
            class(""),
            13,
            "`weight` has no effect, because there is one class",
            format!(
                "{SMALL}[[link]]\nname = \"r1->r2\"\nclasses = [{{ match = \"other\", weight = 2 }}, {{ match = \"explicit\" }}]"
            ),
        ),
        (
            "`warmup` ≥ `duration`",
            flow("").replacen("duration", "warmup = \"10s\"\nduration", 1),
            2,
            "nothing is measured",
            flow(""),
        ),
        (
            "`every` > `duration`",
            flow("[sampling]\nevery = \"11s\""),
            12,
            "nothing is sampled: `every` (11s) is longer than the run (10s)",
            flow("[sampling]\nevery = \"10s\""),
        ),
        ("`start` ≥ `duration`", flow("start = \"10s\""), 11, "start after the end of the run", flow("start = \"9s\"")),
        (
            "`start` + `spread` > `duration`",
            flow("count = 2\nstart = { spread = \"11s\" }"),
            12,
            "some flows of `one` start after the end of the run: starts go up to 11s",
            flow("count = 2\nstart = { spread = \"9s\" }"),
        ),
        (
            "`stop` ≤ `start`",
            flow("start = \"2s\"\nstop = \"2s\""),
            12,
            "stop before they start",
            flow("start = \"2s\"\nstop = \"3s\""),
        ),
        (
            "`stop` with `size`",
            flow("size = \"1MB\"\nstop = \"5s\""),
            12,
            "`stop` has no effect on the flows of `one`, which end with their `size`",
            flow("size = \"1MB\""),
        ),
        (
            "`on` of `on_off` ≥ `duration`",
            flow("on_off = { on = \"10s\", off = \"1s\" }"),
            11,
            "the first on-period is as long as the run",
            flow("on_off = { on = \"10s\", off = \"1s\", random = true }"),
        ),
        (
            "`steps` of a rate after `duration`",
            rates("10s"),
            13,
            "the step of `rate_steps` at 10s comes after the end of the run (10s)",
            rates("9s"),
        ),
        (
            "`capacity` after `duration`",
            explicit("[[link]]\nname = \"r1->r2\"\ncapacity = [{ at = \"10s\", factor = 0.5 }]"),
            13,
            "the step of `capacity` at 10s",
            explicit("[[link]]\nname = \"r1->r2\"\ncapacity = [{ at = \"9s\", factor = 0.5 }]"),
        ),
        (
            "`at` of a `reroute` ≥ `duration`",
            DETOUR.replace("5s", "10s"),
            22,
            "the change of routes at 10s",
            DETOUR.replace("5s", "9s"),
        ),
        (
            "`start` of a channel ≥ `duration`",
            loss("rate = \"1%\", start = \"10s\""),
            13,
            "never begins: its `start` is not before the end",
            loss("rate = \"1%\", start = \"9s\""),
        ),
        (
            "parameters of a channel with `rate = 0`",
            loss("rate = 0, correlation = 0.2"),
            13,
            "applies to no packet, so its other parameters have no effect",
            loss("rate = 0"),
        ),
        (
            "`up` of `outages` ≥ `duration`",
            link("channel = [{ kind = \"outages\", up = \"10s\" }]"),
            13,
            "its first outage comes after `up`",
            link("channel = [{ kind = \"outages\", up = \"10s\", random = true }]"),
        ),
        (
            "`off` of an interferer ≥ `duration`",
            spaced(50, "[[medium.interferer]]\nat = [\"0m\", \"9m\"]\non = \"1s\"\noff = \"5s\""),
            14,
            "an interferer of `air` never sends",
            spaced(50, "[[medium.interferer]]\nat = [\"0m\", \"9m\"]\non = \"1s\"\noff = \"4s\""),
        ),
        (
            "`initial_window` > `receiver_window`",
            flow("params = { initial_window = 90, receiver_window = 80 }"),
            11,
            "the flows of `one` begin with 80 packets, not 90",
            flow("params = { initial_window = 80, receiver_window = 80 }"),
        ),
        (
            "`receiver_window` < bandwidth-delay product",
            flow("params = { receiver_window = 10 }"),
            11,
            "holds the flows of `one` to",
            flow("params = { receiver_window = 100 }"),
        ),
        (
            "`ack_every`, `ack_delay`, `quick_acks` with `acks = \"linux\"`",
            flow("params = { acks = \"linux\", ack_every = 2 }"),
            11,
            "`ack_every` has no effect on the flows of `one` with `acks = \"linux\"`",
            flow("params = { acks = \"linux\" }"),
        ),
        (
            "`ack_delay`, `quick_acks` without `ack_every`",
            flow("params = { acks = \"counted\", ack_delay = \"50ms\" }"),
            11,
            "`ack_delay` has no effect on the flows of `one` without `ack_every`",
            flow("params = { acks = \"counted\", ack_delay = \"50ms\", ack_every = 2 }"),
        ),
        (
            "`ecn` without a queue that marks",
            flow("params = { ecn = true }"),
            11,
            "`ecn` has no effect on the flows of `one`: no queue on their path marks",
            reno("\"red\"") + "params = { ecn = true }\n",
        ),
        (
            "`l4s` without a queue that marks",
            flow("params = { l4s = true }"),
            11,
            "`l4s` has no effect on the flows of `one`: no queue on their path marks",
            reno("\"step\"") + "params = { l4s = true }\n",
        ),
        (
            "`ecn`, `l4s` of a protocol with ECN codes of its own",
            reno("\"dualpi2\"").replace("newreno", "dctcp") + "params = { l4s = true }\n",
            11,
            "`l4s` has no effect on the flows of `one`: dctcp writes ECN codes of its own",
            reno("\"dualpi2\"") + "params = { l4s = true }\n",
        ),
        (
            "DCTCP, TCP Prague without a queue that marks",
            flow("").replace("newreno", "dctcp"),
            9,
            "the flows of `one` see losses only: dctcp follows marks, and no queue on their path marks",
            reno("\"step\"").replace("newreno", "dctcp"),
        ),
        (
            "`scone` of an explicit flow",
            explicit("params = { scone = true }\n[[link]]\nname = \"r1->r2\"\nscone = { advise = \"5Mbit/s\" }")
                .replace(
                    "5Mbit/s\" }",
                    "5Mbit/s\" }\n[[flows]]\nname = \"two\"\nprotocol = \"newreno\"\nparams = { scone = true }",
                ),
            11,
            "`scone` has no effect on the flows of `one`: xcp's routers give them their rate",
            flow("params = { scone = true }\n[[link]]\nname = \"r1->r2\"\nscone = { advise = \"5Mbit/s\" }"),
        ),
        (
            "`scone` without a link that advises",
            flow("params = { scone = true }"),
            11,
            "`scone` has no effect on the flows of `one`: no port on their path advises",
            flow("params = { scone = true }\n[[link]]\nname = \"r1->r2\"\nscone = { advise = \"5Mbit/s\" }"),
        ),
        (
            "`spacing` > `decode_range`: refused",
            spaced(300, ""),
            10,
            "the stations are 300m apart and `decode_range` is 250m",
            spaced(250, ""),
        ),
        (
            "`reach` > `decode_range`",
            spaced(300, "reach = \"400m\""),
            11,
            "the stations are 300m apart and `decode_range` is 250m; write a shorter `reach`",
            spaced(200, "reach = \"400m\""),
        ),
        (
            "`rate` that noise destroys over the distance",
            spaced(240, "errors = \"snr\"\nrate = \"54Mbit/s\""),
            12,
            "noise destroys nearly every frame at 54Mbit/s over 240m",
            spaced(240, "errors = \"snr\"\nrate = \"6Mbit/s\""),
        ),
        (
            "`cw_min` > `cw_max`: refused",
            spaced(50, "cw_min = 2000"),
            11,
            "`cw_min` (2000) is above `cw_max` (1023); exchange them",
            spaced(50, "cw_min = 1023"),
        ),
        (
            "`packet` > the longest frame",
            air("layout = { kind = \"chain\" }", "2297B"),
            8,
            "packets of up to 2297B cross n1->n2, but a frame of `air` carries 2296B",
            air("layout = { kind = \"chain\" }", "2296B"),
        ),
        (
            "`router` of other protocols",
            SMALL.replace("delay = \"20ms\"", "delay = \"20ms\", router = \"vcp\""),
            6,
            "no xcp router runs on r1->r2",
            q(SMALL),
        ),
        (
            "`max_interval` ≤ half the round trip",
            SMALL.replace("20ms\"", "1.5s\""),
            9,
            "the flows of `one` may never grow",
            SMALL.replace("20ms\"", "0.9s\""),
        ),
    ]
}
