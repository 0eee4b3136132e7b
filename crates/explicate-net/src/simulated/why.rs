//! Each cause that `gateway why` names is removed, and what that gains is measured.
#![expect(clippy::print_stdout, reason = "shows the figures")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::hosts::{CLIENT, Leaves, Plan, Reads, Script, Server};
use super::machine::key;
use super::network::{Path, address};
use super::record::{Rule, What, Who};
use super::scene::{Happens, SECOND, Scene};
use super::{Options, View, clock, run_beside};
use crate::gateway::identity::Identity;
use crate::gateway::status;
use crate::gateway::why::{Cause, NAMES, WORTH, causes};

/// When `why` looks, ns after the gateways were connected, and for how long, as the command does.
const LOOK: u64 = 14 * SECOND;
const WATCHED: u64 = 2 * SECOND;
/// Between these times throughput and delay are measured, ns.
const MEASURED: (u64, u64) = (13 * SECOND, 17 * SECOND);
/// Transfers begin and end then, ns.
const BEGIN: u64 = SECOND;
const END: u64 = 19 * SECOND;
/// What no transfer sends in a scene, bytes.
const ENDLESS: u64 = 1 << 40;

/// A scene, as far as the cases differ.
#[derive(Clone)]
struct Setting {
    /// The rates set at gateways 0 and 1, Mbit/s, and what the path carries in each direction.
    told: [f64; 2],
    carries: f64,
    /// Round trip, ms.
    trip: u64,
    /// The queue of the path, bytes, and how much of it others keep filled, ms.
    queue: u64,
    others: u64,
    /// Share of the datagrams that the path loses.
    loss: f64,
    /// The longest IP packet at first, and from the beginning of the look on.
    mtu: [usize; 2],
    /// More keys of [wan] and [limits].
    wan: &'static str,
    limits: &'static str,
    /// Gateway 0 has the key of gateway 1.
    right_key: bool,
    /// The path is down from then to then, ns.
    down: Option<(u64, u64)>,
    plans: Vec<Plan>,
}

fn setting(plans: Vec<Plan>) -> Setting {
    Setting {
        told: [2.0; 2],
        carries: 2.1,
        trip: 100,
        queue: 50_000,
        others: 0,
        loss: 0.0,
        mtu: [1500; 2],
        wan: "",
        limits: "",
        right_key: true,
        down: None,
        plans,
    }
}

impl Setting {
    fn scene(&self) -> Scene {
        let text = |own: u8| {
            let peer = 1 - own;
            let known = if self.right_key || own == 1 { peer } else { 7 };
            let line = Identity::of(key(known)).unwrap().public.line();
            let mut text = format!(
                "[site]\ninterfaces = [\"lan\"]\nnetworks = [\"198.18.{own}.0/24\"]\nwhen_down = \"reset\"\n\
                 [wan]\nrate = \"{}bit/s\"\n{}\n[limits]\n{}\n\
                 [[peer]]\nname = \"gateway-{peer}\"\nkey = \"{line}\"\nnetworks = [\"198.18.{peer}.0/24\"]\n",
                (1e6 * self.told[own as usize]) as u64,
                self.wan,
                self.limits
            );
            if peer == 1 {
                let _ = writeln!(text, "address = \"{}\"", address(peer));
            }
            text
        };
        let (rate, delay) = (self.carries * 1e6 / 8.0, self.trip * 1_000_000 / 2);
        let path = Path {
            rate,
            steps: None,
            delay,
            queue: self.queue,
            loss: self.loss,
            late: 0.0,
            copies: 0.0,
            mtu: self.mtu[0],
        };
        Scene {
            seed: 1,
            paths: vec![(0, 1, path)],
            texts: vec![text(0), text(1)],
            plans: self.plans.clone(),
            happens: self.down.map(|(from, to)| Happens::Down(0, 1, from, to)).into_iter().collect(),
            kinds: BTreeSet::new(),
            capacity: 64 << 10,
            window: 32 << 20,
            peer_window: 256 << 20,
            keys: [usize::MAX; 2],
            beside: None,
        }
    }

    /// What `why` finds at both gateways, and what was measured.
    fn run(&self) -> Ran {
        let others = self.others * 1_000_000;
        let mtu = self.mtu[1];
        let (report, found) = run_beside(&self.scene(), Options::default(), async |view| {
            let looks = async {
                clock::until(Some(view.began + LOOK)).await;
                let before = reports(&view);
                view.network.change(0, 1, |path| path.mtu = mtu);
                clock::until(Some(view.began + LOOK + WATCHED)).await;
                let after = reports(&view);
                [0, 1].map(|at| causes(&before[at], &after[at]))
            };
            let fills = async {
                while clock::elapsed() < view.began + END {
                    let from = clock::elapsed() >= view.began + 3 * SECOND;
                    (0..2).filter(|_| from && others > 0).for_each(|from| view.network.fill(from, 1 - from, others));
                    clock::until(Some(clock::elapsed() + SECOND / 200)).await;
                }
            };
            tokio::join!(looks, fills).0
        });
        let serious = |rule| matches!(rule, Rule::Bytes | Rule::Ends | Rule::Panics | Rule::Memory);
        let broken: Vec<_> = report.broken.iter().filter(|broken| serious(broken.rule)).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        let measured = report.began + MEASURED.0..report.began + MEASURED.1;
        let mut bytes = [0.0; 2];
        for event in report.events.iter().filter(|event| measured.contains(&event.at)) {
            match event.what {
                What::Read(_, Who::Server, count) => bytes[0] += count as f64,
                What::Read(_, Who::Client, count) => bytes[1] += count as f64,
                _ => {}
            }
        }
        let keys = report.fared.iter().flat_map(|[client, _]| client.iter().flat_map(|client| &client.keys));
        let echoes: Vec<f64> =
            keys.filter(|key| measured.contains(&key.0)).map(|key| (key.1 as f64 / 1e9).min(60.0)).collect();
        let echo = echoes.iter().sum::<f64>() / echoes.len() as f64;
        let opened = report.fared.iter().filter(|[_, server]| server.is_some()).count() as f64;
        Ran { found, bytes, echo, opened }
    }
}

/// Reports of both gateways, which then look at the line.
fn reports(view: &View) -> [Value; 2] {
    [0, 1].map(|at| {
        let (gateway, _) = view.machines[at].gateway().unwrap();
        let report = status::report(&gateway);
        status::look(&gateway);
        report
    })
}

/// What became of a scene.
struct Ran {
    found: [Vec<Cause>; 2],
    /// Bytes that hosts read, of uploads and of downloads.
    bytes: [f64; 2],
    /// Mean time of an echo, s.
    echo: f64,
    /// Connections that a server accepted.
    opened: f64,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
enum By {
    Uploads,
    Downloads,
    Echoes,
    Opened,
}

impl By {
    /// How many times as good it is.
    fn gain(self, before: &Ran, after: &Ran) -> f64 {
        match self {
            By::Uploads => after.bytes[0] / before.bytes[0],
            By::Downloads => after.bytes[1] / before.bytes[1],
            By::Echoes => before.echo / after.echo,
            By::Opened => after.opened / before.opened,
        }
    }
}

fn plan(host: u8, at: u64, client: Script, server: Script) -> Plan {
    let client = Script { leaves: Some((END - at, Leaves::Reset)), ..client };
    Plan { from: 0, client_host: host, to: 1, at, client, server, accepts: Server::Accepts, keys: None }
}
fn reading(reads: Reads) -> Script {
    Script { reads, idles: true, ..Script::sending(1) }
}
fn upload(reads: Reads) -> Plan {
    plan(CLIENT, BEGIN, Script::sending(ENDLESS), Script { idles: true, ..reading(reads) })
}
fn download(reads: Reads) -> Plan {
    plan(CLIENT + 1, BEGIN, reading(reads), Script::sending(ENDLESS))
}
/// An upload at so many kbit/s.
fn steady(rate: u64) -> Plan {
    // Of blocks of 4096 bytes.
    let client = Script { every: 8 * 4096 * 1_000_000 / rate, ..Script::sending(ENDLESS) };
    plan(CLIENT, BEGIN, client, reading(Reads::All))
}
fn keys() -> Plan {
    let plan = plan(CLIENT + 2, 10 * SECOND, Script::sending(0), Script::sending(0));
    Plan { keys: Some((80, SECOND / 10)), ..plan }
}
/// Reads so many kbit/s.
fn slowly(rate: u64) -> Reads {
    Reads::Slowly((rate * 100 / 8) as usize)
}

/// A longer and faster path.
fn wide(plans: Vec<Plan>) -> Setting {
    Setting { told: [8.0; 2], carries: 8.4, trip: 200, queue: 200_000, ..setting(plans) }
}
fn uploads() -> Vec<Plan> {
    vec![upload(Reads::All), keys()]
}
/// Short connections, four each second.
fn visits() -> Vec<Plan> {
    let visit = |n| plan(CLIENT, 10 * SECOND + n * SECOND / 4, Script::sending(100), Script::sending(100));
    (0..24).map(visit).collect()
}
/// Downloads that begin one after another, and read so much before they pause; then another one begins.
fn paused(reads: Reads) -> Vec<Plan> {
    let mut all: Vec<Plan> =
        (0..9).map(|n| plan(CLIENT, SECOND + n * SECOND, reading(reads), Script::sending(ENDLESS))).collect();
    all.push(plan(CLIENT + 1, 11 * SECOND, reading(Reads::All), Script::sending(ENDLESS)));
    all
}
const PAUSED: Reads = Reads::Paused(150_000, 60 * SECOND);

/// A scene with a cause, and what removes it.
struct Case {
    /// The cause that `why` names first at gateway 0.
    cause: &'static str,
    setting: Setting,
    removal: fn(&mut Setting),
    by: By,
}

fn cases() -> Vec<Case> {
    let case = |cause, setting, by, removal| Case { cause, setting, removal, by };
    vec![
        case("line full", setting(uploads()), By::Uploads, |s| (s.told, s.carries) = ([4.0; 2], 4.2)),
        case("line full", Setting { wan: MEASURES, ..setting(uploads()) }, By::Uploads, |s| s.carries = 4.2),
        case("told too low", Setting { told: [1.0; 2], ..setting(uploads()) }, By::Uploads, |s| s.told = [2.0; 2]),
        case("told too low", Setting { told: [0.2; 2], ..setting(uploads()) }, By::Uploads, |s| s.told = [2.0; 2]),
        case("told too high", Setting { told: [4.0; 2], ..setting(uploads()) }, By::Echoes, |s| s.told = [2.0; 2]),
        case("told too high", Setting { told: [2.4; 2], ..setting(uploads()) }, By::Echoes, |s| s.told = [2.0; 2]),
        case("told too high", Setting { told: [20.0; 2], ..setting(uploads()) }, By::Echoes, |s| s.told = [2.0; 2]),
        case("far host", setting(vec![upload(slowly(300)), keys()]), By::Uploads, |s| s.plans = uploads()),
        case("far host", setting(vec![upload(Reads::Never), keys()]), By::Uploads, |s| s.plans = uploads()),
        case("near host", setting(vec![download(slowly(300))]), By::Downloads, |s| {
            s.plans = vec![download(Reads::All)]
        }),
        case("near host", setting(vec![download(Reads::Never)]), By::Downloads, |s| {
            s.plans = vec![download(Reads::All)]
        }),
        case(
            "window held",
            Setting {
                told: [4.0; 2],
                carries: 4.2,
                trip: 400,
                limits: "peer_bytes = 524288",
                ..setting(paused(PAUSED))
            },
            By::Downloads,
            |s| s.plans = paused(Reads::All),
        ),
        case(
            "window",
            Setting { trip: 400, limits: "connection_bytes = 65536", ..setting(uploads()) },
            By::Uploads,
            |s| s.limits = "",
        ),
        // Parity leaves most of 12 and 15 %: it follows losses up to `air_loss`, 2 %, and leaves 3.5 % of 12 where that is 8 %.
        case("losses", Setting { loss: 0.12, ..wide(uploads()) }, By::Uploads, |s| s.loss = 0.0),
        case("losses", Setting { loss: 0.15, ..wide(uploads()) }, By::Uploads, |s| s.loss = 0.0),
        case("losses", Setting { loss: 0.12, ..wide(uploads()) }, By::Uploads, |s| s.wan = "air_loss = 0.08"),
        // A queue of 19 ms gives no delay that is a sign (25 ms, a quarter of the round trip), and TCP's law, once it limits the window, keeps losses
        // below a fifth, which are no sign either. Losses are seen; the sentence names a narrower line among their reasons.
        case("losses", Setting { told: [4.0; 2], queue: 5_000, ..setting(uploads()) }, By::Uploads, |s| {
            s.told = [2.0; 2]
        }),
        case("losses", Setting { told: [4.0; 2], queue: 5_000, ..setting(uploads()) }, By::Uploads, |s| {
            s.wan = MEASURES
        }),
        // Parity would leave as much.
        case("losses", Setting { loss: 0.12, wan: "parity = false", ..wide(uploads()) }, By::Uploads, |s| s.loss = 0.0),
        case("told too high", Setting { told: [4.0; 2], ..setting(uploads()) }, By::Echoes, |s| s.wan = MEASURES),
        case("parity off", Setting { loss: 0.03, wan: "parity = false", ..wide(uploads()) }, By::Uploads, |s| {
            s.wan = ""
        }),
        case("queue elsewhere", Setting { others: 80, ..setting(vec![keys()]) }, By::Echoes, |s| s.others = 0),
        case("mtu", Setting { mtu: [1500, 1280], ..setting(uploads()) }, By::Uploads, |s| s.mtu = [1500; 2]),
        case("peer down", Setting { down: Some((10 * SECOND, 30 * SECOND)), ..setting(uploads()) }, By::Uploads, |s| {
            s.down = None
        }),
        case("key", Setting { right_key: false, ..setting(uploads()) }, By::Uploads, |s| s.right_key = true),
        case(
            "limit of connections",
            Setting { limits: "connections = 3", ..setting([vec![steady(100); 3], visits()].concat()) },
            By::Opened,
            |s| s.limits = "",
        ),
    ]
}
const MEASURES: &str = "capacity = { measured = true, floor = \"100kbit/s\" }";

/// Causes without a scene: the simulated gateways have no source of a rate (`why::tests` has its sign).
const ELSEWHERE: [&str; 1] = ["source"];

fn names(found: &[Cause]) -> Vec<&'static str> {
    found.iter().map(|cause| cause.name).collect()
}
fn shown(found: &[Cause]) -> Vec<String> {
    found.iter().map(|cause| format!("{:.2} {}", cause.gain, cause.sentence)).collect()
}

#[test]
fn each_cause_is_named_first_and_its_removal_helps() {
    let mut wrong = Vec::new();
    let cases = cases();
    for Case { cause, setting, removal, by } in &cases {
        let mut without = setting.clone();
        removal(&mut without);
        let (before, after) = (setting.run(), without.run());
        let (found, gain) = (&before.found[0], by.gain(&before, &after));
        println!(
            "{cause}: {by:?} {gain:.2} times as good without it: {:#?}; then {:?}",
            shown(found),
            names(&after.found[0])
        );
        if names(found).first() != Some(cause) || gain < WORTH {
            wrong.push(format!("{cause}: {gain:.2}, {:?}", shown(found)));
        } else if *cause == "told too high" {
            // The rate that the sentence says to tell.
            let arrives = found[0].sentence.split(" Mbit/s arrive").next().and_then(|text| text.rsplit(' ').next());
            let arrives: f64 = arrives.unwrap().parse().unwrap();
            if !(0.9 * setting.carries..1.1 * setting.carries).contains(&arrives) {
                wrong.push(format!("{cause}: {arrives} Mbit/s arrive, {} are carried", setting.carries));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for name in NAMES {
        let tested = ELSEWHERE.contains(&name) || cases.iter().any(|case| case.cause == name);
        assert!(tested, "{name} has no scene");
    }
}

/// Trains at twice the rate show what the line carries, while the rate stays as told.
#[test]
fn a_look_at_the_line_sets_no_rate() {
    let ran = Setting { told: [1.0; 2], ..setting(uploads()) }.run();
    assert_eq!(names(&ran.found[0]), ["told too low"]);
    let rate = 8.0 * ran.bytes[0] / ((MEASURED.1 - MEASURED.0) as f64 / 1e9);
    assert!((0.8e6..1e6).contains(&rate), "{rate} bit/s");
}

/// Trains overflow a queue that is shorter than they are: what is lost there was not carried, and the line is found all the same.
#[test]
fn a_measured_line_is_used_however_short_its_queue_is() {
    for queue in [5_000, 10_000, 50_000] {
        let ran = Setting { told: [4.0; 2], queue, wan: MEASURES, ..setting(uploads()) }.run();
        let rate = 8.0 * ran.bytes[0] / ((MEASURED.1 - MEASURED.0) as f64 / 1e9);
        println!("queue of {queue} bytes: {:.2} Mbit/s", rate / 1e6);
        assert!(rate > 1.6e6, "queue of {queue} bytes: {rate} bit/s");
    }
}

/// Two causes at once, the larger one first: the second one's removal, and by what it is measured.
#[test]
fn of_two_causes_the_one_whose_removal_gains_more_is_first() {
    type Removal = (&'static str, By, fn(&mut Setting));
    let both = |rate| vec![upload(Reads::All), download(slowly(rate))];
    let reads: fn(&mut Setting) = |s| s.plans = vec![upload(Reads::All), download(Reads::All)];
    let tells: fn(&mut Setting) = |s| s.told = [2.0; 2];
    let cases: [(Setting, [Removal; 2]); 5] = [
        // Parity repairs all of it, and takes 20 % of the line for that, 5 % without losses.
        (
            Setting { loss: 0.06, wan: "air_loss = 0.06", ..wide(uploads()) },
            [
                ("line full", By::Uploads, |s| (s.told, s.carries) = ([16.0; 2], 16.8)),
                ("losses", By::Uploads, |s| s.loss = 0.0),
            ],
        ),
        (
            Setting { told: [1.0, 2.0], ..setting(both(300)) },
            [("near host", By::Downloads, reads), ("told too low", By::Uploads, tells)],
        ),
        (
            Setting { told: [1.0, 2.0], ..setting(both(1200)) },
            [("told too low", By::Uploads, tells), ("near host", By::Downloads, reads)],
        ),
        (
            Setting {
                limits: "connections = 2",
                ..setting([vec![upload(Reads::All), steady(100)], visits()].concat())
            },
            [
                ("limit of connections", By::Opened, |s| s.limits = ""),
                ("line full", By::Uploads, |s| (s.told, s.carries) = ([4.0; 2], 4.2)),
            ],
        ),
        (
            Setting { others: 300, queue: 200_000, ..setting(uploads()) },
            [
                ("queue elsewhere", By::Echoes, |s| s.others = 0),
                ("line full", By::Uploads, |s| (s.told, s.carries) = ([4.0; 2], 4.2)),
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (setting, removals) in cases {
        let before = setting.run();
        let found = names(&before.found[0]);
        let gains = removals.map(|(_, by, removal)| {
            let mut without = setting.clone();
            removal(&mut without);
            by.gain(&before, &without.run())
        });
        println!("{found:?}: {gains:.2?} times as good without them: {:#?}", shown(&before.found[0]));
        if found != removals.map(|removal| removal.0) || gains[0] < gains[1] || gains[1] < WORTH {
            wrong.push(format!("{found:?}, {gains:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Where the removal of a cause helps little, it is not named.
#[test]
fn what_would_not_help_is_not_named() {
    let case = |cause, setting, by, removal: fn(&mut Setting)| Case { cause, setting, removal, by };
    let twice: fn(&mut Setting) = |s| (s.told, s.carries) = ([4.0; 2], 4.2);
    let steadily = |rate| vec![steady(rate), keys()];
    let cases = [
        case("line full", setting(steadily(1200)), By::Uploads, twice),
        case("line full", setting(vec![upload(slowly(1200)), keys()]), By::Uploads, twice),
        case("told too low", setting(uploads()), By::Uploads, |s| s.told = [2.1; 2]),
        case("told too low", Setting { told: [1.0; 2], ..setting(steadily(500)) }, By::Uploads, |s| s.told = [2.0; 2]),
        case("told too high", Setting { told: [4.0; 2], ..setting(steadily(500)) }, By::Echoes, |s| s.told = [2.0; 2]),
        // Trains of datagrams that lose some do not look faster than the line.
        case("told too low", Setting { loss: 0.04, wan: "air_loss = 0.1", ..wide(uploads()) }, By::Uploads, |s| {
            s.told = [8.4; 2]
        }),
        case("losses", Setting { loss: 0.01, ..wide(uploads()) }, By::Uploads, |s| s.loss = 0.0),
        // Parity repairs them, and takes 10 % of the line, 5 % without losses.
        case("losses", Setting { loss: 0.03, ..wide(uploads()) }, By::Uploads, |s| s.loss = 0.0),
        case("losses", Setting { loss: 0.06, ..setting(steadily(300)) }, By::Uploads, |s| s.loss = 0.0),
        case("losses", Setting { loss: 0.06, ..setting(vec![upload(slowly(300))]) }, By::Uploads, |s| s.loss = 0.0),
        case("parity off", Setting { loss: 0.005, wan: "parity = false", ..wide(uploads()) }, By::Uploads, |s| {
            s.wan = ""
        }),
        case("parity off", Setting { wan: "parity = false", ..wide(uploads()) }, By::Uploads, |s| s.wan = ""),
        case(
            "far host",
            setting(vec![upload(Reads::All), Plan { client_host: 9, ..upload(slowly(300)) }]),
            By::Uploads,
            |s| s.plans = vec![upload(Reads::All), Plan { client_host: 9, ..upload(Reads::All) }],
        ),
        case("near host", setting(vec![download(slowly(2500))]), By::Downloads, |s| {
            s.plans = vec![download(Reads::All)]
        }),
        case("window held", setting(paused(PAUSED)), By::Downloads, |s| s.limits = "peer_bytes = 1073741824"),
        case("window", Setting { limits: "connection_bytes = 1048576", ..setting(uploads()) }, By::Uploads, |s| {
            s.limits = ""
        }),
        case("queue elsewhere", Setting { others: 5, ..setting(vec![keys()]) }, By::Echoes, |s| s.others = 0),
        case("queue elsewhere", setting(uploads()), By::Echoes, |s| s.others = 0),
        case("mtu", Setting { mtu: [1280; 2], ..setting(uploads()) }, By::Uploads, |s| s.mtu = [1500; 2]),
        case(
            "limit of connections",
            Setting { limits: "connections = 3", ..setting(vec![steady(100); 3]) },
            By::Opened,
            |s| s.limits = "",
        ),
        case(
            "peer down",
            Setting { down: Some((14_500_000_000, 14_600_000_000)), ..setting(uploads()) },
            By::Uploads,
            |s| s.down = None,
        ),
    ];
    let mut wrong = Vec::new();
    for Case { cause, setting, removal, by } in cases {
        let mut without = setting.clone();
        removal(&mut without);
        let (before, after) = (setting.run(), without.run());
        let (found, gain) = (&before.found[0], by.gain(&before, &after));
        println!("not {cause}: {by:?} {gain:.2} times as good without it: {:#?}", shown(found));
        if names(found).contains(&cause) || gain >= WORTH {
            wrong.push(format!("not {cause}: {gain:.2}, {:?}", shown(found)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_is_named_while_hosts_send_less_than_the_line_carries() {
    for plans in [vec![keys()], vec![steady(300), keys()], vec![steady(1000)], Vec::new()] {
        let ran = setting(plans).run();
        assert_eq!(ran.found, [Vec::new(), Vec::new()]);
    }
}
