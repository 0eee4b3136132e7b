//! The entries of the registry: their parameters, documentation and names.

use std::collections::BTreeSet;

use explicate_core::endpoint;
use explicate_core::presets::{PRESETS, STACKS};
use explicate_core::recovery::COMMON;
use explicate_core::registry::{self, CHANNELS, MEDIA, QDISCS, RECOVERIES, entries, resolve};
use explicate_laws::parameters::{are_sound, names_are_unique};

#[test]
fn parameters_are_sound_and_their_names_unique() {
    are_sound("every flow", endpoint::PARAMS);
    are_sound("every recovery", COMMON);
    RECOVERIES.iter().for_each(|r| are_sound(r.name(), r.params()));
    for (name, params) in QDISCS
        .iter()
        .map(|q| (q.name(), q.params()))
        .chain(CHANNELS.iter().map(|c| (c.name(), c.params())))
        .chain(MEDIA.iter().map(|m| (m.name(), m.params())))
    {
        are_sound(name, params);
        names_are_unique(name, [params]);
    }
}

#[test]
fn entries_are_documented_and_their_names_unique() {
    let mut names = BTreeSet::new();
    for e in entries() {
        assert!(names.insert((e.kind, e.name)), "two of the kind {} are called {}", e.kind, e.name);
        assert!(!e.summary.is_empty() && !e.source.is_empty(), "{} {} says nothing of itself", e.kind, e.name);
        // A preset may have a paper's name, capitals and all.
        let lower = |b: u8| b.is_ascii_lowercase() || (e.kind == "preset" && b.is_ascii_uppercase());
        assert!(e.name.bytes().all(|b| lower(b) || b.is_ascii_digit() || b"_-".contains(&b)), "{}", e.name);
    }
}

#[test]
fn stacks_fall_back_to_tcp() {
    for stack in STACKS.iter().map(Some).chain([None]) {
        let fallback = registry::fallback(stack).unwrap();
        assert!(!fallback.protocol.explicit(), "it falls back to explicit");
        assert!(fallback.params.is_empty(), "a flow keeps no parameters of its fallback's preset");
    }
}

#[test]
fn presets_resolve() {
    for preset in PRESETS {
        let resolved = resolve(preset.name).unwrap_or_else(|why| panic!("{why}"));
        for (name, value) in preset.params {
            let lists = [resolved.protocol.params(), COMMON, resolved.recovery.params(), endpoint::PARAMS];
            let param = lists.into_iter().flatten().find(|p| p.name == *name);
            let param = param.unwrap_or_else(|| panic!("{} sets `{name}`, which is not declared", preset.name));
            assert!((param.min..=param.max).contains(value), "{} sets `{name}` out of bounds", preset.name);
        }
        for (name, value) in preset.router {
            let params = registry::controller(resolved.protocol).map_or(&[][..], |p| p.router_params());
            let param = params.iter().find(|p| p.name == *name);
            let param = param.unwrap_or_else(|| panic!("{} sets `{name}`, which no controller declares", preset.name));
            assert!((param.min..=param.max).contains(value), "{} sets `{name}` out of bounds", preset.name);
        }
    }
}
