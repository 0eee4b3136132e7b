//! What is sent: files and folders, and their names at the receiver.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::message::{Kind, file_name, is_name};
use crate::digest::{self, LEN as SHA};
use crate::error::{Context, Error, Result};
use crate::sys;

/// A file or folder to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Where it is.
    pub path: PathBuf,
    /// Its name at the receiver.
    pub name: String,
    /// File or folder.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Permissions.
    pub mode: u32,
}

/// An open file, and what is offered of it.
pub struct Opened {
    /// The file.
    pub file: File,
    /// Its length when it was first read, bytes.
    pub size: u64,
    /// Its SHA-256 at that time.
    pub digest: [u8; SHA],
    /// Its permissions.
    pub mode: u32,
    /// Time of its last modification, seconds since 1970.
    pub modified: u64,
}

impl Opened {
    /// Opens a file, and reads it once for its digest, unless the process is asked to stop.
    pub fn read(path: &Path) -> io::Result<Opened> {
        // A pipe without a writer would block.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let digest = digest::of_file(&file, u64::MAX, sys::stopped)?;
        let (digest, size) = digest.ok_or_else(|| io::Error::other("interrupted"))?;
        let (mode, modified) = (facts.mode() & 0o777, facts.mtime().max(0) as u64);
        Ok(Opened { file, size, digest, mode, modified })
    }
}

/// What these paths name, folders before what they contain, and what is left out: links, devices and the like.
pub fn list(paths: &[PathBuf]) -> Result<(Vec<Item>, Vec<PathBuf>)> {
    let (mut items, mut left_out) = (Vec::new(), Vec::new());
    for path in paths {
        let what = || format!("read {}", path.display());
        // A link that the user names is followed; `.` has a name then.
        let whole = path.canonicalize().or_fail(what)?;
        let name = file_name(&whole.file_name().unwrap_or_default().to_string_lossy());
        let before = items.len();
        add(&whole, name, &mut items, &mut left_out)?;
        if items.len() == before {
            return Err(Error::Input(format!("{} is neither a regular file nor a folder", path.display())));
        }
    }
    let mut names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::Input(format!("two of these would be `{}` at the receiver", pair[0]))),
        None => Ok((items, left_out)),
    }
}

fn add(path: &Path, name: String, items: &mut Vec<Item>, left_out: &mut Vec<PathBuf>) -> Result<()> {
    let what = || format!("read {}", path.display());
    let facts = fs::symlink_metadata(path).or_fail(what)?;
    let kind = match facts.file_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Folder,
        _ => {
            left_out.push(path.to_path_buf());
            return Ok(());
        }
    };
    if !is_name(&name) {
        return Err(Error::Input(format!("{}: a receiver takes no such name; rename it", path.display())));
    }
    let size = if kind == Kind::File { facts.size() } else { 0 };
    let mode = facts.permissions().mode() & 0o777;
    items.push(Item { path: path.to_path_buf(), name: name.clone(), kind, size, mode });
    if kind == Kind::File {
        return Ok(());
    }
    let mut entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).or_fail(what)?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(last) = entry.file_name().into_string() else {
            return Err(Error::Input(format!("{}: the name is not UTF-8; rename it", entry.path().display())));
        };
        add(&entry.path(), format!("{name}/{last}"), items, left_out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_their_files_and_links_are_left_out() {
        let folder = std::env::temp_dir().join(format!("explicate-tree-{}", std::process::id()));
        let top = folder.join("-top");
        fs::create_dir_all(top.join(".b")).unwrap();
        fs::write(top.join(".b/c"), "123").unwrap();
        fs::write(top.join("a"), "").unwrap();
        std::os::unix::fs::symlink("/etc", top.join("link")).unwrap();
        let (items, left_out) = list(std::slice::from_ref(&top)).unwrap();
        let names: Vec<_> = items.iter().map(|item| (item.name.as_str(), item.kind, item.size)).collect();
        let (file, inner) = (Kind::File, Kind::Folder);
        assert_eq!(names, [("_top", inner, 0), ("_top/.b", inner, 0), ("_top/.b/c", file, 3), ("_top/a", file, 0)]);
        assert_eq!(left_out.len(), 1);
        let twice = list(&[top.clone(), top]);
        assert!(twice.unwrap_err().to_string().contains("would be `_top`"));
        assert!(list(&[PathBuf::from("/dev/null")]).unwrap_err().to_string().contains("neither"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
