//! A scenario's topology on real interfaces.
//!
//! Every node becomes a namespace, each pair of links between two nodes a cable (a veth pair):
//!
//! ```text
//!   s0 ─ p0══p0 ─ r1 ─ p2══p2 ─ r2 ...
//! ```
//!
//! A link is emulated by the router at its start; a link that starts at a host, by the router at its end. Only links
//! between two hosts, and those whose directions share a line, are emulated in a namespace of their own. So a packet
//! wakes one thread per node, and each adds the lateness of its wake-up.
//!
//! All hosts share one subnet with static neighbour entries, and routers have static tables ([`routes`]), so that all packets belong to
//! flows.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use explicate_core::agent::{Address, AgentInit};
use explicate_core::endpoint::Params;
use explicate_core::estimate::Choice;
use explicate_core::rng::Rng;
use explicate_scenario::model::{Link, Processing, RouterSpec, Scenario};

use super::addresses::{address, addresses};
use super::netns::Step;
use super::sysctls;
use crate::agent;
use crate::error::{Error, Result};

/// Name of the namespace in which links are emulated.
pub(super) const LINKS: &str = "links";
/// Longest IP packet that the cables carry.
const MTU: u16 = 9000;

/// A cable between two nodes, with a link each way.
pub(super) struct Cable {
    /// The nodes at its ends `a` and `b`.
    pub(super) ends: [usize; 2],
    /// The links that leave them, if they exist.
    pub(super) links: [Option<usize>; 2],
    /// The two links share one line.
    pub(super) half_duplex: bool,
}

/// The role of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// An end of flows, at the end of one cable.
    Host,
    /// It forwards.
    Router,
    /// It forwards without decrementing the TTL.
    Bridge,
}

/// A plan.
pub(super) struct Plan {
    /// Cables, in order.
    pub(super) cables: Vec<Cable>,
    /// The role of each node.
    pub(super) roles: Vec<Role>,
    /// Pairs of nodes that communicate, with their addresses.
    pairs: BTreeSet<[(usize, Ipv4Addr); 2]>,
    /// Settings of TCP in the namespaces of hosts.
    settings: [(&'static str, String); 3],
    prefix: String,
    names: Vec<String>,
}

impl Plan {
    /// A plan for a scenario; an error names the part that cannot be built.
    pub(super) fn new(scenario: &Scenario, prefix: &str) -> Result<Plan> {
        refuse(scenario)?;
        warn_of_estimator(scenario);
        warn_of_processing(scenario);
        let cables = cables(scenario);
        let degree = |node: usize| cables.iter().filter(|c| c.ends.contains(&node)).count();
        let role = |node: usize| match degree(node) {
            0 | 1 => Role::Host,
            _ if scenario.bridges.contains(&node) => Role::Bridge,
            _ => Role::Router,
        };
        let roles: Vec<Role> = (0..scenario.nodes.len()).map(role).collect();
        let groups = scenario.flows.iter().enumerate();
        let ends = || groups.clone().flat_map(|(i, g)| g.ends.iter().map(move |ends| (i, *ends)));
        if let Some(node) = ends().flat_map(|(_, p)| [p.0, p.1]).find(|n| roles[*n] != Role::Host) {
            let name = &scenario.nodes[node];
            let cables = degree(node);
            let message = "begins or ends flows and has";
            return Err(Error::Input(format!(
                "the node `{name}` {message} {cables} cables; the lab needs ends with one"
            )));
        }
        let pair = |(group, ends): (usize, (usize, usize))| {
            let [from, to] = addresses(scenario, group, ends);
            [(ends.0, from), (ends.1, to)]
        };
        let pairs = ends().map(pair).collect();
        let plain = |name: &String| name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let mut names: Vec<String> = scenario.nodes.iter().map(plain).collect();
        for i in 0..names.len() {
            if names[i] == LINKS || names[..i].contains(&names[i]) {
                names[i] = format!("{}_{i}", names[i]);
            }
        }
        let settings = sysctls::of_hosts(scenario)?;
        Ok(Plan { cables, roles, pairs, settings, prefix: prefix.to_string(), names })
    }
    /// The namespace of a node.
    pub(super) fn namespace(&self, node: usize) -> String {
        format!("{}{}", self.prefix, self.names[node])
    }
    /// The namespace of the links.
    pub(super) fn links(&self) -> String {
        format!("{}{LINKS}", self.prefix)
    }
    /// The namespaces to make.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let links = self.cables.iter().any(|c| self.has_middle(c)).then(|| self.links());
        (0..self.names.len()).map(|n| self.namespace(n)).chain(links).collect()
    }
    /// The interface of a node to a cable.
    pub(super) fn interface(cable: usize) -> String {
        format!("p{cable}")
    }
    /// The interface of the links' namespace to an end of a cable.
    pub(super) fn middle(cable: usize, end: usize) -> String {
        format!("{}{cable}", ["a", "b"][end])
    }
    /// All interfaces of the links' namespace.
    pub(super) fn middles(&self) -> Vec<String> {
        let cables = self.cables.iter().enumerate().filter(|(_, cable)| self.has_middle(cable));
        cables.flat_map(|(cable, _)| [0, 1].map(|end| Plan::middle(cable, end))).collect()
    }
    /// Whether its links are emulated in a namespace between its ends.
    pub(super) fn has_middle(&self, cable: &Cable) -> bool {
        cable.half_duplex || cable.ends.iter().all(|node| self.roles[*node] == Role::Host)
    }
    /// The hardware address of a node's interface.
    pub(super) fn station(node: usize, cable: usize) -> [u8; 6] {
        let ([n1, n2], [c1, c2]) = ((node as u16).to_be_bytes(), (cable as u16).to_be_bytes());
        [0x02, 0x6c, n1, n2, c1, c2]
    }
    /// The cables of a node.
    pub(super) fn cables_of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.cables.iter().enumerate().filter(move |(_, c)| c.ends.contains(&node)).map(|(i, _)| i)
    }
    /// The cable, and the end of it, through which a link leaves.
    pub(super) fn cable_of(&self, link: usize) -> Option<(usize, usize)> {
        let find = |c: &Cable| c.links.iter().position(|l| *l == Some(link));
        self.cables.iter().enumerate().find_map(|(i, c)| find(c).map(|end| (i, end)))
    }

    /// The steps that configure the namespaces.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut run = |words: String| steps.push(Step::Command(words));
        for namespace in self.namespaces() {
            run(format!("ip netns exec {namespace} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
            run(format!("ip -n {namespace} link set lo up"));
        }
        let links = self.links();
        let mut bare = Vec::new();
        for (i, cable) in self.cables.iter().enumerate() {
            let own = Plan::interface(i);
            if !self.has_middle(cable) {
                let [here, there] = cable.ends.map(|node| self.namespace(node));
                run(format!("ip -n {here} link add {own} type veth peer name {own} netns {there}"));
            }
            for (end, &node) in cable.ends.iter().enumerate() {
                let here = self.namespace(node);
                if self.has_middle(cable) {
                    let middle = Plan::middle(i, end);
                    run(format!("ip -n {here} link add {own} type veth peer name {middle} netns {links}"));
                    run(format!("ip -n {links} link set {middle} mtu {MTU} up"));
                    bare.push(Step::OffloadsOff(links.clone(), middle));
                }
                let station = Plan::station(node, i).map(|b| format!("{b:02x}")).join(":");
                run(format!("ip -n {here} link set {own} address {station} mtu {MTU} up"));
                bare.push(Step::OffloadsOff(here.clone(), own.clone()));
                if self.roles[node] == Role::Host {
                    run(format!("ip -n {here} addr add {}/16 dev {own}", address(node)));
                }
            }
        }
        for &[a, b] in &self.pairs {
            for ((here, own), (there, to)) in [(a, b), (b, a)] {
                let (Some(cable), Some(far)) = (self.cables_of(here).next(), self.cables_of(there).next()) else {
                    continue;
                };
                let station = Plan::station(there, far).map(|b| format!("{b:02x}")).join(":");
                let (namespace, device) = (self.namespace(here), Plan::interface(cable));
                if own != address(here) {
                    run(format!("ip -n {namespace} addr add {own}/32 dev {device}"));
                    run(format!("ip -n {namespace} route add {to} dev {device} src {own}"));
                }
                run(format!("ip -n {namespace} neigh replace {to} lladdr {station} dev {device} nud permanent"));
            }
        }
        let hosts = (0..self.roles.len()).filter(|node| self.roles[*node] == Role::Host);
        for namespace in hosts.map(|node| self.namespace(node)) {
            let set = |(name, value): &(&'static str, String)| Step::Set(namespace.clone(), name, value.clone());
            steps.extend(self.settings.iter().map(set));
        }
        steps.extend(bare);
        steps
    }
}

/// Pairs the links between the same nodes, in the order of the scenario.
fn cables(scenario: &Scenario) -> Vec<Cable> {
    let mut cables: Vec<Cable> = Vec::new();
    for (i, link) in scenario.links.iter().enumerate() {
        let fits = |c: &Cable| match link.shares_with {
            Some(twin) => c.links[0] == Some(twin),
            None => !c.half_duplex,
        };
        let back = cables.iter_mut().find(|c| c.links[1].is_none() && c.ends == [link.to, link.from] && fits(c));
        match back {
            Some(cable) => cable.links[1] = Some(i),
            None => {
                let (ends, links) = ([link.from, link.to], [Some(i), None]);
                cables.push(Cable { ends, links, half_duplex: link.shares_with.is_some() });
            }
        }
    }
    cables
}

/// Rejects scenarios that cannot be built.
fn refuse(scenario: &Scenario) -> Result<()> {
    let no = |what: String| Err(Error::Input(format!("the lab cannot build this scenario: {what}")));
    if let Some(medium) = scenario.media.first() {
        let instead = "simulate it, or put links with channels that fade and lose in its place";
        return no(format!("the medium `{}` is wireless, and namespaces have only cables; {instead}", medium.name));
    }
    let mut half = scenario.links.iter().filter(|l| l.shares_with.is_some());
    if let Some(link) = half.find(|l| controller_with_agent(scenario, l).is_some()) {
        let instead = "simulate it, or give each direction a rate of its own";
        let why = "so its controller is outside of the router whose messages it would need";
        return no(format!("the link `{}` is half duplex, {why}; {instead}", link.name));
    }
    if let Some(link) = scenario.links.iter().find(|l| l.scone.is_some()) {
        let instead = "simulate it, or give a port of `explicated router` this `scone`, for QUIC's senders";
        return no(format!("`scone` of the link `{}` advises simulated flows; {instead}", link.name));
    }
    if let Some(link) = scenario.links.iter().find(|l| l.measured.is_some()) {
        return no(format!("`capacity` of the link `{}` is measured by simulated frames; give it a rate", link.name));
    }
    if scenario.nodes.len() > 60 {
        return no(format!("{} nodes are too many for one machine; 60 can be", scenario.nodes.len()));
    }
    for group in &scenario.flows {
        if group.packet > MTU {
            return no(format!("packets of `{}` are longer than {MTU} B", group.name));
        }
        if Params::of(&group.values).scone {
            let why = "no port of the lab advises, and its packets have no room for a SCONE packet";
            return no(format!(
                "`scone` of the flows `{}` has no effect: {why}; simulate it, or remove it",
                group.name
            ));
        }
    }
    Ok(())
}

/// Warns that the processing time of hosts is not emulated.
fn warn_of_processing(scenario: &Scenario) {
    if let Some(group) = scenario.flows.iter().find(|g| matches!(g.processing, Processing::UpTo(_))) {
        tracing::warn!(
            "`processing` is ignored, for example of [[flows]] `{}`: hosts have their real processing times",
            group.name
        );
    }
}

/// Warns if routers are configured to use the oracle, which does not exist in the lab.
fn warn_of_estimator(scenario: &Scenario) {
    let specs = scenario.links.iter().flat_map(Link::controllers);
    let crossed = |spec: &&RouterSpec| {
        let flows = scenario.flows.iter().map(|g| g.resolved.protocol);
        flows.into_iter().any(|p| p.name() == spec.protocol.name())
    };
    let chooses = |s: &&RouterSpec| s.protocol.router_params().iter().any(|p| p.name == Choice::PARAMS[0].name);
    let mut specs = specs.filter(crossed).filter(chooses);
    if let Some(spec) = specs.by_ref().next()
        && agent::wants_oracle(spec.protocol, &spec.values)
        && specs.all(|spec| agent::wants_oracle(spec.protocol, &spec.values))
    {
        tracing::warn!(
            "the simulator's estimator `oracle` is not available here: `{}` measures in its place",
            agent::INSTEAD.kind().name()
        );
    }
}

/// A link's controller whose protocol has an agent.
pub(super) fn controller_with_agent<'a>(scenario: &'a Scenario, link: &'a Link) -> Option<&'a RouterSpec> {
    let wanted = |spec: &&RouterSpec| {
        let init = AgentInit { values: &spec.values, own: Address(0), rng: Rng::stream(0, "") };
        let crosses = scenario.flows.iter().any(|g| g.resolved.protocol.name() == spec.protocol.name());
        crosses && spec.protocol.agent(&init).is_some()
    };
    link.controllers().find(wanted)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const DUMBBELL: &str = r#"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        pairs = 1
        bottleneck = { rate = "10Mbit/s" }
        [[flows]]
        name = "f"
        protocol = "xcp"
        from = "s0"
        to = "d0"
    "#;

    /// Two hosts without a router between them.
    const PAIR: &str = r#"
        duration = "1s"
        [[node]]
        name = "a.1"
        [[node]]
        name = "a-1"
        [[link]]
        from = "a.1"
        to = "a-1"
        rate = "10Mbit/s"
        duplex = true
        [[flows]]
        name = "f"
        protocol = "xcp"
        from = "a.1"
        to = "a-1"
    "#;

    fn planned(text: &str) -> Result<Plan> {
        let scenario = Scenario::parse(text, "x.toml", Path::new("."), &[]).unwrap_or_else(|why| panic!("{why}"));
        Plan::new(&scenario, "t")
    }
    fn plan(text: &str) -> Plan {
        planned(text).unwrap_or_else(|why| panic!("{why}"))
    }
    fn refusal(text: &str) -> String {
        planned(text).err().expect("refused").to_string()
    }
    fn lines(plan: &Plan) -> Vec<String> {
        plan.steps().iter().map(Step::line).collect()
    }

    /// A line of four nodes, three cables: hosts have one cable, routers two, and no namespace stands between them.
    #[test]
    fn a_dumbbell_is_four_namespaces_and_three_cables() {
        let plan = plan(DUMBBELL);
        let mut namespaces = plan.namespaces();
        namespaces.sort();
        assert_eq!(namespaces, ["td0", "tr1", "tr2", "ts0"]);
        let roles = |name: &str| plan.roles[plan.names.iter().position(|n| n == name).expect(name)];
        assert_eq!(
            [roles("s0"), roles("r1"), roles("r2"), roles("d0")].map(|r| r == Role::Host),
            [true, false, false, true]
        );
        assert_eq!(plan.cables.len(), 3);
        assert!(plan.cables.iter().all(|c| c.links.iter().all(Option::is_some) && !plan.has_middle(c)));
        let veth = lines(&plan).iter().filter(|line| line.contains("type veth")).count();
        assert_eq!(veth, 3, "a cable is one pair of interfaces");
    }

    /// Static neighbour entries contain node and cable in the hardware address, so no ARP request is needed.
    #[test]
    fn hosts_have_addresses_and_static_neighbours() {
        let plan = plan(DUMBBELL);
        let node = |name: &str| plan.names.iter().position(|n| n == name).expect(name);
        let (s, d) = (node("s0"), node("d0"));
        let (own, far) = (plan.cables_of(s).next().expect("one"), plan.cables_of(d).next().expect("one"));
        let all = lines(&plan);
        assert!(all.contains(&format!("ip -n ts0 addr add 10.77.0.{}/16 dev p{own}", s + 1)), "{all:#?}");
        let neighbour = format!(
            "ip -n ts0 neigh replace 10.77.0.{} lladdr 02:6c:00:{d:02x}:00:{far:02x} dev p{own} nud permanent",
            d + 1
        );
        assert!(all.contains(&neighbour), "{all:#?}");
        assert!(!all.iter().any(|line| line.contains("tr1 addr add")), "routers have none");
    }

    /// Offloads are disabled last, when all interfaces exist.
    #[test]
    fn offloads_are_switched_off_at_the_end() {
        let all = lines(&plan(DUMBBELL));
        let first = all.iter().position(|line| line.contains("ethtool")).expect("some");
        assert_eq!(all.len() - first, 6, "two for each cable");
        assert!(all[first..].iter().all(|line| line.contains("ethtool")));
    }

    /// Links between two hosts are emulated in a namespace of their own. Names that namespaces cannot have are
    /// replaced, and stay distinct.
    #[test]
    fn hosts_beside_each_other_have_a_namespace_between_them() {
        let plan = plan(PAIR);
        assert_eq!(plan.namespaces(), ["ta_1", "ta_1_1", "tlinks"]);
        let all = lines(&plan);
        assert!(all.contains(&"ip -n ta_1 link add p0 type veth peer name a0 netns tlinks".to_string()), "{all:#?}");
        assert!(all.contains(&"ip -n ta_1_1 link add p0 type veth peer name b0 netns tlinks".to_string()), "{all:#?}");
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_name() {
        let inside = refusal(&DUMBBELL.replace("to = \"d0\"", "to = \"r2\""));
        assert!(inside.contains("the node `r2` begins or ends flows and has 2 cables"), "{inside}");
        let long = refusal(&DUMBBELL.replace("protocol", "packet = \"9001B\"\nprotocol"));
        assert!(long.contains("packets of `f` are longer than 9000 B"), "{long}");
        let many = refusal(&DUMBBELL.replace("pairs = 1", "pairs = 30"));
        assert!(many.contains("62 nodes are too many"), "{many}");
        // The reason, and an alternative.
        let half = refusal(
            &PAIR.replace("\"xcp\"", "\"xcp_i\"").replace("duplex = true", "duplex = true\nhalf_duplex = true"),
        );
        assert!(half.contains("is half duplex") && half.contains("each direction a rate"), "{half}");
        let of_link = |key: &str| refusal(&DUMBBELL.replace("\"10Mbit/s\"", &format!("\"10Mbit/s\", {key}")));
        let scone = of_link("scone = { advise = \"5Mbit/s\" }");
        assert!(scone.contains("`scone` of the link `r1->r2`") && scone.contains("`explicated router`"), "{scone}");
        let follows = refusal(&DUMBBELL.replace("\"xcp\"", "\"cubic\"\nparams = { scone = true }"));
        assert!(follows.contains("`scone` of the flows `f`") && follows.contains("or remove it"), "{follows}");
        let explicit = refusal(&DUMBBELL.replace("\"xcp\"", "\"xcp\"\nparams = { scone = true }"));
        assert!(explicit.contains("`scone` of the flows `f`"), "{explicit}");
        let measured = of_link("capacity = { measured = \"air_time\" }");
        assert!(measured.contains("`capacity` of the link `r1->r2` is measured"), "{measured}");
        let air = refusal(include_str!("../../../../scenarios/wifi-mesh.toml"));
        assert!(air.contains("is wireless") && air.contains("put links with channels"), "{air}");
    }
}
