//! Protocols whose parts are Python classes. `python/explicate/protocols.py` has the base classes and their documentation.

mod facts;
mod machine;
mod parts;
mod values;

use explicate_core::api::RouterInit;
use explicate_core::custom::Custom;
use explicate_core::params::Info;
use explicate_core::registry::{self, RegisterError};
use explicate_core::wire::CONGESTION_LEN;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) use self::facts::{Header, PyAck, PyLoss, PyPacket, PyPortView, PySent, PyUndo};
pub(crate) use self::machine::catching;
use self::machine::interned;
use self::parts::{ReceiverClass, RouterClass, SenderClass};
pub(crate) use self::values::Declared;
use self::values::declared;

/// The class of a part, and the base class whose methods it may keep.
pub(crate) type Class = (Py<PyAny>, Py<PyAny>);

/// The protocol that Python registers.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Description {
    name: String,
    summary: String,
    source: String,
    sender: Class,
    params: Vec<Declared>,
    receiver: Option<Class>,
    router: Option<Class>,
    router_params: Vec<Declared>,
    explicit: bool,
    header: bool,
    bears_plain_routers: bool,
    controller: Option<String>,
    replace: bool,
}

/// Registers a protocol; the error states the reason for a rejection.
pub(crate) fn register(py: Python<'_>, given: Description) -> PyResult<()> {
    let (params, router_params) = (declared(given.params)?, declared(given.router_params)?);
    let unknown = |name: &str| PyValueError::new_err(format!("`controller`: no protocol is called `{name}`"));
    let controller = given.controller.as_deref().map(|name| registry::protocol(name).ok_or_else(|| unknown(name)));
    let sender = SenderClass::new(py, given.sender, params)?;
    let router = match given.router {
        Some(class) => Some(RouterClass::new(py, class, router_params)?),
        None => None,
    };
    let receiver = match given.receiver {
        Some(class) => Some(ReceiverClass::new(py, class)?),
        None => None,
    };
    let info = Info {
        name: interned(&given.name),
        summary: interned(&given.summary),
        source: interned(&given.source),
        params,
    };
    let custom = Custom {
        info: Box::leak(Box::new(info)),
        router_params,
        explicit: given.explicit,
        header_len: if given.header { CONGESTION_LEN as u16 } else { 0 },
        bears_plain_routers: given.bears_plain_routers,
        controller: controller.transpose()?,
        sender: Box::new(move |init| sender.make(init)),
        receiver: receiver.map(|class| Box::new(move || class.make()) as _),
        router: router.map(|class| Box::new(move |init: &RouterInit<'_>| class.make(init)) as _),
    };
    let custom: &'static Custom = Box::leak(Box::new(custom));
    let put = if given.replace { registry::replace } else { registry::register };
    put(custom).map_err(|error: RegisterError| PyValueError::new_err(error.to_string()))
}
