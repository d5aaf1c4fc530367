//! The program's static data, which are symmetric like the heap. They are moved to shared memory
//! when the library is loaded, before the program's own code runs, if the launcher has provided the
//! memory by then.
//!
//! What the process does before `shmem_init` has no influence: the move keeps all values and
//! addresses.
#![allow(unsafe_code)]

use rushmem_heap::Statics;
pub(crate) use rushmem_heap::statics::are_shared;
use rushmem_heap::statics::{NotRemapped, Remapped};
use std::sync::OnceLock;

/// The result of the move; empty in a process that no launcher started.
static OUTCOME: OnceLock<Result<Remapped, NotRemapped>> = OnceLock::new();

/// Run by the dynamic linker, or by the C library in a static program.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    if let Some((memory, local)) = rushmem_bootstrap::node_memory() {
        let outcome = own().remap(memory, local);
        OUTCOME.get_or_init(|| outcome);
    }
}

/// The static data of this program.
pub(crate) fn own() -> &'static Statics {
    static OWN: OnceLock<Statics> = OnceLock::new();
    OWN.get_or_init(Statics::of_program)
}

/// Their location in the node's memory; `None` if they are not there, as in a child of the process
/// that was started.
pub(crate) fn at() -> Option<u64> {
    OUTCOME.get()?.as_ref().ok().filter(|_| are_shared()).map(|remapped| remapped.at)
}

/// Whether `oshrun` had started this process when the library was loaded.
pub(crate) fn were_offered_a_place() -> bool {
    OUTCOME.get().is_some()
}

/// Why they are not in the node's memory, although a launcher started the process.
pub(crate) fn refusal() -> Option<&'static NotRemapped> {
    OUTCOME.get()?.as_ref().err()
}
