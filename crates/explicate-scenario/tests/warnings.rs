//! Warnings: what is odd enough to say, and what is not.

mod support;

use support::{SMALL, parse};

fn warnings(text: &str) -> Vec<String> {
    parse(text).warnings
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
    let said = "the flows of `one` speak xcp, but no router of it runs on s0->r1, r2->d0";
    assert_eq!(warnings(&both), [said]);
    let radio = |router: &str| {
        let air = format!("[[medium]]\nname = \"air\"\nlayout = {{ kind = \"chain\", stations = 2 }}\n{router}\n");
        let flow = "[[flows]]\nname = \"f\"\nprotocol = \"xcp\"\nfrom = \"n1\"\nto = \"n2\"\n";
        warnings(&format!("{air}{flow}"))
    };
    assert_eq!(radio("router = \"none\""), [""; 0]);
    assert_eq!(radio("router = \"vcp\""), ["the flows of `f` speak xcp, but no router of it runs on n1->n2"]);
}
