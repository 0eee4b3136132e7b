//! The key of this end, and the keys that it trusts.
//!
//! A state folder has three files: `key`, made at the first use; `receivers`, lines of an address and a public key, which `send` looks
//! addresses up in; and `senders`, the public keys that `recv` accepts. Two ends are paired by one line, an *invitation*: the
//! receiver prints its public key and a secret that is valid once, and the sender proves with the secret that it was invited.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use crate::digest::sha256;
use crate::error::{Context, Error, Result};
use crate::gateway::identity::{Identity, PublicKey, keygen};
use crate::hex::{hex, unhex};

/// What an invitation begins with.
const LABEL: &str = "explicate-pair-1:";
/// Bytes of a secret.
pub const SECRET: usize = 16;

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Failed("cannot read random bytes".to_string()))?;
    Ok(bytes)
}

/// What a receiver gives to a sender, as one line.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The receiver's key.
    pub key: PublicKey,
    /// Valid once.
    pub secret: [u8; SECRET],
}

impl Invitation {
    /// A new one of this receiver.
    pub fn new(key: PublicKey) -> Result<Invitation> {
        Ok(Invitation { key, secret: random()? })
    }
    /// The line.
    pub fn line(&self) -> String {
        format!("{LABEL}{}:{}", self.key.digits(), hex(&self.secret))
    }
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Invitation> {
        let parsed = || {
            let (key, secret) = line.trim().strip_prefix(LABEL)?.split_once(':')?;
            Some(Invitation { key: PublicKey::of_digits(key)?, secret: unhex(secret)? })
        };
        parsed().ok_or_else(|| {
            Error::Input(format!("--pair needs the whole line that `recv` printed, which begins with {LABEL}"))
        })
    }
    /// Whether that is its secret. What is compared are digests, so that the time says nothing about the secret.
    pub fn is_secret(&self, secret: &[u8; SECRET]) -> bool {
        sha256(&self.secret) == sha256(secret)
    }
}

/// A state folder.
#[derive(Clone)]
pub struct State(PathBuf);

impl State {
    /// Opens a folder, and makes it if it is not there; without one that of the user.
    pub fn open(folder: Option<&Path>) -> Result<State> {
        let folder = match folder {
            Some(folder) => folder.to_path_buf(),
            None => default_folder()?,
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.or_fail(|| format!("make the folder {}", folder.display()))?;
        Ok(State(folder))
    }
    /// The key of this end, which is made if there is none.
    pub fn identity(&self) -> Result<Identity> {
        let path = self.0.join("key");
        if !path.exists() {
            keygen(&path)?;
        }
        Identity::load(&path)
    }
    /// The key that this receiver was paired with.
    pub fn receiver(&self, address: &str) -> Result<Option<PublicKey>> {
        let lines = self.lines("receivers")?;
        let found = lines.iter().enumerate().find_map(|(at, line)| {
            let (known, key) = line.split_once(' ')?;
            (known == address).then(|| self.key("receivers", at, key))
        });
        found.transpose()
    }
    /// Stores the key of a receiver, in place of an earlier one.
    pub fn add_receiver(&self, address: &str, key: PublicKey) -> Result<()> {
        let mut lines = self.lines("receivers")?;
        lines.retain(|line| line.split(' ').next() != Some(address));
        lines.push(format!("{address} {}", key.digits()));
        let (path, new) = (self.0.join("receivers"), self.0.join("receivers.new"));
        fs::write(&new, lines.join("\n") + "\n")
            .and_then(|()| fs::rename(&new, &path))
            .or_fail(|| format!("write {}", path.display()))
    }
    /// The senders that are accepted.
    pub fn senders(&self) -> Result<Vec<PublicKey>> {
        let lines = self.lines("senders")?;
        let keys = lines.iter().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        keys.map(|(at, line)| self.key("senders", at, line.split(' ').next().unwrap_or(line))).collect()
    }
    /// Accepts a sender from now on.
    pub fn add_sender(&self, key: PublicKey, from: &str) -> Result<()> {
        let path = self.0.join("senders");
        let file = File::options().append(true).create(true).mode(0o600).open(&path);
        file.and_then(|mut file| writeln!(file, "{} {from}", key.digits()).and_then(|()| file.sync_all()))
            .or_fail(|| format!("write {}", path.display()))
    }

    fn lines(&self, name: &str) -> Result<Vec<String>> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.lines().map(|line| line.trim().to_string()).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::Failed(format!("cannot read {}: {error}", path.display()))),
        }
    }
    fn key(&self, name: &str, at: usize, digits: &str) -> Result<PublicKey> {
        PublicKey::of_digits(digits.trim()).ok_or_else(|| {
            let path = self.0.join(name);
            Error::Input(format!("{}:{}: not a public key; remove the line and pair again", path.display(), at + 1))
        })
    }
}

/// `explicate` in the folder of the user's configuration.
fn default_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    base.map(|base| base.join("explicate"))
        .ok_or_else(|| Error::Input("there is no home folder to keep keys in: name one by --state DIR".to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_paired_is_found_again() {
        let folder = std::env::temp_dir().join(format!("explicate-pairing-{}", std::process::id()));
        let state = State::open(Some(&folder)).unwrap();
        let own = state.identity().unwrap().public;
        assert_eq!(state.identity().unwrap().public, own, "the key is made once");
        assert_eq!(state.receiver("gw").unwrap(), None);
        let other = PublicKey::of_digits(&"5a".repeat(32)).unwrap();
        state.add_receiver("gw", other).unwrap();
        state.add_receiver("gw:1", own).unwrap();
        state.add_receiver("gw", own).unwrap();
        assert_eq!(state.receiver("gw").unwrap(), Some(own));
        assert_eq!(fs::read_to_string(folder.join("receivers")).unwrap().lines().count(), 2);
        state.add_sender(other, "10.0.0.1").unwrap();
        assert_eq!(state.senders().unwrap(), [other]);
        fs::write(folder.join("senders"), "# mine\n\nnonsense\n").unwrap();
        assert!(state.senders().unwrap_err().to_string().contains("senders:3: not a public key"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_invitation_is_one_line() {
        let key = PublicKey::of_digits(&"5a".repeat(32)).unwrap();
        let invitation = Invitation::new(key).unwrap();
        let read = Invitation::parse(&format!(" {}\n", invitation.line())).unwrap();
        assert!(read == invitation && read.is_secret(&invitation.secret) && !read.is_secret(&[0; SECRET]));
        for bad in ["", "explicate-pair-1:00:00", &invitation.line()[..100], &key.line()] {
            assert!(Invitation::parse(bad).is_err(), "{bad}");
        }
    }
}
