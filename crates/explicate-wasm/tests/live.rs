//! A run that is looked at, or that changes later, is the same run up to there.

use explicate_wasm::output::hash;
use explicate_wasm::session::{Files, Recipe, SAMPLE_NUMBERS, Session};

const SCENE: &str = r#"
    name = "scene"
    duration = "6s"
    [topology]
    kind = "dumbbell"
    access = { rate = "40Mbit/s", delay = "5ms" }
    bottleneck = { rate = "10Mbit/s", delay = "20ms", queue = { kind = "droptail", limit = "1.0bdp" } }
    [[flows]]
    name = "flow"
    count = 4
    protocol = "PROTOCOL"
    packet = "1000B"
    start = { spread = "1s" }
    [sampling]
    every = "20ms"
    of = ["queue", "throughput", "cwnd", "rtt", "router"]
"#;

const CHANGES: &[(&str, &str)] = &[
    ("rate", "[[3, \"r1->r2\", \"rate\", 4e6]]"),
    ("delay", "[[3, \"r1->r2\", \"delay\", 0.05]]"),
    ("shorter", "[[3, \"r1->r2\", \"delay\", 0.004]]"),
    ("loss", "[[3, \"r1->r2\", \"loss\", 0.01]]"),
    ("buffer", "[[3, \"r1->r2\", \"buffer\", 8000]]"),
];

fn recipe(protocol: &str, changes: &str) -> Recipe {
    Recipe::new(&SCENE.replace("PROTOCOL", protocol), "scene.toml", &Files::new(), &[], changes).expect("a scenario")
}

fn session(protocol: &str, changes: &str) -> Session {
    Session::new(recipe(protocol, changes)).expect("a network")
}

/// Samples up to 3 s, bit by bit, and those after.
fn samples(mut session: Session, steps: usize) -> (Vec<u64>, Vec<u64>) {
    for i in 1..=steps {
        session.advance(6.0 * i as f64 / steps as f64, true);
    }
    assert!(session.is_done());
    let all = session.samples();
    let rows: Vec<&[f64]> = all.chunks(SAMPLE_NUMBERS).collect();
    let (before, after): (Vec<&[f64]>, Vec<&[f64]>) = rows.into_iter().partition(|row| row[0] < 3.0);
    let bits = |rows: Vec<&[f64]>| rows.concat().into_iter().map(f64::to_bits).collect();
    (bits(before), bits(after))
}

#[test]
fn changes_leave_the_past_alone() {
    for protocol in ["xcp", "cubic"] {
        let plain = samples(session(protocol, ""), 1);
        for (name, changes) in CHANGES {
            let changed = samples(session(protocol, changes), 1);
            assert!(!plain.0.is_empty());
            assert!(plain.0 == changed.0, "{protocol}: {name} changed what came before it");
            // XCP's queue is so short that its limit does not matter.
            let matters = (protocol, *name) != ("xcp", "buffer");
            assert_eq!(plain.1 != changed.1, matters, "{protocol}: what {name} changed");
        }
    }
}

#[test]
fn a_run_that_is_looked_at_is_the_same() {
    for changes in
        ["", "[[1, \"r1->r2\", \"rate\", 4e6], [2, \"r1->r2\", \"loss\", 0.02], [3, \"r1->r2\", \"delay\", 0.1]]"]
    {
        assert!(samples(session("xcp", changes), 1) == samples(session("xcp", changes), 777));
    }
}

#[test]
fn tables_of_the_same_changes_are_equal() {
    let tables = |changes: &str| hash(&recipe("cubic", changes).tables().expect("a run"));
    for (name, changes) in CHANGES {
        assert_eq!(tables(changes), tables(changes), "{name}");
        assert_ne!(tables(changes), tables(""), "{name}");
    }
}

#[test]
fn a_change_has_its_effect() {
    // Utilisation refers to the line's mean capacity: half the time at 10, half at 4 Mbit/s, is 7 Mbit/s.
    let tables = recipe("xcp", CHANGES[0].1).tables().expect("a run");
    let text = tables.links.csv();
    let row = text.lines().find(|line| line.starts_with("0,r1->r2,")).expect("the link");
    let used: f64 = row.split(',').nth(2).and_then(|x| x.parse().ok()).expect("a number");
    assert!((0.8..1.0).contains(&used), "{used}");
}

#[test]
fn feedback_by_hand_and_what_xcp_would_have_done() {
    // No growth at all from 2 s on: the window of a flow that has just begun stays.
    let sum = |changes: &str| {
        let mut session = session("xcp", changes);
        session.advance(6.0, false);
        let all = session.samples();
        let names = session.variables().to_vec();
        let last = |name: &str| {
            let rows = all.chunks(SAMPLE_NUMBERS).filter(|row| names[row[2] as usize] == name);
            rows.map(|row| row[3]).next_back()
        };
        (last("queue_packets").expect("a queue"), last("feedback_given"), last("feedback_own"))
    };
    let (_, given, of_xcp) = sum("[[2, \"r1->r2\", \"feedback\", -0.05]]");
    let (given, of_xcp) = (given.expect("given"), of_xcp.expect("XCP's"));
    assert!((given + 0.05).abs() < 0.01, "{given}");
    assert!(of_xcp > 0.05, "XCP would hand out the spare capacity: {of_xcp}");
    // Handed back, XCP fills the line again.
    let (_, given, of_xcp) = sum("[[2, \"r1->r2\", \"feedback\", -0.05], [4, \"r1->r2\", \"feedback\", -2]]");
    assert_eq!(given, of_xcp);
}

#[test]
fn what_cannot_change_says_so() {
    let wrong = |changes: &str| {
        let text = SCENE.replace("PROTOCOL", "cubic");
        Recipe::new(&text, "scene.toml", &Files::new(), &[], changes).err().expect("an error")
    };
    assert!(wrong("[[1, \"nowhere\", \"rate\", 1e6]]").contains("no link `nowhere`"));
    assert!(wrong("[[1, \"s1->r1\", \"buffer\", 9000]]").contains("only where its queue is droptail"));
}

#[test]
fn what_is_possible_is_possible() {
    let with = |line: &str| SCENE.replace("PROTOCOL", "cubic").replace("[[flows]]", &format!("{line}\n[[flows]]"));
    let channel = |kind: &str| format!("[[link]]\nname = \"r1->r2\"\nchannel = [{{ {kind} }}]");
    let texts = [
        SCENE.replace("PROTOCOL", "cubic"),
        SCENE.replace("PROTOCOL", "cubic").replace("droptail", "codel"),
        with(&channel("kind = \"random_loss\", rate = \"1%\"")),
        with(&channel("kind = \"rate_steps\", steps = [{ at = \"0s\", rate = \"5Mbit/s\" }]")),
    ];
    let mut refused = 0;
    for text in &texts {
        let recipe = |changes: &str| Recipe::new(text, "scene.toml", &Files::new(), &[], changes);
        let session = Session::new(recipe("").expect("a scenario")).expect("a network");
        let described: serde_json::Value = serde_json::from_str(&session.describe()).expect("JSON");
        let links = described["links"].as_array().expect("a list");
        let link = links.iter().find(|link| link["name"] == "r1->r2").expect("the bottleneck");
        let possible: Vec<&str> =
            link["possible"].as_array().expect("a list").iter().filter_map(|w| w.as_str()).collect();
        for (what, value) in [("rate", 4e6), ("delay", 0.1), ("loss", 0.01), ("buffer", 9000.0)] {
            let made = recipe(&format!("[[1, \"r1->r2\", \"{what}\", {value}]]")).and_then(|recipe| recipe.tables());
            assert_eq!(made.is_ok(), possible.contains(&what), "{what} of {text}");
            refused += made.is_err() as u32;
        }
    }
    assert_eq!(refused, 2, "the rate of a line with steps, and CoDel's buffer");
}

#[test]
fn packets_are_on_their_links() {
    let mut session = session("xcp", "");
    session.advance(3.0, true);
    let names = session.link_names();
    let link = names.iter().position(|name| name == "r1->r2").expect("the bottleneck") as u32;
    let packets = session.packets(&[link], 10_000);
    let on_wire = packets.chunks(4).filter(|p| (0.0..=1.0).contains(&p[2])).count();
    // 20 ms of 10 Mbit/s are 25 kB.
    assert!((20..30).contains(&on_wire), "{on_wire}");
}
