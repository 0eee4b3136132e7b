//! Changes an input a little: bytes for binary targets, tokens and lines for texts.

use explicate_core::rng::Rng;

/// Longest input that mutation makes, bytes.
const LONGEST: usize = 1 << 14;

/// Pieces that mean something to a parser of scenarios or traces, or are at the edge of meaning something.
const TOKENS: &[&str] = &[
    "\"",
    "'",
    "\"\"\"",
    "=",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ".",
    ",",
    "\n",
    "\r\n",
    "\t",
    "#",
    "-",
    "+",
    "_",
    "%",
    "\u{e9}",
    "\u{0}",
    "\u{feff}",
    "0",
    "1",
    "-1",
    "9999",
    "0x10",
    "1e3",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-308",
    "true",
    "false",
    "1979-05-27",
    "\"0s\"",
    "\"1ms\"",
    "\"1e-9s\"",
    "\"99999999s\"",
    "\"80ms \"",
    "\"10bit/s\"",
    "\"1Tbit/s\"",
    "\"54Mbit\"",
    "\"1B\"",
    "\"1kB\"",
    "\"65535B\"",
    "\"1.0bdp\"",
    "\"0bdp\"",
    "\"1pkt\"",
    "\"1%\"",
    "\"100.1%\"",
    "\"50/s\"",
    "\"auto\"",
    "\"none\"",
    "\"unlimited\"",
    "\"long\"",
    "\"back\"",
    "\"reverse\"",
    "\"cross\"",
    "\"cross.1\"",
    "\"r1->r2\"",
    "\"dumbbell\"",
    "\"chain\"",
    "\"parking_lot\"",
    "\"explicit\"",
    "\"xcp\"",
    "\"reno/sack\"",
    "\"droptail\"",
    "\"red\"",
    "\"trace\"",
    "\"steps.trace\"",
    "[[link]]\n",
    "[[node]]\n",
    "[[flows]]\n",
    "[sampling]\n",
    "[sweep]\n",
    "[topology]\n",
    "kind = ",
    "name = ",
    "count = ",
    "rate = ",
    "delay = ",
    "queue = ",
    "limit = ",
    "channel = [",
    "params = { ",
    "start = { spread = \"1s\" }\n",
    "path = [\"s0\", \"r1\", \"r2\", \"d0\"]\n",
    "duplex = true\n",
    "#set seed=1\n",
    "#set link.r1->r2.queue.limit=2pkt\n",
    "#set flows.0.params.min_rto=1s\n",
    "#set topology.pairs=3\n",
    "100000000000",
];

fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

/// A span of `length` elements: where it starts and ends.
fn span(rng: &mut Rng, length: usize, most: usize) -> (usize, usize) {
    let from = below(rng, length + 1);
    (from, (from + below(rng, most + 1)).min(length))
}

/// A changed copy of `input`; `other` is another good input to take pieces from.
pub fn mutate(rng: &mut Rng, input: &[u8], other: &[u8], text: bool) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..1 + below(rng, 4) {
        if text && below(rng, 8) > 0 { change_text(rng, &mut out, other) } else { change_bytes(rng, &mut out, other) }
    }
    out.truncate(LONGEST);
    out
}

fn change_bytes(rng: &mut Rng, out: &mut Vec<u8>, other: &[u8]) {
    match below(rng, 7) {
        0 if !out.is_empty() => {
            let at = below(rng, out.len());
            out[at] ^= 1 << below(rng, 8);
        }
        1 if !out.is_empty() => {
            let at = below(rng, out.len());
            out[at] = [0, 1, 0x14, 0x1c, 0x31, 0x32, 0x7f, 0x80, 0xff][below(rng, 9)];
        }
        2 if !out.is_empty() => {
            let at = below(rng, out.len());
            out[at] = rng.next_u64() as u8;
        }
        3 => {
            let (from, to) = span(rng, out.len(), 8);
            out.drain(from..to);
        }
        4 => {
            let at = below(rng, out.len() + 1);
            let more: Vec<u8> = (0..1 + below(rng, 8)).map(|_| rng.next_u64() as u8).collect();
            out.splice(at..at, more);
        }
        5 => {
            let at = below(rng, out.len() + 1);
            out.truncate(at);
        }
        _ => {
            let (from, to) = span(rng, other.len(), 32);
            let at = below(rng, out.len() + 1);
            out.splice(at..at, other[from..to].iter().copied());
        }
    }
}

fn change_text(rng: &mut Rng, out: &mut Vec<u8>, other: &[u8]) {
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> { bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect() };
    match below(rng, 7) {
        0 => {
            let (from, to) = span(rng, out.len(), 12);
            out.splice(from..to, TOKENS[below(rng, TOKENS.len())].bytes());
        }
        1 => {
            // In place of a whole value: what stands between `=` and the end of its line or a comma.
            let starts: Vec<usize> = (0..out.len()).filter(|&i| out[i] == b'=').collect();
            if starts.is_empty() {
                return;
            }
            let from = starts[below(rng, starts.len())] + 1;
            let to = out[from..].iter().position(|b| matches!(b, b'\n' | b',' | b'}')).map_or(out.len(), |n| from + n);
            out.splice(from..to, TOKENS[below(rng, TOKENS.len())].bytes());
        }
        2 => {
            let (from, to) = span(rng, out.len(), 12);
            out.drain(from..to);
        }
        3 => {
            let mut all = lines(out);
            let (from, to) = span(rng, all.len(), 3);
            all.drain(from..to);
            *out = all.concat();
        }
        4 => {
            let mut all = lines(out);
            if all.len() > 1 {
                let (a, b) = (below(rng, all.len()), below(rng, all.len()));
                all.swap(a, b);
                *out = all.concat();
            }
        }
        5 => {
            let (mut all, theirs) = (lines(out), lines(other));
            let (from, to) = span(rng, theirs.len(), 6);
            let at = below(rng, all.len() + 1);
            all.splice(at..at, theirs[from..to].iter().cloned());
            *out = all.concat();
        }
        _ => {
            let digits: Vec<usize> = (0..out.len()).filter(|&i| out[i].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let at = digits[below(rng, digits.len())];
                out[at] = b'0' + below(rng, 10) as u8;
            }
        }
    }
}

/// The shortest input found, by leaving out ever smaller pieces, that `still` holds for. Tries at most a few thousand.
pub fn shrink(input: &[u8], still: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut tries = 0;
    let mut piece = best.len().div_ceil(2);
    while piece > 0 && tries < 3000 {
        let mut at = 0;
        while at < best.len() && tries < 3000 {
            let mut shorter = best.clone();
            shorter.drain(at..(at + piece).min(best.len()));
            tries += 1;
            if still(&shorter) { best = shorter } else { at += piece }
        }
        piece /= 2;
    }
    best
}
