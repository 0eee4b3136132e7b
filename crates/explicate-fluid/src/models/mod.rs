//! The fluid models. To add one, write its file and add its line here.

use crate::model::Model;

mod load;
mod losses;

macro_rules! models {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every model, in the order of this list.
        pub static MODELS: &[&dyn Model] = &[$(&$module::$unit),*];
    };
}

models! {
    xcp::Xcp,
    vcp::Vcp,
    vcp_bise::VcpBise,
    abc::Abc,
    rcp::Rcp,
    reno::Reno,
    dctcp::Dctcp,
}

/// The model of a protocol.
pub fn model(protocol: &str) -> Option<&'static dyn Model> {
    MODELS.iter().copied().find(|m| m.protocol() == protocol)
}
