//! Mistakes that no argument shows, such as PEs that disagree: each ends its job with a message
//! that says what is wrong.

use crate::over_tcp::{of_test, this};
use shmem::{Blocks, Init, Lock};
use std::mem::forget;
use testkit::Job;

macro_rules! mistakes {
    ($($name:ident, $message:literal, |$shmem:ident| $body:expr;)*) => {$(
        shmem::test!(#[should_panic(expected = $message)] $name, pes = 2, |$shmem| {
            let _ = $body;
            $shmem.barrier_all();
        });
    )*};
}

mistakes! {
    pes_allocate_other_lengths, "all PEs must make the same calls",
        |shmem| shmem.array::<u64>(8 + shmem.my_pe());
    pes_allocate_block_arrays_of_other_lengths, "Team::block_array: PE",
        |shmem| shmem.world().block_array::<u64>(10 - shmem.my_pe());
    pes_allocate_other_types, "allocates something else",
        |shmem| if shmem.my_pe() == 0 { drop(shmem.array::<u64>(1)) } else { drop(shmem.array::<i64>(1)) };
    pes_allocate_other_alignments, "allocates something else",
        |shmem| if shmem.my_pe() == 0 { drop(shmem.array::<u128>(64)) } else { drop(shmem.array::<[u8; 16]>(64)) };
    one_pe_begins_another_round, "PE 1 does not drop its handle of the library; all PEs drop as many",
        |shmem| {
            if shmem.my_pe() == 0 {
                std::mem::forget(shmem.array::<u64>(1000));
                shmem.finalize();
                // This array would be at the address of the array of PE 1.
                return shmem::init().array::<u64>(1000).fill(0);
            }
            let array = shmem.array::<u64>(1000);
            (0..10).for_each(|_| shmem.barrier_all());
            array.fill(17);
        };
    one_pe_finalizes_while_another_allocates, ", in the same order",
        |shmem| if shmem.my_pe() == 0 { return shmem.finalize() } else { shmem.array::<u64>(1) };
    one_pe_drops_one_handle_of_two, "does not drop its handle",
        |shmem| {
            if shmem.my_pe() == 1 {
                shmem.barrier_all();
                return drop(shmem);
            }
            drop(shmem::init());
        };
    more_is_collected_than_fits, "argument dest has 16 bytes, but the members collect 24",
        |shmem| {
            let dest = shmem.array::<u64>(2);
            let source = shmem.array::<u64>(2);
            shmem.world().all_gather_varying_into(&source[..=shmem.my_pe()], &dest);
        };
    a_block_goes_beyond_the_end, "argument dest has 32 bytes, but 16 bytes for member",
        |shmem| {
            let dest = shmem.array::<u64>(4);
            let source = shmem.array::<u64>(4);
            let blocks = Blocks::new(&[0, 2], &[2, 2]);
            shmem.world().all_to_all_blocks_at(&source, blocks, &dest, &[0, 3]);
        };
    a_block_overflows, "but 16 bytes for member",
        |shmem| {
            let dest = shmem.array::<u64>(4);
            let source = shmem.array::<u64>(4);
            let blocks = Blocks::new(&[0, 2], &[2, 2]);
            shmem.world().all_to_all_blocks_at(&source, blocks, &dest, &[0, usize::MAX / 8]);
        };
    too_many_blocks_come, "the bytes of argument dest are 8, but 16 bytes are sent to this PE; make it larger, or the counts smaller",
        |shmem| {
            let dest = shmem.array::<u64>(1);
            let source = shmem.array::<u64>(2);
            shmem.world().all_to_all_blocks(&source, &[1, 1], &dest);
        };
    a_root_has_too_few_parts, "scatter_varying: argument parts has 1 parts, but the team has 2 members",
        |shmem| shmem.world().scatter_varying(&[[1]], 1);
    a_lock_is_taken_twice, "this PE holds the lock already and would wait for itself; drop its guard before it is taken again",
        |shmem| {
            let lock = shmem.zeroed::<Lock>();
            let _guard = shmem.lock(&lock);
            let _other = shmem.lock(&lock);
        };
    one_pe_allocates_during_an_epoch, "PE 1 allocates or registers something, or finalizes, meanwhile; all PEs enter and leave an epoch",
        |shmem| {
            let mut array = shmem.array::<u64>(1);
            if shmem.my_pe() == 0 { array.epoch(|_| ()) } else { drop(shmem.boxed(1u64)) }
        };
    one_pe_registers_during_an_epoch, "PE 1 allocates or registers something, or finalizes, meanwhile",
        |shmem| {
            let mut array = shmem.array::<u64>(1);
            if shmem.my_pe() == 0 {
                array.epoch(|_| ());
            } else {
                _ = shmem.with_registered(&mut memory(8), |_| ());
            }
        };
    one_pe_finalizes_during_an_epoch, "PE 1 allocates or registers something, or finalizes, meanwhile",
        |shmem| {
            let mut array = shmem.array::<u64>(1);
            if shmem.my_pe() == 1 {
                std::mem::forget(array);
                return shmem.finalize();
            }
            array.epoch(|_| ());
        };
    pes_register_other_lengths, "registers something else, or is in another call",
        |shmem| shmem.with_registered(&mut memory(8 + shmem.my_pe()), |_| ());
    one_pe_allocates_while_another_registers, "something else, or ",
        |shmem| {
            if shmem.my_pe() == 1 { drop(shmem.array::<u64>(8)) }
            shmem.with_registered(&mut memory(8), |_| ())
        };
    one_pe_ends_a_registration_alone, "something else",
        |shmem| shmem.with_registered(&mut memory(8), |_| if shmem.my_pe() == 1 { drop(shmem.boxed(1)) });
    a_panic_while_memory_is_registered_ends_the_job, "in the middle",
        |shmem| shmem.with_registered(&mut memory(8), |_| if shmem.my_pe() == 0 { panic!("in the middle") });
    a_panic_in_an_epoch_ends_the_job, "in the middle",
        |shmem| shmem.array::<u64>(1).epoch(|_| if shmem.my_pe() == 0 { panic!("in the middle") });
}

/// Returns memory that can be registered: not on the stack.
fn memory(len: usize) -> Vec<u64> {
    vec![0; len]
}

fn on_another_thread(call: fn()) {
    let _shmem = shmem::init();
    let _ = std::thread::spawn(call).join();
}

shmem::test!(
    #[should_panic(expected = "another thread has initialized the library for itself")]
    two_threads_have_handles_of_their_own,
    pes = 1,
    || on_another_thread(|| drop(shmem::init()))
);

shmem::test!(
    #[should_panic(expected = "another thread has initialized the library for itself")]
    another_thread_starts_by_options,
    pes = 1,
    || on_another_thread(|| drop(Init::new().start()))
);

shmem::test!(
    handles_of_one_thread_go_from_round_to_round,
    pes = 2,
    || {
        for _ in 0..2 {
            let first = shmem::init();
            let second = Init::new().start().expect("no level is lower");
            drop(first);
            second.barrier_all();
        }
        std::thread::spawn(|| shmem::init().barrier_all())
            .join()
            .expect("no other thread has a handle");
    }
);

shmem::test!(
    a_start_that_is_refused_leaves_the_library_to_other_threads,
    pes = 1,
    || {
        shmem::init().finalize();
        // The level of the first initialization remains, and is lower.
        Init::new()
            .funneled()
            .start()
            .expect_err("the level is not provided");
        std::thread::spawn(|| drop(shmem::init()))
            .join()
            .expect("no other thread has a handle");
    }
);

shmem::test!(a_level_that_is_not_provided_is_an_error, pes = 2, || {
    let shmem = shmem::init();
    let error = shmem::init_shared().expect_err("the level is in force already");
    let error = error.to_string();
    assert!(
        error.contains("was initialized with that before"),
        "{error}"
    );
    shmem.barrier_all();
});

shmem::test!(guards_and_futures_are_leaked, pes = 2, |shmem| {
    let world = shmem.world();
    let arrays = [shmem.array::<u64>(1), shmem.array::<u64>(1)];
    forget(world.start_broadcast_into(&arrays[0], &arrays[1], 0));
    let lock = shmem.zeroed::<Lock>();
    if shmem.my_pe() == 0 {
        forget(shmem.lock(&lock));
    }
    shmem.barrier_all();
    forget(lock);
});

#[test]
fn leaks_are_reported_in_the_words_of_rust() {
    let job = Job::new(this()).n(2).env("SHMEM_CHECK", 1);
    let outcome = of_test(job, "mistakes::guards_and_futures_are_leaked").run();
    assert!(outcome.status.success(), "{outcome}");
    for words in [
        "; drop its guard first",
        "; call wait or poll the future for each",
    ] {
        assert!(outcome.stderr.contains(words), "{outcome}");
    }
}

shmem::test!(an_array_without_room_is_an_error, pes = 1, |shmem| {
    let error = shmem
        .try_array::<u64>(1 << 40)
        .expect_err("no heap has as much");
    assert!(error.to_string().contains("has no room for"), "{error}");
    if std::env::var_os("SHMEM_TEST_FAILS").is_some() {
        std::process::exit(5);
    }
});

#[test]
fn a_refusal_that_is_handled_is_not_mentioned() {
    let test = "mistakes::an_array_without_room_is_an_error";
    // Without a launcher no process could say it later.
    let outcome = of_test(Job::direct(this()), test).run();
    assert_eq!(
        (outcome.code(), outcome.stderr.as_str()),
        (0, ""),
        "{outcome}"
    );

    let failing = of_test(Job::new(this()).n(1), test).env("SHMEM_TEST_FAILS", 1);
    let outcome = failing.run();
    assert_eq!(outcome.code(), 5, "{outcome}");
    assert!(!outcome.stderr.contains("refused"), "{outcome}");
}
