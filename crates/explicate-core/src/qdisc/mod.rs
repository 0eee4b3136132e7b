//! Queue disciplines. To add one, write its file and add its line here.

use crate::protocol::QdiscKind;

pub mod common;

macro_rules! qdiscs {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every queue discipline, in the order of this list.
        pub static QDISCS: &[&dyn QdiscKind] = &[$(&$module::$unit),*];
    };
}

qdiscs! {
    droptail::DropTail,
    red::Red,
    rem::Rem,
    pi::Pi,
    avq::Avq,
    codel::CoDel,
    fq_codel::FqCoDel,
}
