//! Files by name within an open folder: no function here follows a link or leaves the folder.

use std::fs::File;
use std::io;

use rustix::fs::{self, Advice, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

fn open_at(folder: &File, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(fs::openat(folder, name, flags, mode)?.into())
}

/// Creates a file that did not exist, readable and writable by its owner alone.
pub fn create_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR)
}

/// Opens an existing file for reading and writing.
pub fn open_file_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, OFlags::RDWR, Mode::empty())
}

/// Opens an existing file for reading.
pub fn read_file_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, OFlags::RDONLY, Mode::empty())
}

/// Whether a file was not opened because the name is a link.
pub fn is_link(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Opens a folder.
pub fn open_folder_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Makes a folder that only its owner may read and write.
pub fn make_folder_at(folder: &File, name: &str) -> io::Result<()> {
    Ok(fs::mkdirat(folder, name, Mode::RWXU)?)
}

/// Removes a file, or an empty folder.
pub fn remove_at(folder: &File, name: &str, is_folder: bool) -> io::Result<()> {
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(fs::unlinkat(folder, name, flags)?)
}

/// Whether an entry has this name (a dangling link is one), and whether it is a folder.
pub fn find_at(folder: &File, name: &str) -> io::Result<Option<bool>> {
    match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Moves a file to another folder of the same file system. An existing entry of the new name is replaced if `replace`, else it
/// is an error (`AlreadyExists`), also if it was created at the same moment.
pub fn move_at(from: (&File, &str), to: (&File, &str), replace: bool) -> io::Result<()> {
    let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    match fs::renameat_with(from.0, from.1, to.0, to.1, flags) {
        // The file system does not support the flag. A hard link never replaces an entry either.
        Err(Errno::INVAL) if !replace => {
            fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
            remove_at(from.0, from.1, false)
        }
        moved => Ok(moved?),
    }
}

/// Bytes that this user may still write to a file's file system, and its size in bytes.
pub fn space(file: &File) -> io::Result<(u64, u64)> {
    let stat = fs::fstatvfs(file)?;
    Ok((stat.f_frsize.saturating_mul(stat.f_bavail), stat.f_frsize.saturating_mul(stat.f_blocks)))
}

/// Advises the kernel to drop a file's pages from its cache, so that they are read from the disk again.
pub fn forget_cached(file: &File) {
    let _ = fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// The effective user of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nothing_is_followed_or_replaced() {
        let path = std::env::temp_dir().join(format!("explicate-sys-file-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = File::open(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", path.join("link")).unwrap();
        assert_eq!(create_at(&folder, "link").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(is_link(&open_file_at(&folder, "link").unwrap_err()));
        assert_eq!(find_at(&folder, "link").unwrap(), Some(false));
        assert_eq!(find_at(&folder, "none").unwrap(), None);
        create_at(&folder, "a").unwrap();
        let refused = move_at((&folder, "a"), (&folder, "link"), false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        move_at((&folder, "a"), (&folder, "link"), true).unwrap();
        assert!(fs::symlink_metadata(path.join("link")).unwrap().is_file());
        make_folder_at(&folder, "sub").unwrap();
        assert_eq!(find_at(&folder, "sub").unwrap(), Some(true));
        open_folder_at(&folder, "sub").unwrap();
        remove_at(&folder, "sub", true).unwrap();
        let (free, all) = space(&folder).unwrap();
        assert!(free <= all && all > 0);
        fs::remove_dir_all(path).unwrap();
    }
}
