//! Why memory cannot be registered: what a PE tells the others, and the words of the warning.

use rushmem_heap::pages::Unsuitable;

/// The reason why the memory of a PE cannot be registered, as a number that PEs exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Refusal {
    Inaccessible = Unsuitable::Inaccessible as u8,
    Shared = Unsuitable::Shared as u8,
    Stack = Unsuitable::Stack as u8,
    Executable = Unsuitable::Executable as u8,
    HugePage = Unsuitable::HugePage as u8,
    Unknown = Unsuitable::Unknown as u8,
    ControlBlock = Unsuitable::ControlBlock as u8,
    /// It is in the heap, in the internal area or in the static data.
    Symmetric,
    /// It has bytes in common with another buffer.
    Overlap,
    /// A buffer that must not move would: one that is connected with it through shared pages.
    Pinned,
    /// Pages of a buffer that the program has unmapped in part would move.
    Lost,
    /// A buffer in which the PE holds a lock would move.
    HeldLock,
    /// The heap consists of reserved pages, of which none can be mapped elsewhere.
    ReservedPages,
    /// The address is aligned otherwise than on PE 0.
    Alignment,
    /// The PE passes an option that does not exist.
    Option,
}

const ALL: [Refusal; 15] = [
    Refusal::Inaccessible,
    Refusal::Shared,
    Refusal::Stack,
    Refusal::Executable,
    Refusal::HugePage,
    Refusal::Unknown,
    Refusal::ControlBlock,
    Refusal::Symmetric,
    Refusal::Overlap,
    Refusal::Pinned,
    Refusal::Lost,
    Refusal::HeldLock,
    Refusal::ReservedPages,
    Refusal::Alignment,
    Refusal::Option,
];

impl From<Unsuitable> for Refusal {
    fn from(why: Unsuitable) -> Refusal {
        match why {
            Unsuitable::Inaccessible => Refusal::Inaccessible,
            Unsuitable::Shared => Refusal::Shared,
            Unsuitable::Stack => Refusal::Stack,
            Unsuitable::Executable => Refusal::Executable,
            Unsuitable::HugePage => Refusal::HugePage,
            Unsuitable::Unknown => Refusal::Unknown,
            Unsuitable::ControlBlock => Refusal::ControlBlock,
        }
    }
}

impl Refusal {
    /// Returns the reason of a number; `None` for 0, which stands for no refusal.
    pub(crate) fn of_number(number: u64) -> Option<Refusal> {
        ALL.into_iter().find(|refusal| *refusal as u64 == number)
    }

    /// Returns the predicate of a sentence about the memory, for an option about the PE, with the
    /// remedy.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Refusal::Inaccessible => {
                "is not all mapped for reads and writes; check the address and the size"
            }
            Refusal::Shared => {
                "is shared with other processes already; register private memory, as that of malloc"
            }
            Refusal::Stack => "is on a stack; allocate it with malloc",
            Refusal::Executable => "may be executed; register memory for data alone",
            Refusal::HugePage => {
                "consists of huge pages of MAP_HUGETLB, of which none can be replaced; let madvise make huge pages"
            }
            Refusal::Unknown => {
                "cannot be checked, since /proc/self/maps cannot be read there; mount /proc, or raise the limits of open \
                 files and mappings (ulimit -n, ulimit -v, vm.max_map_count)"
            }
            Refusal::ControlBlock => {
                "has a page in common with the control block of the first thread, to which the kernel writes; begin \
                 and end it at pages"
            }
            Refusal::Symmetric => "is symmetric already; use it as it is",
            Refusal::Overlap => {
                "has bytes in common with a registered buffer; unregister that one first"
            }
            Refusal::Pinned => {
                "is connected through shared pages with a buffer of SHMEMX_BUFFER_PINNED, which cannot move; begin \
                 and end it at pages, or register it before that one"
            }
            Refusal::Lost => {
                "is connected through shared pages with a registered buffer that was freed or unmapped in part; \
                 unregister that one first"
            }
            Refusal::HeldLock => {
                "is connected through shared pages with a registered buffer that would move, and in which the PE \
                 holds a lock; call shmem_clear_lock first"
            }
            Refusal::ReservedPages => {
                "cannot become part of a heap of reserved huge pages; set SHMEM_HUGE_PAGES otherwise"
            }
            Refusal::Alignment => {
                "is aligned otherwise than that of PE 0; align it to 16 bytes on all PEs"
            }
            Refusal::Option => "passes an unknown option; pass 0 or SHMEMX_BUFFER_PINNED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_number_of_its_own() {
        assert_eq!(Refusal::of_number(0), None);
        for (i, refusal) in ALL.into_iter().enumerate() {
            assert_eq!(Refusal::of_number(refusal as u64), Some(refusal));
            assert_eq!(refusal as usize, i + 1);
        }
        assert_eq!(Refusal::of_number(ALL.len() as u64 + 1), None);
    }
}
