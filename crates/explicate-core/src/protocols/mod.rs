//! Congestion control protocols. To add one, write its file and add its line here: everything else derives from it.

use crate::protocol::Protocol;

mod xcp_router;

macro_rules! protocols {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every protocol, in the order of this list.
        pub static PROTOCOLS: &[&dyn Protocol] = &[$(&$module::$unit),*];
    };
}

protocols! {
    reno::Reno,
    cubic::Cubic,
    xcp::Xcp,
}
