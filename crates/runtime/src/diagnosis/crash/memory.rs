//! The allocator of librushmem. In the copy of a process that describes a crash, it uses new pages,
//! since the heap of the program may be damaged or locked.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The minimum number of bytes that are mapped at once: reading debug information makes many
/// allocations, of which each mapping would be a system call. Pages that are not used take no
/// memory.
const CHUNK: usize = 16 << 20;

/// The allocator of librushmem: that of the C library. In the copy of a process that has crashed it
/// maps new pages and frees none.
pub struct CrashAllocator;

/// True in the copy. Relaxed, as all accesses here: the copy has one thread, and no other process
/// stores them.
static IS_COPY: AtomicBool = AtomicBool::new(false);
/// The start of the unused bytes of the last mapping. Only the copy uses it.
static NEXT: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// The number of unused bytes of the last mapping. Only the copy uses it.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Makes all further allocations use new pages. Called in the copy.
pub(super) fn use_new_pages() {
    IS_COPY.store(true, Relaxed);
}

// SAFETY: `System` is an allocator. `new` returns mapped, aligned bytes, and the same bytes only
// once.
unsafe impl GlobalAlloc for CrashAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COPY.load(Relaxed) {
            return new(layout);
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IS_COPY.load(Relaxed) {
            // New pages are zeros.
            return new(layout);
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !IS_COPY.load(Relaxed) {
            // SAFETY: the caller keeps the contract of `GlobalAlloc`, and the block is from
            // `System`.
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, nbytes: usize) -> *mut u8 {
        if !IS_COPY.load(Relaxed) {
            // SAFETY: the caller keeps the contract of `GlobalAlloc`, and the block is from
            // `System`.
            return unsafe { System.realloc(block, layout, nbytes) };
        }
        // SAFETY: the caller promises that the new size is valid with this alignment.
        let other = new(unsafe { Layout::from_size_align_unchecked(nbytes, layout.align()) });
        if !other.is_null() {
            // SAFETY: by the contract of `realloc`, `block` has `layout.size()` bytes. `other` is a
            // new block of `nbytes` bytes, so they do not overlap, and both have the smaller
            // number.
            unsafe { block.copy_to_nonoverlapping(other, layout.size().min(nbytes)) };
        }
        other
    }
}

/// Returns a block of new pages; null if there are none.
#[cold]
fn new(layout: Layout) -> *mut u8 {
    let mut next = NEXT.load(Relaxed);
    let mut before = next.align_offset(layout.align());

    // If the rest of the last mapping is too small, it stays unused, which costs no memory.
    if LEFT.load(Relaxed) < before.saturating_add(layout.size()) {
        let nbytes = CHUNK.max(layout.size().saturating_add(layout.align()));
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the call creates a mapping at an address that the kernel chooses.
        let memory = unsafe { libc::mmap(null_mut(), nbytes, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return null_mut();
        }
        next = memory.cast();
        before = next.align_offset(layout.align());
        LEFT.store(nbytes, Relaxed);
    }

    let used = before + layout.size();
    NEXT.store(next.wrapping_add(used), Relaxed);
    LEFT.fetch_sub(used, Relaxed);
    next.wrapping_add(before)
}
