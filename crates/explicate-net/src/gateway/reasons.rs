//! Why a connection of gateways failed, in words that say what to do.

use quinn::{ConnectionError, Side};

use super::identity::{PROTOCOL, PublicKey};

/// Errors of TLS are alerts behind this (RFC 9001 section 4.8).
const TLS: u64 = 0x100;
/// The alert access_denied (RFC 8446 section 6.2), by which rustls refuses a key.
const DENIED: u64 = TLS + 49;
/// The alert no_application_protocol (RFC 7301 section 3.2).
const NO_PROTOCOL: u64 = TLS + 120;

/// The reason, at this side of the connection, of a gateway with this key.
pub fn sentence(reason: &ConnectionError, side: Side, own: PublicKey) -> String {
    let (code, found_here) = match reason {
        ConnectionError::TransportError(error) => (u64::from(error.code), true),
        ConnectionError::ConnectionClosed(closed) => (u64::from(closed.error_code), false),
        _ => return reason.to_string(),
    };
    let own = own.line();
    match (code, found_here, side) {
        (DENIED, true, Side::Client) => {
            "the gateway at its `address` has another key than this [[peer]]: compare `key` with the line that `explicated gateway keygen` \
             prints there"
                .to_string()
        }
        (DENIED, true, Side::Server) => {
            "no [[peer]] has its key: compare the `key` lines here with the one that `explicated gateway keygen` prints there".to_string()
        }
        (DENIED, false, Side::Client) => {
            format!("the peer has no [[peer]] with the key of this gateway: its file needs key = \"{own}\"")
        }
        (DENIED, false, Side::Server) => {
            format!("the peer has another key for this gateway: the [[peer]] there needs key = \"{own}\"")
        }
        (NO_PROTOCOL, ..) => format!(
            "the gateways have different versions: this one is explicated {} and speaks {}; update the older one",
            env!("CARGO_PKG_VERSION"),
            String::from_utf8_lossy(PROTOCOL),
        ),
        _ => reason.to_string(),
    }
}

/// Whether a reason is that the keys of two gateways differ, in the words of [`sentence`] or of TLS, which has no more (RFC 8446
/// section 6.2).
pub fn is_of_keys(reason: &str) -> bool {
    ["another key", "with the key of", "has its key", "certificate"].iter().any(|words| reason.contains(words))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};

    use super::super::identity::Identity;
    use super::super::preface;
    use super::*;
    use crate::patience::PATIENCE;
    use crate::simulated::machine::key;

    fn identity(number: u8) -> Identity {
        Identity::of(key(number)).unwrap()
    }

    /// What a gateway with key 0 that calls the key `wanted`, and one with key 1 that expects `expected`, say when they do not agree.
    fn disagree(wanted: u8, expected: u8, protocol: &[u8]) -> [String; 2] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let both = async {
            let (near, far) = (identity(0), identity(1));
            let tls = far.server(vec![identity(expected).public]).unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let server = Some(ServerConfig::with_crypto(Arc::new(tls)));
            let server = Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime)).unwrap();
            let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let config = ClientConfig::new(Arc::new(near.client_of(protocol, identity(wanted).public).unwrap()));
            let to = server.local_addr().unwrap();
            let calls = async {
                let reason = match client.connect_with(config, to, "gateway").unwrap().await {
                    Ok(connection) => connection.closed().await,
                    Err(reason) => reason,
                };
                sentence(&reason, Side::Client, near.public)
            };
            let answers = async {
                let reason = match server.accept().await.unwrap().await {
                    Ok(connection) => connection.closed().await,
                    Err(reason) => reason,
                };
                sentence(&reason, Side::Server, far.public)
            };
            tokio::join!(calls, answers)
        };
        let (calls, answers) = runtime.block_on(async { tokio::time::timeout(PATIENCE, both).await }).unwrap();
        [calls, answers]
    }

    #[test]
    fn a_wrong_key_is_named_at_both_ends() {
        let [calls, answers] = disagree(1, 2, PROTOCOL);
        let needs = format!("needs key = \"{}\"", identity(0).public.line());
        assert!(calls.contains("no [[peer]] with the key of this gateway") && calls.ends_with(&needs), "{calls}");
        assert!(answers.contains("no [[peer]] has its key"), "{answers}");
        assert!(is_of_keys(&calls) && is_of_keys(&answers));
        let [calls, answers] = disagree(2, 0, PROTOCOL);
        assert!(calls.contains("has another key than this [[peer]]"), "{calls}");
        assert!(is_of_keys(&calls) && is_of_keys(&answers));
        assert!(answers.ends_with(&format!("needs key = \"{}\"", identity(1).public.line())), "{answers}");
    }

    #[test]
    fn another_version_is_refused_at_both_ends_with_what_to_do() {
        for sentence in disagree(1, 0, b"explicate-gateway/0") {
            assert!(
                sentence.contains("speaks explicate-gateway/") && sentence.contains("update the older"),
                "{sentence}"
            );
            assert!(!is_of_keys(&sentence), "{sentence}");
        }
    }

    /// Streams of another version must not begin in a connection.
    #[test]
    fn the_protocol_has_the_version_of_the_streams() {
        assert_eq!(PROTOCOL, format!("explicate-gateway/{}", preface::VERSION).as_bytes());
    }
}
