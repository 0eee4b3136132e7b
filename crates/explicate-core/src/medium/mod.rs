//! Shared media: air that several nodes use together. To add one, write its file and add its line here.
//!
//! A medium's file declares its parameters and computes what can be computed without knowing who sends when (durations,
//! error rates). The stations' state machines belong to the driver that owns the air; a simulator has them, and on a real
//! network the radio does.

use crate::protocol::MediumKind;

macro_rules! media {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every medium, in the order of this list.
        pub static MEDIA: &[&dyn MediumKind] = &[$(&$module::$unit),*];
    };
}

media! {
    dcf::Dcf,
}
