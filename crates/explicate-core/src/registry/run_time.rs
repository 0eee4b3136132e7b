//! Protocols of other crates and other languages, registered at run time.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::sync::{PoisonError, RwLock};

use super::PROTOCOLS;
use crate::api::AnyProtocol;
use crate::presets::PRESETS;

static ADDED: RwLock<Vec<&'static AnyProtocol>> = RwLock::new(Vec::new());

/// Why a protocol was not registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegisterError {
    /// The name belongs to a protocol of this crate, a preset or a registered protocol.
    Taken(String),
    /// The name is not valid where scenarios and commands name protocols.
    Name(String),
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

fn put(protocol: &'static AnyProtocol, replaces: bool) -> Result<(), RegisterError> {
    let name = protocol.name();
    let usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(usable) || ["auto", "none"].contains(&name) {
        return Err(RegisterError::Name(name.into()));
    }
    if PROTOCOLS.iter().any(|p| p.name() == name) || PRESETS.iter().any(|p| p.name == name) {
        return Err(RegisterError::Taken(name.into()));
    }
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    match added.iter_mut().find(|p| p.name() == name) {
        Some(_) if !replaces => return Err(RegisterError::Taken(name.into())),
        Some(place) => *place = protocol,
        None => added.push(protocol),
    }
    Ok(())
}
