//! Attempts at undefined behavior by safe code: each misuses the library, and checks that memory
//! has the right contents nevertheless.

use shmem::{
    Atomic, Context, ContextOptions, Local, Movable, Shared, Shmem, Signal, Strides, Sum, block_on,
};
use std::cell::{Cell, RefCell};
use std::fs::{read_link, read_to_string};
use std::mem::forget;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;

#[derive(Clone, Copy, shmem::Element)]
#[repr(C, align(4096))]
struct Page([[u64; 32]; 16]);

shmem::test!(
    elements_without_bytes_are_moved_everywhere,
    pes = 2,
    |shmem| {
        let mut nothing = shmem.array::<()>(usize::MAX);
        let other = shmem.array::<()>(6);
        let world = shmem.world();
        let one = shmem.pe(1);
        let strides =
            |count, block, dest, source| Strides::new(count).block(block).dest(dest).source(source);

        nothing[usize::MAX - 2..].on(one).put(&[(); 2]);
        other.on(one).get(&mut [(); 6]);
        other.on(one).put_blocks(&[(); 6], strides(2, 2, 3, 2));
        other.on(one).get_blocks(&mut [(); 6], strides(3, 1, 1, 2));
        nothing[usize::MAX - 1].on(one).write(());
        nothing[usize::MAX - 1].on(one).read();

        world.all_gather_into(&nothing[..3], &other);
        world.all_to_all_into(&nothing[..6], &other);
        world.all_to_all_strided_into(&nothing[..6], &other, strides(1, 1, 2, 1));
        assert_eq!(world.all_gather_varying_into(&other, &nothing[7..]), 0);

        assert_eq!(nothing.epoch(|own| own.len()), usize::MAX);
        nothing.resize(3).expect("they need no room");
        assert_eq!(nothing.to_vec(), [(); 3]);
    }
);

shmem::test!(numbers_without_bounds_reach_no_memory, pes = 2, |shmem| {
    let array = shmem.array::<u64>(8);
    let far = Strides::new(1)
        .dest(isize::MAX as usize)
        .source(isize::MAX as usize);
    array.on(shmem.me()).put_blocks(&[17u64; 8], far);
    let mut got = [0u64; 8];
    array.on(shmem.me()).get_blocks(&mut got, far);
    assert_eq!(got, [17, 0, 0, 0, 0, 0, 0, 0]);

    for len in [
        usize::MAX,
        usize::MAX / 8,
        usize::MAX / 8 + 1,
        isize::MAX as usize / 8,
    ] {
        assert!(shmem.try_array::<u64>(len).is_err());
        assert!(shmem.array::<u64>(1).resize(len).is_err());
    }

    let pages = shmem.array::<Page>(3);
    assert!(pages[1..].as_ptr().addr().is_multiple_of(4096));
    pages[2].on(shmem.next()).write(Page([[7; 32]; 16]));
    shmem.barrier_all();
    assert!(pages[2].load().0 == [[7; 32]; 16] && pages[1].load().0 == [[0; 32]; 16]);
});

/// A source whose `as_ref` returns other elements from the second call on.
struct Fickle {
    was_called: Cell<bool>,
    first: [u64; 4],
    later: [u64; 9],
}

impl AsRef<[u64]> for Fickle {
    fn as_ref(&self) -> &[u64] {
        if self.was_called.replace(true) {
            &self.later
        } else {
            &self.first
        }
    }
}

shmem::test!(
    a_source_that_changes_its_mind_is_looked_at_once,
    pes = 2,
    |shmem| {
        let array = shmem.array::<u64>(4);
        let fickle = Fickle {
            was_called: Cell::new(false),
            first: [1; 4],
            later: [2; 9],
        };

        array.on(shmem.next()).put(&fickle);
        fickle.was_called.set(false);
        shmem.scope(|s| array.on(s.next()).put(&fickle));
        shmem.barrier_all();
        assert_eq!(array.to_vec(), [1; 4]);
    }
);

shmem::test!(
    transfers_that_are_leaked_end_before_their_array_does,
    pes = 2,
    |shmem| {
        let peer = shmem.next();
        let n = 1 << 16;
        for round in 1..8u64 {
            let mut array = shmem.array::<u64>(n);

            forget(array.on(peer).put_owned(vec![round; n]));
            assert!(array.epoch(|own| own.iter().all(|&x| x == round)));

            forget(array.on(peer).get_owned(vec![0; n]));
            array.epoch(|own| own.fill(99));

            forget(array.on(peer).put_owned(vec![98; n]));
            array.resize(n / 2).expect("there is room");
            assert!(array.to_vec().iter().all(|&x| x == 98));
            shmem.barrier_all();

            let signal = shmem.zeroed::<Signal>();
            forget(
                array
                    .on(peer)
                    .put_owned_with(vec![97; n / 2], signal.set(round)),
            );
            drop(array);
            drop(signal);
            // The new arrays are at the same addresses.
            let fresh = shmem.array::<u64>(n);
            let word = shmem.zeroed::<Signal>();
            assert!(fresh.to_vec().iter().all(|&x| x == 0));
            assert_eq!(shmem.signal(&word), 0);
        }
    }
);

shmem::test!(an_object_that_one_pe_has_dropped_stays, pes = 2, |shmem| {
    let array = shmem.array::<u64>(63);
    if shmem.my_pe() == 0 {
        drop(array);
        shmem.barrier_all();
    } else {
        shmem.barrier_all();
        array.on(shmem.pe(0)).put(&[17; 63]);
        drop(array);
    }
    let fresh = shmem.array::<u64>(63);
    assert_eq!(fresh.to_vec(), [0; 63]);
});

// Each PE drops its objects in an order of its own, and some in an epoch. Their memory is used
// again, but that of an object which one PE has leaked is not.
shmem::test!(pes_drop_objects_in_any_order, pes = [2, 4], |shmem| {
    let me = shmem.my_pe();
    let mut counter = shmem.array::<u64>(1);
    let leaked = shmem.array::<u64>(100);
    if me == 0 {
        forget(leaked);
    } else {
        drop(leaked);
    }
    let used = shmem.heap_info().used;

    for round in 0..30 {
        let mut objects: Vec<_> = (0..8).map(|i| Some(shmem.array::<u64>(1000 + i))).collect();
        for turn in 0..4 {
            let i = (me + round + turn) % 8;
            drop(objects[i].take());
        }
        counter.epoch(|own| {
            own[0] += 1;
            drop(objects.swap_remove((me * 3 + round) % 8));
        });
        objects.rotate_left(me % 7);
        drop(objects);
    }
    assert_eq!(counter[0].load(), 30);

    // This allocation frees all that was dropped.
    let last = shmem.boxed(1u64);
    let grown = shmem.heap_info().used - used;
    assert!(grown < 1000 * size_of::<u64>(), "{grown} bytes more");
    assert_eq!(last.load(), 1);
});

/// Returns the directory of the kernel's description of this thread.
fn this_thread() -> PathBuf {
    Path::new("/proc").join(read_link("/proc/thread-self").expect("a thread"))
}

/// Waits until a thread sleeps in the kernel.
fn wait_until_asleep(thread: &Path) {
    while !read_to_string(thread.join("status"))
        .expect("the thread exists")
        .contains("(sleeping)")
    {
        thread::yield_now();
    }
}

shmem::test!(
    a_drop_during_an_allocation_waits_for_the_next_one,
    pes = 2,
    || {
        let shmem = shared();
        let is_first = shmem.my_pe() == 0;
        let before = shmem.heap_info().used;
        let is_dropped = shmem.zeroed::<Signal>();
        let used = shmem.heap_info().used;

        let (to_thread, from_main) = channel();
        let (to_main, from_thread) = channel();
        thread::scope(|threads| {
            let shmem = &shmem;
            let is_dropped = &is_dropped;
            threads.spawn(move || {
                let array = shmem.array::<u64>(512);
                to_main.send(()).expect("it waits");
                let main: PathBuf = from_main.recv().expect("it sends");
                if is_first {
                    // The other thread sleeps in its allocation, for which PE 1 waits.
                    wait_until_asleep(&main);
                    drop(array);
                    is_dropped.on(shmem.pe(1)).set(1);
                } else {
                    from_main.recv().expect("it has allocated");
                    array.on(shmem.pe(0)).put(&[17; 512]);
                    drop(array);
                }
                to_main.send(()).expect("it waits");
            });

            from_thread.recv().expect("it has allocated");
            to_thread.send(this_thread()).expect("it waits");
            if !is_first {
                shmem.wait(is_dropped.eq(1));
            }
            let fresh = shmem.array::<u64>(512);
            if !is_first {
                to_thread.send(PathBuf::new()).expect("it waits");
            }
            from_thread.recv().expect("it has dropped");
            shmem.barrier_all();
            assert_eq!(fresh.to_vec(), [0; 512]);
        });

        // This allocation frees both arrays on both PEs.
        let last = shmem.zeroed::<Signal>();
        assert_eq!(shmem.heap_info().used, used + (used - before));
        drop(last);
    }
);

shmem::test!(
    nothing_reaches_elements_before_their_copies,
    pes = [2, 4],
    |shmem| {
        let peer = shmem.next();
        // Long enough that PEs do not copy them at the same time.
        let n = 100_000;
        for round in 1..=20u64 {
            let mut numbers = shmem.array::<u64>(n);
            numbers.fill(round);
            numbers.resize(n + 1).expect("there is room");
            assert_eq!(numbers[n - 1].on(peer).read(), round);
            shmem.barrier_all();

            numbers.resize(n + 2).expect("there is room");
            numbers[n - 1].on(peer).write(round + 100);

            let mut counters = shmem.array::<Atomic<u64>>(n);
            counters.resize(n - 1).expect("there is room");
            counters[n - 2].on(peer).add(round);

            shmem.barrier_all();
            assert_eq!(numbers[n - 1].load(), round + 100);
            assert_eq!(counters[n - 2].on(shmem.me()).load(), round);
        }
    }
);

shmem::test!(epochs_are_nested_and_allocate, pes = 2, |shmem| {
    let mut one = shmem.array::<u64>(4);
    let mut other = shmem.array::<u64>(4);
    let sum = one.epoch(|own| {
        other.epoch(|others| others.fill(5));
        own.fill(7);
        let third = shmem.boxed(3u64);
        other.on(shmem.next()).put(&own[..]);
        shmem.barrier_all();
        third.load() + other[3].load()
    });
    assert_eq!(sum, 10);
});

shmem::test!(
    members_name_other_arrays_and_other_lengths,
    pes = 2,
    |shmem| {
        let of_pe_0 = shmem.array::<u64>(8);
        let of_pe_1 = shmem.array::<u64>(8);
        let source = shmem.array::<u64>(8);
        source.fill(1);
        shmem.barrier_all();

        let me = shmem.my_pe();
        let dest = [&of_pe_0, &of_pe_1][me];
        let len = 8 - 4 * me;
        let world = shmem.world();
        world.all_reduce_into(&source[..len], &dest[..len], Sum);
        world.broadcast_into(&source, dest, 0);
        shmem.barrier_all();
        assert_eq!(source.to_vec(), [1; 8]);
    }
);

thread_local! {
    static LATE: RefCell<Vec<Context<'static, Local>>> = const { RefCell::new(Vec::new()) };
}

fn shared() -> Shmem<Shared> {
    shmem::init_shared().expect("it is the first")
}

shmem::test!(contexts_outlive_what_used_them, pes = 2, || {
    let shmem: &'static Shmem<Shared> = Box::leak(Box::new(shared()));
    let world = shmem.world();
    let me = shmem.my_pe();
    let peer = 1 - me;

    for round in 1..20u64 {
        let array = shmem.array::<u64>(1000);
        thread::scope(|threads| {
            threads.spawn(|| {
                let context = world.context();
                array.on(context.pe(peer)).put(&[round; 1000]);
                LATE.with_borrow_mut(|late| late.push(context));
            });
            threads.spawn(|| {
                let context = ContextOptions::new().create_as::<Movable>(world);
                let context = context.expect("there is room");
                array[..10].on(context.pe(peer)).put(&[round; 10]);
                forget(context);
            });
        });

        // The puts were not completed, since their contexts were leaked.
        drop(array);
        let fresh = shmem.array::<u64>(1000);
        assert_eq!(fresh.to_vec(), [0; 1000], "PE {me}");
    }
});

shmem::test!(epochs_are_entered_beside_quiets, pes = 2, || {
    let shmem = shared();
    let mut one = shmem.array::<u64>(64);
    let mut other = shmem.array::<u64>(64);

    thread::scope(|threads| {
        // Arrays stay on their thread; contexts do not.
        threads.spawn(|| {
            let world = shmem.world();
            let context = ContextOptions::new().create_as::<Shared>(world);
            let context = context.expect("there is room");
            for _ in 0..200 {
                context.quiet();
            }
        });

        for array in [&mut one, &mut other] {
            for _ in 0..20 {
                array.epoch(|own| own[0] += 1);
            }
        }
    });

    assert_eq!(one[0].load(), 20);
    assert_eq!(other[0].load(), 20);
});

shmem::test!(threads_write_the_same_elements, pes = 2, || {
    let shmem = shared();
    let peer = shmem.next();
    let array = shmem.array::<[u64; 2]>(100);
    let words = shmem.array::<u64>(100);

    thread::scope(|threads| {
        let array = &array;
        let words = &words;
        for value in 1..4u64 {
            threads.spawn(move || {
                for _ in 0..200 {
                    array.on(peer).put(&[[value; 2]; 100]);
                    words.on(peer).put(words);
                    array.fill([value; 2]);
                    words.copy_from_slice(&[value; 100]);

                    // No word is torn, in whatever order the writes come.
                    assert!(array[7].load().iter().all(|word| *word < 4));
                    assert!(words.to_vec().iter().all(|word| *word < 4));
                }
            });
        }
    });
    shmem.barrier_all();
});

shmem::test!(handles_end_on_any_thread, pes = 2, || {
    let handles: Vec<_> = (0..4).map(|_| shared()).collect();
    // One after the other, since the order has to be the same on all PEs.
    for handle in handles {
        thread::spawn(move || drop(handle)).join().expect("it ends");
    }

    let shmem = shared();
    let flag = shmem.atomic(3u32);
    assert_eq!(shmem.wait(flag.eq(3)), 3);
    let counters = shmem.array::<Atomic<u64>>(2);
    counters.on(shmem.pe(1)).load_into(&mut [0; 2]);
    block_on(shmem.until_quiet());
});

#[test]
fn what_is_outstanding_ends_before_its_array_over_tcp() {
    crate::over_tcp::passes("attempts::transfers_that_are_leaked_end_before_their_array_does");
    crate::over_tcp::passes("attempts::contexts_outlive_what_used_them");
}

#[test]
fn threads_write_the_same_elements_over_tcp() {
    crate::over_tcp::passes("attempts::threads_write_the_same_elements");
}
