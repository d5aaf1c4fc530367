//! Other PEs may store bits that are no value of an enum.

#[derive(Clone, Copy, shmem::Element)]
#[repr(C)]
enum State { //~ only a structure can derive `shmem::Element`: other PEs may store bits that are no value of an enum; store its number instead
    Free,
    Taken,
}

fn main() {
    let _ = [State::Free, State::Taken];
}
