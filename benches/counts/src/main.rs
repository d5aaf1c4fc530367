//! Calls one operation of the Rust API COUNT times, to count its instructions under callgrind
//! (`cargo xtask counts`). benches/counts.c does the same for routines of C.
//!
//!     counts OPERATION COUNT    as a job of one PE, without a launcher
//!
//! Each operation is compiled into a function of its own, which callgrind finds by its name.
#![allow(unsafe_code)]

use shmem::{Atomic, Shmem, SymRef, SymSlice};
use std::hint::black_box;

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
    fn rust_put(shmem: &Shmem, dest: SymSlice<'_, i64>, source: &[i64], pe: usize) {
        shmem.put(dest, source, pe);
    }
    fn rust_get(shmem: &Shmem, dest: &mut [i64], source: SymSlice<'_, i64>, pe: usize) {
        shmem.get(dest, source, pe);
    }
    fn rust_p(shmem: &Shmem, dest: SymRef<'_, i64>, value: i64, pe: usize) {
        shmem.p(dest, value, pe);
    }
    fn rust_g(shmem: &Shmem, source: SymRef<'_, i64>, pe: usize) -> i64 {
        shmem.g(source, pe)
    }
    fn rust_fetch_add(shmem: &Shmem, dest: SymRef<'_, Atomic<i64>>, value: i64, pe: usize) -> i64 {
        shmem.fetch_add(dest, value, pe)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(operation), Some(Ok(count))) = (
        arguments.next(),
        arguments.next().map(|count| count.parse::<i64>()),
    ) else {
        panic!("usage: counts OPERATION COUNT");
    };
    let shmem = shmem::init();
    let pe = shmem.n_pes() - 1;
    let word = shmem.zeroed::<i64>();
    let atomic = shmem.zeroed::<Atomic<i64>>();
    let mut local = [0];
    for i in 0..count {
        match operation.as_str() {
            "rust_put" => rust_put(&shmem, (&word).into(), &local, pe),
            "rust_get" => rust_get(&shmem, &mut local, (&word).into(), pe),
            "rust_p" => rust_p(&shmem, (&word).into(), i, pe),
            "rust_g" => _ = black_box(rust_g(&shmem, (&word).into(), pe)),
            "rust_fetch_add" => _ = black_box(rust_fetch_add(&shmem, (&atomic).into(), 1, pe)),
            _ => panic!("there is no operation {operation}"),
        }
    }
}
