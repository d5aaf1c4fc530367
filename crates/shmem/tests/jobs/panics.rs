//! Wrong arguments: each panics at the program's call, and a program can catch the panic.

use shmem::{Cmp, Private, Strides, Sum};
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
    // The closure may be some lines long.
    let lines = Location::caller().line()..Location::caller().line() + 8;
    let line = LINE.lock().expect("no panic has it").take();
    assert!(
        line.is_some_and(|line| lines.contains(&line)),
        "{line:?}: {message}"
    );
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
    let private = reversed.context::<Private>();
    let (long, short, word) = (
        shmem.array::<u64>(8),
        shmem.array::<u64>(3),
        shmem.boxed(0u64),
    );
    let mut own = [0; 8];

    panics(
        "SymSlice: range 3..9 is out of bounds of 8 elements",
        || long.slice(3..9),
    );
    panics("SymSlice: index 8 is out of bounds of 8 elements", || {
        long.load(8)
    });
    panics(
        "cannot be copied from or to 2 elements; slice the longer one",
        || long.copy_from_slice(&[1, 2]),
    );
    panics(
        "put: argument dest has 8 elements and argument source 2; slice",
        || shmem.put(&long, &[1, 2], 0),
    );
    panics(
        "get: argument dest has 1 elements and argument source 3",
        || shmem.get(&mut [0], &short, 0),
    );
    panics("make SHMEM_SYMMETRIC_SIZE larger", || {
        drop(shmem.array::<u64>(1 << 45))
    });

    panics("p: argument pe is 2, but PEs are numbered 0 to 1", || {
        shmem.p(&word, 1, 2)
    });
    panics("g: argument pe is 4294967296, but PEs are", || {
        shmem.g(&word, 1 << 32)
    });
    panics("put: argument pe is 18446744073709551615,", || {
        shmem.put(&word, &[1], usize::MAX)
    });
    panics("get: argument pe is 2,", || shmem.get(&mut own, &long, 2));
    panics(
        "argument pe is 4294967297, but the context's team has 2 PEs",
        || private.g(&word, (1 << 32) + 1),
    );
    panics("pe_quiet: argument pe is 3, but PEs are numbered", || {
        shmem.pe_quiet(&[1, 3])
    });
    panics("on: argument pe is 2, but PEs are numbered", || {
        long.slice(..).on(2)
    });
    panics("put_nbi: argument pe is 2,", || {
        shmem.scope(|s| s.put_nbi(&word, &[1], 2))
    });
    panics("put_owned: argument pe is 2,", || {
        drop(shmem.put_owned(&word, vec![1], 2))
    });
    panics(
        "broadcast_into: argument root is 2, but the members are numbered 0 to 1",
        || world.broadcast_into(&short, &short, 2),
    );
    panics("broadcast: argument root is 2,", || world.broadcast(1, 2));

    panics("arguments dest and source overlap; pass the same", || {
        world.all_reduce_into(long.slice(1..3), long.slice(..2), Sum)
    });
    panics(
        "an argument has 3 elements, but 4 are needed; slice",
        || world.all_gather_into(long.slice(..2), &short),
    );
    panics("an argument has 8 elements, but 9 are needed", || {
        world.all_to_all_blocks(&long, &[7, 2], &short)
    });
    panics("an argument has 3 elements, but 2 are needed", || {
        world.all_to_all_blocks(&long, &[1, 1, 1], &short)
    });

    let apart = |dst, sst| Strides { dst, sst };
    panics(
        "argument dest has 8 elements, in which 3 blocks of 2 that are 4 elements apart do not",
        || shmem.ibput(&long, &[0; 6], apart(4, 2), 2, 3, 0),
    );
    panics(
        "argument source has 3 elements, in which 2 blocks of 2 that are 1 elements apart",
        || shmem.ibput(&long, &[0; 3], apart(4, 1), 2, 2, 0),
    );
    panics("argument dest has 8 elements", || {
        shmem.iget(&mut own, &long, apart(usize::MAX / 2, 1), 3, 0)
    });
    panics("argument status has 1 entries for 8 elements", || {
        shmem.test_all(&long, &[0], Cmp::Eq, 0)
    });
    panics("argument indices has 1 entries for 8 elements", || {
        shmem.test_some(&long, &mut [0], &[], Cmp::Eq, 0).len()
    });
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

    // Nothing was transferred, and the PEs can go on.
    shmem.barrier_all();
    assert_eq!((long.to_vec(), word.load()), (vec![0; 8], 0));
});

shmem::test!(
    #[should_panic(expected = "SymSlice: index 8 is out of bounds of 8 elements")]
    a_panic_that_drops_the_handle_ends_the_job,
    pes = 2,
    |shmem| {
        let array = shmem.array::<u64>(8);
        if shmem.my_pe() == 1 {
            array.load(8);
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
        let _ = panic::catch_unwind(AssertUnwindSafe(|| array.load(8)));
    }
    assert_eq!(CALLS.load(Relaxed), 3);
});
