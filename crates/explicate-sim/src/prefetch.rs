//! Hints to the processor that something will be read soon. They change nothing but time: where the processor has none, they
//! are nothing. This is all unsafe code of the simulator.
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
