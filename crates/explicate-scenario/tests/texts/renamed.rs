//! Old names of keys and words: they keep working for one release, and the warning gives the new one.

use crate::support::{self, SMALL, parse, problems};

/// Each old name with its new one, as keys of a flow group or of a link behind `SMALL`.
const RENAMED: &[(&str, &str, &str)] = &[
    (
        "size = { mean = \"20kB\", law = \"pareto\" }",
        "size = { mean = \"20kB\", distribution = \"pareto\" }",
        "flows.one.size: `law` is now called `distribution`; write that: the old name works for one more release",
    ),
    (
        "path = \"back\"",
        "path = \"reverse\"",
        "flows.one.path: `back` is now called `reverse`; write that: the old name works for one more release",
    ),
    (
        "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"jitter\", law = \"normal\" }]",
        "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"jitter\", distribution = \"normal\" }]",
        "link.r1->r2.channel.jitter: `law` is now called `distribution`; write that: the old name works for one more release",
    ),
    (
        "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", law = \"pareto\" }]",
        "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", distribution = \"pareto\" }]",
        "link.r1->r2.channel.random_loss: `law` is now called `distribution`; write that: the old name works for one more release",
    ),
];

#[test]
fn old_names_mean_the_same_and_warn() {
    for (old, new, warning) in RENAMED {
        let (before, after) = (parse(&format!("{SMALL}{old}\n")), parse(&format!("{SMALL}{new}\n")));
        assert_eq!(before.resolved, after.resolved, "{old}");
        assert!(before.warnings.iter().any(|w| w.contains(warning)), "{old}: {:?}", before.warnings);
        support::messages(&before.warnings);
        assert!(!after.warnings.iter().any(|w| w.contains("old name")), "{new}: {:?}", after.warnings);
        let again = parse(&before.resolved);
        assert!(!again.warnings.iter().any(|w| w.contains("old name")), "{old}: {:?}", again.warnings);
    }
}

/// An override counts whatever name the file and the override use; the file alone has to decide.
#[test]
fn overrides_and_files_may_differ_in_age() {
    let set = |file: &str, key: &str| {
        let text = format!("{SMALL}size = {{ mean = \"20kB\", {file} = \"exponential\" }}\n");
        support::set(&text, &[(&format!("flows.one.size.{key}"), "pareto")]).resolved
    };
    for (file, key) in [("law", "law"), ("law", "distribution"), ("distribution", "law")] {
        assert!(set(file, key).contains("distribution = \"pareto\""), "{file} {key}");
    }
    let both = format!("{SMALL}size = {{ mean = \"20kB\", law = \"pareto\", distribution = \"pareto\" }}\n");
    let said = problems(&both, &[]);
    assert!(said[0].contains("`law` is the old name of `distribution`; remove it"), "{said:?}");
}

/// An axis with an old name is found too.
#[test]
fn axes_of_sweeps_with_old_names() {
    let text = format!(
        "{SMALL}size = {{ mean = \"20kB\" }}\n[sweep]\n\"flows.one.size.law\" = [\"pareto\", \"exponential\"]\n"
    );
    let warnings = parse(&text).warnings;
    assert!(
        warnings.iter().any(|w| w.starts_with("x.toml:13:25: flows.one.size: `law` is now called")),
        "{warnings:?}"
    );
}
