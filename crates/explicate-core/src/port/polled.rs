//! Ports whose departures are polled: several classes on one line, or the reference port. Most ports are neither.

use alloc::boxed::Box;

use super::lanes::Lanes;
use super::reference::Reference;

/// What polls the departures of a port, if anything does. One pointer, because a network has several ports a flow.
#[derive(Default)]
pub(super) struct Polled(Option<Box<Form>>);

enum Form {
    Lanes(Lanes),
    Reference(Reference),
}

impl Polled {
    /// By a scheduler of classes.
    pub(super) fn by_lanes(lanes: Lanes) -> Polled {
        Polled(Some(Box::new(Form::Lanes(lanes))))
    }
    /// By the queue of a reference port.
    pub(super) fn by_reference(reference: Reference) -> Polled {
        Polled(Some(Box::new(Form::Reference(reference))))
    }
    pub(super) fn lanes(&self) -> Option<&Lanes> {
        match self.0.as_deref() {
            Some(Form::Lanes(lanes)) => Some(lanes),
            _ => None,
        }
    }
    pub(super) fn lanes_mut(&mut self) -> Option<&mut Lanes> {
        match self.0.as_deref_mut() {
            Some(Form::Lanes(lanes)) => Some(lanes),
            _ => None,
        }
    }
    pub(super) fn reference(&self) -> Option<&Reference> {
        match self.0.as_deref() {
            Some(Form::Reference(reference)) => Some(reference),
            _ => None,
        }
    }
    pub(super) fn reference_mut(&mut self) -> Option<&mut Reference> {
        match self.0.as_deref_mut() {
            Some(Form::Reference(reference)) => Some(reference),
            _ => None,
        }
    }
}
