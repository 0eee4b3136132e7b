//! Protocols of other crates and other languages, registered at run time.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::sync::{PoisonError, RwLock};

use super::{PROTOCOLS, RECOVERIES};
use crate::api::AnyProtocol;
use crate::endpoint;
use crate::params::Param;
use crate::presets::PRESETS;
use crate::recovery::COMMON;
use crate::wire::{CONGESTION_LEN, EXTENDED_LEN};

static ADDED: RwLock<Vec<&'static AnyProtocol>> = RwLock::new(Vec::new());

/// Why a protocol was not registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegisterError {
    /// The name belongs to a protocol of this crate, a preset or a registered protocol.
    Taken(String),
    /// The name is not valid where scenarios and commands name protocols.
    Name(String),
    /// A parameter that scenarios could not set: its name, and the reason.
    Parameter(&'static str, String),
    /// Its congestion header has no length that packets have.
    HeaderLength(u16),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Taken(name) => {
                write!(f, "the name `{name}` is taken; `explicate protocols` lists all names, choose another")
            }
            RegisterError::Name(name) => write!(
                f,
                "`{name}` cannot be the name of a protocol; use letters, digits, - and _, and neither `auto` nor `none`"
            ),
            RegisterError::Parameter(name, why) => write!(f, "parameter `{name}`: {why}"),
            RegisterError::HeaderLength(length) => write!(
                f,
                "HEADER_LEN is {length}; a congestion header has {CONGESTION_LEN} or {EXTENDED_LEN} bytes, whatever a \
                 protocol uses of them, and 0 if there is none"
            ),
        }
    }
}

impl core::error::Error for RegisterError {}

/// Registered protocols, in order.
pub(super) fn added() -> Vec<&'static AnyProtocol> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Registers a protocol for this process. Scenarios that are parsed afterwards can name it.
pub fn register(protocol: &'static AnyProtocol) -> Result<(), RegisterError> {
    put(protocol, false)
}

/// As [`register`], but replaces a protocol of that name that was registered before. Scenarios that were parsed
/// before keep the earlier protocol.
pub fn replace(protocol: &'static AnyProtocol) -> Result<(), RegisterError> {
    put(protocol, true)
}

/// Checks what the laws check of the parameters of this crate's protocols, as far as a scenario depends on it.
fn check_params(protocol: &AnyProtocol) -> Result<(), RegisterError> {
    let refused = |param: &Param, why: String| Err(RegisterError::Parameter(param.name, why));
    for list in [protocol.params(), protocol.router_params()] {
        for (i, param) in list.iter().enumerate() {
            if list[..i].iter().any(|p| p.name == param.name) {
                return refused(param, "it is declared twice".into());
            }
            if !param.default.is_nan() && !(param.min..=param.max).contains(&param.default) {
                let Param { default, min, max, .. } = param;
                return refused(param, format!("the default {default} is not from {min} to {max}"));
            }
        }
    }
    // A flow's parameters are those of its protocol, its recovery and its endpoint together.
    let recoveries = RECOVERIES.iter().map(|r| r.params());
    let others = || [endpoint::PARAMS, COMMON].into_iter().chain(recoveries.clone()).flatten();
    match protocol.params().iter().find(|param| others().any(|other| other.name == param.name)) {
        Some(param) => refused(param, "flows have another of this name, of the recovery or the endpoint".into()),
        None => Ok(()),
    }
}

fn put(protocol: &'static AnyProtocol, replaces: bool) -> Result<(), RegisterError> {
    let name = protocol.name();
    let usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(usable) || ["auto", "none"].contains(&name) {
        return Err(RegisterError::Name(name.into()));
    }
    if PROTOCOLS.iter().any(|p| p.name() == name) || PRESETS.iter().any(|p| p.name == name) {
        return Err(RegisterError::Taken(name.into()));
    }
    let length = protocol.congestion_header_len();
    if ![0, CONGESTION_LEN, EXTENDED_LEN].contains(&(length as usize)) {
        return Err(RegisterError::HeaderLength(length));
    }
    check_params(protocol)?;
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    match added.iter_mut().find(|p| p.name() == name) {
        Some(_) if !replaces => return Err(RegisterError::Taken(name.into())),
        Some(place) => *place = protocol,
        None => added.push(protocol),
    }
    Ok(())
}
