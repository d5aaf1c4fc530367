//! There are no atomics outside of symmetric memory.

use shmem::Atomic;

fn main() {
    let _ = Atomic(1u64); //~ E0423
}
