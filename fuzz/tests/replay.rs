//! The committed inputs of every target, replayed: seeds still say something, and what once failed still holds.

use explicate_core::rng::Rng;
use explicate_fuzz::mutate::{mutate, shrink};
use explicate_fuzz::{TARGETS, home, inputs};

#[test]
fn corpora_and_regressions() {
    for target in TARGETS {
        let seeds = target.seeds();
        assert!(seeds.len() >= 3, "{} has no corpus", target.name);
        for (path, input) in seeds {
            let signature = std::panic::catch_unwind(|| (target.run)(&input));
            let signature = signature.unwrap_or_else(|_| panic!("{}: {} fails", target.name, path.display()));
            assert_eq!(signature, (target.run)(&input), "{}: {} does not repeat", target.name, path.display());
        }
    }
}

#[test]
fn a_few_mutations_of_each() {
    for target in TARGETS {
        let seeds = target.seeds();
        let mut rng = Rng::stream(1, target.name);
        for i in 0..2000 {
            let (one, other) = (&seeds[i % seeds.len()].1, &seeds[(i / 7) % seeds.len()].1);
            (target.run)(&mutate(&mut rng, one, other, target.text));
        }
    }
}

#[test]
fn shrinking_keeps_what_matters() {
    let noisy = b"some words, then the one that BREAKS it, and more words after it".to_vec();
    let least = shrink(&noisy, |input| input.windows(6).any(|w| w == b"BREAKS"));
    assert_eq!(least, b"BREAKS");
}

#[test]
fn every_folder_belongs_to_a_target() {
    for kind in ["corpus", "regressions"] {
        for entry in std::fs::read_dir(home().join(kind)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            assert!(TARGETS.iter().any(|t| name == t.name), "fuzz/{kind}/{name:?} is nobody's");
        }
    }
    assert!(inputs(&home().join("nowhere")).is_empty());
}
