//! A gateway changes its key: no connection is lost, the next handshake is by the new key, and the old one is refused at last.

use std::time::Duration;

use super::both::{Both, MILLISECOND, exchange, is_whole, path, simulate, text};
use super::clock;
use super::hosts::Plan;
use super::network::address;
use super::scene::SECOND;
use crate::gateway::identity::{Identity, PublicKey};

/// Numbers of the keys that the gateways 0 and 1 have next.
const NEXT: [u8; 2] = [2, 3];

fn line(number: u8) -> PublicKey {
    Identity::of(super::machine::key(number)).unwrap().public
}

/// The gateway 0 calls 1. The peer's keys of a gateway are these.
fn file(own: usize, keys: &[u8]) -> String {
    text(own as u8, keys, (own == 0).then(|| address(1)))
}

/// Keystrokes, every half a second.
fn keystrokes(from: u8, rounds: u32) -> Plan {
    Plan { keys: Some((rounds, SECOND / 2)), ..exchange(from, 0) }
}

impl Both {
    /// The key of a gateway by which the other one's tunnel was set up.
    fn key_of(&self, changes: usize) -> PublicKey {
        let (gateway, _) = self.machines[1 - changes].gateway().unwrap();
        gateway.table().peers[0].keys().expect("a tunnel")[1]
    }
    async fn restart(&self, number: usize) {
        self.machines[number].stop().await;
        self.machines[number].start();
    }
    /// Connections from both ends, which have to be whole some seconds later.
    async fn are_whole(&self, numbers: std::ops::Range<usize>, plans: &[Plan], what: &str) {
        numbers.clone().for_each(|number| self.open(number, &plans[number]));
        tokio::time::sleep(Duration::from_secs(5)).await;
        for number in numbers {
            assert!(self.world.fared()[number].iter().all(is_whole), "{what}: {:?}", self.world.fared()[number]);
        }
    }
}

/// The steps of docs/gateway.md, for the gateway that calls and for the one that is called.
#[test]
fn a_key_is_replaced_and_no_connection_is_lost() {
    for changes in [0, 1] {
        simulate(async {
            let (other, old, new) = (1 - changes, changes as u8, NEXT[changes]);
            let own_file = || file(changes, &[other as u8]);
            let mut plans = vec![keystrokes(0, 30), keystrokes(1, 30)];
            plans.extend([0, 1, 0, 1, 0, 1].map(|from| exchange(from, 0)));
            plans.extend([keystrokes(0, 20), keystrokes(1, 20)]);
            let both = Both::of([file(0, &[1]), file(1, &[0])], path(20 * MILLISECOND), 1, plans.clone());
            both.machines.iter().for_each(|machine| machine.start());
            both.connected(5 * SECOND).await;
            (0..2).for_each(|number| both.open(number, &plans[number]));
            tokio::time::sleep(Duration::from_secs(2)).await;
            both.machines[other].reload(file(other, &[old, new]), other as u8);
            both.are_whole(2..4, &plans, "both keys are known").await;
            both.machines[changes].reload(own_file(), new);
            both.are_whole(4..6, &plans, "the key has changed, the tunnel has not").await;
            assert_eq!(both.key_of(changes), line(old), "the tunnel is the one before");
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(both.world.fared()[..2].iter().flatten().all(is_whole), "keystrokes: {:?}", both.world.fared());
            both.restart(changes).await;
            both.connected(5 * SECOND).await;
            assert_eq!(both.key_of(changes), line(new), "the next tunnel is by the new key");
            (8..10).for_each(|number| both.open(number, &plans[number]));
            tokio::time::sleep(Duration::from_secs(2)).await;
            both.machines[other].reload(file(other, &[new]), other as u8);
            both.are_whole(6..8, &plans, "the old key is gone").await;
            tokio::time::sleep(Duration::from_secs(15)).await;
            assert!(both.world.fared()[8..].iter().flatten().all(is_whole), "keystrokes: {:?}", both.world.fared());
            both.judge("the end");
            // Who has the old key is refused.
            both.machines[changes].reload(own_file(), old);
            both.restart(changes).await;
            tokio::time::sleep(Duration::from_secs(90)).await;
            assert!(!both.is_connected(0) && !both.is_connected(1), "the old key is known still");
        });
    }
}

/// The tunnel of the old key goes on when the old line is taken out behind the new one, and ends at once when it is replaced: the key was
/// stolen.
#[test]
fn a_key_that_is_replaced_at_once_ends_its_tunnel() {
    for (changes, steps) in [(0, true), (0, false), (1, true), (1, false)] {
        simulate(async {
            let (other, old, new) = (1 - changes, changes as u8, NEXT[changes]);
            let plan = keystrokes(0, 30);
            let both = Both::of([file(0, &[1]), file(1, &[0])], path(20 * MILLISECOND), 1, vec![plan]);
            both.machines.iter().for_each(|machine| machine.start());
            both.connected(5 * SECOND).await;
            both.open(0, &plan);
            tokio::time::sleep(Duration::from_secs(2)).await;
            if steps {
                both.machines[other].reload(file(other, &[old, new]), other as u8);
            }
            both.machines[other].reload(file(other, &[new]), other as u8);
            assert_eq!(both.is_connected(other), steps, "changes {changes}");
            both.machines[changes].reload(file(changes, &[other as u8]), new);
            let from = clock::elapsed();
            both.connected(3 * SECOND).await;
            assert_eq!(
                both.key_of(changes),
                line(if steps { old } else { new }),
                "after {} ns",
                clock::elapsed() - from
            );
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(both.world.fared()[0].iter().all(is_whole), steps, "{:?}", both.world.fared());
        });
    }
}
