//! Links over a medium that carry nothing: stations too far apart, rates that noise destroys, packets longer than a frame.

use std::collections::BTreeSet;

use explicate_core::medium::Obstacle;

use crate::ends::Crossing;
use crate::model::Scenario;
use crate::quantity::{self, show};
use crate::reader::{Context, Reader};

/// All such links.
pub(crate) fn media(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, crossings: &[Crossing]) {
    let mut said = BTreeSet::new();
    for (link, crossing) in scenario.links.iter().zip(crossings) {
        let (Some(over), Some(largest)) = (link.over, crossing.largest()) else { continue };
        let (medium, name) = (&scenario.media[over.medium], &link.name);
        let place = |keys: &[&str]| {
            let number = over.medium.to_string();
            let path: Vec<&str> = ["medium", &number].into_iter().chain(keys.iter().copied()).collect();
            reader.at(&path)
        };
        let longest = medium.kind.longest_packet() as f64;
        if largest > longest && said.insert((over.medium, "packet")) {
            let what = format!(
                "packets of up to {largest:.0}B cross {name}, but a frame of `{}` carries {longest:.0}B (802.11 does not allow \
                 longer ones)",
                medium.name
            );
            ctx.warn(place(&[]), what, "write a smaller `packet` for the flows there");
        }
        let (a, b) = (medium.stations[over.from].at, medium.stations[over.to].at);
        let metres = libm::hypot(a.0 - b.0, a.1 - b.1);
        let far = show(metres.round(), &quantity::DISTANCE);
        match medium.kind.obstacle(&medium.values, metres, link.rate, largest as u16) {
            Some(Obstacle::Distance(range)) if said.insert((over.medium, "range")) => {
                let range = show(range, &quantity::DISTANCE);
                let why = format!(
                    "{name}: no frame arrives, because the stations are {far} apart and `decode_range` is {range}"
                );
                // A longer `reach` asks for such links.
                if metres <= medium.kind.reach(&medium.values) {
                    ctx.warn(place(&["reach"]), why, "write a shorter `reach`, or a longer `decode_range`");
                } else {
                    let message = format!("{why}; write a shorter `spacing`, or a longer `decode_range`");
                    ctx.error(place(&["layout", "spacing"]), message);
                }
            }
            Some(Obstacle::Noise) if said.insert((over.medium, "noise")) => {
                let rate = show(link.rate.0 as f64, &quantity::RATE);
                let what = format!("{name}: noise destroys nearly every frame at {rate} over {far}");
                ctx.warn(place(&["rate"]), what, "write a lower `rate`, a shorter distance, or `adaptation = \"arf\"`");
            }
            _ => {}
        }
    }
}
