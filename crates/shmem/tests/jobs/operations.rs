//! Strided transfers, sets of elements to wait for, locks, contexts and splits of teams.

use shmem::{Atomic, Cmp, Lock, Multiple, Private, Serialized, Shared, Strides, TeamOptions};

const PES: [usize; 4] = [1, 2, 4, 7];

shmem::test!(blocks_are_apart_on_both_sides, pes = PES, |shmem| {
    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
    let array = shmem.array::<u16>(12);
    let source: Vec<u16> = (0..12).map(|i| 100 * me as u16 + i).collect();
    let from = |pe: usize, i: u16| 100 * pe as u16 + i;

    shmem.iput(&array, &source, Strides { dst: 2, sst: 3 }, 4, next);
    shmem.barrier_all();
    let of = |pe| {
        [
            from(pe, 0),
            0,
            from(pe, 3),
            0,
            from(pe, 6),
            0,
            from(pe, 9),
            0,
            0,
            0,
            0,
            0,
        ]
    };
    assert_eq!(array.to_vec(), of(previous));
    let mut got = [0; 4];
    shmem.iget(&mut got, &array, Strides { dst: 1, sst: 2 }, 4, next);
    assert_eq!(got, [0, 3, 6, 9].map(|i| from(me, i)));
    shmem.barrier_all();

    shmem.ibput(&array, &source, Strides { dst: 5, sst: 2 }, 2, 3, next);
    shmem.barrier_all();
    let mut got = [0; 8];
    shmem.ibget(&mut got, &array, Strides { dst: 3, sst: 5 }, 2, 3, next);
    let sent = [
        from(me, 0),
        from(me, 1),
        0,
        from(me, 2),
        from(me, 3),
        0,
        from(me, 4),
        from(me, 5),
    ];
    assert_eq!(got, sent);
    // A transfer of no elements needs no elements.
    shmem.iput(
        array.slice(..0),
        &source,
        Strides { dst: 5, sst: 2 },
        0,
        next,
    );
    shmem.barrier_all();
});

shmem::test!(sets_of_elements_are_waited_for, pes = PES, |shmem| {
    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let flags = shmem.array::<u64>(n);
    let atomics = shmem.array::<Atomic<i32>>(n);
    let mut indices = vec![0; n];
    assert!(
        shmem
            .test_some(&flags, &mut indices, &[], Cmp::Ne, 0)
            .is_empty()
    );
    assert_eq!(shmem.test_any(&flags, &[], Cmp::Ne, 0), None);
    assert!(!shmem.test_all(&flags, &[], Cmp::Ne, 0));
    shmem.sync_all();
    for pe in 0..n {
        shmem.p(flags.at(me), me as u64 + 1, pe);
        shmem.add(atomics.at(me), 5, pe);
    }
    let expected: Vec<u64> = (1..=n as u64).collect();
    shmem.wait_until_all(&flags, &[], Cmp::Eq, &expected);
    shmem.wait_until_all(&atomics, &[], Cmp::Ge, 5);
    assert!(shmem.test_all(&flags, &[], Cmp::Gt, 0));
    assert_eq!(
        shmem.wait_until_any(&flags, &[], Cmp::Eq, n as u64),
        Some(n - 1)
    );
    // All elements but the last one are excluded.
    let mut status = vec![1; n];
    status[n - 1] = 0;
    assert_eq!(
        shmem.wait_until_some(&flags, &mut indices, &status, Cmp::Gt, 0),
        [n - 1]
    );
    assert_eq!(shmem.wait_until_any(&flags, &vec![1; n], Cmp::Gt, 0), None);
    let all: Vec<usize> = (0..n).collect();
    assert_eq!(
        shmem.wait_until_some(&flags, &mut indices, &[], Cmp::Gt, 0),
        all
    );
    shmem.sync_all();
});

shmem::symmetric! {
    static TURN: Lock;
    static COUNTERS: [Atomic<usize>; 3];
    static NUMBERS: [i16; 4] = [-1, 2, -3, 4];
}

shmem::test!(static_variables_are_symmetric, pes = PES, |shmem| {
    let (counters, numbers) = (COUNTERS.elements(&shmem), NUMBERS.elements(&shmem));
    for pe in 0..shmem.n_pes() {
        shmem.inc(counters.at(2), pe);
        assert_eq!(shmem.g(numbers.at(2), pe), -3);
    }
    shmem.barrier_all();
    assert_eq!(shmem.fetch(counters.at(2), shmem.my_pe()), shmem.n_pes());
    assert_eq!(shmem.fetch(counters.at(1), shmem.my_pe()), 0);
    assert_eq!(NUMBERS.element(&shmem).load(), [-1, 2, -3, 4]);
});

shmem::test!(a_lock_keeps_others_out, pes = PES, |shmem| {
    let (own, value) = (shmem.zeroed::<Lock>(), shmem.boxed(0u64));
    for _ in 0..50 {
        let _guard = shmem.lock(&own);
        let _turn = shmem.lock(TURN.element(&shmem));
        shmem.p(&value, shmem.g(&value, 0) + 1, 0);
        // The drops of the guards complete the put before they release the locks.
    }
    shmem.barrier_all();
    assert_eq!(shmem.g(&value, 0), 50 * shmem.n_pes() as u64);
    shmem.barrier_all();
    if shmem.my_pe() == 0 {
        let guard = shmem.try_lock(&own).expect("nobody has it");
        shmem.sync_all();
        shmem.sync_all();
        drop(guard);
    } else {
        shmem.sync_all();
        assert!(shmem.try_lock(&own).is_none());
        shmem.sync_all();
    }
});

shmem::test!(copies_on_the_node_have_addresses, pes = 2, |shmem| {
    let array = shmem.array::<u32>(4);
    assert_eq!(
        array.as_slice().on(shmem.my_pe()),
        Some(array.as_slice().as_ptr())
    );
    let shares = shmem.shared().n_pes() == 2;
    assert_eq!(array.at(1).on(1 - shmem.my_pe()).is_some(), shares);
    assert_eq!(shmem::VERSION, (1, 6));
    assert!(shmem::NAME.starts_with("Rushmem "));
});

shmem::test!(
    contexts_number_pes_as_their_teams,
    pes = [2, 4, 7],
    |shmem| {
        let (me, n) = (shmem.my_pe(), shmem.n_pes());
        let world = shmem.world();
        let reverse = world
            .split(Some(0), -(me as isize))
            .expect("few teams are made")
            .expect("every PE has a color");
        assert_eq!((reverse.my_pe(), reverse.n_pes()), (n - 1 - me, n));
        assert_eq!(reverse.translate(0, &world), Some(n - 1));
        let inbox = shmem.array::<usize>(3);
        let (private, serialized) = (
            reverse.context::<Private>(),
            reverse.context::<Serialized>(),
        );
        let shared = reverse.try_context::<Shared>().expect("there is room");
        {
            let _session = shared.session();
            private.p(inbox.at(0), me, reverse.my_pe());
            serialized.p(inbox.at(1), me, reverse.my_pe());
            shared.put(inbox.at(2), &[me + 1], 0);
        }
        private.quiet();
        serialized.quiet();
        shared.quiet();
        shmem.barrier_all();
        assert_eq!(inbox.slice(..2).to_vec(), [me, me]);
        assert_eq!(inbox.load(2) != 0, me == n - 1);
    }
);

shmem::test!(teams_are_split, pes = [1, 4, 6], |shmem| {
    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let world = shmem.world();
    assert!(world.split_strided(0, 1, n + 1).is_err() && world.split_2d(0).is_err());
    let config = TeamOptions::new().contexts(3);
    let even = world
        .split_strided_with(config, 0, 2, n.div_ceil(2))
        .expect("there are such PEs");
    assert_eq!(
        even.as_ref().map(|team| (team.my_pe(), team.config())),
        (me % 2 == 0).then_some((me / 2, config))
    );
    let (row, column) = world.split_2d(2).expect("there are such PEs");
    assert_eq!((row.my_pe(), column.my_pe()), (me % 2, me / 2));
    let [x, y, z] = world.split_grid([2, 2, 1]).expect("few teams are made");
    let lengths = [x, y, z].map(|team| team.map(|team| team.n_pes()));
    let expected = if n == 1 {
        [Some(1); 3]
    } else if me < 4 {
        [Some(2), Some(2), Some(1)]
    } else {
        [None; 3]
    };
    assert_eq!(lengths, expected);
    // Only the members of the new team call.
    if me < 2.min(n) {
        let first = world
            .split_members(0, 1, 2.min(n))
            .expect("few teams are made")
            .expect("this PE is one");
        assert_eq!(first.all_reduce(1, shmem::Sum), first.n_pes());
    }
    assert!(world.split(None, 0).is_ok_and(|team| team.is_none()));
    assert!(shmem.node().n_pes() >= shmem.shared().n_pes());
});

shmem::test!(
    a_serialized_context_goes_from_thread_to_thread,
    pes = 2,
    || {
        let shmem = shmem::init_thread::<Multiple>().expect("it is the first");
        let (inbox, other, world) = (shmem.boxed(0usize), 1 - shmem.my_pe(), shmem.world());
        let context = world.context::<Serialized>();
        std::thread::scope(|threads| {
            let element = inbox.element();
            let sender = threads.spawn(move || {
                context.p(element, 17, other);
                context
            });
            sender.join().expect("it sends").quiet();
        });
        shmem.barrier_all();
        assert_eq!(inbox.load(), 17);
    }
);

// PEs that have left an epoch begin the next allocation while others have not left it yet.
shmem::test!(
    epochs_and_allocations_take_turns,
    pes = [1, 2, 3, 5],
    |shmem| {
        let mut array = shmem.array::<u64>(1);
        for round in 1..200 {
            let others = [shmem.boxed(round), shmem.boxed(2 * round)];
            array.epoch(|own| own[0] += others[0].load());
            array.epoch(|own| {
                own[0] -= 1;
                drop(others);
            });
            assert_eq!(array.load(0), round * (round + 1) / 2 - round);
        }
    }
);
