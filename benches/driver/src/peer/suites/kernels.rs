//! Whole programs, from their data to the verified result.

use super::super::suite::{Kernel, Suite};

/// PEs that share their memory, on as many processors and on fewer.
pub const KERNELS: Suite = Suite {
    name: "kernels",
    kernels: &[
        kernel("integer_sort", &[2, 8], 1),
        kernel("random_updates", &[2, 8], 1),
        kernel("stencil", &[2, 8], 1),
        kernel("transpose", &[2, 8], 1),
        kernel("breadth_first_search", &[2, 8], 1),
        kernel("work_queue", &[2, 8], 1),
        kernel("tiny_accesses", &[2, 8], 8),
    ],
    rows: include_str!("kernels.txt"),
    bare: "bare",
    ..Suite::EMPTY
};

/// PEs that have nothing but TCP over the loopback interface. Open MPI's collectives go through
/// MPI.
pub const KERNELS_TCP: Suite = Suite {
    name: "kernels-tcp",
    kernels: &[
        kernel("integer_sort", &[2, 4], 1),
        kernel("random_updates", &[2, 4], 64),
        kernel("stencil", &[2, 4], 1),
        kernel("transpose", &[2, 4], 1),
        kernel("breadth_first_search", &[2, 4], 64),
        kernel("work_queue", &[2, 4], 1),
        kernel("tiny_accesses", &[2, 4], 1024),
    ],
    environment: super::collectives::COLLECTIVES_TCP.environment,
    rows: include_str!("kernels-tcp.txt"),
    ..KERNELS
};

const fn kernel(name: &'static str, pes: &'static [usize], divisor: usize) -> Kernel {
    Kernel { name, pes, divisor }
}
