//! Kinds of parameters, and the macros that declare them as fields of a struct.

use core::marker::PhantomData;

use super::{Param, Unit, Values};

/// The kind with which a field of a struct of [`parameters!`](crate::parameters) is declared. It determines the
/// field's type.
pub trait Kind {
    /// Type of the field.
    type Value: Copy;
    /// Number of parameters that the field stands for: one, or all those of the struct of parameters that it names.
    const COUNT: usize = 1;
    /// The value that `values` give for `name`, else `default`.
    fn read(values: &Values, name: &str, default: Self::Value) -> Self::Value;
}

/// A number with a unit.
pub trait Quantity {
    /// Its unit.
    const UNIT: Unit;
}

macro_rules! quantities {
    ($($name:ident),*) => {$(
        #[doc = concat!("A number, an `f64` in the struct: [`Unit::", stringify!($name), "`].")]
        pub struct $name;

        impl $name {
            /// Completes the declaration of a parameter.
            #[doc(hidden)]
            pub const fn declare(default: f64, param: Param) -> [Param; 1] {
                [Param { unit: Unit::$name, default, ..param }]
            }
        }
        impl Quantity for $name {
            const UNIT: Unit = Unit::$name;
        }
        impl Kind for $name {
            type Value = f64;
            fn read(values: &Values, name: &str, default: f64) -> f64 {
                values.number(name).unwrap_or(default)
            }
        }
    )*};
}
quantities!(Seconds, BitsPerSecond, Bytes, Packets, QueueLength, Number, Metres, Fraction, Decibels);

/// `true` or `false`.
pub struct Flag;

impl Flag {
    #[doc(hidden)]
    pub const fn declare(default: bool, param: Param) -> [Param; 1] {
        [Param { unit: Unit::Flag, default: default as u8 as f64, ..param }]
    }
}
impl Kind for Flag {
    type Value = bool;
    fn read(values: &Values, name: &str, default: bool) -> bool {
        values.number(name).map_or(default, |value| value != 0.0)
    }
}

/// A number that may be `auto`: an `Option` in the struct, `None` for `auto`. The documentation of the field gives
/// the meaning of `auto`.
pub struct Auto<Q>(PhantomData<Q>);

impl<Q: Quantity> Auto<Q> {
    #[doc(hidden)]
    pub const fn declare(default: Option<f64>, param: Param) -> [Param; 1] {
        let default = match default {
            Some(value) => value,
            None => f64::NAN,
        };
        [Param { unit: Q::UNIT, default, ..param }]
    }
}
impl<Q: Quantity> Kind for Auto<Q> {
    type Value = Option<f64>;
    fn read(values: &Values, name: &str, default: Option<f64>) -> Option<f64> {
        values.number(name).map_or(default, |value| Some(value).filter(|value| !value.is_nan()))
    }
}

macro_rules! given_apart {
    ($($(#[$about:meta])* $name:ident),*) => {$(
        $(#[$about])*
        pub struct $name;

        impl $name {
            #[doc(hidden)]
            pub const fn declare((): (), param: Param) -> [Param; 1] {
                [Param { unit: Unit::$name, default: f64::NAN, ..param }]
            }
        }
        impl Kind for $name {
            type Value = ();
            fn read(_: &Values, _: &str, (): ()) {}
        }
    )*};
}
given_apart! {
    /// A file, whose contents are in [`Values::file`]; the field is empty, and its default is `()`.
    File,
    /// Rates over time, which are in [`Values::steps`]; the field is empty, and its default is `()`.
    Steps
}

/// The common part of the declarations of all kinds; `sources` is empty or has one element.
#[doc(hidden)]
pub const fn field(name: &'static str, sources: &[&'static str], doc: &'static str) -> Param {
    let source = if sources.is_empty() { "" } else { sources[0] };
    Param::new(name, Unit::Number, 0.0, source, doc.trim_ascii())
}

/// Lists of parameters, one after the other.
///
/// # Panics
/// If the total is not `N`: at compile time, at the call.
pub const fn joined<const N: usize>(lists: &[&[Param]]) -> [Param; N] {
    let mut all = [Param::new("", Unit::Number, 0.0, "", ""); N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            all[at] = lists[list][i];
            (at, i) = (at + 1, i + 1);
        }
        list += 1;
    }
    assert!(at == N, "the lists have another length");
    all
}

/// Declares parameters as the fields of a struct: `name: Kind = default, in least..=greatest, "source";`, with a
/// comment that becomes the description. The bounds are optional.
///
/// `Kind` is a quantity ([`Seconds`], [`Fraction`], ...), [`Flag`], [`Auto`], an enum of
/// [`choices!`](crate::choices), or another such struct, whose parameters are inserted: `limit: Limit =
/// Limit::DEFAULT;`. The struct has the constants `DEFAULT` and `PARAMS`, the function `of`, which reads `Values`,
/// and the functions `with` and `params`, which read and declare the parameters with other defaults.
///
/// A name that is not declared does not compile:
/// ```compile_fail,E0609
/// # use explicate_core::params::{Fraction, Values, parameters};
/// parameters! {
///     /// What a scenario can set.
///     struct Settings {
///         /// What a loss leaves of the window.
///         keep: Fraction = 0.5, in 0.0..=1.0, "RFC 5681";
///     }
/// }
/// let keep = Settings::of(&Values::default()).kept;
/// ```
/// NaN for a parameter that may be `auto` does not compile either:
/// ```compile_fail,E0308
/// # use explicate_core::params::{Auto, Seconds, parameters};
/// parameters! {
///     /// What a scenario can set.
///     struct Settings {
///         /// Time between two packets; auto: as acknowledgements arrive.
///         gap: Auto<Seconds> = f64::NAN, "ours";
///     }
/// }
/// ```
/// An index in place of a choice does not compile either:
/// ```compile_fail,E0308
/// # use explicate_core::params::{choices, parameters};
/// choices! {
///     /// What a loss does to the window.
///     enum OnLoss { Halve = "halve", Keep = "keep" }
/// }
/// parameters! {
///     /// What a scenario can set.
///     struct Settings {
///         /// What a loss does.
///         on_loss: OnLoss = 1, "RFC 5681";
///     }
/// }
/// ```
#[macro_export]
macro_rules! parameters {
    ($(#[$about:meta])* $vis:vis struct $group:ident {
        $($(#[doc = $doc:literal])+ $name:ident: $kind:ty = $default:expr $(, in $range:expr)? $(, $source:expr)?;)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[allow(non_snake_case, reason = "scenarios write some parameters as papers do")]
        $vis struct $group {
            $($(#[doc = $doc])+ $vis $name: <$kind as $crate::params::Kind>::Value,)*
        }

        #[allow(dead_code, reason = "who reads a part needs no list of it")]
        impl $group {
            /// The defaults.
            $vis const DEFAULT: $group = $group { $($name: $default),* };
            /// The declarations, with these defaults.
            $vis const PARAMS: &'static [$crate::params::Param] = &Self::DEFAULT.params();
            /// The declarations, with the values of `self` as defaults.
            $vis const fn params(self) -> [$crate::params::Param; <$group as $crate::params::Kind>::COUNT] {
                $crate::params::joined(&[$(&<$kind>::declare(
                    self.$name,
                    $crate::params::field(stringify!($name), &[$($source)?], concat!($($doc),+))$(.within(*$range.start(), *$range.end()))?,
                )),*])
            }
            /// The given `values`; defaults for the rest.
            $vis fn of(values: &$crate::params::Values) -> $group {
                Self::DEFAULT.with(values)
            }
            /// The given `values`; the values of `self` for the rest.
            $vis fn with(self, values: &$crate::params::Values) -> $group {
                $group { $($name: <$kind as $crate::params::Kind>::read(values, stringify!($name), self.$name)),* }
            }
            #[doc(hidden)]
            $vis const fn declare(
                self,
                _: $crate::params::Param,
            ) -> [$crate::params::Param; <$group as $crate::params::Kind>::COUNT] {
                self.params()
            }
        }

        impl Default for $group {
            fn default() -> $group {
                $group::DEFAULT
            }
        }

        impl $crate::params::Kind for $group {
            type Value = $group;
            const COUNT: usize = 0 $(+ <$kind as $crate::params::Kind>::COUNT)*;
            fn read(values: &$crate::params::Values, _: &str, default: $group) -> $group {
                default.with(values)
            }
        }
    };
}

/// Declares an enum whose variants have words in scenarios, for use in [`parameters!`](crate::parameters).
#[macro_export]
macro_rules! choices {
    ($(#[$about:meta])* $vis:vis enum $choice:ident {
        $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $choice {
            $($(#[$note])* #[doc = concat!("`", $word, "`")] $variant,)+
        }

        impl $choice {
            #[doc(hidden)]
            $vis const fn declare(default: $choice, param: $crate::params::Param) -> [$crate::params::Param; 1] {
                let unit = $crate::params::Unit::Choice(&[$($word),+]);
                [$crate::params::Param { unit, default: default as u8 as f64, ..param }]
            }
        }

        impl $crate::params::Kind for $choice {
            type Value = $choice;
            fn read(values: &$crate::params::Values, name: &str, default: $choice) -> $choice {
                let index = values.number(name).map(|index| index as usize);
                index.and_then(|index| [$($choice::$variant),+].get(index).copied()).unwrap_or(default)
            }
        }
    };
}
