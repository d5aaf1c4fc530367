//! There are no symmetric elements outside of symmetric memory.

use shmem::Sym;

fn main() {
    let _ = Sym(17u64); //~ E0423
}
