//! Files by name within an open folder: nothing that is done here follows a link or leaves the folder.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;

fn open_at(folder: &File, name: &str, flags: libc::c_int, mode: libc::mode_t) -> io::Result<File> {
    let name = CString::new(name)?;
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the name is a C string; a new descriptor, owned by nobody else.
    unsafe {
        let fd = check(libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, mode))?;
        Ok(File::from(OwnedFd::from_raw_fd(fd)))
    }
}

/// Creates a file that was not there before, which only its owner may read and write.
pub fn create_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600)
}

/// Opens a file that is there, for reading and writing.
pub fn open_file_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, libc::O_RDWR, 0)
}

/// Whether a file was not opened because the name is a link.
pub fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Opens a folder.
pub fn open_folder_at(folder: &File, name: &str) -> io::Result<File> {
    open_at(folder, name, libc::O_RDONLY | libc::O_DIRECTORY, 0)
}

/// Makes a folder that only its owner may read and write.
pub fn make_folder_at(folder: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: the name is a C string.
    check(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o700) }).map(drop)
}

/// Removes a file, or a folder that is empty.
pub fn remove_at(folder: &File, name: &str, is_folder: bool) -> io::Result<()> {
    let name = CString::new(name)?;
    let flags = if is_folder { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: the name is a C string.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// Whether something has this name, be it a link that leads nowhere, and whether that is a folder.
pub fn find_at(folder: &File, name: &str) -> io::Result<Option<bool>> {
    let name = CString::new(name)?;
    // SAFETY: the name is a C string; a stat is plain data, and the kernel fills it.
    let found = unsafe {
        let mut stat: libc::stat = zeroed();
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        check(libc::fstatat(folder.as_raw_fd(), name.as_ptr(), &mut stat, flags)).map(|_| stat.st_mode)
    };
    match found {
        Ok(mode) => Ok(Some(mode & libc::S_IFMT == libc::S_IFDIR)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves a file to another folder of the same file system. What has the name there already is replaced if that is asked for, and
/// an error (`AlreadyExists`) otherwise, also if it came at the same moment.
pub fn move_at(from: (&File, &str), to: (&File, &str), replace: bool) -> io::Result<()> {
    let (old, new) = (CString::new(from.1)?, CString::new(to.1)?);
    let flags = if replace { 0 } else { libc::RENAME_NOREPLACE };
    let (old_folder, new_folder) = (from.0.as_raw_fd(), to.0.as_raw_fd());
    // SAFETY: both names are C strings.
    let moved = check(unsafe { libc::renameat2(old_folder, old.as_ptr(), new_folder, new.as_ptr(), flags) });
    match moved {
        // A file system that does not know the flag: a second name, which is never put over another, and the first goes.
        Err(error) if !replace && error.raw_os_error() == Some(libc::EINVAL) => {
            // SAFETY: both names are C strings.
            check(unsafe { libc::linkat(old_folder, old.as_ptr(), new_folder, new.as_ptr(), 0) })?;
            remove_at(from.0, from.1, false)
        }
        moved => moved.map(drop),
    }
}

/// Bytes that this user may still write to a file's file system, and bytes that it has in all.
pub fn space(file: &File) -> io::Result<(u64, u64)> {
    // SAFETY: a statvfs is plain data, and the kernel fills it.
    let stat = unsafe {
        let mut stat: libc::statvfs = zeroed();
        check(libc::fstatvfs(file.as_raw_fd(), &mut stat))?;
        stat
    };
    let block = stat.f_frsize as u64;
    Ok((block.saturating_mul(stat.f_bavail as u64), block.saturating_mul(stat.f_blocks as u64)))
}

/// What has been synced to disk is read from there again, as far as the kernel takes the advice.
pub fn forget_cached(file: &File) {
    // SAFETY: takes numbers.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// The user that this process acts as.
pub fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
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
