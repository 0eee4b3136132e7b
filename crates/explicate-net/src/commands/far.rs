//! The receiver that a command names, and the keys of both ends.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use explicate_core::units::Rate;
use quinn::Endpoint;

use crate::cli::Keys;
use crate::error::{Error, Result};
use crate::files::pairing::{Invitation, State};
use crate::files::sending::{Counters, Failure, Sending, limits};
use crate::files::socket;
use crate::gateway::controller::ControllerConfig;
use crate::gateway::identity::{Identity, PublicKey};
use crate::gateway::transport::Transport;

/// A receiver, by its name, its address and its key; and this end's keys.
pub(super) struct Far<'a> {
    pub(super) name: &'a str,
    address: SocketAddr,
    key: PublicKey,
    state: State,
    pub(super) identity: Identity,
    /// Shown until this end is paired.
    invitation: Option<Invitation>,
}

impl<'a> Far<'a> {
    /// The receiver of this name and address: with the key of the line of `--pair`, or that which it was paired with.
    pub(super) fn find((name, address): (&'a str, SocketAddr), keys: &Keys) -> Result<Far<'a>> {
        let state = State::open(keys.state.as_deref())?;
        let identity = state.identity()?;
        let invitation = keys.pair.as_deref().map(Invitation::parse).transpose()?;
        let known = match &invitation {
            Some(invitation) => Some(invitation.key),
            None => state.receiver(name)?,
        };
        let Some(key) = known else {
            let message =
                "this end is not paired with it: run `explicated recv --pair` there, and pass its line by --pair";
            return Err(Error::Input(format!("{name}: {message}")));
        };
        Ok(Far { name, address, key, state, identity, invitation })
    }
    /// An endpoint that connects to it.
    pub(super) fn open(&self, config: ControllerConfig, rate: Rate) -> Result<(Endpoint, Transport)> {
        let any: SocketAddr = match self.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        socket::open(any, &self.identity, config, rate, limits(), None)
    }
    /// Connects to it.
    pub(super) async fn connect(
        &self,
        (endpoint, transport): (&Endpoint, &Transport),
        counters: Arc<Counters>,
    ) -> std::result::Result<Sending, Failure> {
        let ends = (endpoint, transport, &self.identity);
        Sending::connect(ends, (self.address, self.name), self.key, counters).await
    }
    /// Pairs this end with it, the first time.
    pub(super) async fn pair(&mut self, sending: &Sending) -> std::result::Result<(), Failure> {
        let Some(invitation) = &self.invitation else { return Ok(()) };
        sending.pair(invitation).await?;
        self.state.add_receiver(self.name, self.key).map_err(|e| Failure::Final(e.to_string()))?;
        // Not before: a connection that was lost meanwhile shows it again by the next one.
        self.invitation = None;
        Ok(())
    }
}
