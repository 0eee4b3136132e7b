//! Keys of gateways, and TLS between them.
//!
//! A gateway has an Ed25519 key. Peers know each other by the public keys (RFC 7250: no certificates, no authority), and either
//! end refuses a peer whose key is not in its configuration. TLS 1.3 only, without session tickets, and so without 0-RTT.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, SignatureScheme};

use crate::error::{Context, Error, Result};
use crate::hex::{hex, unhex};

/// What the key line begins with.
const LABEL: &str = "explicate-gateway-1:";
/// The SubjectPublicKeyInfo of an Ed25519 key (RFC 8410 section 4) before the 32 bytes of the key.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Application protocols (RFC 7301): of gateways, with the version of their streams, and of transfers of files.
pub const PROTOCOL: &[u8] = b"explicate-gateway/2";
/// See there.
pub const FILES: &[u8] = b"explicate-files/1";

/// A public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The line that goes into the configuration of peers.
    pub fn line(&self) -> String {
        format!("{LABEL}{}", hex(&self.0))
    }
    /// Reads such a line.
    pub fn parse(line: &str) -> Option<PublicKey> {
        unhex(line.trim().strip_prefix(LABEL)?).map(PublicKey)
    }
    /// Its bytes in hexadecimal digits.
    pub fn digits(&self) -> String {
        hex(&self.0)
    }
    /// Reads such digits.
    pub fn of_digits(digits: &str) -> Option<PublicKey> {
        unhex(digits).map(PublicKey)
    }
    fn spki(&self) -> [u8; 44] {
        let mut bytes = [0; 44];
        bytes[..12].copy_from_slice(&SPKI);
        bytes[12..].copy_from_slice(&self.0);
        bytes
    }
    /// The key that the other end of a connection has proven to have.
    pub fn of(connection: &quinn::Connection) -> Option<PublicKey> {
        let identity = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        let bytes = identity.first()?.strip_prefix(&SPKI[..])?;
        Some(PublicKey(bytes.try_into().ok()?))
    }
}

/// Which public keys an end accepts.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// These.
    These(Vec<PublicKey>),
    /// Every key whose owner signs with it: the application decides ([`PublicKey::of`]).
    Any,
}

/// The key of this gateway.
pub struct Identity {
    certified: Arc<CertifiedKey>,
    provider: Arc<CryptoProvider>,
    /// Its public part.
    pub public: PublicKey,
    /// Signs stateless resets (RFC 9000 section 10.3), so that a peer learns at once that this gateway has started anew.
    pub reset_key: ring::hmac::Key,
    /// By which this gateway knows the connection numbers that it has given out, also before it started anew.
    pub cid_key: u64,
}

/// Writes a new key to a file that only its owner may read, in a folder that is made if it is missing, and returns the public line.
pub fn keygen(path: &Path) -> Result<String> {
    if path.exists() {
        let has = Identity::load(path).map(|identity| format!("its public line is {}", identity.public.line()));
        let has = has.unwrap_or_else(|error| error.to_string());
        return Err(Error::Input(format!("{} exists and is not replaced; {has}", path.display())));
    }
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| Error::Failed("cannot read random bytes".to_string()))?;
    let pair =
        Ed25519KeyPair::from_pkcs8(key.as_ref()).map_err(|e| Error::Failed(format!("cannot make a key: {e}")))?;
    let what = || format!("write the new key {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).or_fail(|| format!("make the folder {}", folder.display()))?;
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).or_fail(what)?;
    file.write_all(format!("{}\n", hex(key.as_ref())).as_bytes()).and_then(|()| file.sync_all()).or_fail(what)?;
    let mut public = [0; 32];
    public.copy_from_slice(pair.public_key().as_ref());
    Ok(PublicKey(public).line())
}

impl Identity {
    /// Reads a key from a file, which must not be readable by others.
    pub fn load(path: &Path) -> Result<Identity> {
        let what = || format!("read the key {}", path.display());
        let mut file = File::open(path).or_fail(what)?;
        if file.metadata().or_fail(what)?.mode() & 0o077 != 0 {
            let message = format!("{}: others may read or write this key; `chmod 600` it", path.display());
            return Err(Error::Input(message));
        }
        let mut text = String::new();
        let _ = Read::by_ref(&mut file).take(1000).read_to_string(&mut text);
        let no_key = || {
            let message =
                format!("{} is no key of a gateway: `explicated gateway keygen FILE` makes one", path.display());
            Error::Input(message)
        };
        let digits = text.trim();
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok().and_then(unhex::<1>));
        let bytes: Vec<u8> = pairs.collect::<Option<Vec<[u8; 1]>>>().ok_or_else(no_key)?.concat();
        Identity::of(bytes).ok_or_else(no_key)
    }
    /// The identity of a key in PKCS #8, version 2 (RFC 5958).
    pub fn of(bytes: Vec<u8>) -> Option<Identity> {
        let pair = Ed25519KeyPair::from_pkcs8(&bytes).ok()?;
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::try_from(bytes.clone()).ok()?;
        let signing = provider.key_provider.load_private_key(private).ok()?;
        let public = PublicKey(public);
        let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.spki().to_vec())], signing));
        let secret = ring::digest::digest(&ring::digest::SHA256, &[&bytes[..], b"stateless reset"].concat());
        let reset_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_ref());
        let cid = ring::digest::digest(&ring::digest::SHA256, &[&bytes[..], b"connection numbers"].concat());
        let cid_key = cid.as_ref().iter().take(8).fold(0, |key, byte| key << 8 | *byte as u64);
        Some(Identity { certified, provider, public, reset_key, cid_key })
    }

    /// What this end presents and accepts as the one that is called by these peers.
    pub fn server(&self, peers: Vec<PublicKey>) -> Result<QuicServerConfig> {
        self.server_of(PROTOCOL, Accepted::These(peers))
    }
    /// The same for an application protocol.
    pub fn server_of(&self, protocol: &[u8], accepted: Accepted) -> Result<QuicServerConfig> {
        let verifier = Arc::new(Verifier { accepted, provider: self.provider.clone() });
        let failed = |e: rustls::Error| Error::Failed(format!("cannot prepare TLS: {e}"));
        let builder = rustls::ServerConfig::builder_with_provider(self.provider.clone());
        let mut config = builder
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.certified.clone())));
        config.alpn_protocols = vec![protocol.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        QuicServerConfig::try_from(config).map_err(|e| Error::Failed(format!("cannot prepare TLS: {e}")))
    }

    /// The same as the one that calls this peer.
    pub fn client(&self, peer: PublicKey) -> Result<QuicClientConfig> {
        self.client_of(PROTOCOL, peer)
    }
    /// The same for a peer with one of these keys.
    pub fn client_any(&self, peer: Vec<PublicKey>) -> Result<QuicClientConfig> {
        self.client_of_any(PROTOCOL, peer)
    }
    /// The same for an application protocol.
    pub fn client_of(&self, protocol: &[u8], peer: PublicKey) -> Result<QuicClientConfig> {
        self.client_of_any(protocol, vec![peer])
    }
    fn client_of_any(&self, protocol: &[u8], peer: Vec<PublicKey>) -> Result<QuicClientConfig> {
        let verifier = Arc::new(Verifier { accepted: Accepted::These(peer), provider: self.provider.clone() });
        let failed = |e: rustls::Error| Error::Failed(format!("cannot prepare TLS: {e}"));
        let builder = rustls::ClientConfig::builder_with_provider(self.provider.clone());
        let mut config = builder
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(self.certified.clone())));
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        QuicClientConfig::try_from(config).map_err(|e| Error::Failed(format!("cannot prepare TLS: {e}")))
    }
}

/// Accepts these public keys and no others.
#[derive(Debug)]
struct Verifier {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn knows(&self, presented: &CertificateDer<'_>) -> std::result::Result<(), rustls::Error> {
        let known = match &self.accepted {
            Accepted::These(peers) => peers.iter().any(|peer| peer.spki()[..] == presented[..]),
            Accepted::Any => presented.len() == SPKI.len() + 32 && presented.starts_with(&SPKI),
        };
        if known {
            return Ok(());
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }
}

/// The methods that both ends' verifiers have in common: signatures by raw public keys (RFC 7250), TLS 1.3 alone.
macro_rules! raw_key_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("TLS 1.2 is not offered".to_string()))
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
            let key = SubjectPublicKeyInfoDer::from(key.as_ref());
            verify_tls13_signature_with_raw_key(message, &key, signed, &self.provider.signature_verification_algorithms)
        }
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }
        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        self.knows(presented).map(|()| ServerCertVerified::assertion())
    }
    raw_key_signatures!();
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
        self.knows(presented).map(|()| ClientCertVerified::assertion())
    }
    raw_key_signatures!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_to_its_owner_and_its_line_comes_back() {
        let folder = std::env::temp_dir().join(format!("explicate-identity-{}", std::process::id()));
        let path = folder.join("key");
        let line = keygen(&path).unwrap();
        let identity = Identity::load(&path).unwrap();
        assert_eq!(PublicKey::parse(&line), Some(identity.public));
        assert_eq!(identity.public.line(), line);
        let again = keygen(&path).unwrap_err().to_string();
        assert!(again.ends_with(&format!("is not replaced; its public line is {line}")), "{again}");
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Identity::load(&path).err().unwrap().to_string().contains("chmod 600"));
        std::fs::write(folder.join("bad"), "zz").unwrap();
        std::fs::set_permissions(folder.join("bad"), std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Identity::load(&folder.join("bad")).err().unwrap().to_string().contains("keygen"));
        assert_eq!(PublicKey::parse("explicate-gateway-1:12"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
