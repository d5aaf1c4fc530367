//! Wrong arguments: each panics at the program's call, and a program can catch the panic.

use shmem::dist::BlockArray;
use shmem::{Atomic, Cmp, Shmem, Strides, Sum, SymArray, SymBox, Team};
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The line of this file in which the last panic was, as the program's hook has seen it.
static LINE: Mutex<Option<u32>> = Mutex::new(None);

/// Calls `mistake`, which must panic where this is called, with a message of these words.
#[track_caller]
fn panics<R>(words: &str, mistake: impl FnOnce() -> R) {
    let caught = panic::catch_unwind(AssertUnwindSafe(mistake)).map(drop);
    let payload = caught.expect_err(words);
    let message = payload.downcast_ref::<String>().expect("a text");
    assert!(message.contains(words), "no {words:?} in {message:?}");

    // The panic is in the closure, which begins at most some lines after the call.
    let first = Location::caller().line();
    let line = LINE.lock().expect("no panic has it").take();
    assert!(
        line.is_some_and(|line| (first..first + 8).contains(&line)),
        "{line:?}: {message}"
    );
}

fn mistakes_in_slices(shmem: &Shmem, long: &SymArray<'_, u64>, short: &SymArray<'_, u64>) {
    panics(
        "SymSlice: range 3..9 is out of bounds of 8 elements",
        || long[3..9].len(),
    );
    panics("SymSlice: index 8 is out of bounds of 8 elements", || {
        long[8].load()
    });
    panics(
        "cannot be copied from or to 2 elements; slice the longer one",
        || long.copy_from_slice(&[1, 2]),
    );
    panics(
        "put: the destination has 8 elements and the source 2; slice",
        || long.on(shmem.pe(0)).put(&[1, 2]),
    );
    panics(
        "get: the destination has 1 elements and the source 3",
        || short.on(shmem.pe(0)).get(&mut [0]),
    );
    panics("make SHMEM_SYMMETRIC_SIZE larger", || {
        drop(shmem.array::<u64>(1 << 45))
    });
}

fn mistakes_in_block_arrays(shmem: &Shmem, blocks: &BlockArray<'_, u64>) {
    let world = shmem.world();
    panics(
        "BlockArray::at: argument index is 10; pass one below 10, the number of elements on all",
        || blocks.at(10).read(),
    );
    panics("owner: argument index is 18446744073709551615;", || {
        blocks.owner(usize::MAX)
    });
    panics(
        "BlockArray::read: argument range is 3..11; pass a part of 0..10, the elements on all PEs",
        || blocks.read(3..11),
    );
    panics("write: argument range is 11..10; pass a part of", || {
        blocks.write(11.., &[])
    });

    // In a literal, the compiler warns of such a range.
    let first = 5;
    let end = 3;
    panics(
        "read_into: argument range is 5..3; pass a part of 0..10",
        || blocks.read_into(first..end, &mut []),
    );
    panics(
        "write: the destination has 4 elements and the source 2",
        || blocks.write(3..7, &[1, 2]),
    );
    panics(
        "read_into: the destination has 8 elements and the source 10",
        || blocks.read_into(.., &mut [0; 8]),
    );

    let counts = world.block_array::<Atomic<u64>>(0);
    panics("add_each: argument index is 0; pass one below 0", || {
        counts.add_each([(0, 1)])
    });
    panics(
        "Team::block_array: the symmetric heap has no room for 35184372088832 bytes",
        || world.block_array::<u64>(1 << 43),
    );
}

/// `team` has two PEs.
fn mistakes_in_numbers_of_pes(shmem: &Shmem, team: &Team<'_>, word: &SymBox<'_, u64>) {
    let context = team.context();
    panics("pe: there is no PE 2; PEs are numbered 0 to 1", || {
        word.on(shmem.pe(2)).write(1)
    });
    panics("there is no PE 4294967296;", || {
        word.on(shmem.pe(1 << 32)).read()
    });
    panics("there is no PE 18446744073709551615;", || {
        shmem.pe(usize::MAX)
    });
    panics(
        "there is no PE 4294967297 in a team of 2 PEs; translate",
        || word.on(context.pe((1 << 32) + 1)).read(),
    );
    panics("there is no PE 2 in a team of 2 PEs", || team.pe(2));
    panics("there is no PE 2;", || {
        shmem.scope(|s| word.as_slice().on(s.pe(2)).put(&[1]))
    });
}

fn mistakes_in_collectives(world: &Team<'_>, long: &SymArray<'_, u64>, short: &SymArray<'_, u64>) {
    panics(
        "broadcast_into: argument root is 2, but the members are numbered 0 to 1",
        || world.broadcast_into(short, short, 2),
    );
    panics("broadcast: argument root is 2,", || world.broadcast(1, 2));
    panics("reduce: argument root is 2,", || world.reduce(1, Sum, 2));

    let own = vec![0u8; 3 + world.my_pe()];
    panics(
        "the slice of member 0 has 3 elements, and that of member 1 has 4; pass slices of the same length",
        || world.all_gather_slice(&own),
    );
    panics("all_to_all: the slice of member 0 has 3 elements", || {
        world.all_to_all(&own)
    });
    panics("gather: the slice of member 0 has 3 elements", || {
        world.gather(&own, 0)
    });
    panics(
        "scatter: a slice of 3 elements has no equal blocks for 2 members",
        || world.scatter(&own, 0),
    );
    panics(
        "all_to_all: a slice of 3 elements has no equal blocks",
        || world.all_to_all(&[1, 2, 3]),
    );
    panics(
        "argument parts has 3 parts, but the team has 2 members",
        || world.all_to_all_varying(&[[1], [2], [3]]),
    );
    panics("arguments dest and source overlap; pass the same", || {
        world.all_reduce_into(&long[1..3], &long[..2], Sum)
    });
    panics(
        "an argument has 3 elements, but 4 are needed; slice",
        || world.all_gather_into(&long[..2], short),
    );
    panics("an argument has 8 elements, but 9 are needed", || {
        world.all_to_all_blocks(long, &[7, 2], short)
    });
    panics("an argument has 3 elements, but 2 are needed", || {
        world.all_to_all_blocks(long, &[1, 1, 1], short)
    });
}

fn mistakes_in_strides(shmem: &Shmem, long: &SymArray<'_, u64>) {
    let world = shmem.world();
    let strides =
        |count, block, dest, source| Strides::new(count).block(block).dest(dest).source(source);

    let there = long.on(shmem.pe(0));
    panics(
        "the destination has 8 elements, in which 3 blocks of 2 that are 4 elements apart do not",
        || there.put_blocks(&[0; 6], strides(3, 2, 4, 2)),
    );
    panics(
        "the source has 3 elements, in which 2 blocks of 2 that are 1 elements apart",
        || there.put_blocks(&[0; 3], strides(2, 2, 4, 1)),
    );
    panics("the destination has 8 elements", || {
        there.get_blocks(&mut [0; 8], strides(3, 1, usize::MAX / 2, 1))
    });
    panics("argument strides have 2 elements; pass single ones", || {
        world.all_to_all_strided_into(long, long, strides(1, 2, 2, 2))
    });
}

fn mistakes_in_conditions(shmem: &Shmem, long: &SymArray<'_, u64>) {
    panics("argument excluded has 1 entries for 8 elements", || {
        shmem.test_all(long.each(Cmp::Eq, 0).except(&[true]))
    });
    panics("argument values has 2 entries for 8 elements", || {
        shmem.test_all(long.each(Cmp::Eq, &[1, 2]))
    });
}

fn mistakes_in_splits(world: &Team<'_>) {
    panics("argument color is too large", || {
        world.split(Some(1 << 31), 0).is_ok()
    });
    panics(
        "the members 0, 0 + 1 and so on, 3 in all, are not in the team",
        || world.split_members(0, 1, 3).is_ok(),
    );
    panics("pass a start, a stride of at least 1 and a size", || {
        world.split_members(0, 0, 2).is_ok()
    });
    panics("18446744073709551615 in all", || {
        world.split_members(0, 1, usize::MAX).is_ok()
    });
}

shmem::test!(wrong_arguments_panic_where_they_are_passed, pes = 2, || {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().filter(|place| place.file() == file!());
        *LINE.lock().expect("no panic has it") = place.map(Location::line);
        eprintln!("{panic}");
    }));

    let shmem = shmem::init();
    let world = shmem.world();
    let reversed = world
        .split_strided(1, -1, 2)
        .expect("they exist")
        .expect("all are members");
    let long = shmem.array::<u64>(8);
    let short = shmem.array::<u64>(3);
    let word = shmem.boxed(0u64);
    let blocks = world.block_array::<u64>(10);

    mistakes_in_slices(&shmem, &long, &short);
    mistakes_in_block_arrays(&shmem, &blocks);
    mistakes_in_numbers_of_pes(&shmem, &reversed, &word);
    mistakes_in_collectives(world, &long, &short);
    mistakes_in_strides(&shmem, &long);
    mistakes_in_conditions(&shmem, &long);
    mistakes_in_splits(world);

    // Nothing was transferred, and the PEs can go on.
    shmem.barrier_all();
    assert_eq!((long.to_vec(), word.load()), (vec![0; 8], 0));
    assert_eq!(blocks.read(..), [0; 10]);
});

shmem::test!(
    #[should_panic(expected = "SymSlice: index 8 is out of bounds of 8 elements")]
    a_panic_that_drops_the_handle_ends_the_job,
    pes = 2,
    |shmem| {
        let array = shmem.array::<u64>(8);
        if shmem.my_pe() == 1 {
            array[8].load();
        }
        shmem.barrier_all();
    }
);

shmem::test!(a_hook_of_the_program_runs_on_every_pe, pes = 4, || {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    panic::set_hook(Box::new(|_| {
        CALLS.fetch_add(1, Relaxed);
    }));
    let shmem = shmem::init();
    let array = shmem.array::<u64>(8);
    for _ in 0..3 {
        let _ = panic::catch_unwind(AssertUnwindSafe(|| array[8].load()));
    }
    assert_eq!(CALLS.load(Relaxed), 3);
});
