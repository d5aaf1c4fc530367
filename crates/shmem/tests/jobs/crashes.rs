//! A crash names the PE and the function, the line of the program and what was accessed; a panic
//! names the PE.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::ptr::without_provenance_mut;

#[inline(never)]
fn store() {
    // SAFETY: the kernel ends the program, since no memory is at this address.
    unsafe { without_provenance_mut::<i32>(8).write_volatile(1) };
}

#[inline(never)]
fn sum_to(n: u64) -> u64 {
    let array = [n; 64];
    if n == 0 {
        return array[3];
    }
    sum_to(n - 1) + black_box(array)[5]
}

shmem::test!(
    #[should_panic(expected = "PE 1: SIGSEGV in store (tests/jobs/crashes.rs:")]
    a_crash_has_a_place,
    pes = 2,
    |shmem| {
        if shmem.my_pe() == 1 {
            store();
        }
        shmem.barrier_all();
    }
);

shmem::test!(
    #[should_panic(expected = "the stack of a thread overflowed; allocate large arrays")]
    an_overflow_of_the_stack_is_one,
    pes = 2,
    |shmem| {
        if shmem.my_pe() == 1 {
            println!("{}", sum_to(1 << 30));
        }
        shmem.barrier_all();
    }
);

shmem::test!(
    #[should_panic(expected = "has overflowed its stack")]
    the_run_time_reports_an_overflow_too,
    pes = 2,
    |shmem| {
        if shmem.my_pe() == 1 {
            println!("{}", sum_to(1 << 30));
        }
        shmem.barrier_all();
    }
);

shmem::test!(
    #[should_panic(expected = "PE 1: a panic:")]
    a_panic_names_its_pe,
    pes = 2,
    |shmem| {
        assert!(shmem.my_pe() != 1, "PE 1 panics");
        shmem.barrier_all();
    }
);
