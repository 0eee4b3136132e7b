//! The promises of each parser.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use explicate_core::datagram;
use explicate_core::wire::{CONGESTION_LEN, Congestion, Extension, TRANSPORT_LEN, Transport, WireError};
use explicate_net::files::probed::{Probe, Probed};
use explicate_scenario::model::Scenario;
use explicate_scenario::problem::Problems;

/// FNV-1a.
pub(crate) fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

// ------------------------------------------------------------------------------------------------ headers

/// Whatever the bytes, parsing answers; what is accepted is given back bit by bit, and what follows a header does not matter. Without a
/// permission no probe is echoed.
pub(crate) fn headers(bytes: &[u8]) -> u64 {
    let congestion = Congestion::parse(bytes);
    if let Ok(header) = congestion {
        let length = bytes[1] as usize;
        assert_eq!(header.0, bytes[..CONGESTION_LEN]);
        assert_eq!(Congestion::parse(&bytes[..length]), Ok(header), "what follows does not matter");
        assert_eq!(Congestion::parse(&bytes[..length - 1]), Err(WireError::Short));
        assert!(header.is_present());
        let mut again = header;
        again.set_x(header.x());
        again.set_rtt(header.rtt());
        again.set_reverse_feedback(header.reverse_feedback());
        again.set_delta_throughput(header.delta_throughput());
        assert_eq!(again, header, "setters write what getters read");
    }
    let appended = Extension::parse(bytes);
    if let Some(fields) = appended {
        let long = [&bytes[..CONGESTION_LEN], &fields.to_bytes()].concat();
        assert_eq!(Extension::parse(&long), Some(fields));
    }
    let transport = Transport::parse(bytes);
    if let Ok((header, ranges)) = &transport {
        assert_eq!(header.0, bytes[..TRANSPORT_LEN]);
        assert_eq!(ranges.as_slice().len(), header.sack_count());
        assert!(ranges.as_slice().iter().all(|r| r.0 < r.1), "ranges are not empty");
        let mut again = *header;
        again.set_flags(header.flags());
        again.set_options(header.options());
        again.set_sack_count(header.sack_count());
        again.set_payload(header.payload());
        again.set_flow(header.flow());
        again.set_segment(header.segment());
        again.set_packet_number(header.packet_number());
        again.set_window(header.window());
        again.set_timestamp(header.timestamp());
        assert_eq!(again, *header, "setters write what getters read");
    }
    let probe = datagram::read(bytes).ok().and_then(|read| Probe::of(&read.packet));
    if let Some(probe) = probe {
        assert_eq!(Probe::of(&probe.to_packet()), Some(probe));
    }
    assert_eq!(Probed::new().answer(SocketAddr::from(([127, 0, 0, 1], 9)), bytes), None);
    let shape = format!(
        "{:?} {} {:?} {:?}",
        congestion.map(|h| (h.is_standard(), h.x() == 0, h.rtt() == 0, h.delta_throughput().signum())),
        appended.is_some(),
        transport.map(|(h, ranges)| (h.flags(), ranges.as_slice().len())),
        probe.map(|probe| probe.came.is_some()),
    );
    fold(1, shape.as_bytes())
}

// ---------------------------------------------------------------------------------------------- scenarios

/// Whatever the text, parsing answers with few and short messages; what parses resolves to a text that parses to itself.
pub(crate) fn scenario(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    if is_huge(&text) {
        return 0;
    }
    let sets: Vec<(String, String)> = text
        .lines()
        .filter_map(|l| l.strip_prefix("#set ")?.split_once('='))
        .map(|(key, value)| (key.trim().to_string(), value.trim().to_string()))
        .collect();
    match Scenario::parse(&text, "fuzz.toml", &seeds_of_traces(), &sets) {
        Ok(parsed) => round_trip(&parsed),
        Err(problems) => messages(&problems),
    }
}

/// Counts of five digits are good scenarios, but slow ones.
fn is_huge(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit() && c != '_').any(|run| run.trim_start_matches(['0', '_']).len() > 4)
}

/// The folder in which the seeds' traces are found.
fn seeds_of_traces() -> PathBuf {
    crate::home().join("../crates/explicate-scenario/templates")
}

fn round_trip(parsed: &Scenario) -> u64 {
    let again = Scenario::parse(&parsed.resolved, "resolved.toml", &seeds_of_traces(), &[]);
    let again = again.unwrap_or_else(|e| panic!("the resolved scenario does not parse: {e}\n{}", parsed.resolved));
    assert_eq!(parsed.resolved, again.resolved, "resolving twice is resolving once");
    // The resolved scenario has new names only, a channel's rate in place of one that it replaces, other lines, and no overrides.
    let solved = ["the old name works", "`rate` has no effect beside a channel"];
    let remains = |w: &&str| !solved.iter().any(|s| w.contains(s));
    let lasting: Vec<&str> = parsed.warnings.iter().map(|w| without_place(w)).filter(remains).collect();
    let warned: Vec<&str> = again.warnings.iter().map(|w| without_place(w)).collect();
    assert_eq!(lasting, warned, "the resolved scenario warns alike");
    assert!(parsed.flows.iter().all(|g| g.count > 0 && !g.ends.is_empty()));
    assert!(parsed.links.iter().all(|l| l.from < parsed.nodes.len() && l.to < parsed.nodes.len() && l.rate.0 > 0));
    // Its shape: which keys are there.
    let keys: BTreeSet<&str> = parsed.resolved.lines().map(|l| l.split(" = ").next().unwrap_or(l)).collect();
    keys.into_iter().fold(2, |h, key| fold(h, &without_numbers(key)))
}

/// The sentence of a warning: without its place before it, and the line of the file below it.
fn without_place(warning: &str) -> &str {
    let sentence = warning.lines().next().unwrap_or(warning);
    sentence.split_once(": ").map_or(sentence, |(_, message)| message)
}

fn messages(problems: &Problems) -> u64 {
    assert!(!problems.0.is_empty() && problems.0.len() <= 60, "{} problems", problems.0.len());
    let mut signature = 3;
    for problem in &problems.0 {
        let message = problem.to_string();
        assert!(message.len() < 5000, "a message of {} bytes", message.len());
        assert!(!message.chars().any(|c| c.is_control() && c != '\n'), "control characters in {message:?}");
        // What is quoted in between comes from the input.
        let ours = [problem.message.split(['`', '"']).next(), problem.message.rsplit(['`', '"']).next()];
        signature ^= ours.into_iter().flatten().fold(3, |h, part| fold(h, &without_numbers(part)));
    }
    signature
}

/// The signature of a message of a parser, which is not empty and not long: its last line, as excerpts stand before it.
pub(crate) fn sentence(message: &str) -> u64 {
    assert!(!message.is_empty() && message.len() < 40_000, "a message of {} bytes", message.len());
    fold(
        7,
        &without_numbers(
            message.lines().last().and_then(|line| line.split(['`', '"', '\'']).next()).unwrap_or_default(),
        ),
    )
}

fn without_numbers(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !b.is_ascii_digit() && *b != b'.').collect()
}

// ------------------------------------------------------------------------------------------------- traces

/// A trace either is refused with a sentence, or its scenario resolves and its last opportunity is what the text says.
pub(crate) fn trace(bytes: &[u8]) -> u64 {
    thread_local! {
        static FOLDER: Scratch = Scratch::new();
    }
    const SCENARIO: &str = r#"
        duration = "1s"
        [topology]
        bottleneck = { channel = [{ kind = "trace", file = "fuzz.trace" }] }
        [[flows]]
        name = "one"
        protocol = "reno"
    "#;
    FOLDER.with(|Scratch(folder)| {
        fs::write(folder.join("fuzz.trace"), bytes).expect("the trace is written");
        match Scenario::parse(SCENARIO, "fuzz.toml", folder, &[]) {
            Ok(parsed) => {
                let text = std::str::from_utf8(bytes).expect("only text is accepted");
                let values = parsed.links.iter().flat_map(|l| &l.channel).find_map(|c| c.values.file.clone());
                let values = values.expect("the link has its trace");
                assert_eq!(values.len(), text.lines().count(), "one opportunity a line");
                assert!(values.is_sorted() && values.last().is_some_and(|&end| end > 0));
                4 + values.len().min(8) as u64
            }
            Err(problems) => messages(&problems),
        }
    })
}

/// A folder that is gone when its thread is.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = base.join(format!("explicate-fuzz-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the trace");
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
