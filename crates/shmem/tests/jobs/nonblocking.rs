//! Operations that are complete at the end of a scope, transfers of vectors as futures, and waits
//! and collectives as futures.

use shmem::{Atomic, ContextOptions, Min, Shared, Signal, Sum, block_on};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const PES: [usize; 3] = [1, 2, 4];

shmem::test!(
    a_scope_completes_what_was_issued_in_it,
    pes = PES,
    |shmem| {
        let me = shmem.my_pe();
        let n = shmem.n_pes();
        let next = (me + 1) % n;
        let numbers = shmem.array::<usize>(1000);
        let signal = shmem.zeroed::<Signal>();
        let counter = shmem.zeroed::<Atomic<u64>>();
        let own: Vec<usize> = (0..500).map(|i| 1000 * me + i).collect();
        shmem.barrier_all();

        shmem.scope(|s| {
            numbers[..500].on(s.pe(next)).put(&own);
            numbers[500..].on(s.next()).put_with(&own, signal.set(1));
        });
        assert_eq!(shmem.wait(signal.eq(1)), 1);
        shmem.barrier_all();
        assert_eq!(numbers.to_vec(), numbers_from((me + n - 1) % n));

        let mut got = vec![0; 1000];
        let mut old = [0; 6];
        let result = shmem.scope(|s| {
            numbers.on(s.pe(next)).get(&mut got);
            if me == 0 {
                let [swapped, fetched, added, one, compared, or] = &mut old;
                let there = counter.on(s.pe(n - 1));
                there.swap_into(1, swapped);
                there.load_into(fetched);
                there.fetch_add_into(9, added);
                there.fetch_add_into(1, one);
                there.compare_exchange_into(11, 4, compared);
                there.fetch_or_into(3, or);
            }
            "done"
        });
        assert_eq!(result, "done");
        assert_eq!(got, numbers_from(me));
        if me == 0 {
            assert_eq!(old[0], 0);
            assert_eq!(counter.on(shmem.pe(n - 1)).load(), 7);
        }
        shmem.barrier_all();
    }
);

/// Returns the elements that PE `pe` puts in [`a_scope_completes_what_was_issued_in_it`]: the same
/// ones twice.
fn numbers_from(pe: usize) -> Vec<usize> {
    (0..1000).map(|i| 1000 * pe + i % 500).collect()
}

shmem::test!(a_scope_is_completed_by_a_panic_too, pes = 2, |shmem| {
    let me = shmem.my_pe();
    let array = shmem.array::<usize>(1 << 16);
    let other = 1 - me;
    let source = vec![me + 1; 1 << 16];
    let world = shmem.world();
    let context = world.context();

    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        context.scope(|s| {
            array.on(s.pe(other)).put(&source);
            std::panic::resume_unwind(Box::new(17));
        })
    }));
    assert!(caught.is_err());

    // A sync completes nothing, so the panic has completed the put.
    shmem.sync_all();
    assert!(array.to_vec().iter().all(|&x| x == other + 1));
});

shmem::test!(a_transfer_owns_its_vector, pes = PES, |shmem| {
    let me = shmem.my_pe();
    let next = shmem.next();
    let array = shmem.array::<u64>(1 << 14);

    let sent = block_on(array.on(next).put_owned(vec![me as u64; 1 << 14]));
    assert_eq!(sent, vec![me as u64; 1 << 14]);
    shmem.barrier_all();

    // The data are there when the signal is, also if the future was dropped.
    let arrived = shmem.zeroed::<Signal>();
    for round in 1..20 {
        let data = vec![round; 1 << 14];
        let sent = array.on(next).put_owned_with(data, arrived.add(1));
        if round % 2 == 0 {
            drop(sent);
        } else {
            assert_eq!(block_on(sent), vec![round; 1 << 14]);
        }
        shmem.wait(arrived.eq(round));
        assert_eq!(array.to_vec(), vec![round; 1 << 14]);
        shmem.barrier_all();
    }
    array.on(next).put(&vec![me as u64; 1 << 14]);
    shmem.barrier_all();

    let (front, back) = array.split_at(1 << 13);
    let both = async {
        let first = front.on(next).get_owned(vec![9; 1 << 13]);
        let second = back.on(next).get_owned(vec![9; 1 << 13]);
        [first.await, second.await].concat()
    };
    assert_eq!(block_on(both), vec![me as u64; 1 << 14]);

    // A get that is pending when it is dropped or leaked keeps its vector.
    drop(front.on(next).get_owned(vec![9; 1 << 13]));
    std::mem::forget(front.on(next).get_owned(vec![9; 1 << 13]));
});

shmem::test!(waits_are_futures, pes = 2, |shmem| {
    let me = shmem.my_pe();
    let other = shmem.next();
    let flag = shmem.boxed(0u32);
    let signal = shmem.zeroed::<Signal>();
    let mut early = pin!(shmem.until(flag.gt(0)));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(early.as_mut().poll(&mut context), Poll::Pending);
    shmem.sync_all();

    let ping_pong = async {
        for round in 1..100 {
            if me == 0 {
                flag.on(other).write(round);
                let seen = shmem.until(signal.ge(u64::from(round))).await;
                assert_eq!(seen, u64::from(round));
            } else {
                assert_eq!(shmem.until(flag.eq(round)).await, round);
                signal.on(other).add(1);
            }
            shmem.until_quiet().await;
        }
    };
    block_on(ping_pong);

    if me == 1 {
        block_on(early);
    }
});

shmem::test!(other_executors_run_the_futures, pes = 2, |shmem| {
    let me = shmem.my_pe();
    let other = shmem.next();
    let array = shmem.array::<u64>(100);
    let signal = shmem.zeroed::<Signal>();

    let send = async {
        let sent = array.on(other).put_owned(vec![me as u64; 100]).await;
        tokio::task::yield_now().await;
        signal.on(other).set(7);
        sent.len()
    };
    let receive = async {
        let seen = shmem.until(signal.ne(0)).await;
        (seen, array[99].load())
    };

    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let both = runtime.block_on(async { tokio::join!(receive, send) });
    assert_eq!(both, ((7, other.pe() as u64), 100));
});

shmem::test!(threads_share_transfers, pes = 2, || {
    let shmem = shmem::init_shared().expect("it is the first");
    let array = shmem.array::<u64>(64);
    let world = shmem.world();
    let context = ContextOptions::new().create_as::<Shared>(world);
    let context = context.expect("there is room");
    let other = context.next();

    std::thread::scope(|threads| {
        for (part, number) in array.chunks(16).zip(0..) {
            let transfer = part.on(other).put_owned(vec![number; 16]);
            threads.spawn(move || block_on(transfer));
        }
    });
    shmem.barrier_all();
    assert!((0..64).all(|i| array[i].load() == i as u64 / 16));
});

shmem::test!(collectives_are_futures, pes = PES, |shmem| {
    let me = shmem.my_pe();
    let n = shmem.n_pes();
    let world = shmem.world();
    let own = shmem.array::<u64>(4);
    own.fill(me as u64 + 1);
    let to = [(); 6].map(|()| shmem.array::<u64>(4));
    let all = shmem.array::<u64>(4 * n);
    let some = shmem.array::<u64>(4 * n);
    let there = shmem.array::<u64>(n);
    let back = shmem.array::<u64>(n);
    let packed = shmem.array::<u64>(n);
    there.fill(me as u64);
    shmem.barrier_all();

    let sum = world.start_all_reduce_into(&own, &to[0], Sum);
    let from_last = world.start_broadcast_into(&own, &to[1], n - 1);
    let up_to_this = world.start_inclusive_scan_into(&own, &to[2], Sum);
    let before = world.start_exclusive_scan_into(&own, &to[3], Sum);
    let least = world.start_exclusive_scan_into(&own, &to[5], Min);
    let collected = world.start_all_gather_varying_into(&own[..1 + me % 2], &all);
    let equal = world.start_all_gather_into(&own, &some);
    let swapped = world.start_all_to_all_into(&there, &back);
    // Every member sends an element to each of the others, and none to the first one.
    let counts: Vec<usize> = (0..n).map(|to| to.min(1)).collect();
    let exchanged = world.start_all_to_all_blocks(&there, &counts, &packed);

    // A blocking collective is carried out after them, and after one whose request was dropped.
    drop(world.start_sync());
    world.all_reduce_into(&own, &to[4], Sum);
    assert_eq!(to[4].to_vec(), to[0].to_vec());

    block_on(async {
        // Members with odd numbers pass two elements, the others one.
        assert_eq!(collected.await, n + n / 2);
        sum.await;
        from_last.await;
        up_to_this.await;
        before.await;
        least.await;
        equal.await;
        swapped.await;
        assert_eq!(exchanged.await, n * me.min(1));
    });

    let up_to = |k: u64| k * (k + 1) / 2;
    let me = me as u64;
    let n = n as u64;
    assert_eq!(to[0].to_vec(), [up_to(n); 4]);
    assert_eq!(to[1].to_vec(), [n; 4]);
    assert_eq!(to[2].to_vec(), [up_to(me + 1); 4]);
    assert_eq!(to[3].to_vec(), [up_to(me); 4]);
    assert_eq!(to[5].to_vec(), [if me == 0 { u64::MAX } else { 1 }; 4]);
    assert_eq!(back.to_vec(), (0..n).collect::<Vec<u64>>());
    let senders = if me == 0 {
        vec![0; n as usize]
    } else {
        back.to_vec()
    };
    assert_eq!(packed.to_vec(), senders);
    let gathered: Vec<u64> = (0..4 * n).map(|i| i / 4 + 1).collect();
    assert_eq!(some.to_vec(), gathered);

    world.start_all_reduce_into(&own, &to[5], Sum).wait();
    assert_eq!(to[5].to_vec(), [up_to(n); 4]);
    shmem.barrier_all();
});
