//! A peer of a scope borrows for the whole scope, not for a shorter time.

use shmem::ScopePeer;

fn shorter<'x, 's: 'x>(peer: ScopePeer<'s>) -> ScopePeer<'x> {
    peer //~ lifetime may not live long enough
}

fn main() {
    let _ = shorter;
}
