//! Connections of which every byte is checked at both ends: whole, or a true beginning and then a reset.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};

use explicate_net::digest::sha256;

use super::gateways::content;
use super::{Net, PATIENCE};

/// How a connection ended, at one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Orderly, with all that the other end had sent.
    Whole,
    /// By a reset or without an answer, behind a part.
    Broken,
}

/// Reads to the end. An orderly end must follow `expected`, a broken one its beginning.
fn checked(mut stream: &TcpStream, expected: &[u8]) -> End {
    let (mut all, mut block) = (Vec::with_capacity(expected.len()), vec![0; 1 << 16]);
    let orderly = loop {
        match stream.read(&mut block) {
            Ok(0) => break true,
            Ok(length) => all.extend_from_slice(&block[..length]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break false,
        }
    };
    assert!(all.len() <= expected.len(), "{} bytes of {}", all.len(), expected.len());
    assert_eq!(sha256(&all), sha256(&expected[..all.len()]), "other bytes among the first {}", all.len());
    assert!(!orderly || all.len() == expected.len(), "an orderly end after {} bytes of {}", all.len(), expected.len());
    if orderly { End::Whole } else { End::Broken }
}

/// The two directions of an exchange.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) seed: u64,
    pub(crate) there: usize,
    pub(crate) back: usize,
}

impl Exchange {
    fn head(&self) -> [u8; 24] {
        let words = [self.seed, self.there as u64, self.back as u64].map(u64::to_be_bytes);
        words.concat().try_into().unwrap()
    }
    fn read(stream: &mut TcpStream) -> io::Result<Exchange> {
        let mut head = [0; 24];
        stream.read_exact(&mut head)?;
        let word = |i: usize| u64::from_be_bytes(head[8 * i..8 * i + 8].try_into().unwrap());
        Ok(Exchange { seed: word(0), there: word(1) as usize, back: word(2) as usize })
    }
    fn answer(mut stream: TcpStream) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let Ok(exchange) = Exchange::read(&mut stream) else { return };
        if checked(&stream, &content(exchange.there, exchange.seed)) == End::Whole {
            let _ = stream.write_all(&content(exchange.back, exchange.seed + 1));
        }
    }
    /// Connects from this namespace, sends, closes its half, and reads the answer.
    pub(crate) fn run(&self, server: SocketAddr) -> io::Result<End> {
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&self.head())?;
        stream.write_all(&content(self.there, self.seed))?;
        stream.shutdown(Shutdown::Write)?;
        Ok(checked(&stream, &content(self.back, self.seed + 1)))
    }
}

/// Answers exchanges at an address of `s`, as many as there are. A wrong byte ends the process of the test.
pub(crate) fn answer(net: &Net, address: &'static str) {
    let listener = net.inside("s", move || TcpListener::bind(address).unwrap()).join().unwrap();
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            spawn(move || {
                if std::panic::catch_unwind(|| Exchange::answer(stream)).is_err() {
                    std::process::exit(101);
                }
            });
        }
    });
}

/// Starts an exchange from `c`.
pub(crate) fn exchange(net: &Net, server: &'static str, exchange: Exchange) -> JoinHandle<io::Result<End>> {
    net.inside("c", move || exchange.run(server.parse().unwrap()))
}
