//! Static shortest paths: least delay, then fewest hops, then the lowest link index.
//!
//! Nodes with a single neighbour are leaves of it and cost nothing. One tree is stored per source among the others,
//! and is computed when first needed. A dumbbell of any width has two such nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::{Link, Reroute, Scenario};

const NONE: u32 = u32::MAX;
/// Maximum number of entries of all trees together; beyond it old trees are dropped and computed again when needed.
const MOST_ENTRIES: usize = 1 << 26;

/// Finds the links from one node to another.
pub struct Routes {
    /// Outgoing links of all nodes, grouped by node, and where each group starts.
    outgoing: Vec<u32>,
    starts: Vec<u32>,
    links: Vec<Edge>,
    nodes: Vec<Place>,
    core: usize,
    /// For each core node as source: the link by which each core node is reached.
    trees: Vec<Option<Box<[u32]>>>,
    entries: usize,
}

struct Edge {
    from: u32,
    to: u32,
    /// Or [`WITHDRAWN`].
    delay: u64,
}

/// The delay of a link that no route uses.
const WITHDRAWN: u64 = u64::MAX;

impl Edge {
    fn is_open(&self) -> bool {
        self.delay != WITHDRAWN
    }
}

/// The position of a node.
#[derive(Clone, Copy)]
enum Place {
    /// A core node, with this number.
    Core(u32),
    /// A leaf of this core node, over these links in both directions (or none).
    Leaf { parent: u32, up: u32, down: u32 },
}

impl Scenario {
    /// Routes at the start, and from each change on.
    pub fn routes(&self) -> impl Iterator<Item = Routes> {
        Routes::over_time(self.nodes.len(), &self.links, &self.reroutes)
    }
}

impl Routes {
    /// Prepares routes between `nodes` nodes; O(nodes + links).
    ///
    /// # Panics
    /// If a link's end is not below `nodes`.
    pub fn new(nodes: usize, links: &[Link]) -> Routes {
        Routes::without(nodes, links, &[])
    }
    /// Routes at the start, and from each change on.
    pub fn over_time(nodes: usize, links: &[Link], reroutes: &[Reroute]) -> impl Iterator<Item = Routes> {
        let changed = reroutes.iter().map(move |r| Routes::without(nodes, links, &r.without));
        core::iter::once_with(move || Routes::new(nodes, links)).chain(changed)
    }

    /// Routes that leave out some links.
    fn without(nodes: usize, links: &[Link], avoided: &[usize]) -> Routes {
        let edge = |l: &Link| Edge { from: l.from as u32, to: l.to as u32, delay: l.delay.0 };
        let mut links: Vec<Edge> = links.iter().map(edge).collect();
        avoided.iter().for_each(|&l| links[l].delay = WITHDRAWN);
        let mut starts = vec![0u32; nodes + 1];
        for l in links.iter().filter(|l| l.is_open()) {
            starts[l.from as usize + 1] += 1;
        }
        for i in 0..nodes {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut outgoing = vec![0u32; links.len()];
        for (i, l) in links.iter().enumerate().filter(|(_, l)| l.is_open()) {
            outgoing[next[l.from as usize] as usize] = i as u32;
            next[l.from as usize] += 1;
        }
        let (nodes, core) = places(nodes, &links);
        Routes { outgoing, starts, links, nodes, core, trees: (0..core).map(|_| None).collect(), entries: 0 }
    }

    /// The links from one node to another in order, empty if they are the same; `None` if there is no route.
    pub fn path(&mut self, from: usize, to: usize) -> Option<Vec<u32>> {
        if from == to {
            return Some(Vec::new());
        }
        let mut path = Vec::new();
        let start = match self.nodes[from] {
            Place::Core(_) => from,
            Place::Leaf { up, parent, .. } => {
                if up == NONE {
                    return None;
                }
                path.push(up);
                parent as usize
            }
        };
        let (end, last) = match self.nodes[to] {
            Place::Core(_) => (to, None),
            Place::Leaf { down: NONE, .. } => return None,
            Place::Leaf { parent, down, .. } => (parent as usize, Some(down)),
        };
        self.core_path(start, end, &mut path)?;
        path.extend(last);
        Some(path)
    }

    fn core_path(&mut self, from: usize, to: usize, path: &mut Vec<u32>) -> Option<()> {
        if from == to {
            return Some(());
        }
        let (Place::Core(source), Place::Core(_)) = (self.nodes[from], self.nodes[to]) else { return None };
        let source = source as usize;
        if self.trees[source].is_none() {
            if self.entries + self.core > MOST_ENTRIES {
                self.trees.iter_mut().for_each(|t| *t = None);
                self.entries = 0;
            }
            self.entries += self.core;
            self.trees[source] = Some(self.tree(from));
        }
        let tree = self.trees[source].as_ref()?;
        let first = path.len();
        let mut at = to;
        while at != from {
            let Place::Core(i) = self.nodes[at] else { return None };
            let link = tree[i as usize];
            if link == NONE {
                path.truncate(first);
                return None;
            }
            path.push(link);
            at = self.links[link as usize].from as usize;
        }
        path[first..].reverse();
        Some(())
    }

    /// Dijkstra from one core node over the core nodes.
    fn tree(&self, from: usize) -> Box<[u32]> {
        let mut reached = vec![NONE; self.core].into_boxed_slice();
        let mut best = vec![(u64::MAX, u32::MAX); self.core];
        let mut heap = BinaryHeap::new();
        if let Place::Core(i) = self.nodes[from] {
            best[i as usize] = (0, 0);
        }
        heap.push(Reverse(((0u64, 0u32), from as u32)));
        while let Some(Reverse((cost, node))) = heap.pop() {
            let Place::Core(here) = self.nodes[node as usize] else { continue };
            if cost > best[here as usize] {
                continue;
            }
            let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
            for &link in &self.outgoing[range] {
                let edge = &self.links[link as usize];
                let Place::Core(there) = self.nodes[edge.to as usize] else { continue };
                let there = there as usize;
                let through = (cost.0.saturating_add(edge.delay), cost.1 + 1);
                if through < best[there] {
                    best[there] = through;
                    reached[there] = link;
                    heap.push(Reverse((through, edge.to)));
                } else if through == best[there] && link < reached[there] {
                    reached[there] = link;
                }
            }
        }
        reached
    }
}

/// Separates leaves from the core; also returns the number of core nodes.
fn places(nodes: usize, links: &[Edge]) -> (Vec<Place>, usize) {
    let mut neighbour = vec![NONE; nodes];
    let mut several = vec![false; nodes];
    for l in links.iter().filter(|l| l.is_open()) {
        for (a, b) in [(l.from, l.to), (l.to, l.from)] {
            let seen = &mut neighbour[a as usize];
            several[a as usize] |= *seen != NONE && *seen != b;
            *seen = b;
        }
    }
    let mut core = 0;
    let mut places: Vec<Place> = Vec::with_capacity(nodes);
    for i in 0..nodes {
        let parent = neighbour[i];
        if !several[i] && parent != NONE && several[parent as usize] {
            places.push(Place::Leaf { parent, up: NONE, down: NONE });
        } else {
            places.push(Place::Core(core));
            core += 1;
        }
    }
    let better = |link: usize, than: u32| than == NONE || links[link].delay < links[than as usize].delay;
    for (i, l) in links.iter().enumerate().filter(|(_, l)| l.is_open()) {
        if let Place::Leaf { up, .. } = &mut places[l.from as usize]
            && better(i, *up)
        {
            *up = i as u32;
        }
        if let Place::Leaf { down, .. } = &mut places[l.to as usize]
            && better(i, *down)
        {
            *down = i as u32;
        }
    }
    (places, core as usize)
}
