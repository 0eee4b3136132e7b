//! Prefetch hints for the processor and huge-page hints for the system. They affect only the speed, and do nothing on
//! other platforms. All unsafe code of the simulator is in this file.
#![allow(unsafe_code)]

/// Bytes of a cache line.
const LINE: usize = 64;

/// All lines of this value will be read.
#[inline(always)]
pub(crate) fn whole<T>(value: &T) {
    let at: *const u8 = (value as *const T).cast();
    lines(at, size_of::<T>());
    if size_of::<T>() > LINE && align_of::<T>() < LINE {
        line(at.wrapping_add(size_of::<T>() - 1));
    }
}

/// This number of bytes from this address on will be read. Any address is valid.
#[inline(always)]
pub(crate) fn lines(at: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(LINE) {
        line(at.wrapping_add(offset));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line(at: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has the instruction, and it faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line(_at: *const u8) {}

/// Requests huge pages for this allocation if it is large: with small pages, most random
/// accesses also miss the TLB.
pub(crate) fn in_large_pages<T>(room: &[core::mem::MaybeUninit<T>]) {
    pages::advise(room.as_ptr().cast(), size_of_val(room), pages::TO_COME);
}

/// Moves this memory into huge pages, if it is large.
pub(crate) fn into_large_pages<T>(these: &[T]) {
    pages::advise(these.as_ptr().cast(), size_of_val(these), pages::HERE);
}

/// Moves the huge pages that these places, with this number of bytes each, fill at least by half, if there are many.
pub(crate) fn gather(places: impl Iterator<Item = (*const u8, usize)>) {
    pages::gather(places);
}

#[cfg(target_os = "linux")]
mod pages {
    use std::collections::BTreeMap;

    const SMALL: usize = 4096;
    const LARGE: usize = 2 << 20;
    /// Size from which huge pages are requested.
    const MANY: usize = 8 << 20;

    pub(super) const TO_COME: libc::c_int = libc::MADV_HUGEPAGE;
    pub(super) const HERE: libc::c_int = 25; // MADV_COLLAPSE, which libc has for glibc alone

    pub(super) fn advise(from: *const u8, bytes: usize, advice: libc::c_int) {
        if bytes >= MANY {
            let ahead = from.align_offset(SMALL);
            give(from.wrapping_add(ahead), (bytes - ahead) / SMALL * SMALL, advice);
        }
    }

    pub(super) fn gather(places: impl Iterator<Item = (*const u8, usize)>) {
        let mut filled = BTreeMap::new();
        for (at, bytes) in places {
            *filled.entry(at.addr() / LARGE).or_insert(0) += bytes;
        }
        if filled.values().sum::<usize>() >= MANY {
            for (page, _) in filled.into_iter().filter(|(_, bytes)| *bytes >= LARGE / 2) {
                give(core::ptr::without_provenance(page * LARGE), LARGE, HERE);
            }
        }
    }

    /// The whole pages that contain any of these bytes. The system may refuse.
    fn give(from: *const u8, bytes: usize, advice: libc::c_int) {
        // SAFETY: neither advice changes the contents of the pages.
        unsafe {
            libc::madvise(from.cast_mut().cast(), bytes, advice);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod pages {
    pub(super) const TO_COME: i32 = 0;
    pub(super) const HERE: i32 = 0;
    pub(super) fn advise(_from: *const u8, _bytes: usize, _advice: i32) {}
    pub(super) fn gather(_places: impl Iterator<Item = (*const u8, usize)>) {}
}
