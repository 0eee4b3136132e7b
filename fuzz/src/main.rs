//! Fuzzes a parser: `explicate-fuzz TARGET [--seconds N] [--seed S]`, or repeats inputs: `explicate-fuzz TARGET FILE...`.
//!
//! An input that fails is shrunk, saved below `fuzz/artifacts` and printed with the command that repeats it. Move it to
//! `fuzz/regressions/TARGET/` with the repair: `cargo test -p explicate-fuzz` replays that folder.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]
#![expect(clippy::disallowed_methods, reason = "fuzzing lasts as long as its user said")]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use explicate_core::rng::Rng;
use explicate_fuzz::mutate::{mutate, shrink};
use explicate_fuzz::{TARGETS, Target, home};

const USAGE: &str = "usage: explicate-fuzz TARGET|all [--seconds N] [--seed S]\n       explicate-fuzz TARGET FILE...";
/// An input that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(10);

struct Options {
    targets: Vec<&'static Target>,
    seconds: f64,
    seed: u64,
    files: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or(USAGE)?;
    let targets = match Target::find(&name) {
        Some(target) => vec![target],
        None if name == "all" => TARGETS.iter().collect(),
        None => {
            let known: Vec<String> = TARGETS.iter().map(|t| format!("  {:10} {}", t.name, t.summary)).collect();
            return Err(format!("{USAGE}\nno target is called `{name}`; there are\n{}", known.join("\n")));
        }
    };
    let mut options = Options { targets, seconds: 10.0, seed: 1, files: Vec::new() };
    while let Some(arg) = args.next() {
        let mut number = |what: &str| {
            let value = args.next().and_then(|v| v.parse::<f64>().ok()).filter(|v| *v >= 0.0);
            value.ok_or_else(|| format!("{what} needs a number\n{USAGE}"))
        };
        match arg.as_str() {
            "--seconds" => options.seconds = number("--seconds")?,
            "--seed" => options.seed = number("--seed")? as u64,
            _ if arg.starts_with('-') => return Err(format!("unknown option {arg}\n{USAGE}")),
            _ => options.files.push(PathBuf::from(arg)),
        }
    }
    if !options.files.is_empty() && options.targets.len() > 1 {
        return Err(format!("name the target that reads the files\n{USAGE}"));
    }
    Ok(options)
}

/// The input that runs now, and since when.
type Running = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    if !options.files.is_empty() {
        return repeat(options.targets[0], &options.files);
    }
    let mut sound = true;
    for target in options.targets {
        sound &= fuzz(target, options.seconds, options.seed);
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs saved inputs with their panics on display.
fn repeat(target: &Target, files: &[PathBuf]) -> ExitCode {
    for file in files {
        match fs::read(file) {
            Ok(bytes) => println!("{}: signature {:016x}", file.display(), (target.run)(&bytes)),
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// Fuzzes one target in a thread of its own, watched for inputs that hang. Whether it found nothing.
fn fuzz(target: &'static Target, seconds: f64, seed: u64) -> bool {
    panic::set_hook(Box::new(|_| {}));
    let running: Running = Arc::default();
    let done = Arc::new(AtomicBool::new(false));
    let (theirs, finished) = (running.clone(), done.clone());
    let worker = thread::spawn(move || {
        let sound = search(target, seconds, seed, &theirs);
        finished.store(true, Ordering::Relaxed);
        sound
    });
    while !done.load(Ordering::Relaxed) && !worker.is_finished() {
        thread::sleep(Duration::from_millis(50));
        let now = running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, input)) = now.as_ref().filter(|(since, _)| since.elapsed() > PATIENCE) {
            report(target, input, &format!("it hangs (more than {:.0} s)", since.elapsed().as_secs_f64()));
            std::process::exit(1);
        }
    }
    let sound = worker.join();
    let _ = panic::take_hook();
    sound.unwrap_or(false)
}

/// Runs an input; the message if it panics.
fn attempt(target: &Target, input: &[u8]) -> Result<u64, String> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_else(|| "a panic".to_string())
    })
}

fn search(target: &'static Target, seconds: f64, seed: u64, running: &Running) -> bool {
    let mut rng = Rng::stream(seed, target.name);
    let mut seen = BTreeSet::new();
    let mut corpus: Vec<Vec<u8>> = vec![Vec::new()];
    let began = Instant::now();
    let mut tries: u64 = 0;
    let try_one = |input: &[u8]| {
        *running.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), input.to_vec()));
        let outcome = attempt(target, input);
        *running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        outcome
    };
    let fail = |input: &[u8], message: &str| {
        let least = shrink(input, |shorter| attempt(target, shorter).is_err());
        report(target, &least, message);
        false
    };
    for (_, input) in target.seeds() {
        match try_one(&input) {
            Ok(signature) => _ = seen.insert(signature),
            Err(message) => return fail(&input, &message),
        }
        corpus.push(input);
    }
    let seeds = corpus.len() - 1;
    while began.elapsed().as_secs_f64() < seconds {
        let pick = |rng: &mut Rng| (rng.next_u64() % corpus.len() as u64) as usize;
        let (one, other) = (pick(&mut rng), pick(&mut rng));
        let input = mutate(&mut rng, &corpus[one], &corpus[other], target.text);
        tries += 1;
        match try_one(&input) {
            Ok(signature) => {
                if seen.insert(signature) && corpus.len() < 20_000 {
                    corpus.push(input);
                }
            }
            Err(message) => return fail(&input, &message),
        }
    }
    println!(
        "{:10} {tries} inputs from {seeds} seeds in {seconds:.0} s, {} behaviours: nothing found",
        target.name,
        seen.len()
    );
    true
}

/// Saves an input that fails, and says how to repeat it.
fn report(target: &Target, input: &[u8], message: &str) {
    let hash =
        input.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3));
    let folder = home().join("artifacts").join(target.name);
    let path = folder.join(format!("{hash:016x}"));
    let saved = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input));
    let shown: &Path = home().parent().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(&path);
    eprintln!(
        "{}: {message}\n{} bytes: {:?}",
        target.name,
        input.len(),
        String::from_utf8_lossy(&input[..input.len().min(400)])
    );
    match saved {
        Ok(()) => eprintln!("repeat: cargo run --release -p explicate-fuzz -- {} {}", target.name, shown.display()),
        Err(error) => eprintln!("it could not be saved as {}: {error}", path.display()),
    }
}
