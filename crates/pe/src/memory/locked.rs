//! Checks whether the PEs of a node may lock the memory that they register with a network, so that
//! a message names the limit before a registration fails. The check leaves out the memory that the
//! library of the network locks for itself, since its size is not known.

use crate::job::Job;
use crate::memory::{huge_pages, shortage, statics};
use rushmem_system::limits::getrlimit;
use rushmem_transport::{Error, Segment};
use rustix::process::Resource;
use std::fmt;

/// The sizes that each PE of a node registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredSizes {
    /// The registered bytes of each segment, by its number.
    pub nbytes: [u64; Segment::COUNT],
    /// The number of PEs of the node.
    pub n_local: u32,
}

/// The limits within which PEs can lock memory: for each PE, and for all PEs of the node together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MemlockLimits {
    /// The number of bytes that a PE may lock; `None` if there is no limit.
    locked: Option<u64>,
    /// The memory of the node in bytes, or the limit of this PE's control groups if that is less;
    /// `None` if neither is known.
    memory: Option<u64>,
}

impl MemlockLimits {
    fn of_this_process() -> MemlockLimits {
        let locked = getrlimit(Resource::Memlock).current;
        MemlockLimits {
            locked: locked.filter(|_| !may_lock_anything()),
            memory: shortage::total(),
        }
    }
}

/// Returns true if the kernel ignores RLIMIT_MEMLOCK for this process (CAP_IPC_LOCK).
fn may_lock_anything() -> bool {
    // Without `/proc`, no capability is found, and the limit counts.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    const IPC_LOCK: u32 = 14;
    capabilities.is_some_and(|mask| mask >> IPC_LOCK & 1 == 1)
}

/// Prepares the registration of this PE's segments, with the first `heap` bytes of the heap: checks
/// the limits, and makes huge pages for these bytes as the setting requires.
///
/// # Errors
/// If the node does not allow PEs to lock that much.
pub fn prepare(job: &Job, heap: usize) -> Result<(), Error> {
    let registered = RegisteredSizes::new(job, heap);
    registered
        .require(MemlockLimits::of_this_process())
        .map_err(Error::Unavailable)?;
    // Locked pages cannot be made huge later.
    huge_pages::make_for_block(job, job.memory.heap(), heap, false);
    Ok(())
}

impl RegisteredSizes {
    /// Returns the sizes if each PE registers the first `heap` bytes of its heap.
    pub fn new(job: &Job, heap: usize) -> RegisteredSizes {
        let mut nbytes = [0; Segment::COUNT];
        nbytes[Segment::Heap as usize] = heap as u64;
        nbytes[Segment::Internal as usize] = job.memory.layout().internal_bytes() as u64;
        nbytes[Segment::Static as usize] = statics::own().nbytes() as u64;
        RegisteredSizes {
            nbytes,
            n_local: job.memory.n_local(),
        }
    }

    /// Returns the number of bytes that a PE registers.
    fn of_pe(&self) -> u64 {
        self.nbytes
            .iter()
            .fold(0, |sum, nbytes| sum.saturating_add(*nbytes))
    }

    /// Returns the number of bytes that all PEs of the node register.
    pub fn of_node(&self) -> u64 {
        self.of_pe().saturating_mul(self.n_local.into())
    }

    /// Compares the sizes with the limits.
    ///
    /// # Errors
    /// If the limits do not allow a network to lock this memory: a sentence with the remedy.
    fn require(&self, limits: MemlockLimits) -> Result<(), String> {
        if let Some(limit) = limits.locked.filter(|&limit| limit < self.of_pe()) {
            return Err(format!(
                "the network locks what a PE registers, {self}, but this PE may lock {limit} bytes (RLIMIT_MEMLOCK): raise \
                 that with `ulimit -l unlimited` or the limits of the resource manager, or allocate less of the \
                 symmetric heap (SHMEM_SYMMETRIC_SIZE limits it)"
            ));
        }

        if let Some(memory) = limits.memory.filter(|&memory| memory < self.of_node()) {
            return Err(format!(
                "the network locks what a PE registers, {self}, for the {} PEs of this node {} bytes, but the node has \
                 {memory} bytes of memory: allocate less of the symmetric heap (SHMEM_SYMMETRIC_SIZE limits it), or start \
                 fewer PEs on the node",
                self.n_local,
                self.of_node()
            ));
        }
        Ok(())
    }
}

impl fmt::Display for RegisteredSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nbytes = |segment: Segment| self.nbytes[segment as usize];
        write!(
            f,
            "{} bytes (symmetric heap {}, static data {}, the library's own {})",
            self.of_pe(),
            nbytes(Segment::Heap),
            nbytes(Segment::Static),
            nbytes(Segment::Internal)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_may_not_be_locked_is_said_with_the_remedy() {
        let registered = RegisteredSizes {
            nbytes: [512 * MIB, MIB, 2 * MIB],
            n_local: 128,
        };
        let said = |locked, memory| registered.require(MemlockLimits { locked, memory });
        assert_eq!(said(None, None), Ok(()));
        assert_eq!(said(Some(515 * MIB), Some(128 * 515 * MIB)), Ok(()));

        let limited = said(Some(515 * MIB - 1), None).expect_err("a byte too little");
        for word in [
            "540016640 bytes",
            "heap 536870912",
            "own 1048576",
            "lock 540016639",
        ] {
            assert!(limited.contains(word), "{word}: {limited}");
        }
        assert!(limited.contains("ulimit -l") && limited.contains("SHMEM_SYMMETRIC_SIZE"));

        let short = said(None, Some(128 * 515 * MIB - 1)).expect_err("a byte too little");
        for word in [
            "128 PEs",
            "69122129920 bytes",
            "has 69122129919 bytes",
            "SYMMETRIC_SIZE",
        ] {
            assert!(short.contains(word), "{word}: {short}");
        }
    }
}
