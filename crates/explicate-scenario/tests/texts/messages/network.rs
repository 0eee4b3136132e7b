//! Names, routes, changes of routes, and bridges.

use super::{cases, plus, with};
use crate::support::problems;

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
        (explicit("[[link]]\nfrom = \"a\"\nto = \"x\"\n", ""), 12, vec!["`to`: no node is called `x`; there are a, b"]),
        (
            format!("[[link]]\nfrom = \"a\"\nto = \"r1\"\n{flow}"),
            2,
            vec!["`from`: no node is called `a`; there are r1, r2, s0, d0; nodes of your own need a [[node]] each"],
        ),
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
