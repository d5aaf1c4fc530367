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

/// Returns whether the pages of the first and the last byte have been queried already. Otherwise
/// they count as found from now on: the caller queries them, and ends the job if one is not.
#[inline]
pub(super) fn is_known(access: LocalAccess, local: LocalBuf) -> bool {
    let (first, last) = (local.base.addr(), local.base.addr().wrapping_add(local.nbytes - 1));
    let first_is_known = is_known_page(access, first / PAGE);
    (first / PAGE == last / PAGE || is_known_page(access, last / PAGE)) && first_is_known
}

fn is_known_page(access: LocalAccess, page: usize) -> bool {
    // An empty place holds 0, which is not the page of null.
    let readable = (page + 1) << 1;
    let writable = readable | 1;
    let place = &PAGES[page % REMEMBERED];
    let known = place.load(Relaxed);
    let is_known = known == writable || access == LocalAccess::Read && known == readable;
    if !is_known {
        place.store(if access == LocalAccess::Write { writable } else { readable }, Relaxed);
    }
    is_known
}
