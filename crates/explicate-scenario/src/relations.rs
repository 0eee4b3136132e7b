//! Settings of which one makes another useless. The run would say nothing: a discipline whose target its queue never reaches
//! is drop-tail under another name. They are looked for when `auto` and `bdp` have values. One warning a cause, with its line and what
//! to write.

use explicate_core::units::Time;

use crate::quantity::{self, show};

mod flows;
mod hosts;
mod media;
mod queues;
mod times;

pub(crate) use self::flows::flows;
pub(crate) use self::hosts::hosts;
pub(crate) use self::media::media;
pub(crate) use self::queues::queues;
pub(crate) use self::times::over_time;

fn written(time: Time) -> String {
    show(time.0 as f64, &quantity::TIME)
}
