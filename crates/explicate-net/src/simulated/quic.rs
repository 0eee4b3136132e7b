//! What quinn draws or reads outside of `rng_seed`: numbers of connections, the key of tokens, and the time in them.
//!
//! A Retry (RFC 9000 section 17.2.5) is not encrypted, and its token holds all three. Quinn reads it as frames in a connection that has
//! been closed: of random tokens one in some hundred is a CONNECTION_CLOSE there, behind which the connection answers no more.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use explicate_core::rng::Rng;
use quinn::{ServerConfig, TimeSource};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use ring::hkdf::{HKDF_SHA256, Salt};

use super::clock;

/// Has a server take its tokens' key from a seed, and their time from the simulated clock.
pub fn seed_tokens(server: &mut ServerConfig, seed: &[u8]) {
    let key = Salt::new(HKDF_SHA256, &[]).extract(seed);
    server.token_key(std::sync::Arc::new(key)).time_source(std::sync::Arc::new(Simulated));
}

struct Simulated;

impl TimeSource for Simulated {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(clock::elapsed())
    }
}

/// Numbers of connections: four bytes drawn from a stream, and their product with an odd key.
#[derive(Clone)]
pub struct Numbers {
    draws: Rng,
    key: u32,
}

impl Numbers {
    /// Those of a seed; a program with the same key knows them when it has started anew.
    pub fn of(seed: u64, stream: &str, key: u64) -> Numbers {
        Numbers { draws: Rng::stream(seed, stream), key: key as u32 | 1 }
    }
}

impl ConnectionIdGenerator for Numbers {
    fn generate_cid(&mut self) -> ConnectionId {
        let drawn = self.draws.next_u64() as u32;
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&drawn.to_be_bytes());
        bytes[4..].copy_from_slice(&drawn.wrapping_mul(self.key).to_be_bytes());
        ConnectionId::new(&bytes)
    }
    fn validate(&self, number: &ConnectionId) -> Result<(), InvalidCid> {
        let word = |at: usize| number.get(at..at + 4).and_then(|word| Some(u32::from_be_bytes(word.try_into().ok()?)));
        match (word(0), word(4)) {
            (Some(drawn), Some(product)) if drawn.wrapping_mul(self.key) == product => Ok(()),
            _ => Err(InvalidCid),
        }
    }
    fn cid_len(&self) -> usize {
        8
    }
    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
