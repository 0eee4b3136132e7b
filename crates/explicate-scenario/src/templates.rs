//! Commented scenarios to start from: what `explicate new NAME` prints.

/// A scenario to start from.
pub struct Template {
    /// Its name for `explicate new`.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The file.
    pub text: &'static str,
    /// An additional file that it needs: name and contents.
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
    Template {
        name: "wifi",
        summary: "802.11 stations send through an access point",
        text: include_str!("../templates/wifi.toml"),
        companion: None,
    },
    Template {
        name: "geo",
        summary: "A geostationary satellite: long delay, losses on the radio, short transfers beside long ones",
        text: include_str!("../templates/geo.toml"),
        companion: None,
    },
    Template {
        name: "cellular",
        summary: "A cellular link with a recorded capacity, both ways",
        text: include_str!("../templates/cellular.toml"),
        companion: Some(("steps.trace", include_str!("../templates/steps.trace"))),
    },
    Template {
        name: "xcp_i",
        summary: "XCP routers around a cloud of plain ones",
        text: include_str!("../templates/xcp_i.toml"),
        companion: None,
    },
    Template {
        name: "datacentre",
        summary: "Workers of a rack answer at the same time (incast), beside long transfers",
        text: include_str!("../templates/datacentre.toml"),
        companion: None,
    },
];

/// Finds a template by name; a hyphen counts as an underscore.
pub fn template(name: &str) -> Option<&'static Template> {
    let name = name.replace('-', "_");
    TEMPLATES.iter().find(|t| t.name == name)
}
