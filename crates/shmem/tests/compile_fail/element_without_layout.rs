//! All PEs need the same layout.

#[derive(Clone, Copy, shmem::Element)]
struct Point { //~ a structure that derives `shmem::Element` needs a layout that is the same in all programs: add #[repr(C)]
    x: f64,
    y: f64,
}

fn main() {
    let _ = Point { x: 0.0, y: 0.0 };
}
