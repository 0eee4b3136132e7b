//! Memory of two gateways with as many connections as they have places for, whose hosts do not read, in simulated time. A program of its
//! own: its allocator counts what each gateway has.
#![expect(clippy::print_stdout, reason = "shows the figures")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use explicate_net::gateway::identity::Identity;
use explicate_net::simulated::hosts::{CLIENT, Leaves, Plan, Reads, Script, Server};
use explicate_net::simulated::machine::key;
use explicate_net::simulated::network::{Path, address};
use explicate_net::simulated::scene::{SECOND, Scene};
use explicate_net::simulated::{Options, clock, memory, run_beside};

/// The allocator of the system, behind whose blocks stands whose they are.
struct Counting;

/// Bytes that gateways 0 and 1 have, and the world; and the most that they have had.
static NOW: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
static MOST: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// Bytes that allocators need for a block, about.
const EACH: usize = 16;

impl Counting {
    /// A block with its owner before it, and where the block begins.
    fn with_owner(layout: Layout) -> Option<(Layout, usize)> {
        Layout::new::<usize>().extend(layout).ok()
    }
}

// SAFETY: blocks are those of the system's allocator, longer by what `with_owner` puts before them.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = Self::with_owner(layout) else { return std::ptr::null_mut() };
        // SAFETY: `whole` is not empty.
        let block = unsafe { System.alloc(whole) };
        if block.is_null() {
            return block;
        }
        let owner = memory::owner().map_or(2, |gateway| (gateway as usize).min(2));
        // SAFETY: the block begins with a `usize`, and has `offset` bytes and more.
        let inner = unsafe {
            block.cast::<usize>().write(owner);
            block.add(offset)
        };
        let bytes = layout.size() + EACH;
        let now = NOW[owner].fetch_add(bytes, Ordering::Relaxed) + bytes;
        MOST[owner].fetch_max(now, Ordering::Relaxed);
        inner
    }
    unsafe fn dealloc(&self, inner: *mut u8, layout: Layout) {
        let Some((whole, offset)) = Self::with_owner(layout) else { return };
        // SAFETY: `alloc` has returned `inner` for this layout.
        let owner = unsafe {
            let block = inner.sub(offset);
            let owner = block.cast::<usize>().read();
            System.dealloc(block, whole);
            owner
        };
        NOW[owner].fetch_sub(layout.size() + EACH, Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;
const MANY: u64 = 4096;
/// The first hosts read so much, fast, and then pause: their windows have grown.
const FAST: u64 = 24;
const READ: u64 = 9 << 20;
/// Between two of them, and when all leave, ns.
const APART: u64 = 3 * SECOND;
const LEAVE: u64 = (FAST + 1) * APART + 40 * SECOND;
/// What no host sends in the scene, bytes.
const ENDLESS: u64 = 1 << 40;

/// Connections whose hosts send without end and do not read, over 100 Mbit/s and 0.6 s, with default limits.
fn scene() -> Scene {
    let text = |own: u8| {
        let peer = 1 - own;
        let line = Identity::of(key(peer)).unwrap().public.line();
        let to = if peer == 1 { format!("address = \"{}\"\n", address(peer)) } else { String::new() };
        format!(
            "[site]\ninterfaces = [\"lan\"]\nnetworks = [\"198.18.{own}.0/24\"]\n[wan]\nrate = \"100Mbit/s\"\n\
             [[peer]]\nname = \"gateway-{peer}\"\nkey = \"{line}\"\nnetworks = [\"198.18.{peer}.0/24\"]\n{to}"
        )
    };
    let plan = |number: u64| {
        let fast = number < FAST;
        let at = SECOND + if fast { number * APART } else { FAST * APART + number * SECOND / 1000 };
        let reads = if fast { Reads::Paused(READ, 1000 * SECOND) } else { Reads::Never };
        let client = Script { reads, leaves: Some((LEAVE - at, Leaves::Reset)), ..Script::sending(ENDLESS) };
        let server = Script { reads: Reads::Never, ..Script::sending(ENDLESS) };
        let (from, to, accepts) = (0, 1, Server::Accepts);
        Plan { from, client_host: CLIENT, to, at, client, server, accepts, keys: None }
    };
    let (rate, delay, queue) = (1.1 * 100e6 / 8.0, 300_000_000, 1 << 20);
    Scene {
        seed: 1,
        paths: vec![(0, 1, Path { rate, steps: None, delay, queue, loss: 0.0, late: 0.0, copies: 0.0, mtu: 1500 })],
        texts: vec![text(0), text(1)],
        plans: (0..MANY).map(plan).collect(),
        happens: Vec::new(),
        kinds: BTreeSet::new(),
        capacity: 32 << 10,
        window: 32 << 20,
        peer_window: 256 << 20,
        keys: [usize::MAX; 2],
        beside: None,
    }
}

fn mib(of: &[AtomicUsize; 3]) -> [usize; 3] {
    [0, 1, 2].map(|owner| of[owner].load(Ordering::Relaxed) / MIB)
}

#[test]
fn connections_whose_hosts_do_not_read_take_at_most_half_a_gibibyte() {
    let (report, (open, held, with, after)) = run_beside(&scene(), Options::default(), async |view| {
        clock::until(Some(view.began + LEAVE - SECOND / 10)).await;
        let gateways = || [0, 1].map(|at| view.machines[at].gateway().unwrap().0);
        let held = gateways().map(|gateway| gateway.table().peers[0].current().unwrap().1.credits.reserved());
        let open = gateways().map(|gateway| gateway.counters.open.load(Ordering::Relaxed));
        let with = mib(&NOW);
        clock::until(Some(view.began + LEAVE + 20 * SECOND)).await;
        (open, held, with, mib(&NOW))
    });
    assert!(report.broken.is_empty(), "{:#?}", &report.broken[..report.broken.len().min(5)]);
    let most = mib(&MOST);
    let held = held.map(|bytes| bytes / MIB as u64);
    println!("{open:?} connections, credit {held:?} MiB, memory {with:?} MiB, at most {most:?}, {after:?} behind them");
    assert_eq!(open, [MANY as u32; 2]);
    // The scene does what it is for.
    assert!(held[0] > 192 && held[1] >= 64, "{held:?}");
    assert!(most[0] <= 512 && most[1] <= 512, "{most:?} MiB");
    assert!(after[0] <= 32 && after[1] <= 32, "{after:?} MiB");
}
