//! The numbers of PEs of a test are numbers.

struct Sizes;

impl shmem::testing::Sizes for Sizes {} //~ E0277

fn main() {
    let _ = Sizes;
}
