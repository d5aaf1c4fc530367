//! Requests huge pages for ranges of symmetric memory, or forbids them.
//!
//! With pages of 4 KiB nearly every random access to gigabytes misses the TLB, and the first touch
//! of each page is a fault. Linux backs shared memory by huge pages at the first touch only where
//! the administrator allows it (`shmem_enabled`). From Linux 6.1 on, any user can also request that
//! the kernel collapses present pages into huge ones (`MADV_COLLAPSE`).
#![allow(unsafe_code)]

use rustix::io::Errno;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes of a huge page. Huge pages are possible if an address and its offset in the file differ by
/// a multiple of this.
pub const HUGE: usize = 2 << 20;

/// The sizes of huge pages that an administrator can reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 2 MiB.
    Mib2,
    /// 1 GiB.
    Gib1,
}

impl PageSize {
    /// Returns the size of a page in bytes.
    pub fn nbytes(self) -> usize {
        match self {
            PageSize::Mib2 => 2 << 20,
            PageSize::Gib1 => 1 << 30,
        }
    }
}

/// The number of bytes that one request collapses. For each request the kernel first empties lists
/// of pages of all CPUs, which takes milliseconds on a busy machine. The time limit is only looked
/// at between two requests, so larger ones would notice it later.
const AT_A_TIME: usize = 16 * HUGE;

/// The time that a collapse may always take, so that a moment in which the machine is busy does not
/// end it.
const GRACE: Duration = Duration::from_millis(100);

/// The result of [`collapse`] for a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collapsed {
    /// The number of bytes that have huge pages.
    pub nbytes: usize,
    /// The reason why the rest has none.
    pub why: Option<NotHuge>,
}

/// The reason why memory has no huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotHuge {
    /// The kernel needs too long, as where memory is fragmented. Remedy: reserve pages by
    /// `vm.nr_hugepages`, or set SHMEM_HUGE_PAGES to off.
    #[error("making them takes too long")]
    Slow,
    /// The kernel refused, as where no page is free. Remedy: reserve pages by `vm.nr_hugepages`, or
    /// set SHMEM_HUGE_PAGES to off.
    #[error("the kernel refuses: {0}")]
    Refused(Errno),
}

/// Returns the part of a range of addresses that consists of whole huge pages. If there are none,
/// returns an empty range at its end.
pub fn whole(range: &Range<usize>) -> Range<usize> {
    let first = range.start.next_multiple_of(HUGE);
    let end = range.end / HUGE * HUGE;
    if first < end {
        first..end
    } else {
        range.end..range.end
    }
}

/// Makes the kernel back `range`, which [`whole`] has returned, by huge pages, from its start on.
/// Memory is taken for all pages reached. The contents do not change, and threads and peers may
/// access them meanwhile. Ends early if the kernel refuses, or if it takes longer than 100 ms plus
/// `limit` for each huge page so far.
pub fn collapse(range: Range<usize>, limit: Duration) -> Collapsed {
    let began = Instant::now();
    // If the kernel allows this, touching a page makes a huge one. If it refuses, collapsing the
    // pages makes huge ones all the same.
    let _ = advise(range.clone(), libc::MADV_HUGEPAGE);

    let mut nbytes = 0;
    for start in range.clone().step_by(AT_A_TIME) {
        let part = start..range.end.min(start + AT_A_TIME);
        if let Err(errno) = collapse_part(part.clone()) {
            return Collapsed {
                nbytes,
                why: Some(NotHuge::Refused(errno)),
            };
        }
        nbytes += part.len();

        // The limit counts for the pages so far together, so that a slow part among fast ones does
        // not end the collapse.
        if nbytes < range.len() && began.elapsed() > GRACE + limit * (nbytes / HUGE) as u32 {
            return Collapsed {
                nbytes,
                why: Some(NotHuge::Slow),
            };
        }
    }
    Collapsed { nbytes, why: None }
}

/// Touches a part and collapses it, since the kernel collapses no empty huge page.
fn collapse_part(part: Range<usize>) -> Result<(), Errno> {
    for page in part.clone().step_by(HUGE) {
        advise(page..page + 1, libc::MADV_POPULATE_WRITE)?;
    }
    advise(part, libc::MADV_COLLAPSE)
}

/// Forbids huge pages in a range, whatever the administrator has chosen for all memory.
pub fn forbid(range: Range<usize>) {
    // A kernel without huge pages refuses this, and makes none anyway.
    let _ = advise(range, libc::MADV_NOHUGEPAGE);
}

fn advise(range: Range<usize>, advice: libc::c_int) -> Result<(), Errno> {
    let start = std::ptr::without_provenance_mut(range.start);
    // SAFETY: the advice of this file changes no contents, whatever is mapped in the range.
    if unsafe { libc::madvise(start, range.len(), advice) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_is_one_that_lies_wholly_in_a_range() {
        assert_eq!(whole(&(4096..2 * HUGE + 5)), HUGE..2 * HUGE);
        assert_eq!(whole(&(HUGE..3 * HUGE)), HUGE..3 * HUGE);
        for range in [
            0..4096,
            4096..HUGE,
            4096..2 * HUGE - 1,
            HUGE + 4096..HUGE + 8192,
        ] {
            assert_eq!(whole(&range), range.end..range.end);
        }
    }

    #[test]
    fn what_cannot_be_collapsed_is_refused() {
        let collapsed = collapse(0..HUGE, Duration::ZERO);
        assert_eq!(collapsed.nbytes, 0);
        assert!(
            matches!(collapsed.why, Some(NotHuge::Refused(_))),
            "{collapsed:?}"
        );
    }
}
