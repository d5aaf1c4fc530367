//! A program cannot say what symmetric memory is.

use shmem::{AsSymSlice, SymArray};

struct Wrapper<'s>(SymArray<'s, u64>);

impl AsSymSlice<u64> for Wrapper<'_> {} //~ E0277

fn main() {
    let shmem = shmem::init();
    let _ = Wrapper(shmem.array(1));
}
