//! The data that a flow sends, and their destination: bytes by segment number.

mod disk;
mod stock;
pub mod store;
mod supply;

pub use stock::Stock;
pub use supply::Supply;
