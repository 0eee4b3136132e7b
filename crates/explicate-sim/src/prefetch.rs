//! Hints to the processor that something will be read soon, and to the system that much lies together. They change nothing but
//! time: where there are none, they are nothing. This is all unsafe code of the simulator.
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

/// So many bytes from this address on will be read. Any address will do.
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

/// Bytes from which on large pages are asked for: some of them.
#[cfg(target_os = "linux")]
const MANY: usize = 8 << 20;

/// Asks the system to keep all that has room here in large pages, if that is much: with small ones most of what is touched at
/// random waits for the address to be looked up too.
#[cfg(target_os = "linux")]
pub(crate) fn in_large_pages<T>(room: &[core::mem::MaybeUninit<T>]) {
    const PAGE: usize = 4096;
    let (from, bytes) = (room.as_ptr().cast::<u8>(), size_of_val(room));
    if bytes >= MANY {
        let ahead = from.align_offset(PAGE);
        // SAFETY: the pages lie within what is borrowed, and the advice changes nothing in them. It may be refused.
        unsafe {
            libc::madvise(
                from.wrapping_add(ahead).cast_mut().cast(),
                (bytes - ahead) / PAGE * PAGE,
                libc::MADV_HUGEPAGE,
            );
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn in_large_pages<T>(_room: &[core::mem::MaybeUninit<T>]) {}
