//! Bytes from the wire: parsers return for any input, and emit the bytes that they accept.

use explicate_core::wire::{CONGESTION_LEN, Congestion, Extension, TRANSPORT_LEN, Transport, WireError};
use explicate_laws::random::Dice;

fn bytes(dice: &mut Dice) -> Vec<u8> {
    let mut b: Vec<u8> = (0..dice.below(64)).map(|_| dice.below(256) as u8).collect();
    if dice.flip(0.7) && b.len() > 2 {
        b[1] = [20, 28, 21, 0][dice.below(4) as usize];
        b[2] = [0x31, 0x32, 0x33, 0x21][dice.below(4) as usize];
    }
    b
}

#[test]
fn congestion_headers() {
    let mut dice = Dice::new(1, "congestion headers");
    let mut accepted = 0;
    for _ in 0..200_000 {
        let b = bytes(&mut dice);
        let Ok(h) = Congestion::parse(&b) else { continue };
        accepted += 1;
        assert_eq!(h.0, b[..CONGESTION_LEN]);
        assert_eq!(Congestion::parse(&b[..b[1] as usize]), Ok(h), "what follows does not matter");
        assert_eq!(Congestion::parse(&b[..b[1] as usize - 1]), Err(WireError::Short));
        let mut again = h;
        again.set_x(h.x());
        again.set_rtt(h.rtt());
        again.set_reverse_feedback(h.reverse_feedback());
        again.set_delta_throughput(h.delta_throughput());
        assert_eq!(again, h);
        if let Some(fields) = Extension::parse(&b) {
            assert_eq!(Extension::parse(&[&h.0[..], &fields.to_bytes()].concat()), Some(fields));
        }
    }
    assert!(accepted > 10_000);
}

#[test]
fn transport_headers() {
    let mut dice = Dice::new(1, "transport headers");
    let mut accepted = 0;
    for _ in 0..200_000 {
        let b = bytes(&mut dice);
        let Ok((h, ranges)) = Transport::parse(&b) else { continue };
        accepted += 1;
        assert_eq!(h.0, b[..TRANSPORT_LEN]);
        assert_eq!(ranges.as_slice().len(), h.sack_count());
        assert!(ranges.as_slice().iter().all(|r| r.0 < r.1));
        let mut again = h;
        again.set_flags(h.flags());
        again.set_options(h.options());
        again.set_sack_count(h.sack_count());
        again.set_payload(h.payload());
        again.set_flow(h.flow());
        again.set_segment(h.segment());
        again.set_packet_number(h.packet_number());
        again.set_window(h.window());
        again.set_timestamp(h.timestamp());
        assert_eq!(again, h);
    }
    assert!(accepted > 10_000);
}
