//! What is sent, and where it goes: bytes by segment number.

mod disk;
mod stock;
pub mod store;
mod supply;

pub use stock::Stock;
pub use supply::Supply;
