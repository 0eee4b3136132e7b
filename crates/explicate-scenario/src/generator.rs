//! Generated topologies: numbers of nodes, and named paths.
//!
//! A dumbbell has routers `r1` and `r2` and pairs of hosts `s0`, `d0`, `s1`, `d1`, ...; a chain has `hops` links between
//! its routers instead of one. A parking lot is a chain whose every hop k also carries cross traffic: sources
//! `c{k}s0`, ... at the router before it and destinations `c{k}d0`, ... at the router after it, so that a long flow
//! shares each hop with other neighbours. A star has hosts `h0`, `h1`, ... around one router `r1`.

use crate::reader::short;

/// Kinds of topologies.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Dumbbell,
    Chain,
    ParkingLot,
    Star,
    Explicit,
}

/// What is generated: kind and sizes.
#[derive(Clone, Copy)]
pub(crate) struct Generator {
    pub(crate) kind: Kind,
    pub(crate) pairs: usize,
    pub(crate) hops: usize,
    pub(crate) cross: usize,
    /// Hosts of a star.
    pub(crate) hosts: usize,
}

impl Generator {
    pub(crate) fn routers(&self) -> usize {
        if self.kind == Kind::Explicit { 0 } else { self.hops + 1 }
    }
    /// Source and destination of a pair.
    pub(crate) fn pair(&self, i: usize) -> (usize, usize) {
        (self.routers() + 2 * i, self.routers() + 2 * i + 1)
    }
    /// Source and destination of cross traffic at a hop, counted from 0.
    pub(crate) fn beside(&self, hop: usize, j: usize) -> (usize, usize) {
        let first = self.routers() + 2 * self.pairs + 2 * (hop * self.cross + j);
        (first, first + 1)
    }

    /// The ends of a named path; the error is a sentence.
    pub(crate) fn named_path(&self, name: &str) -> Result<Vec<(usize, usize)>, String> {
        let pairs = || (0..self.pairs).map(|i| self.pair(i));
        let leaves = || self.routers() + 1..self.routers() + self.hosts;
        match (self.kind, name) {
            (Kind::Explicit, _) => {
                let message = "in an explicit topology flows need `from` and `to`, or a list of nodes as `path`";
                return Err(message.to_string());
            }
            (Kind::Star, "in") => return Ok(leaves().map(|h| (h, self.routers())).collect()),
            (Kind::Star, "out") => return Ok(leaves().map(|h| (self.routers(), h)).collect()),
            (Kind::Star, _) => {
                let known = "in (every other host to h0), out (h0 to every other), or a list of nodes";
                return Err(format!("no path is called `{}`; there are {known}", short(name)));
            }
            (_, "long") => return Ok(pairs().collect()),
            (_, "reverse") => return Ok(pairs().map(|(s, d)| (d, s)).collect()),
            (Kind::ParkingLot, "cross") => {
                return Ok((0..self.cross).flat_map(|j| (0..self.hops).map(move |hop| self.beside(hop, j))).collect());
            }
            (Kind::ParkingLot, _) => {}
            _ => {
                return Err(format!(
                    "no path is called `{}`; there are long, reverse, or a list of nodes",
                    short(name)
                ));
            }
        }
        let hop =
            name.strip_prefix("cross.").and_then(|k| k.parse::<usize>().ok()).filter(|k| (1..=self.hops).contains(k));
        match hop {
            Some(hop) => Ok((0..self.cross).map(|j| self.beside(hop - 1, j)).collect()),
            None => {
                let known = format!("long, reverse, cross, cross.1 to cross.{}, or a list of nodes", self.hops);
                Err(format!("no path is called `{}`; there are {known}", short(name)))
            }
        }
    }

    /// The default path of a group of flows.
    pub(crate) fn default_path(&self) -> &'static str {
        match self.kind {
            Kind::Explicit => "",
            Kind::Star => "in",
            _ => "long",
        }
    }
}
