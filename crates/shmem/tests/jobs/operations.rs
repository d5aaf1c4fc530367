//! Strided transfers, sets of elements to wait for, locks, contexts and splits of teams.

use shmem::{Atomic, Cmp, ContextOptions, Lock, Movable, Peer, Strides, TeamOptions};

const PES: [usize; 4] = [1, 2, 4, 7];

shmem::test!(blocks_are_apart_on_both_sides, pes = PES, |shmem| {
    let me = shmem.my_pe();
    let (next, previous) = (shmem.next(), shmem.prev());
    let array = shmem.array::<u16>(12);
    let source: Vec<u16> = (0..12).map(|i| 100 * me as u16 + i).collect();
    let from = |pe: usize, i: u16| 100 * pe as u16 + i;

    let strides = |count, block, dest, source| Strides {
        count,
        block,
        dest,
        source,
    };
    array.on(next).put_blocks(&source, strides(4, 1, 2, 3));
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
    assert_eq!(array.to_vec(), of(previous.pe()));
    let mut got = [0; 4];
    array.on(next).get_blocks(&mut got, strides(4, 1, 1, 2));
    assert_eq!(got, [0, 3, 6, 9].map(|i| from(me, i)));
    shmem.barrier_all();

    array.on(next).put_blocks(&source, strides(3, 2, 5, 2));
    shmem.barrier_all();
    let mut got = [0; 8];
    array.on(next).get_blocks(&mut got, strides(3, 2, 3, 5));
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
    array[..0].on(next).put_blocks(&source, strides(0, 1, 5, 2));
    shmem.barrier_all();
});

shmem::test!(sets_of_elements_are_waited_for, pes = PES, |shmem| {
    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let flags = shmem.array::<u64>(n);
    let atomics = shmem.array::<Atomic<i32>>(n);
    assert!(shmem.test_some(flags.each(Cmp::Ne, 0)).is_empty());
    assert_eq!(shmem.test_any(flags.each(Cmp::Ne, 0)), None);
    assert!(!shmem.test_all(flags.each(Cmp::Ne, 0)));
    shmem.sync_all();
    for peer in shmem.peers() {
        flags[me].on(peer).write(me as u64 + 1);
        atomics[me].on(peer).add(5);
    }
    let expected: Vec<u64> = (1..=n as u64).collect();
    shmem.wait_all(flags.each(Cmp::Eq, &expected));
    shmem.wait_all(atomics.each(Cmp::Ge, 5));
    assert!(shmem.test_all(flags.each(Cmp::Gt, 0)));
    let is_last = flags.each(Cmp::Eq, n as u64);
    assert_eq!(shmem.wait_any(is_last), Some(n - 1));
    // All elements but the last one are excluded.
    let mut excluded = vec![true; n];
    excluded[n - 1] = false;
    let of_last = flags.each(Cmp::Gt, 0).except(&excluded);
    assert_eq!(shmem.wait_some(of_last), [n - 1]);
    let of_none = flags.each(Cmp::Gt, 0).except(&vec![true; n]);
    assert_eq!(shmem.wait_any(of_none), None);
    let all: Vec<usize> = (0..n).collect();
    assert_eq!(shmem.wait_some(flags.each(Cmp::Gt, 0)), all);

    assert_eq!(shmem.test(atomics[0].gt(5)), None);
    assert_eq!(
        shmem.test(flags[n - 1].is(Cmp::Le, n as u64)),
        Some(n as u64)
    );
    assert_eq!(shmem.wait(atomics[n - 1].ne(0)), 5);
    shmem.sync_all();
});

shmem::symmetric! {
    static TURN: Lock;
    static COUNTERS: [Atomic<usize>; 3];
    static NUMBERS: [i16; 4] = [-1, 2, -3, 4];
}

shmem::test!(static_variables_are_symmetric, pes = PES, |shmem| {
    let (counters, numbers) = (COUNTERS.get(&shmem), NUMBERS.get(&shmem));
    for peer in shmem.peers() {
        counters[2].on(peer).add(1);
        assert_eq!(numbers[2].on(peer).read(), -3);
    }
    shmem.barrier_all();
    assert_eq!(counters.on(shmem.me()).load_each(), [0, 0, shmem.n_pes()]);
    assert_eq!(numbers.to_vec(), [-1, 2, -3, 4]);
});

shmem::test!(a_lock_keeps_others_out, pes = PES, |shmem| {
    let (own, value) = (shmem.zeroed::<Lock>(), shmem.boxed(0u64));
    for _ in 0..50 {
        let _guard = shmem.lock(&own);
        let _turn = shmem.lock(TURN.get(&shmem));
        let there = value.on(shmem.pe(0));
        there.write(there.read() + 1);
        // The drops of the guards complete the put before they release the locks.
    }
    shmem.barrier_all();
    assert_eq!(value.on(shmem.pe(0)).read(), 50 * shmem.n_pes() as u64);
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
    assert_eq!(array.on(shmem.me()).ptr(), Some(array.as_ptr()));
    let shares = shmem.shared().n_pes() == 2;
    assert_eq!(array[1].on(shmem.next()).ptr().is_some(), shares);
    assert!(array.on(shmem.next()).is_accessible());
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
        let (one, other) = (reverse.context(), reverse.context());
        let options = ContextOptions::new().no_store();
        let third = options.create(&reverse).expect("there is room");
        {
            let _session = third.session();
            inbox[0].on(one.me()).write(me);
            inbox[1].on(other.pe(reverse.my_pe())).write(me);
            inbox[2..].on(third.pe(0)).put(&[me + 1]);
        }
        one.quiet();
        other.me().quiet();
        third.quiet();
        shmem.barrier_all();
        assert_eq!(inbox[..2].to_vec(), [me, me]);
        assert_eq!(inbox[2].load() != 0, me == n - 1);
    }
);

shmem::test!(
    peers_are_numbered_by_their_owner,
    pes = [1, 4, 7],
    |shmem| {
        let (me, n, world) = (shmem.my_pe(), shmem.n_pes(), shmem.world());
        let numbers =
            |peers: &mut dyn Iterator<Item = Peer<'_>>| peers.map(Peer::pe).collect::<Vec<_>>();
        let all: Vec<usize> = (0..n).collect();
        assert_eq!(numbers(&mut shmem.peers()), all);
        let from_me: Vec<usize> = (me..n).chain(0..me).collect();
        assert_eq!(numbers(&mut world.peers_from_me()), from_me);
        let ring = [shmem.prev(), shmem.me(), shmem.next()].map(Peer::pe);
        assert_eq!(ring, [(me + n - 1) % n, me, (me + 1) % n]);
        let beside = [-1, 1].map(|by| shmem.neighbor(by).map(Peer::pe));
        assert_eq!(
            beside,
            [me.checked_sub(1), Some(me + 1).filter(|&pe| pe < n)]
        );
        assert!(shmem.try_pe(n).is_none() && shmem.neighbor(isize::MIN).is_none());
        assert!(shmem.neighbor(isize::MAX).is_none());

        // A member of a team has another number there, and is the same PE.
        let odd = world.split(Some(me % 2), 0).expect("few teams are made");
        let odd = odd.expect("every PE has a color");
        let inbox = shmem.array::<usize>(2);
        inbox[0].on(odd.next()).write(me);
        let context = odd.context();
        inbox[1].on(context.prev()).write(me);
        context.quiet();
        shmem.barrier_all();
        let here = |number: usize| odd.translate(number, &world).expect("all are in the world");
        let (k, m) = (odd.my_pe(), odd.n_pes());
        assert_eq!(inbox.to_vec(), [here((k + m - 1) % m), here((k + 1) % m)]);
        assert_eq!(odd.pe(m - 1).pe(), here(m - 1));
    }
);

shmem::test!(a_peer_outlives_arrays, pes = 2, |shmem| {
    let peer = shmem.next();
    for n in 1..4 {
        let mut array = shmem.array::<u64>(n);
        array.on(peer).put(&vec![n as u64; n]);
        array.epoch(|own| own.iter_mut().for_each(|element| *element += 1));
        let there = array[..n].on(peer);
        assert_eq!(there.to_vec(), vec![n as u64 + 1; n]);
        assert_eq!(array[n - 1].on(peer).read(), n as u64 + 1);
        shmem.barrier_all();
        array.free();
    }
});

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
    a_movable_context_goes_from_thread_to_thread,
    pes = 2,
    || {
        let shmem = shmem::init_shared().expect("it is the first");
        let (inbox, world) = (shmem.boxed(0usize), shmem.world());
        let context = ContextOptions::new().create_as::<Movable>(&world);
        let context = context.expect("there is room");
        std::thread::scope(|threads| {
            let inbox = &inbox;
            let sender = threads.spawn(move || {
                inbox.on(context.next()).write(17);
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
            assert_eq!(array[0].load(), round * (round + 1) / 2 - round);
        }
    }
);
