//! Code that several channels share.

pub mod bit_chain;
pub(super) mod pieces;
pub mod placing;
pub mod reed_solomon;
pub mod symbol_error;
