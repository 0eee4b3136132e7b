//! Commented scenarios to start from: what `explicate new NAME` prints.

/// A scenario to start from.
pub struct Template {
    /// What `explicate new` calls it.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The file.
    pub text: &'static str,
    /// Another file that it needs beside it: name and contents.
    pub companion: Option<(&'static str, &'static str)>,
}

/// All templates.
pub const TEMPLATES: &[Template] = &[
    Template {
        name: "dumbbell",
        summary: "Pairs of hosts share one bottleneck",
        text: include_str!("../templates/dumbbell.toml"),
        companion: None,
    },
    Template {
        name: "chain",
        summary: "Pairs of hosts share several links in a row",
        text: include_str!("../templates/chain.toml"),
        companion: None,
    },
    Template {
        name: "parking_lot",
        summary: "Long flows meet other cross traffic at every hop",
        text: include_str!("../templates/parking_lot.toml"),
        companion: None,
    },
    Template {
        name: "star",
        summary: "All hosts of a switch send to one of them",
        text: include_str!("../templates/star.toml"),
        companion: None,
    },
    Template {
        name: "explicit",
        summary: "Custom nodes and links",
        text: include_str!("../templates/explicit.toml"),
        companion: None,
    },
    Template {
        name: "trace",
        summary: "A link whose recorded capacity changes",
        text: include_str!("../templates/trace.toml"),
        companion: Some(("steps.trace", include_str!("../templates/steps.trace"))),
    },
];

/// Finds a template by name.
pub fn template(name: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|t| t.name == name)
}
