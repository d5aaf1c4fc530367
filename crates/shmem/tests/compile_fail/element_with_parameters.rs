//! Whether a structure has padding depends on its parameters.

#[derive(Clone, Copy, shmem::Element)]
#[repr(C)]
struct Pair<T> { //~ a structure with parameters cannot derive `shmem::Element`: whether it has padding depends on them; write one for each type that is used
    one: T,
    other: u64,
}

fn main() {
    let _ = Pair { one: 1u64, other: 2 };
}
