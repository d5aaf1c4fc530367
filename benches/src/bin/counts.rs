//! Calls one operation of the Rust API COUNT times, to count its instructions under callgrind
//! (`cargo xtask counts`). benches/counts.c does the same for routines of C.
//!
//!     counts OPERATION COUNT    as a job of one PE, without a launcher
//!
//! Each operation is compiled into a function of its own, which callgrind finds by its name.
#![allow(unsafe_code)]

use std::hint::black_box;

use shmem::{Atomic, Peer, Shmem, Sum, Sym, SymSlice, Team};

/// Defines functions that are not inlined and whose symbols are their plain names.
macro_rules! counted {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        // SAFETY: no other function has this name.
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $name($($argument: $kind),*) $(-> $result)? $body
    )*};
}

counted! {
    fn rust_put(shmem: &Shmem, dest: &SymSlice<i64>, source: &[i64], pe: usize) {
        dest.on(shmem.pe(pe)).put(source);
    }
    fn rust_put_stored(dest: &SymSlice<i64>, source: &[i64], peer: Peer<'_>) {
        dest.on(peer).put(source);
    }
    fn rust_get(shmem: &Shmem, dest: &mut [i64], source: &SymSlice<i64>, pe: usize) {
        source.on(shmem.pe(pe)).get(dest);
    }
    fn rust_p(shmem: &Shmem, dest: &Sym<i64>, value: i64, pe: usize) {
        dest.on(shmem.pe(pe)).write(value);
    }
    fn rust_p_stored(dest: &Sym<i64>, value: i64, peer: Peer<'_>) {
        dest.on(peer).write(value);
    }
    fn rust_g(shmem: &Shmem, source: &Sym<i64>, pe: usize) -> i64 {
        source.on(shmem.pe(pe)).read()
    }
    fn rust_fetch_add(shmem: &Shmem, dest: &Sym<Atomic<i64>>, value: i64, pe: usize) -> i64 {
        dest.on(shmem.pe(pe)).fetch_add(value)
    }
    fn rust_fetch_add_stored(dest: &Sym<Atomic<i64>>, value: i64, peer: Peer<'_>) -> i64 {
        dest.on(peer).fetch_add(value)
    }
    fn rust_compare_exchange(dest: &Sym<Atomic<i64>>, value: i64, peer: Peer<'_>) -> bool {
        dest.on(peer).compare_exchange(value, value + 1).is_ok()
    }
    fn rust_fetch_max(dest: &Sym<Atomic<i64>>, value: i64, peer: Peer<'_>) -> i64 {
        dest.on(peer).fetch_max(value)
    }
    fn rust_wait(shmem: &Shmem, word: &Sym<i64>) -> i64 {
        shmem.wait(word.ge(0))
    }
    fn rust_barrier_all(shmem: &Shmem) {
        shmem.barrier_all();
    }
    fn rust_all_reduce(team: &Team<'_>, value: i64) -> i64 {
        team.all_reduce(value, Sum)
    }
    fn rust_broadcast(team: &Team<'_>, value: i64) -> i64 {
        team.broadcast(value, 0)
    }
    fn rust_all_gather(team: &Team<'_>, value: i64) -> Vec<i64> {
        team.all_gather(value)
    }
    fn rust_all_gather_slice(team: &Team<'_>, values: &[i64]) -> Vec<i64> {
        team.all_gather_slice(values)
    }
}

fn main() {
    const USAGE: &str = "usage: counts OPERATION COUNT";
    let mut arguments = std::env::args().skip(1);
    let operation = arguments.next().expect(USAGE);
    let count = arguments.next().expect(USAGE);
    let count: i64 = count.parse().expect(USAGE);

    let shmem = shmem::init();
    let pe = shmem.n_pes() - 1;
    // A peer that was stored costs the same, whoever made it.
    let world = shmem.world();
    let peer = world.pe(pe);
    let word = shmem.array::<i64>(1);
    let atomic = shmem.zeroed::<Atomic<i64>>();
    let mut local = [0];

    for i in 0..count {
        match operation.as_str() {
            "rust_put" => rust_put(&shmem, &word, &local, pe),
            "rust_put_stored" => rust_put_stored(&word, &local, peer),
            "rust_get" => rust_get(&shmem, &mut local, &word, pe),
            "rust_p" => rust_p(&shmem, &word[0], i, pe),
            "rust_p_stored" => rust_p_stored(&word[0], i, peer),
            "rust_g" => _ = black_box(rust_g(&shmem, &word[0], pe)),
            "rust_fetch_add" => _ = black_box(rust_fetch_add(&shmem, &atomic, 1, pe)),
            "rust_fetch_add_stored" => _ = black_box(rust_fetch_add_stored(&atomic, 1, peer)),
            "rust_compare_exchange" => _ = black_box(rust_compare_exchange(&atomic, i, peer)),
            "rust_fetch_max" => _ = black_box(rust_fetch_max(&atomic, i, peer)),
            "rust_wait" => _ = black_box(rust_wait(&shmem, &word[0])),
            "rust_barrier_all" => rust_barrier_all(&shmem),
            "rust_all_reduce" => _ = black_box(rust_all_reduce(world, i)),
            "rust_broadcast" => _ = black_box(rust_broadcast(world, i)),
            "rust_all_gather" => _ = black_box(rust_all_gather(world, i)),
            "rust_all_gather_slice" => _ = black_box(rust_all_gather_slice(world, &local)),
            _ => panic!("there is no operation {operation}"),
        }
    }
}
