//! The pages of this process that a thread has found accessible, so that `SHMEM_CHECK` queries the
//! kernel once about a buffer that a loop passes again and again.
//!
//! A page that the program unmaps or protects later is not queried again as long as it is among the
//! last ones of the thread; an access to it is then a fault without a message.

use rushmem_transport::{LocalAccess, LocalBuf};
use std::cell::Cell;

/// The size in bytes of the smallest unit in which the kernel protects memory.
const PAGE: usize = 4096;
/// The number of pages that a thread remembers; each has one place.
const REMEMBERED: usize = 16;

thread_local! {
    /// Each as the number of the page with a low bit: 1 if it can be written.
    static PAGES: [Cell<usize>; REMEMBERED] = const { [const { Cell::new(usize::MAX) }; REMEMBERED] };
}

/// Returns whether the bytes lie on one page that this thread has queried already. Otherwise the
/// page counts as found from now on: the caller queries it, and ends the job if it is not
/// accessible.
pub(super) fn is_known(access: LocalAccess, local: LocalBuf) -> bool {
    let (first, last) = (local.base.addr(), local.base.addr().wrapping_add(local.nbytes - 1));
    if first / PAGE != last / PAGE {
        return false;
    }
    let page = first / PAGE;
    let readable = page << 1;
    let writable = readable | 1;
    PAGES.with(|pages| {
        let place = &pages[page % REMEMBERED];
        let known = place.get();
        let is_known = known == writable || access == LocalAccess::Read && known == readable;
        if !is_known {
            place.set(if access == LocalAccess::Write { writable } else { readable });
        }
        is_known
    })
}
