//! Attempts at undefined behavior by safe code: each misuses the library, and checks that memory
//! has the right contents nevertheless.

use shmem::bytemuck::{Pod, Zeroable};
use shmem::{
    Atomic, Cmp, Context, Multiple, Private, Serialized, Shared, Shmem, Strides, Sum, block_on,
};
use std::cell::{Cell, RefCell};
use std::mem::forget;
use std::thread;

#[derive(Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "shmem::bytemuck")]
#[repr(C, align(4096))]
struct Page([[u64; 32]; 16]);

shmem::test!(
    elements_without_bytes_are_moved_everywhere,
    pes = 2,
    |shmem| {
        let mut nothing = shmem.array::<()>(usize::MAX);
        let other = shmem.array::<()>(6);
        let world = shmem.world();
        shmem.put(nothing.slice(usize::MAX - 2..), &[(); 2], 1);
        shmem.get(&mut [(); 6], &other, 1);
        shmem.ibput(&other, &[(); 6], Strides { dst: 3, sst: 2 }, 2, 2, 1);
        shmem.iget(&mut [(); 6], &other, Strides { dst: 1, sst: 2 }, 3, 1);
        shmem.p(nothing.at(usize::MAX - 1), (), 1);
        shmem.g(nothing.at(usize::MAX - 1), 1);
        world.all_gather_into(nothing.slice(..3), &other);
        world.all_to_all_into(nothing.slice(..6), &other);
        world.all_to_all_strided_into(nothing.slice(..6), &other, Strides { dst: 2, sst: 1 }, 1);
        assert_eq!(world.all_gather_varying_into(&other, nothing.slice(7..)), 0);
        assert_eq!(nothing.epoch(|own| own.len()), usize::MAX);
        nothing.resize(3).expect("they need no room");
        assert_eq!(nothing.to_vec(), [(); 3]);
    }
);

shmem::test!(numbers_without_bounds_reach_no_memory, pes = 2, |shmem| {
    let array = shmem.array::<u64>(8);
    let far = Strides {
        dst: isize::MAX as usize,
        sst: isize::MAX as usize,
    };
    shmem.iput(&array, &[17u64; 8], far, 1, shmem.my_pe());
    let mut got = [0u64; 8];
    shmem.iget(&mut got, &array, far, 1, shmem.my_pe());
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
    assert!(pages.slice(1..).as_ptr().addr().is_multiple_of(4096));
    shmem.p(pages.at(2), Page([[7; 32]; 16]), 1 - shmem.my_pe());
    shmem.barrier_all();
    assert!(pages.load(2).0 == [[7; 32]; 16] && pages.load(1).0 == [[0; 32]; 16]);
});

/// A source whose `as_ref` returns other elements at each second call.
struct Fickle(Cell<bool>, [u64; 4], [u64; 9]);

impl AsRef<[u64]> for Fickle {
    fn as_ref(&self) -> &[u64] {
        if self.0.replace(true) {
            &self.2
        } else {
            &self.1
        }
    }
}

shmem::test!(
    a_source_that_changes_its_mind_is_looked_at_once,
    pes = 2,
    |shmem| {
        let array = shmem.array::<u64>(4);
        let fickle = Fickle(Cell::new(false), [1; 4], [2; 9]);
        shmem.put(&array, &fickle, 1 - shmem.my_pe());
        fickle.0.set(false);
        shmem.scope(|s| s.put_nbi(&array, &fickle, 1 - shmem.my_pe()));
        shmem.barrier_all();
        assert_eq!(array.to_vec(), [1; 4]);
    }
);

shmem::test!(
    transfers_that_are_leaked_end_before_their_array_does,
    pes = 2,
    |shmem| {
        let peer = 1 - shmem.my_pe();
        let n = 1 << 16;
        for round in 1..8u64 {
            let mut array = shmem.array::<u64>(n);
            forget(shmem.put_owned(&array, vec![round; n], peer));
            assert!(array.epoch(|own| own.iter().all(|&x| x == round)));
            forget(shmem.get_owned(vec![0; n], &array, peer));
            array.epoch(|own| own.fill(99));
            forget(shmem.put_owned(&array, vec![98; n], peer));
            array.resize(n / 2).expect("there is room");
            assert!(array.to_vec().iter().all(|&x| x == 98));
            shmem.barrier_all();
            forget(shmem.put_owned(&array, vec![97; n / 2], peer));
            drop(array);
            // The new array is at the same address.
            let fresh = shmem.array::<u64>(n);
            assert!(fresh.to_vec().iter().all(|&x| x == 0));
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
        shmem.put(&array, &[17; 63], 0);
        drop(array);
    }
    let fresh = shmem.array::<u64>(63);
    assert_eq!(fresh.to_vec(), [0; 63]);
});

shmem::test!(epochs_are_nested_and_allocate, pes = 2, |shmem| {
    let (mut one, mut other) = (shmem.array::<u64>(4), shmem.array::<u64>(4));
    let sum = one.epoch(|own| {
        other.epoch(|others| others.fill(5));
        own.fill(7);
        let third = shmem.boxed(3u64);
        shmem.put(&other, &own[..], 1 - shmem.my_pe());
        shmem.barrier_all();
        third.load() + other.load(3)
    });
    assert_eq!(sum, 10);
});

shmem::test!(
    members_name_other_arrays_and_other_lengths,
    pes = 2,
    |shmem| {
        let (a, b, c) = (
            shmem.array::<u64>(8),
            shmem.array::<u64>(8),
            shmem.array::<u64>(8),
        );
        let me = shmem.my_pe();
        c.fill(1);
        shmem.barrier_all();
        let dest = [&a, &b][me];
        shmem
            .world()
            .all_reduce_into(c.slice(..8 - 4 * me), dest.slice(..8 - 4 * me), Sum);
        shmem.world().broadcast_into(&c, dest, 0);
        shmem.barrier_all();
        assert_eq!(c.to_vec(), [1; 8]);
    }
);

thread_local! {
    static LATE: RefCell<Vec<Context<'static, Private, Multiple>>> = const { RefCell::new(Vec::new()) };
}

fn multiple() -> Shmem<Multiple> {
    shmem::init_thread::<Multiple>().expect("it is the first")
}

shmem::test!(contexts_outlive_what_used_them, pes = 2, || {
    let shmem: &'static Shmem<Multiple> = Box::leak(Box::new(multiple()));
    let world: &'static _ = Box::leak(Box::new(shmem.world()));
    let (me, peer) = (shmem.my_pe(), 1 - shmem.my_pe());
    for round in 1..20u64 {
        let array = shmem.array::<u64>(1000);
        thread::scope(|threads| {
            threads.spawn(|| {
                let context = world.context::<Private>();
                context.put(&array, &[round; 1000], peer);
                LATE.with_borrow_mut(|late| late.push(context));
            });
            threads.spawn(|| {
                let context = world.context::<Serialized>();
                context.put(array.slice(..10), &[round; 10], peer);
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
    let shmem = multiple();
    let (mut one, mut other) = (shmem.array::<u64>(64), shmem.array::<u64>(64));
    thread::scope(|threads| {
        // Arrays stay on their thread; contexts do not.
        threads.spawn(|| {
            let world = shmem.world();
            let context = world.context::<Shared>();
            (0..200).for_each(|_| context.quiet());
        });
        (0..20).for_each(|_| one.epoch(|own| own[0] += 1));
        (0..20).for_each(|_| other.epoch(|own| own[0] += 1));
    });
    assert_eq!((one.load(0), other.load(0)), (20, 20));
});

shmem::test!(threads_write_the_same_elements, pes = 2, || {
    let shmem = multiple();
    let peer = 1 - shmem.my_pe();
    let array = shmem.array::<[u64; 2]>(100);
    let words = shmem.array::<u64>(100);
    thread::scope(|threads| {
        for value in 1..4u64 {
            let (shmem, array, words) = (&shmem, &array, &words);
            threads.spawn(move || {
                for _ in 0..200 {
                    shmem.put(array, &[[value; 2]; 100], peer);
                    shmem.put(words, words, peer);
                    array.fill([value; 2]);
                    words.copy_from_slice(&[value; 100]);
                    assert!(array.load(7).iter().all(|word| *word < 4));
                    assert!(words.to_vec().iter().all(|word| *word < 4));
                }
            });
        }
    });
    shmem.barrier_all();
});

shmem::test!(handles_end_on_any_thread, pes = 2, || {
    let handles: Vec<_> = (0..4).map(|_| multiple()).collect();
    // One after the other, as the order has to be the same on all PEs.
    handles.into_iter().for_each(|handle| {
        thread::spawn(move || drop(handle)).join().expect("it ends");
    });
    let shmem = multiple();
    let flag = shmem.atomic(3u32);
    shmem.wait_until(&flag, Cmp::Eq, 3);
    let counters = shmem.array::<Atomic<u64>>(2);
    shmem.fetch_all(&mut [0; 2], &counters, 1);
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
