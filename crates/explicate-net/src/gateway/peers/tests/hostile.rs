//! A key holder that opens streams without end, and promises and wants credit without end.

use super::*;
use crate::simulated::hosts::{CLIENT, Plan, Reads, Script, Server, Site, World};
use crate::simulated::record::{Limits, Record};

/// Connections of the gateway, and bytes of a peer.
const CONNECTIONS: u32 = 16;
const BYTES: u64 = 524_288;

/// A host that accepts, sends much, and reads nothing.
fn host() -> Hosts {
    let (client, server) = (Script::sending(0), Script { reads: Reads::Never, ..Script::sending(1 << 30) });
    let plan =
        Plan { from: 0, client_host: CLIENT, to: 1, at: 0, client, server, accepts: Server::Accepts, keys: None };
    let record = Record::new(1, Limits { connection: i64::MAX, all: i64::MAX });
    let world = Arc::new(World::new(vec![plan], Arc::new(record), 1 << 14));
    Hosts::Simulated(Arc::new(Site { world }))
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waits = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap_or_else(|_| panic!("{what}"));
}

#[test]
fn a_peer_that_opens_streams_without_end_has_no_more_than_its_limits() {
    let site = format!(
        "networks = [\"10.2.0.0/16\"]\n[limits]\nconnections = {CONNECTIONS}\npeer_bytes = {BYTES}\nconnection_bytes = 65536"
    );
    runtime().block_on(async {
        let (gateway, _) = gateway_before(&site, "127.0.0.1:9".parse().unwrap(), host());
        tokio::spawn(gateway.clone().answer_calls());
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = gateway.endpoint.local_addr().unwrap();
        let connection = endpoint.connect_with(client(&gateway), to, "gateway").unwrap().await.unwrap();
        // The highest rate, and the most credit.
        let mut records = connection.open_uni().await.unwrap();
        records.write_all(&[&[preface::VERSION], &[u8::MAX; 12][..]].concat()).await.unwrap();
        let preface = preface("10.1.0.9:4000", "10.2.0.1:2000").to_bytes();
        let opens = async || {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            let first = u32::MAX.to_be_bytes();
            send.write_all(&[&preface[..], &first].concat()).await.unwrap();
            (send, receive)
        };
        let open = || gateway.counters.open.load(Ordering::Relaxed);
        let tunnel = || gateway.table().peers[0].current().expect("it is connected").1;
        for opened in 0..500 {
            let (mut send, mut receive) = opens().await;
            // Some are reset at once, others when the gateway has them.
            if opened % 3 == 0 {
                until("it is carried", || open() > 0).await;
                assert!(tunnel().credits.reserved() <= BYTES);
            }
            relay::abort(&mut send, &mut receive, Cause::Reset);
            assert!(open() <= CONNECTIONS, "{}", open());
        }
        until("all are over", || open() == 0 && tunnel().credits.reserved() == 0).await;
        let mut kept = Vec::new();
        for _ in 0..CONNECTIONS {
            kept.push(opens().await);
        }
        until("all are carried", || open() == CONNECTIONS).await;
        assert!(tunnel().credits.reserved() <= BYTES, "{}", tunnel().credits.reserved());
        for _ in 0..3 {
            let (_send, mut receive) = opens().await;
            let ended = tokio::time::timeout(PATIENCE, receive.read_to_end(10)).await.expect("an end");
            let reset = quinn::ReadError::Reset(VarInt::from(Cause::TooMany));
            assert_eq!(ended, Err(quinn::ReadToEndError::Read(reset)), "one more");
            assert_eq!(open(), CONNECTIONS);
        }
        for (send, receive) in &mut kept {
            relay::abort(send, receive, Cause::Reset);
        }
        until("all are over", || open() == 0).await;
        let _kept = opens().await;
        until("there is room again", || open() == 1).await;
        assert!(connection.close_reason().is_none());
    });
}
