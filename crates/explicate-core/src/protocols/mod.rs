//! Congestion control protocols. To add one, write its file and add its line here: everything else derives from it.

use crate::api::AnyProtocol;

pub use self::common::rate_header;

pub mod common;

macro_rules! protocols {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every protocol, in the order of this list.
        pub static PROTOCOLS: &[&AnyProtocol] = &[$(&$module::$unit),*];
    };
}

protocols! {
    reno::Reno,
    cubic::Cubic,
    hstcp::Hstcp,
    bic::Bic,
    hybla::Hybla,
    westwood::Westwood,
    vegas::Vegas,
    fast::Fast,
    new_jersey::NewJersey,
    bbr::Bbr,
    xcp::Xcp,
    xcp_window::XcpWindow,
    p_xcp::PXcp,
    xcp_r::XcpR,
    xcp_linux24::XcpLinux24,
    xcp_i::XcpI,
    video::Video,
    greedy::Greedy,
    vcp::Vcp,
    vcp_bise::VcpBise,
    xtcp::Xtcp,
    video_xtcp::VideoXtcp,
    abc::Abc,
    rcp::Rcp,
    dctcp::Dctcp,
    prague::Prague,
    bbr3::Bbr3,
}
