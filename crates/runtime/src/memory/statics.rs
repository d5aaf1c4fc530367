//! The program's static data, which are symmetric like the heap. If a launcher started the process,
//! they are moved to shared memory when the library is loaded, before the program's own code runs:
//! to the node's memory, which `oshrun` provides, or under another launcher to memory of this PE
//! alone, which the other PEs of the node map in `shmem_init`.
//!
//! What the process does before `shmem_init` has no influence: the move keeps all values and
//! addresses.
#![allow(unsafe_code)]

use rushmem_heap::Statics;
pub(crate) use rushmem_heap::statics::are_shared;
use rushmem_heap::statics::{NotRemapped, Remapped};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of the move; empty in a process that no launcher started.
static OUTCOME: OnceLock<Result<Remapped, NotRemapped>> = OnceLock::new();
/// True if `oshrun` had started the process when the library was loaded.
static BY_OSHRUN: AtomicBool = AtomicBool::new(false);

/// Run by the dynamic linker, or by the C library in a static program.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    let outcome = if let Some((memory, local)) = rushmem_bootstrap::node_memory() {
        BY_OSHRUN.store(true, Ordering::Relaxed);
        own().remap(memory, local)
    } else if rushmem_bootstrap::is_managed() {
        own().remap_alone()
    } else {
        return;
    };
    OUTCOME.get_or_init(|| outcome);
}

/// Returns the static data of this program.
pub(crate) fn own() -> &'static Statics {
    static OWN: OnceLock<Statics> = OnceLock::new();
    OWN.get_or_init(Statics::of_program)
}

/// Returns where they are in shared memory; `None` if they are not there, as in a child of the
/// process that was started.
pub(crate) fn remapped() -> Option<&'static Remapped> {
    let is_reachable = |remapped: &&Remapped| {
        are_shared() && (remapped.in_node_memory.is_some() || remapped.file().is_some())
    };
    OUTCOME.get()?.as_ref().ok().filter(is_reachable)
}

/// Returns true if `oshrun` had started this process when the library was loaded.
pub(crate) fn were_offered_a_place() -> bool {
    BY_OSHRUN.load(Ordering::Relaxed)
}

/// Returns why they are not in shared memory although a launcher started the process.
pub(crate) fn refusal() -> Option<&'static NotRemapped> {
    OUTCOME.get()?.as_ref().err()
}
