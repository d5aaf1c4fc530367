//! The pages of this process that were found accessible, so that `SHMEM_CHECK` queries the
//! kernel once about a page of a buffer, in whatever order a program passes its parts.
//!
//! A page that the program unmaps or protects later is not queried again as long as it is
//! remembered; an access to it is then a fault without a message.

use rushmem_transport::{LocalAccess, LocalBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The size in bytes of the smallest unit in which the kernel protects memory.
const PAGE: usize = 4096;
/// The number of pages that are remembered, those of 64 MiB that are contiguous, one place each.
const REMEMBERED: usize = 1 << 14;

/// The pages, each as its number and 1, with a low bit: 1 if it can be written. They take no memory
/// before they are used.
static PAGES: [AtomicUsize; REMEMBERED] = [const { AtomicUsize::new(0) }; REMEMBERED];

/// Returns whether the pages of the first and the last byte were found accessible before.
#[inline(always)]
pub(super) fn is_known(access: LocalAccess, local: LocalBuf) -> bool {
    let [first, last] = ends(local);
    let is_known = |page: usize| {
        let known = PAGES[page % REMEMBERED].load(Relaxed);
        known | usize::from(access == LocalAccess::Read) == entry(page, true)
    };
    is_known(first) && (first == last || is_known(last))
}

/// Records that these pages were found accessible.
pub(super) fn remember(access: LocalAccess, local: LocalBuf) {
    for page in ends(local) {
        PAGES[page % REMEMBERED].store(entry(page, access == LocalAccess::Write), Relaxed);
    }
}

/// Returns the pages of the first and the last byte.
#[inline(always)]
fn ends(local: LocalBuf) -> [usize; 2] {
    let first = local.base.addr();
    [first, first.wrapping_add(local.nbytes - 1)].map(|byte| byte / PAGE)
}

/// Returns what is remembered of a page. An empty place holds 0, which is not the page of null.
#[inline(always)]
fn entry(page: usize, is_writable: bool) -> usize {
    (page + 1) << 1 | usize::from(is_writable)
}
