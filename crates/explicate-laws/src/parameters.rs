//! Declared parameters: bounds, defaults, words and names.

use std::collections::BTreeSet;

use explicate_core::api::AnyProtocol;
use explicate_core::endpoint;
use explicate_core::params::{Param, Unit};
use explicate_core::recovery::COMMON;
use explicate_core::registry::RECOVERIES;

/// The parameters of a protocol and of its routers are sound, and have other names than those of recoveries and flows.
pub fn parameters_are_sound(p: &'static AnyProtocol) {
    are_sound(p.name(), p.params());
    are_sound(p.name(), p.router_params());
    names_are_unique(p.name(), [p.router_params()]);
    for r in RECOVERIES {
        let owner = format!("{}/{}", p.name(), r.name());
        names_are_unique(&owner, [p.params(), COMMON, r.params(), endpoint::PARAMS]);
    }
}

/// Each parameter has a default within its bounds, a description and a source.
pub fn are_sound(owner: &str, params: &[Param]) {
    for p in params {
        let why = format!("{owner}: parameter `{}`", p.name);
        assert!(p.min <= p.max && !p.min.is_nan(), "{why} has no room between its bounds");
        assert!(p.default.is_nan() || (p.min..=p.max).contains(&p.default), "{why} has a default out of bounds");
        assert!(!p.name.is_empty() && !p.source.is_empty() && p.doc.ends_with('.'), "{why} is undocumented");
        match p.unit {
            Unit::Flag => assert!(p.default == 0.0 || p.default == 1.0, "{why} is a flag"),
            Unit::Choice(words) => {
                assert!(!words.is_empty() && p.default.fract() == 0.0, "{why} is a choice");
                assert!((p.default as usize) < words.len(), "{why} has no such choice");
                assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "{why} repeats a word");
            }
            _ => {}
        }
    }
}

/// No two parameters of these lists have one name.
pub fn names_are_unique<'a>(owner: &str, lists: impl IntoIterator<Item = &'a [Param]>) {
    let mut seen = BTreeSet::new();
    for param in lists.into_iter().flatten() {
        assert!(seen.insert(param.name), "{owner}: two parameters are called `{}`", param.name);
    }
}
