//! Metrics of `explicated recv`.

use explicate_core::units::{Time, per_second};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::endpoint::message::Verdict;
use crate::endpoint::receiving::Ended;

/// Sums over flows that have ended, and the rate since the last report.
#[derive(Default)]
pub(super) struct Tally {
    flows: u64,
    files: u64,
    failed: u64,
    payload: u64,
    before: (Time, u64),
}

impl Tally {
    /// Adds a flow that has ended.
    pub(super) fn add(&mut self, ended: &Ended) {
        self.flows += 1;
        self.payload += ended.payload;
        match &ended.file {
            Some((_, Some(Verdict::Same))) => self.files += 1,
            Some(_) => self.failed += 1,
            None => {}
        }
    }
    /// All counters; `None` if the last report was less than a second ago.
    pub(super) fn report(&mut self, endpoint: &Endpoint) -> Option<Value> {
        let (now, receivers) = (endpoint.now(), endpoint.receivers.as_ref()?);
        let span = now.since(self.before.0);
        if span < Time::secs(1) {
            return None;
        }
        let payload = self.payload + receivers.flows.values().map(|f| f.receiver.stats().payload).sum::<u64>();
        let rate = 8.0 * per_second(payload.saturating_sub(self.before.1), span);
        self.before = (now, payload);
        let counters = &receivers.counters;
        let answered = |known| receivers.flows.values().filter(|f| f.answers.known == Some(known)).count();
        Some(json!({
            "time_s": now.to_seconds(),
            "flows": receivers.flows.len(),
            "flows_answered": answered(true),
            "flows_unanswered": answered(false),
            "bits_per_second": rate,
            "payload_bytes": payload,
            "ended": self.flows,
            "files_whole": self.files,
            "files_failed": self.failed,
            "malformed": endpoint.malformed,
            "strays": counters.strays,
            "misfits": counters.misfits,
            "no_room": counters.no_room,
            "refused": counters.refused,
            "without_key": counters.without_key,
            "too_many": counters.too_many,
        }))
    }
}
