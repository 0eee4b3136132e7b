//! Files that a folder stores, refuses and removes.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::digest::sha256;
use crate::patience::{PATIENCE, eventually};

const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("explicate-store-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
    fn store(&self, change: impl FnOnce(&mut Settings)) -> Store {
        let mut settings = Settings::new(&self.0);
        change(&mut settings);
        Store::open(settings).unwrap()
    }
    /// Where the part of an offer by `PEER` is.
    fn part(&self, offer: &Offer) -> PathBuf {
        self.0.join(PARTS).join(format!("{PEER}-{}{ENDING}", hex(&offer.digest)))
    }
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn offer(name: &str, content: &[u8]) -> Offer {
    let digest = sha256(content);
    Offer { name: name.to_string(), size: content.len() as u64, digest, mode: 0o4640, modified: Some(1_000_000_000) }
}
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}
/// Waits for a result of a store.
fn wait(store: &mut Store, mut so: impl FnMut(&mut Store, &[(u64, Verdict)]) -> bool) {
    eventually("a result of the store", || {
        let told = store.poll();
        so(store, &told)
    });
}
/// Waits until no transfer has a part.
fn all_left(store: &mut Store) {
    wait(store, |store, _| store.claims.is_empty());
}
/// Writes the missing rest of a file in blocks of 1000 bytes; returns how it ended.
fn fill(store: &mut Store, peer: Ipv4Addr, offer: &Offer, content: &[u8]) -> Verdict {
    let part = store.take(peer, offer).unwrap();
    let held = part.held() as usize;
    for block in content[held..].chunks(1000) {
        eventually("room for a block", || part.write(block.to_vec()).is_ok());
    }
    part.finish();
    let mut verdict = None;
    wait(store, |_, told| {
        verdict = verdict.or(told.first().map(|(_, verdict)| *verdict));
        verdict.is_some()
    });
    drop(part);
    all_left(store);
    verdict.unwrap()
}

#[test]
fn a_file_gets_its_name_when_it_is_whole() {
    let scratch = Scratch::new("whole");
    let mut store = scratch.store(|_| {});
    let bytes = content(300_001);
    let offer = offer("a", &bytes);
    assert_eq!(fill(&mut store, PEER, &offer, &bytes), Verdict::Same);
    assert!(fs::read(scratch.0.join("a")).unwrap() == bytes);
    let meta = fs::metadata(scratch.0.join("a")).unwrap();
    assert_eq!((meta.permissions().mode() & 0o7777, meta.mtime()), (0o640 & !mask(), 1_000_000_000));
    assert_eq!(store.take(PEER, &offer).err(), Some(Refusal::NameExists));
    assert_eq!(scratch.names(), ["a"]);
    // An empty file needs no data.
    let empty = Offer { name: "empty".to_string(), ..super::tests::offer("x", &[]) };
    assert_eq!(fill(&mut store, PEER, &empty, &[]), Verdict::Same);
    assert_eq!(fs::metadata(scratch.0.join("empty")).unwrap().len(), 0);
}

#[test]
fn what_differs_is_removed_and_what_exists_is_not_touched() {
    let scratch = Scratch::new("differs");
    let mut store = scratch.store(|_| {});
    let (bytes, mut other) = (content(5000), content(5000));
    other[4321] ^= 1;
    assert_eq!(fill(&mut store, PEER, &offer("a", &bytes), &other), Verdict::Differs);
    assert_eq!(scratch.names(), [""; 0]);
    let part = store.take(PEER, &offer("a", &bytes)).unwrap();
    fs::write(scratch.0.join("a"), b"mine").unwrap();
    part.write_last(bytes.clone());
    part.finish();
    let serial = part.serial();
    wait(&mut store, |_, told| told.contains(&(serial, Verdict::NameExists)));
    drop(part);
    all_left(&mut store);
    assert_eq!(fs::read(scratch.0.join("a")).unwrap(), b"mine");
    // The part still exists, complete, and replaces the file if that is wished.
    drop(store);
    let mut store = scratch.store(|settings| settings.replace = true);
    let part = store.take(PEER, &offer("a", &bytes)).unwrap();
    assert_eq!(part.held(), 5000);
    drop(part);
    all_left(&mut store);
    assert_eq!(fill(&mut store, PEER, &offer("a", &bytes), &bytes), Verdict::Same);
    assert!(fs::read(scratch.0.join("a")).unwrap() == bytes);
}

#[test]
fn a_part_is_one_transfer_s_and_goes_on_where_it_ended() {
    let scratch = Scratch::new("resume");
    let mut store = scratch.store(|_| {});
    let bytes = content(200_000);
    let (a, b) = (offer("a", &bytes), offer("b", &bytes));
    let part = store.take(PEER, &a).unwrap();
    assert_eq!(store.take(PEER, &a).err(), Some(Refusal::Busy), "the same again");
    assert_eq!(store.take(OTHER, &a).err(), Some(Refusal::NameTaken), "the name");
    assert_eq!(store.take(PEER, &b).err(), Some(Refusal::Busy), "the part");
    // A second receiver of this folder cannot accept it either.
    let mut second = scratch.store(|_| {});
    assert_eq!(second.take(PEER, &a).err(), Some(Refusal::Busy));
    part.write_last(bytes[..120_000].to_vec());
    drop(part);
    all_left(&mut store);
    let part = store.take(OTHER, &a).unwrap();
    assert_eq!(part.held(), 0, "another's");
    drop(part);
    all_left(&mut store);
    // It may have another name by then, and the process may be another.
    drop((store, second));
    let mut store = scratch.store(|_| {});
    assert_eq!(store.take(PEER, &b).map(|part| part.held()), Ok(120_000));
    all_left(&mut store);
    assert_eq!(fill(&mut store, PEER, &b, &bytes), Verdict::Same);
    assert!(fs::read(scratch.0.join("b")).unwrap() == bytes);
    assert_eq!(scratch.names(), ["b"], "and nothing else is left");
}

#[test]
fn a_damaged_part_is_found_out_and_removed() {
    let scratch = Scratch::new("damaged");
    let mut store = scratch.store(|_| {});
    let bytes = content(50_000);
    let a = offer("a", &bytes);
    let part = store.take(PEER, &a).unwrap();
    part.write_last(bytes[..30_000].to_vec());
    drop(part);
    all_left(&mut store);
    let path = scratch.part(&a);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut damaged = bytes[..30_000].to_vec();
    damaged[777] ^= 4;
    fs::write(&path, damaged).unwrap();
    assert_eq!(fill(&mut store, PEER, &a, &bytes), Verdict::Differs);
    assert_eq!(scratch.names(), [""; 0]);
    assert_eq!(fill(&mut store, PEER, &a, &bytes), Verdict::Same);
}

#[test]
fn parts_are_not_followed_elsewhere() {
    let scratch = Scratch::new("links");
    let mut store = scratch.store(|_| {});
    let bytes = content(5000);
    let a = offer("a", &bytes);
    let (parts, elsewhere) = (scratch.0.join(PARTS), scratch.0.join("elsewhere"));
    let part = scratch.part(&a);
    fs::write(&elsewhere, b"mine").unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
    for hard in [false, true] {
        fs::create_dir_all(&parts).unwrap();
        fs::set_permissions(&parts, fs::Permissions::from_mode(0o700)).unwrap();
        if hard { fs::hard_link(&elsewhere, &part) } else { std::os::unix::fs::symlink(&elsewhere, &part) }.unwrap();
        assert_eq!(fill(&mut store, PEER, &a, &bytes), Verdict::Same, "{hard}");
        assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
        fs::remove_file(scratch.0.join("a")).unwrap();
    }
    // Their folder is not accessible either, and no other user writes into it.
    std::os::unix::fs::symlink(std::env::temp_dir(), &parts).unwrap();
    assert_eq!(store.take(PEER, &a).err(), Some(Refusal::NotWritable));
    fs::remove_file(&parts).unwrap();
    fs::create_dir(&parts).unwrap();
    fs::set_permissions(&parts, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(store.take(PEER, &a).err(), Some(Refusal::NotWritable));
}

#[test]
fn sizes_that_do_not_fit_are_refused_before_anything_is_made() {
    let scratch = Scratch::new("sizes");
    let mut store = scratch.store(|settings| settings.quota = Some(10_000));
    let bytes = content(100);
    let sized = |size| Offer { size, ..offer("a", &bytes) };
    for size in [u64::MAX, 1 << 63, i64::MAX as u64, 1 << 50] {
        assert_eq!(store.take(PEER, &sized(size)).err(), Some(Refusal::NoSpace), "{size}");
    }
    assert_eq!(store.take(PEER, &sized(10_001)).err(), Some(Refusal::Quota));
    drop(store);
    assert_eq!(scratch.names(), [""; 0]);
    let mut store = scratch.store(|settings| settings.quota = Some(10_000));
    // Existing files count, and so do accepted offers.
    fs::write(scratch.0.join("there"), [1; 4000]).unwrap();
    let part = store.take(PEER, &sized(5000)).unwrap();
    let b = Offer { name: "b".to_string(), ..offer("b", b"b") };
    assert_eq!(store.take(OTHER, &Offer { size: 1001, ..b.clone() }).err(), Some(Refusal::Quota));
    assert!(store.take(OTHER, &Offer { size: 1000, ..b }).is_ok());
    drop(part);
}

#[test]
fn old_parts_go_and_young_ones_and_those_in_use_stay() {
    let scratch = Scratch::new("old");
    let mut store = scratch.store(|_| {});
    let offers = [offer("a", &content(9000)), offer("b", &content(9001)), offer("c", &content(9002))];
    let parts: Vec<Part> = offers.iter().map(|offer| store.take(PEER, offer).unwrap()).collect();
    for part in &parts {
        part.write_last(content(5000));
    }
    let path = |i: usize| scratch.part(&offers[i]);
    let mut parts = parts.into_iter();
    let used = parts.next().unwrap();
    drop(parts);
    wait(&mut store, |store, _| store.claims.len() == 1);
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for i in [0, 1] {
        File::options().write(true).open(path(i)).unwrap().set_modified(old).unwrap();
    }
    drop(scratch.store(|settings| settings.keep_parts = Duration::from_secs(3600)));
    assert_eq!([0, 1, 2].map(|i| path(i).exists()), [true, false, true]);
    drop(used);
}

/// A part with the content of this file, without a reservation of space.
fn part(store: &Store, serial: u64, file: File, size: u64) -> Part {
    let work = Arc::new(Work {
        serial,
        file,
        parts: Arc::new(make_parts(&store.folder).unwrap()),
        folder: store.folder.clone(),
        part: "none.part".to_string(),
        name: "a".to_string(),
        size,
        digest: [0; SHA],
        mode: 0o600,
        modified: None,
        replace: false,
        written: AtomicU64::new(0),
        settled: AtomicBool::new(false),
    });
    Part { work, desk: store.disk.desk(), held: 0 }
}

#[test]
fn the_check_of_a_long_file_holds_up_no_other() {
    let scratch = Scratch::new("long");
    let mut store = scratch.store(|_| {});
    // All of its data are present, and have to be read before the verdict, which takes some seconds: a hole, which
    // needs no space on the disk.
    let file = File::options().read(true).write(true).create_new(true).open(scratch.0.join("hole")).unwrap();
    file.set_len(4 << 30).unwrap();
    let part = part(&store, 7, file, 4 << 30);
    part.work.written.store(4 << 30, Ordering::Relaxed);
    part.finish();
    let bytes = content(300_000);
    for i in 0..5 {
        let offer = offer(&format!("short{i}"), &bytes);
        let part = store.take(OTHER, &offer).unwrap();
        part.write_last(bytes.clone());
        part.finish();
        let serial = part.serial();
        wait(&mut store, |_, told| {
            assert!(told.iter().all(|(of, verdict)| (*of, *verdict) == (serial, Verdict::Same)), "{told:?}");
            !told.is_empty()
        });
        drop(part);
        all_left(&mut store);
    }
    // And it is abandoned when the program ends.
    drop((part, store));
    assert!(!scratch.0.join("a").exists());
}

#[test]
fn a_full_disk_is_told_at_once() {
    let scratch = Scratch::new("full");
    let mut store = scratch.store(|_| {});
    // In place of a part: a device that is always full.
    let part = part(&store, 7, File::options().write(true).open("/dev/full").unwrap(), 5000);
    for _ in 0..3 {
        part.write_last(content(100));
    }
    let mut all = Vec::new();
    wait(&mut store, |_, told| {
        all.extend_from_slice(told);
        !all.is_empty()
    });
    assert_eq!(all, [(7, Verdict::Full)], "and once");
    drop((part, store));
    assert_eq!(scratch.names(), [""; 0]);
}

#[test]
fn a_transfer_needs_one_descriptor() {
    let scratch = Scratch::new("descriptors");
    let mut store = scratch.store(|_| {});
    let open = || {
        let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let ours = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.starts_with(&scratch.0));
        links.filter(|entry| ours(entry.path())).count()
    };
    // The thread of the disk opens folders for moments.
    let settles = |count: usize, what: &str| eventually(what, || open() == count);
    settles(1, "one for the folder");
    let parts: Vec<Part> =
        (0..20).map(|i| store.take(PEER, &offer(&format!("f{i}"), &content(100 + i))).unwrap()).collect();
    settles(22, "one each, and one for their folder");
    drop(parts);
    all_left(&mut store);
    settles(1, "one at the end");
}

/// A sender that shortens its packets replaces its flow at once, while the disk's thread removes the empty part of the first; a
/// second receiver of the folder removes the folder of the parts whenever it is empty.
#[test]
fn parts_that_disappear_meanwhile_are_made_anew() {
    let scratch = Scratch::new("meanwhile");
    let mut stores = [scratch.store(|_| {}), scratch.store(|_| {})];
    let offer = offer("a", &content(1000));
    // The threads that write remove the parts, at their own pace: a turn may find every part in use.
    let (mut taken, start) = (0, sys::monotonic());
    for turn in 0.. {
        let store = &mut stores[turn / 2 % 2];
        match store.take(PEER, &offer) {
            Ok(_) => taken += 1,
            Err(why) => assert_eq!(why, Refusal::Busy, "in turn {turn}"),
        }
        stores.iter_mut().for_each(|store| drop(store.poll()));
        if taken == 500 {
            break;
        }
        assert!(since(start) < PATIENCE, "{taken} parts in {turn} turns");
        std::thread::yield_now();
    }
}
