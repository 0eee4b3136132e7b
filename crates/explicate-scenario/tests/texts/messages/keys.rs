//! Keys, words and TOML itself.

use super::{cases, plus, with};
use crate::support::{SMALL, problems};

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
fn many_at_once_in_order() {
    let text = SMALL.replace("duration", "duratoin").replace("pairs", "pears").replace("packet", "pakcet");
    let lines: Vec<String> = problems(&text, &[]).iter().map(|p| p.split(": ").next().unwrap().to_string()).collect();
    assert_eq!(lines, ["x.toml:2:1", "x.toml:5:1", "x.toml:10:1"]);
}
