//! The promises of what a gateway reads: datagrams of peers with their parity, prefaces of streams, packets of the site, texts.

use explicate_net::gateway::config::Config;
use explicate_net::gateway::identity::PublicKey;
use explicate_net::gateway::parity::{Parity, Repair};
use explicate_net::gateway::preface::{self, Preface};
use explicate_net::gateway::source::Source;
use explicate_net::gateway::trains::Mark;
use explicate_net::gateway::{explain, plain, shim, why};
use serde_json::Value;

use crate::targets::{fold, sentence};

/// Longest datagram: what an interface carries.
const LONGEST: usize = 1500;

/// Whatever the bytes, parsing answers. The input is a preface and then datagrams, each behind its length (two bytes), as they arrive
/// one after another: nothing is repaired that is longer than the parity.
pub(crate) fn gateway(bytes: &[u8]) -> u64 {
    let mut shape = 3;
    if let Some(first) = bytes.first_chunk::<{ preface::LEN }>()
        && let Ok(read) = Preface::parse(first)
    {
        assert_eq!(Preface::parse(&read.to_bytes()), Ok(read));
        shape += 1;
    }
    shape += 2 * plain::read(bytes).is_some() as u64;
    let (mut repair, mut rest, mut sum) = (Repair::default(), bytes, 0);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = (u16::from_be_bytes(*length) as usize % LONGEST).min(behind.len());
        let (datagram, next) = behind.split_at(length);
        rest = next;
        let Ok(packet) = shim::read(datagram) else { continue };
        let contents = &datagram[shim::LEN..];
        shim::add_feedback(&mut sum, &packet);
        shape = shape.wrapping_mul(31) + 1 + Parity::is_in(&packet) as u64;
        if let Some(mark) = Mark::read(&packet) {
            assert_eq!(Mark::read(&mark.packet(packet.transport.flow(), 28)), Some(mark));
            shape += 9;
        }
        if Parity::is_in(&packet) {
            for repaired in repair.take(&packet, contents) {
                assert!(!repaired.is_empty() && repaired.len() <= LONGEST + 2);
                shape = shape.wrapping_mul(31) + 7;
            }
        } else {
            repair.keep(packet.transport.packet_number(), contents);
        }
    }
    shape
}

/// Whatever the text, each reader of a gateway's texts answers: the configuration, a peer's public line, what a source of the
/// capacity says, and a report of the state. Errors are short sentences, rates those of lines.
pub(crate) fn gateway_texts(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let mut shape = match Config::parse(&text) {
        Ok(config) => {
            assert!(config.peers.iter().all(|peer| !peer.public_keys().is_empty() && !peer.networks.is_empty()));
            assert!(config.wan.controller_config().is_some(), "every protocol that is accepted has a law");
            assert!(config.fixed_changes(&config).is_empty());
            5 + config.peers.len() as u64
        }
        Err(message) => sentence(&message),
    };
    if let Some(key) = PublicKey::parse(&text) {
        assert_eq!(PublicKey::parse(&key.line()), Some(key));
        shape += 1;
    }
    for source in sources() {
        match source.rate_in(&text) {
            Ok(rate) => {
                assert!((8_000..=100_000_000_000).contains(&rate.0), "{rate:?} is no rate of a line");
                shape = fold(shape, b"rate");
            }
            Err(message) => shape = fold(shape, &sentence(&message).to_be_bytes()),
        }
    }
    if let Ok(report) = serde_json::from_str::<Value>(&text) {
        assert!(!why::why(&report, &report).is_empty() && !explain::table(&report, None).is_empty());
        shape = fold(shape, &[report.is_object() as u8]);
    }
    shape
}

/// A source that gives lines, and one that gives JSON.
fn sources() -> [Source; 2] {
    let floor = "floor = \"1Mbit/s\"\n";
    let of = |more: &str| toml::from_str(&format!("{floor}{more}")).expect("a source");
    [of("file = \"rate\"\nunit = 1000.0"), of("url = \"http://192.0.2.1/\"\npointer = \"/up/rate\"\nunit = 1000.0")]
}
