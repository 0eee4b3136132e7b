//! Each state machine alone, driven through its trait.

mod channels;
mod disciplines;
mod queue;
mod recoveries;
mod routers;
mod senders;

use explicate_core::wire::{Ecn, Packet};

use crate::Dice;

const OPERATIONS: u32 = 20_000;
const SEEDS: u64 = 8;

fn data(dice: &mut Dice) -> Packet {
    let mut p = Packet { ip_len: 40 + dice.number(1461) as u16, congestion: dice.congestion(), ..Packet::EMPTY };
    if dice.flip(0.3) {
        p.set_ecn(Ecn::Capable0);
    }
    p.transport.set_flow(dice.number(20));
    p.transport.set_segment(dice.number(1000));
    if dice.flip(0.2) {
        p.transport.set_flags(dice.number(256) as u8);
    }
    p.transport.set_code(dice.number(4) as u8);
    p
}
