//! Files that a folder stores, refuses and removes.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::digest::sha256;
use crate::files::message::Verdict;
use crate::patience::eventually;

const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("explicate-store-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
    fn store(&self, change: impl FnOnce(&mut Settings)) -> Arc<Store> {
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
/// Writes the missing rest of a file in blocks of 1000 bytes; returns how it ended.
fn fill(store: &Arc<Store>, peer: Ipv4Addr, offer: &Offer, content: &[u8]) -> Verdict {
    let mut part = store.take(peer, offer).unwrap();
    let held = part.held() as usize;
    content[held..].chunks(1000).for_each(|block| part.write(block).unwrap());
    part.finish()
}

#[test]
fn a_file_gets_its_name_when_it_is_whole() {
    let scratch = Scratch::new("whole");
    let store = scratch.store(|_| {});
    let bytes = content(300_001);
    let offer = offer("a", &bytes);
    assert_eq!(fill(&store, PEER, &offer, &bytes), Verdict::Same);
    assert!(fs::read(scratch.0.join("a")).unwrap() == bytes);
    let meta = fs::metadata(scratch.0.join("a")).unwrap();
    assert_eq!((meta.permissions().mode() & 0o7777, meta.mtime()), (0o640 & !mask(), 1_000_000_000));
    assert_eq!(store.take(PEER, &offer).err(), Some(Refusal::NameExists));
    assert_eq!(scratch.names(), ["a"]);
    // An empty file needs no data.
    let empty = Offer { name: "empty".to_string(), ..super::tests::offer("x", &[]) };
    assert_eq!(fill(&store, PEER, &empty, &[]), Verdict::Same);
    assert_eq!(fs::metadata(scratch.0.join("empty")).unwrap().len(), 0);
}

#[test]
fn what_differs_is_removed_and_what_exists_is_not_touched() {
    let scratch = Scratch::new("differs");
    let store = scratch.store(|_| {});
    let (bytes, mut other) = (content(5000), content(5000));
    other[4321] ^= 1;
    assert_eq!(fill(&store, PEER, &offer("a", &bytes), &other), Verdict::Differs);
    assert_eq!(scratch.names(), [""; 0]);
    let mut part = store.take(PEER, &offer("a", &bytes)).unwrap();
    fs::write(scratch.0.join("a"), b"mine").unwrap();
    part.write(&bytes).unwrap();
    assert_eq!(part.finish(), Verdict::NameExists);
    drop(part);
    assert_eq!(fs::read(scratch.0.join("a")).unwrap(), b"mine");
    // The part still exists, complete, and replaces the file if that is wished.
    drop(store);
    let store = scratch.store(|settings| settings.replace = true);
    let part = store.take(PEER, &offer("a", &bytes)).unwrap();
    assert_eq!(part.held(), 5000);
    drop(part);
    assert_eq!(fill(&store, PEER, &offer("a", &bytes), &bytes), Verdict::Same);
    assert!(fs::read(scratch.0.join("a")).unwrap() == bytes);
}

#[test]
fn a_part_is_one_transfer_s_and_goes_on_where_it_ended() {
    let scratch = Scratch::new("resume");
    let store = scratch.store(|_| {});
    let bytes = content(200_000);
    let (a, b) = (offer("a", &bytes), offer("b", &bytes));
    let mut part = store.take(PEER, &a).unwrap();
    assert_eq!(store.take(PEER, &a).err(), Some(Refusal::Busy), "the same again");
    assert_eq!(store.take(OTHER, &a).err(), Some(Refusal::NameTaken), "the name");
    assert_eq!(store.take(PEER, &b).err(), Some(Refusal::Busy), "the part");
    // A second receiver of this folder cannot accept it either.
    let second = scratch.store(|_| {});
    assert_eq!(second.take(PEER, &a).err(), Some(Refusal::Busy));
    part.write(&bytes[..120_000]).unwrap();
    drop(part);
    let part = store.take(OTHER, &a).unwrap();
    assert_eq!(part.held(), 0, "another's");
    drop(part);
    // It may have another name by then, and the process may be another.
    drop((store, second));
    let store = scratch.store(|_| {});
    assert_eq!(store.take(PEER, &b).map(|part| part.held()), Ok(120_000));
    assert_eq!(fill(&store, PEER, &b, &bytes), Verdict::Same);
    assert!(fs::read(scratch.0.join("b")).unwrap() == bytes);
    assert_eq!(scratch.names(), ["b"], "and nothing else is left");
}

#[test]
fn a_damaged_part_is_found_out_and_removed() {
    let scratch = Scratch::new("damaged");
    let store = scratch.store(|_| {});
    let bytes = content(50_000);
    let a = offer("a", &bytes);
    let mut part = store.take(PEER, &a).unwrap();
    part.write(&bytes[..30_000]).unwrap();
    drop(part);
    let path = scratch.part(&a);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut damaged = bytes[..30_000].to_vec();
    damaged[777] ^= 4;
    fs::write(&path, damaged).unwrap();
    assert_eq!(fill(&store, PEER, &a, &bytes), Verdict::Differs);
    assert_eq!(scratch.names(), [""; 0]);
    assert_eq!(fill(&store, PEER, &a, &bytes), Verdict::Same);
}

#[test]
fn parts_are_not_followed_elsewhere() {
    let scratch = Scratch::new("links");
    let store = scratch.store(|_| {});
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
        assert_eq!(fill(&store, PEER, &a, &bytes), Verdict::Same, "{hard}");
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
    let store = scratch.store(|settings| settings.quota = Some(10_000));
    let bytes = content(100);
    let sized = |size| Offer { size, ..offer("a", &bytes) };
    for size in [u64::MAX, 1 << 63, i64::MAX as u64, 1 << 50] {
        assert_eq!(store.take(PEER, &sized(size)).err(), Some(Refusal::NoSpace), "{size}");
    }
    assert_eq!(store.take(PEER, &sized(10_001)).err(), Some(Refusal::Quota));
    drop(store);
    assert_eq!(scratch.names(), [""; 0]);
    let store = scratch.store(|settings| settings.quota = Some(10_000));
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
    let store = scratch.store(|_| {});
    let offers = [offer("a", &content(9000)), offer("b", &content(9001)), offer("c", &content(9002))];
    let mut parts: Vec<Part> = offers.iter().map(|offer| store.take(PEER, offer).unwrap()).collect();
    for part in &mut parts {
        part.write(&content(5000)).unwrap();
    }
    let path = |i: usize| scratch.part(&offers[i]);
    let mut parts = parts.into_iter();
    let used = parts.next().unwrap();
    drop(parts);
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for i in [0, 1] {
        File::options().write(true).open(path(i)).unwrap().set_modified(old).unwrap();
    }
    drop(scratch.store(|settings| settings.keep_parts = Duration::from_secs(3600)));
    assert_eq!([0, 1, 2].map(|i| path(i).exists()), [true, false, true]);
    drop(used);
}

/// A part with the content of this file, without a reservation of space.
fn part(store: &Arc<Store>, file: File, size: u64) -> Part {
    Part {
        file,
        parts: Arc::new(make_parts(&store.folder).unwrap()),
        folder: store.folder.clone(),
        part: "none.part".to_string(),
        offer: Offer { size, ..offer("a", &[]) },
        replace: false,
        held: 0,
        written: Arc::default(),
        settled: false,
        claimed: Claimed { store: store.clone(), serial: 0 },
    }
}

#[test]
fn the_check_of_a_long_file_holds_up_no_other() {
    let scratch = Scratch::new("long");
    let store = scratch.store(|_| {});
    // All of its data are present, and have to be read before the verdict, which takes some seconds: a hole, which
    // needs no space on the disk.
    let file = File::options().read(true).write(true).create_new(true).open(scratch.0.join("hole")).unwrap();
    file.set_len(4 << 30).unwrap();
    let mut long = part(&store, file, 4 << 30);
    long.written.store(4 << 30, Ordering::Relaxed);
    let check = std::thread::spawn(move || long.finish());
    let bytes = content(300_000);
    for i in 0..5 {
        assert_eq!(fill(&store, OTHER, &offer(&format!("short{i}"), &bytes), &bytes), Verdict::Same);
    }
    // And it is abandoned when the program ends.
    store.stop();
    assert_eq!(check.join().unwrap(), Verdict::Missing);
    assert!(!scratch.0.join("a").exists());
}

#[test]
fn a_full_disk_is_told_at_once() {
    let scratch = Scratch::new("full");
    let store = scratch.store(|_| {});
    // In place of a part: a device that is always full.
    let mut part = part(&store, File::options().write(true).open("/dev/full").unwrap(), 5000);
    assert_eq!(part.write(&content(100)), Err(Verdict::Full));
    drop(part);
    assert_eq!(scratch.names(), [""; 0]);
}

#[test]
fn a_transfer_needs_one_descriptor() {
    let scratch = Scratch::new("descriptors");
    let store = scratch.store(|_| {});
    let open = || {
        let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let ours = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.starts_with(&scratch.0));
        links.filter(|entry| ours(entry.path())).count()
    };
    assert_eq!(open(), 1, "one for the folder");
    let parts: Vec<Part> =
        (0..20).map(|i| store.take(PEER, &offer(&format!("f{i}"), &content(100 + i))).unwrap()).collect();
    assert_eq!(open(), 22, "one each, and one for their folder");
    drop(parts);
    assert_eq!(open(), 1, "one at the end");
}

/// A second receiver of the folder removes the folder of the parts whenever it is empty.
#[test]
fn parts_that_disappear_meanwhile_are_made_anew() {
    let scratch = Scratch::new("meanwhile");
    let stores = [scratch.store(|_| {}), scratch.store(|_| {})];
    let offer = offer("a", &content(1000));
    std::thread::scope(|threads| {
        for store in &stores {
            threads.spawn(|| {
                for turn in 0..500 {
                    eventually("the part is free", || match store.take(PEER, &offer) {
                        Ok(_) => true,
                        Err(why) => {
                            assert_eq!(why, Refusal::Busy, "in turn {turn}");
                            false
                        }
                    });
                }
            });
        }
    });
}
