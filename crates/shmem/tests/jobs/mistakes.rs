//! Mistakes that types cannot exclude: each ends its job with a message that says what is wrong,
//! and at which line.

use shmem::{Blocks, Cmp, Lock, Multiple, Private, Strides, Sum};

macro_rules! mistakes {
    ($($name:ident, $message:literal, |$shmem:ident| $body:expr;)*) => {$(
        shmem::test!(#[should_panic(expected = $message)] $name, pes = 2, |$shmem| {
            let _ = $body;
            $shmem.barrier_all();
        });
    )*};
}

mistakes! {
    a_range_is_out_of_bounds, "range 3..9 is out of bounds of 8 elements, at crates/shmem/tests/jobs/mistakes.rs:",
        |shmem| shmem.array::<u64>(8).slice(3..9);
    an_index_is_out_of_bounds, "index 8 is out of bounds of 8 elements, at crates/shmem/tests/jobs/mistakes.rs:",
        |shmem| shmem.array::<u64>(8).load(8);
    a_put_has_sides_of_other_lengths, "argument dest has 8 elements and argument source 2, at crates/shmem/tests/jobs/mistakes.rs:",
        |shmem| shmem.put(&shmem.array::<u64>(8), &[1, 2], 0);
    a_pe_does_not_exist, "argument pe is 2, but PEs are numbered 0 to 1 (called at tests/jobs/mistakes.rs:",
        |shmem| shmem.p(&shmem.boxed(0u64), 1, 2);
    a_pe_is_far_away, "argument pe is 4294967295, but PEs are numbered 0 to 1",
        |shmem| shmem.p(&shmem.boxed(0u64), 1, u32::MAX);
    a_pe_of_a_context_is_far_away, "argument pe is 4294967295, but the context's team has 2 PEs",
        |shmem| {
            let reversed = shmem.world().split_strided(1, -1, 2).ok().flatten().expect("all are members");
            reversed.context::<Private>().g(&shmem.boxed(0u64), u32::MAX)
        };
    a_pe_to_complete_is_far_away, "PE 4294967295, but PEs are numbered 0 to 1",
        |shmem| shmem.pe_quiet(&[u32::MAX]);
    a_root_is_far_away, "argument PE_root is 4294967295",
        |shmem| {
            let array = shmem.array::<u64>(2);
            shmem.world().broadcast(array.slice(..1), array.slice(1..), u32::MAX);
        };
    a_range_of_a_grid_is_large, "argument ranges is 4294967295, but a range is from 0 to 2147483647",
        |shmem| shmem.world().split_grid([u32::MAX, 1]);
    a_split_off_team_is_large, "argument PE_size is 4294967295, but a team has 1 to 2 PEs",
        |shmem| shmem.world().split_strided_by_members(0, 1, u32::MAX);
    pes_allocate_other_lengths, "all PEs must pass the same",
        |shmem| shmem.array::<u64>(8 + shmem.my_pe() as usize);
    pes_allocate_other_types, "allocates something else",
        |shmem| if shmem.my_pe() == 0 { drop(shmem.array::<u64>(1)) } else { drop(shmem.array::<i64>(1)) };
    pes_allocate_other_alignments, "allocates something else",
        |shmem| if shmem.my_pe() == 0 { drop(shmem.array::<u128>(64)) } else { drop(shmem.array::<[u8; 16]>(64)) };
    one_pe_drops_an_object, "has not dropped the same objects; all PEs drop their objects in the same order",
        |shmem| {
            let array = shmem.array::<u64>(63);
            if shmem.my_pe() == 0 { drop(array) } else { std::mem::forget(array) }
            shmem.array::<u64>(1)
        };
    pes_drop_objects_in_another_order, "has not dropped the same objects",
        |shmem| {
            let (one, other) = (shmem.boxed(1u64), shmem.boxed(2u64));
            if shmem.my_pe() == 0 { drop((one, other)) } else { drop((other, one)) }
        };
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
    one_pe_finalizes_while_another_allocates, "does not drop its handle",
        |shmem| if shmem.my_pe() == 0 { return shmem.finalize() } else { shmem.array::<u64>(1) };
    one_pe_drops_one_handle_of_two, "does not drop its handle",
        |shmem| {
            if shmem.my_pe() == 1 {
                shmem.barrier_all();
                return drop(shmem);
            }
            drop(shmem::init());
        };
    too_much_is_allocated, "make SHMEM_SYMMETRIC_SIZE larger",
        |shmem| shmem.array::<u64>(1 << 45);
    more_is_collected_than_fits, "argument dest has 16 bytes, but the members collect 24",
        |shmem| {
            let (dest, source) = (shmem.array::<u64>(2), shmem.array::<u64>(2));
            shmem.world().collect(&dest, source.slice(..=shmem.my_pe() as usize));
        };
    fcollect_has_too_little_room, "an argument has 3 elements, but 4 are needed, at crates/shmem/tests/jobs/mistakes.rs:",
        |shmem| shmem.world().fcollect(&shmem.array::<u64>(3), &shmem.array::<u64>(2));
    a_block_goes_beyond_the_end, "argument target has 32 bytes, but 16 bytes for member",
        |shmem| {
            let (dest, source) = (shmem.array::<u64>(4), shmem.array::<u64>(4));
            let blocks = Blocks { offsets: &[0, 2], counts: &[2, 2] };
            shmem.world().alltoallv(&dest, &[0, 3], &source, blocks);
        };
    a_block_overflows, "but 16 bytes for member",
        |shmem| {
            let (dest, source) = (shmem.array::<u64>(4), shmem.array::<u64>(4));
            let blocks = Blocks { offsets: &[0, 2], counts: &[2, 2] };
            shmem.world().alltoallv(&dest, &[0, usize::MAX / 8], &source, blocks);
        };
    a_block_is_not_in_the_source, "an argument has 4 elements, but 5 are needed",
        |shmem| {
            let (dest, source) = (shmem.array::<u64>(4), shmem.array::<u64>(4));
            let blocks = Blocks { offsets: &[0, 3], counts: &[2, 2] };
            shmem.world().alltoallv_packed(&dest, &source, blocks);
        };
    too_many_blocks_come, "argument target_len is 8, but 16 bytes are sent to this PE",
        |shmem| {
            let (dest, source) = (shmem.array::<u64>(1), shmem.array::<u64>(2));
            let blocks = Blocks { offsets: &[0, 1], counts: &[1, 1] };
            shmem.world().alltoallv_packed(&dest, &source, blocks);
        };
    arrays_overlap, "arguments dest and source overlap, at crates/shmem/tests/jobs/mistakes.rs:",
        |shmem| {
            let array = shmem.array::<u64>(3);
            shmem.world().reduce(Sum, array.slice(..2), array.slice(1..));
        };
    a_root_does_not_exist, "argument root is 2, but the members are numbered 0 to 1",
        |shmem| shmem.world().broadcast_value(1, 2);
    a_stride_goes_beyond_the_end, "argument dest has 8 elements, in which 3 blocks of 2 that are 4 elements apart do not",
        |shmem| shmem.ibput(&shmem.array::<u64>(8), &[0; 6], Strides { dst: 4, sst: 2 }, 2, 3, 0);
    blocks_overlap, "argument source has 6 elements, in which 3 blocks of 2 that are 1 elements apart do not",
        |shmem| shmem.ibput(&shmem.array::<u64>(12), &[0; 6], Strides { dst: 4, sst: 1 }, 2, 3, 0);
    a_stride_overflows, "argument dest has 8 elements",
        |shmem| shmem.iget(&mut [0u64; 8], &shmem.array(8), Strides { dst: usize::MAX / 2, sst: 1 }, 3, 0);
    a_status_has_another_length, "argument status has 1 entries for 2 elements",
        |shmem| shmem.test_all(&shmem.array::<u64>(2), &[0], Cmp::Eq, 0);
    a_list_of_indices_is_short, "argument indices has 1 entries for 2 elements",
        |shmem| shmem.test_some(&shmem.array::<u64>(2), &mut [0], &[], Cmp::Eq, 0).len();
    a_lock_is_taken_twice, "this PE holds the lock already",
        |shmem| {
            let lock = shmem.zeroed::<Lock>();
            let _guard = shmem.lock(&lock);
            let _other = shmem.lock(&lock);
        };
    one_pe_allocates_during_an_epoch, "PE 1 allocates something or finalizes meanwhile; all PEs enter and leave an epoch",
        |shmem| {
            let mut array = shmem.array::<u64>(1);
            if shmem.my_pe() == 0 { array.epoch(|_| ()) } else { drop(shmem.boxed(1u64)) }
        };
    one_pe_drops_in_an_epoch, "has not dropped the same objects",
        |shmem| {
            let (mut array, other) = (shmem.array::<u64>(1), shmem.boxed(1u64));
            (0..10).for_each(|_| array.epoch(|own| own[0] += 1));
            array.epoch(|_| if shmem.my_pe() == 0 { drop(other) } else { std::mem::forget(other) });
        };
    one_pe_finalizes_during_an_epoch, "PE 1 allocates something or finalizes meanwhile",
        |shmem| {
            let mut array = shmem.array::<u64>(1);
            if shmem.my_pe() == 1 {
                std::mem::forget(array);
                return shmem.finalize();
            }
            array.epoch(|_| ());
        };
    a_panic_in_an_epoch_ends_the_job, "in the middle",
        |shmem| shmem.array::<u64>(1).epoch(|_| if shmem.my_pe() == 0 { panic!("in the middle") });
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
    another_thread_names_the_level,
    pes = 1,
    || on_another_thread(|| drop(shmem::init_thread::<shmem::Single>()))
);

shmem::test!(handles_at_single_go_from_round_to_round, pes = 2, || {
    for _ in 0..2 {
        let first = shmem::init();
        let second = shmem::init_thread::<shmem::Single>().expect("no level is lower");
        drop(first);
        second.barrier_all();
    }
    std::thread::spawn(|| shmem::init().barrier_all())
        .join()
        .expect("no other thread has a handle");
});

shmem::test!(a_level_that_is_not_provided_is_an_error, pes = 2, || {
    let shmem = shmem::init();
    let error = shmem::init_thread::<Multiple>().expect_err("the level is in force already");
    assert!(
        error
            .to_string()
            .contains("was initialized with that before"),
        "{error}"
    );
    shmem.barrier_all();
});
