//! Shortage of memory. Compares the heaps of the node with the memory that is available, to warn
//! before the kernel kills a process, and remembers the first allocation that failed.
//!
//! In C and Fortran, an allocation without room returns null. A program that does not check for
//! null soon fails by a signal or an invalid argument, which does not show the cause. Therefore the
//! first failure is kept for later messages, and sent to `oshrun`, which reports it if the PE
//! fails. Without `oshrun` no process could report it after a signal, so PE 0 prints a warning at
//! once. In Rust, it is an error that the program handles, or a panic, so it is not kept.

use crate::call::Call;
use crate::call::warning::warning;
use crate::job::Job;
use rushmem_topology::GroupLimit;
use rushmem_transport::Pe;
use std::fs::read_to_string;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory in bytes that was available at init, if it is less than all heaps of the node
/// together; otherwise, and after the warning, `u64::MAX`. Relaxed: two threads that allocate at
/// the same time may both warn.
static AVAILABLE: AtomicU64 = AtomicU64::new(u64::MAX);

/// Records the memory that is available, if it is less than `n_local` heaps of `nbytes` bytes.
pub fn record(nbytes: u64, n_local: u32) {
    let most = nbytes.saturating_mul(n_local.into());
    let available = available().filter(|&available| most > available);
    AVAILABLE.store(available.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Warns once if the first `nbytes` bytes of `n_local` heaps are more than the memory that was
/// available. The allocation has succeeded, since the kernel allocates pages at the first touch.
pub fn warn_of_shortage(nbytes: usize, n_local: u32) {
    let allocated = (nbytes as u64).saturating_mul(n_local.into());
    let available = AVAILABLE.load(Ordering::Relaxed);
    if allocated > available {
        AVAILABLE.store(u64::MAX, Ordering::Relaxed);
        warning!(
            each: "the {n_local} PEs of this node have allocated {allocated} bytes of their symmetric heaps, but \
             {available} bytes of memory were available at init; a program that touches more will be killed: \
             allocate less, or use fewer PEs for each host"
        );
    }
}

/// Returns the memory in bytes that is available without swapping, by the kernel's estimate and the
/// limits of this process's control groups; `None` if neither is known.
pub fn available() -> Option<u64> {
    let groups = GroupLimit::of_memory();
    let left = groups
        .into_iter()
        .map(|group| group.limit.saturating_sub(group.used));
    left.chain(of_machine("MemAvailable:")).min()
}

/// Returns the memory of this node in bytes, or the limit of this process's control groups if that
/// is less; `None` if neither is known.
pub fn total() -> Option<u64> {
    let limits = GroupLimit::of_memory().into_iter().map(|group| group.limit);
    limits.chain(of_machine("MemTotal:")).min()
}

/// Returns a field of /proc/meminfo in bytes; `None` if it cannot be read.
fn of_machine(what: &str) -> Option<u64> {
    of_meminfo(&read_to_string("/proc/meminfo").ok()?, what)
}

fn of_meminfo(text: &str, what: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(what))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The description of the first allocation that failed.
static FIRST: OnceLock<String> = OnceLock::new();

/// Records and reports that `call` found no room for `nbytes` bytes aligned to `alignment`, if it
/// is the first such call. `in_use` returns the number of allocated bytes of the heap.
#[cold]
pub fn record_refusal(
    call: Call,
    job: &Job,
    nbytes: usize,
    alignment: usize,
    in_use: impl FnOnce() -> usize,
) {
    if call.is_rust() || FIRST.get().is_some() {
        return;
    }

    let layout = job.memory.layout();
    let what = if nbytes > isize::MAX as usize {
        format!("the memory of {call}: its size is negative, or larger than any memory")
    } else if alignment > layout.stride() {
        format!(
            "the memory of {call} ({nbytes} bytes aligned to {alignment}): the alignment may be {} at most",
            layout.stride()
        )
    } else {
        let in_use = in_use();
        format!(
            "the memory of {call} ({nbytes} bytes): {in_use} of the {} bytes of SHMEM_SYMMETRIC_SIZE are in use; make it \
             larger, or check for null",
            job.settings.symmetric_size
        )
    };

    if !job.membership().report_refusal(&what) && job.me == Pe(0) {
        warning!("PE 0 was refused {what}");
    }
    // An error says that another thread was faster: only the first failure counts.
    let _ = FIRST.set(what);
}

/// Processes have no memory below this address, unless the administrator has lowered the limit of
/// the kernel (vm.mmap_min_addr).
const LOWEST: usize = 1 << 16;

/// Returns true if an address is null or that of an element of an array at null.
pub(crate) fn is_near_null(address: usize) -> bool {
    address < LOWEST
}

/// Returns a clause that says which allocation failed first, for a message about an address that is
/// null or an element of an array at null. Returns an empty string for other addresses, and if no
/// allocation has failed.
pub(crate) fn before_null(address: usize) -> String {
    match FIRST.get() {
        Some(what) if is_near_null(address) => format!("; before that the PE was refused {what}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_understood() {
        let meminfo = "MemTotal:  24 kB\nMemAvailable:   123 kB\n";
        assert_eq!(of_meminfo(meminfo, "MemAvailable:"), Some(123 << 10));
        assert_eq!(of_meminfo("MemTotal: 24 kB\n", "MemAvailable:"), None);
    }
}
