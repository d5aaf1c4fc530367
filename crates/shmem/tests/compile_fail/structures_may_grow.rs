//! Structures whose fields a later version adds to are made by functions.

use shmem::{Blocks, Strides};

fn main() {
    let _ = Strides { count: 1, block: 1, dest: 1, source: 1 }; //~ E0639
    let _ = Blocks { offsets: &[0], counts: &[1] }; //~ E0639
}
