//! Selects the explicit flows that are guarded: by default those whose data cross a port without a controller of
//! their protocol.

use explicate_core::api::AnyProtocol;
use explicate_core::endpoint::{Guarding, Params, set_guarded};
use explicate_core::registry;

use crate::model::{FlowGroup, Link, Scenario};
use crate::routing::Routes;

/// Replaces `auto` by `on` for all flows of a group if it applies to one of them.
pub(crate) fn decide(scenario: &mut Scenario, phases: &mut [Routes]) {
    let open: Vec<usize> = (0..scenario.flows.len()).filter(|&group| asks(scenario, &scenario.flows[group])).collect();
    if open.is_empty() {
        return;
    }
    let wanted = wanted(scenario, phases);
    let plain = |group: usize| {
        let crossed = &wanted.crossed[group];
        scenario.links.iter().enumerate().any(|(l, link)| crossed[l] && !wanted.answers(scenario, link, l, group))
    };
    let guarded: Vec<usize> = open.into_iter().filter(|&group| plain(group)).collect();
    for group in guarded {
        set_guarded(&mut scenario.flows[group].values, true);
    }
}

/// Whether a group has `auto`, and some port of the network has no controller of its protocol.
fn asks(scenario: &Scenario, group: &FlowGroup) -> bool {
    let protocol = group.resolved.protocol;
    let auto = Params::of(&group.values).guard == Guarding::Auto;
    let Some(controller) = registry::controller(protocol).filter(|_| auto && protocol.explicit()) else { return false };
    let bare = |link: &Link| {
        let port = scenario.port(link);
        let routers = port.routers_of(port.class_of(protocol.congestion_header()));
        routers.len() != 1 || routers[0].protocol.name() != controller.name()
    };
    scenario.links.iter().any(bare)
}

/// The traffic of links.
struct Wanted {
    /// For each group whether its data cross a link.
    crossed: Vec<Vec<bool>>,
    /// The protocols whose controllers answer the groups' flows.
    controllers: Vec<Option<&'static AnyProtocol>>,
}

fn wanted(scenario: &Scenario, phases: &mut [Routes]) -> Wanted {
    let mut crossed = Vec::new();
    for group in &scenario.flows {
        let mut of_group = vec![false; scenario.links.len()];
        for &ends in &group.ends {
            let data = phases.iter_mut().flat_map(|routes| group.ways(ends, routes).0);
            data.for_each(|link| of_group[link as usize] = true);
        }
        crossed.push(of_group);
    }
    let controllers = scenario.flows.iter().map(|g| registry::controller(g.resolved.protocol)).collect();
    Wanted { crossed, controllers }
}

impl Wanted {
    /// Whether a group's controller runs at a link's port. Of several controllers, the first that any flow needs runs.
    fn answers(&self, scenario: &Scenario, link: &Link, number: usize, group: usize) -> bool {
        let port = scenario.port(link);
        let class = |g: usize| port.class_of(scenario.flows[g].resolved.protocol.congestion_header());
        let own = class(group);
        let wants = |name: &str| {
            (0..self.crossed.len()).any(|g| {
                self.crossed[g][number] && class(g) == own && self.controllers[g].is_some_and(|c| c.name() == name)
            })
        };
        let routers = port.routers_of(own);
        let runs = match routers {
            [only] => Some(only),
            _ => routers.iter().find(|spec| wants(spec.protocol.name())),
        };
        runs.is_some_and(|spec| self.controllers[group].is_some_and(|c| c.name() == spec.protocol.name()))
    }
}
