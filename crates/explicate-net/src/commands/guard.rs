//! Behaviour as TCP where no router answers: the option, and reports of the controller in use.

use explicate_core::endpoint::{Guarding, PARAMS, Params, is_guarded, set_guarded};
use explicate_core::guard::ActiveController;
use explicate_core::units::Time;
use explicate_scenario::model::FlowGroup;
use serde_json::{Value, json};

use super::say::{complain, say};
use crate::cli::Send;
use crate::endpoint::Endpoint;
use crate::error::Result;

/// Interval between two checks of the flows.
const CHECK_INTERVAL: Time = Time::millis(100);

/// Enables the guard of a group's flows, unless the user has switched it off.
pub(super) fn set(args: &Send, group: &mut FlowGroup) {
    let off = args.guard == crate::cli::Guard::Off || Params::of(&group.values).guard == Guarding::Off;
    set_guarded(&mut group.values, !off);
    if let (Some(loss), Some(param)) = (args.air_loss, PARAMS.iter().find(|p| p.name == "air_loss")) {
        group.values.set(param, loss);
    }
    if off && group.resolved.protocol.explicit() {
        warn(group.resolved.protocol.name());
    }
}

/// Warns of a transfer of this protocol without a guard.
pub(super) fn warn(protocol: &str) {
    complain(format!(
        "warning: --guard off: where no router of {protocol} answers, nothing slows this transfer down, and OTHERS ON THE PATH STARVE; \
         for networks of your own"
    ));
}

/// The controllers by which guarded flows have sent.
pub(super) struct ControllerLog {
    protocol: &'static str,
    watches: bool,
    next: Time,
    last: Option<ActiveController>,
    /// Each change, for the report.
    pub(super) all: Vec<Value>,
}

impl ControllerLog {
    /// Of flows of this group.
    pub(super) fn new(group: &FlowGroup) -> ControllerLog {
        let watches = group.resolved.protocol.explicit() && is_guarded(&group.values);
        let next = if watches { CHECK_INTERVAL } else { Time::NEVER };
        ControllerLog { protocol: group.resolved.protocol.name(), watches, next, last: None, all: Vec::new() }
    }
    /// When the next check is due.
    pub(super) fn next(&self) -> Time {
        self.next
    }
    /// Reports the controller in use if it has changed; of several flows that of the one furthest from its own.
    pub(super) fn look(&mut self, now: Time, endpoint: &Endpoint, json: bool) -> Result<()> {
        if !self.watches {
            return Ok(());
        }
        if self.next <= now {
            self.next = now + CHECK_INTERVAL;
        }
        let answered = endpoint.sending.values().map(|f| &f.flow).filter(|flow| flow.stats().rtt_count > 0);
        let controller = answered.map(|flow| flow.active_controller()).max_by_key(|controller| *controller as u8);
        if controller.is_none() || controller == self.last {
            return Ok(());
        }
        self.last = controller;
        let (word, sentence) = match controller {
            Some(ActiveController::Fallback) if self.all.is_empty() => {
                ("tcp", "no router on the path has answered: sending as TCP".to_string())
            }
            Some(ActiveController::Fallback) => {
                ("tcp", "no router on the path answers any more: sending as TCP".to_string())
            }
            Some(ActiveController::Limited) => (
                "limited",
                format!("the path is congested where no router answers: {} within TCP's window", self.protocol),
            ),
            _ => ("own", format!("routers on the path answer: sending by {}", self.protocol)),
        };
        self.all.push(json!({ "seconds": now.to_seconds(), "law": word, "told": sentence }));
        if json { Ok(()) } else { say(format!("{:6.2} s  {sentence}", now.as_secs_f64())) }
    }
}
