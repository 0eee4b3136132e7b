//! The promises of what opens a flow: greetings, their seals, and the messages beside them.

use std::net::{Ipv4Addr, SocketAddrV4};

use explicate_core::datagram;
use explicate_core::units::Time;
use explicate_net::endpoint::auth::{Key, greeting_code};
use explicate_net::endpoint::gate::{Admission, Gate, Judged};
use explicate_net::endpoint::hello::{self, Content, Hello, Sealed, with_code, with_cookie};
use explicate_net::endpoint::message::Message;

/// The flow's number.
const NUMBER: u64 = 7 << 32 | 9;

/// Whatever the bytes, parsing answers; what is accepted is said again and means the same; no file has a folder in its name; and
/// without the right cookie and code nothing opens a flow.
pub(crate) fn greetings(bytes: &[u8]) -> u64 {
    let message = datagram::read(bytes).ok().and_then(|read| Message::of(&read.packet));
    if let Some(message) = message {
        assert_eq!(Message::of(&message.to_packet()), Some(message));
    }
    let hello = Hello::parse(bytes);
    if let Some(hello) = &hello {
        assert!(bytes.len() <= hello::LONGEST);
        assert_eq!(hello::version(bytes), Some(hello::VERSION));
        assert_eq!(Hello::parse(hello.words().as_bytes()).as_ref(), Some(hello));
        if let Content::File { name, mode, .. } = &hello.content {
            assert!(!name.starts_with('.') && !name.contains(['/', '\0', '\\']) && *mode <= 0o777, "{name}");
        }
    }
    let sealed = Sealed::of(bytes);
    assert!(bytes.starts_with(sealed.words));
    let (key, now, from) = (Key::new([1; 32]), Time::secs(7), SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9));
    let gate = |admission| Gate::new(admission, Key::new([2; 32]), Time::secs(30), 100);
    let mut judged = [Admission::Open, Admission::Key(key.clone())].map(|admission| {
        let judged = gate(admission).judge(now, from, NUMBER, 0, bytes);
        assert!(!matches!(judged, Judged::Admitted(..)), "nobody knows the cookie");
        judged
    });
    // The same greeting from a peer that has both.
    if let Ok(words) = std::str::from_utf8(bytes) {
        let mut gate = gate(Admission::Key(key.clone()));
        let words = with_cookie(words, &gate.cookie(now, from, NUMBER).unwrap_or_default());
        let whole = with_code(&words, &greeting_code(&key, NUMBER, 0, words.as_bytes()));
        judged[0] = gate.judge(now, from, NUMBER, 0, whole.as_bytes());
        let good = Hello::parse(whole.as_bytes());
        assert_eq!(matches!(judged[0], Judged::Admitted(..)), good.is_some(), "{judged:?}");
    }
    let kind = |judged: &Judged| match judged {
        Judged::Admitted(..) => 1,
        Judged::Cookie(_) => 2,
        Judged::Refused(why) => 10 + *why as u64,
        Judged::Old => 3,
        Judged::Ignored => 4,
    };
    let file = hello.as_ref().map_or(0, |h| 1 + u64::from(h.content != Content::Nothing));
    let message = message.map_or(0, |m| 1 + u64::from(m.to_packet().transport.0[12]));
    let seals = u64::from(sealed.cookie.is_some()) << 1 | u64::from(sealed.code.is_some());
    judged.iter().fold(file << 40 | seals << 32 | message << 20, |all, j| all * 31 + kind(j))
}
