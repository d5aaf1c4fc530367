//! Huge pages for symmetric memory.
//!
//! A PE makes the huge pages of a large block when it allocates the block, before the barrier of
//! the call: no PE uses the block yet, so little is copied. If the machine has free huge pages,
//! this takes about as long as the first touch of the small pages would; if the kernel must make
//! them, several times as long. By default static data get huge pages only if the kernel makes them
//! at the first touch, since it is not known how much of the data a program uses.

use crate::call::warning::warning;
use crate::job::Job;
use crate::memory::{shortage, statics};
use crate::settings::{HugePages, Settings};
use rushmem_heap::huge_pages::{self, HUGE, PageSize};
use rushmem_heap::{Layout, NodeMapping, NodeMemory, ReservedPages, Statics};
use rushmem_transport::Pe;
use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The smallest block that gets huge pages by default; accesses to smaller ones rarely miss the
/// TLB.
const LARGE: usize = 64 << 20;

/// The time that the kernel may take for each huge page by default: about the time of the first
/// touch of the small pages that it replaces.
const LIMIT: Duration = Duration::from_millis(1);
/// The time that the kernel may take for each huge page if the user asks for them.
const LIMIT_ON: Duration = Duration::from_millis(100);

/// The end of the highest block for which huge pages were made or refused. Memory below it is not
/// tried again: its huge pages stay when the block is freed.
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Applies `SHMEM_HUGE_PAGES` to memory that has just been mapped: forbids huge pages, or makes
/// those of the static data. Blocks of the heap get theirs when they are allocated.
pub fn apply_setting(memory: &NodeMemory, settings: &Settings, me: Pe) {
    // Static data that are not shared memory are left as the kernel has mapped them.
    let mut statics = Vec::new();
    if statics::remapped().is_some() {
        statics.extend(statics::own().ranges());
    }

    match settings.huge_pages {
        HugePages::Off => {
            huge_pages::forbid(memory.slices());
            for part in statics {
                huge_pages::forbid(part);
            }
        }
        HugePages::Auto => {}
        HugePages::On | HugePages::Reserved(_) => {
            for part in statics {
                make(memory, settings, me, huge_pages::whole(&part));
            }
        }
    }
}

/// Reserves huge pages for the heaps of this machine, on its first PE. Returns `None` on the other
/// PEs, if there are to be none, and if too few are free; warns if the user has asked for them.
pub fn reserve(
    settings: &Settings,
    layout: &Layout,
    n_local: u32,
    local: u32,
) -> Option<ReservedPages> {
    if local > 0 || layout.heap_bytes() == 0 || settings.huge_pages == HugePages::Off {
        return None;
    }

    let reserved = ReservedPages::reserve(layout, n_local);
    let why = reserved.as_ref().err();
    rushmem_system::log::debug!(
        n_local,
        ?why,
        "reserves huge pages for the heaps of this node"
    );
    if let (Some(why), HugePages::Reserved(size)) = (why, settings.huge_pages) {
        let page = size.nbytes();
        warning!(
            "SHMEM_HUGE_PAGES={}: {n_local} heaps of {} bytes are refused reserved pages: {why}; have the \
             administrator reserve {} (`echo N > /sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages`); \
             until then the job runs as with SHMEM_HUGE_PAGES=on",
            settings.huge_pages,
            layout.heap_bytes(),
            layout.heap_bytes().div_ceil(page) * n_local as usize,
            page >> 10
        );
    }
    reserved.ok()
}

/// Makes huge pages for a block of the heap, if the block is as large as the setting requires and
/// the heap has no reserved ones. By default a block for remote atomic operations may be smaller
/// than others.
pub fn make_for_block(job: &Job, start: *const u8, nbytes: usize, for_amos: bool) {
    let least = match job.settings.huge_pages {
        HugePages::Off => return,
        HugePages::Auto if !for_amos => LARGE,
        _ => HUGE,
    };
    if nbytes < least || job.memory.has_reserved_pages() {
        return;
    }

    // Relaxed: the heap's allocations are collective, so threads do not make them at once.
    let rest = rest_of_block(start.addr(), nbytes, DONE.load(Relaxed));
    let pages = huge_pages::whole(&rest);
    DONE.fetch_max(pages.end, Relaxed);
    make(job.memory, &job.settings, job.me, pages);
}

/// Returns the part of a block that is not below `done`, the end of earlier blocks with huge pages.
fn rest_of_block(start: usize, nbytes: usize, done: usize) -> Range<usize> {
    start.max(done)..start + nbytes
}

/// Makes huge pages at these addresses, unless the node has too little memory. If the user has
/// asked for huge pages, PE 0 warns once of those that it does not get.
fn make(memory: &NodeMemory, settings: &Settings, me: Pe, pages: Range<usize>) {
    if pages.is_empty() {
        return;
    }

    let is_auto = settings.huge_pages == HugePages::Auto;
    let limit = if is_auto { LIMIT } else { LIMIT_ON };
    // Unless the user has asked for huge pages, half of the memory is left to others.
    let part = if is_auto { 2 } else { 1 };
    // All PEs of the node make huge pages at the same time and share the memory that is available.
    let most = shortage::available().map(|bytes| bytes / part / u64::from(memory.n_local()));

    let nbytes = pages.len();
    let mut obtained = 0;
    let mut why = String::new();
    if most.is_some_and(|most| nbytes as u64 > most) {
        why.push_str("the node has too little memory");
    } else {
        let collapsed = huge_pages::collapse(pages, limit);
        obtained = collapsed.nbytes;
        if let Some(error) = collapsed.why {
            why = error.to_string();
        }
    }

    rushmem_system::log::debug!(nbytes, obtained, why, "huge pages for symmetric memory");

    if obtained < nbytes && settings.huge_pages == HugePages::On && me == Pe(0) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            warning!(
                "SHMEM_HUGE_PAGES={}: {obtained} of {nbytes} bytes on PE 0 have huge pages: {why}; have the \
                 administrator reserve some (`sysctl vm.nr_hugepages=N`) and set SHMEM_HUGE_PAGES=2m, or set it to auto",
                settings.huge_pages
            );
        });
    }
}

/// Makes a huge page as for a large block of the heap, without a job, for `oshrun --doctor`.
///
/// # Errors
/// If the kernel makes none; the reason.
pub fn make_huge_page() -> Result<(), String> {
    let layout = Layout::new(2 * HUGE as u64, 1, PageSize::Mib2).ok_or("no room")?;
    let memory = NodeMemory::map(NodeMapping {
        memory: None,
        layout,
        n_local: 1,
        local: 0,
        reserved: None,
        pages: None,
        published_bytes: 0,
        statics: &Statics::of_program(),
        peers: &[],
    });
    let start = memory.as_ref().map_err(ToString::to_string)?.heap().addr();
    match huge_pages::collapse(start..start + HUGE, LIMIT).why {
        None => Ok(()),
        Some(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_of_a_block_begin_where_those_of_earlier_blocks_end() {
        let pages = |start, done| huge_pages::whole(&rest_of_block(start * HUGE, 3 * HUGE, done));
        assert_eq!(pages(10, 0), 10 * HUGE..13 * HUGE);
        assert_eq!(pages(10, 11 * HUGE), 11 * HUGE..13 * HUGE);
        assert!(pages(10, 13 * HUGE).is_empty());
    }
}
