//! Strided transfers, sets of elements to wait for, locks, contexts and splits of teams.

use shmem::{Atomic, Cmp, ContextOptions, Lock, Movable, Peer, Strides, TeamOptions};

const PES: [usize; 4] = [1, 2, 4, 7];

shmem::test!(blocks_are_apart_on_both_sides, pes = PES, |shmem| {
    let me = shmem.my_pe();
    let next = shmem.next();
    let previous = shmem.prev();
    let array = shmem.array::<u16>(12);
    let source: Vec<u16> = (0..12).map(|i| 100 * me as u16 + i).collect();
    let from = |pe: usize, i: u16| 100 * pe as u16 + i;
    let strides =
        |count, block, dest, source| Strides::new(count).block(block).dest(dest).source(source);

    // Every third element goes to every second one.
    array.on(next).put_blocks(&source, strides(4, 1, 2, 3));
    shmem.barrier_all();
    let mut expected = [0; 12];
    for block in 0..4 {
        expected[2 * block] = from(previous.pe(), 3 * block as u16);
    }
    assert_eq!(array.to_vec(), expected);

    let mut got = [0; 4];
    array.on(next).get_blocks(&mut got, strides(4, 1, 1, 2));
    assert_eq!(got, [0, 3, 6, 9].map(|i| from(me, i)));
    shmem.barrier_all();

    // Three adjacent blocks of two elements are put 5 apart, and got 3 apart.
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

shmem::test!(arrays_begin_with_values, pes = PES, |shmem| {
    let (me, next) = (shmem.my_pe(), shmem.next().pe());
    let numbers = shmem.array_from(&[me, 7, me + 1]);
    assert_eq!(numbers.on(shmem.next()).to_vec(), [next, 7, next + 1]);
    let products = shmem.array_from_fn(5, |i| (me * i) as f32);
    assert_eq!(products[4].on(shmem.next()).read(), (next * 4) as f32);
    assert!(shmem.array_from::<u8>(&[]).is_empty());
    shmem.barrier_all();
});

shmem::test!(
    own_atomics_are_loaded_without_an_operation,
    pes = PES,
    |shmem| {
        let counts = shmem.atomics(&[5u32, 6, 7]);
        let energy = shmem.atomic(0.5f64);
        for peer in shmem.peers() {
            counts[1].on(peer).add(10);
            energy.on(peer).add(0.25);
        }
        shmem.barrier_all();
        let n = shmem.n_pes();
        assert_eq!(counts.to_vec(), [5, 6 + 10 * n as u32, 7]);
        assert_eq!(counts[1..2].to_vec(), [counts[1].load()]);
        assert_eq!(energy.load(), 0.5 + 0.25 * n as f64);
    }
);

shmem::test!(sets_of_elements_are_waited_for, pes = PES, |shmem| {
    let me = shmem.my_pe();
    let n = shmem.n_pes();
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
    let last = n as u64;
    assert_eq!(shmem.test(flags[n - 1].is(Cmp::Le, last)), Some(last));
    assert_eq!(shmem.wait(atomics[n - 1].ne(0)), 5);
    shmem.sync_all();
});

shmem::symmetric! {
    static TURN: Lock;
    static COUNTERS: [Atomic<usize>; 3];
    static NUMBERS: [i16; 4] = [-1, 2, -3, 4];
}

shmem::test!(static_variables_are_symmetric, pes = PES, |shmem| {
    let counters = COUNTERS.get(&shmem);
    let numbers = NUMBERS.get(&shmem);
    for peer in shmem.peers() {
        counters[2].on(peer).add(1);
        assert_eq!(numbers[2].on(peer).read(), -3);
    }
    shmem.barrier_all();
    assert_eq!(counters.on(shmem.me()).load_each(), [0, 0, shmem.n_pes()]);
    assert_eq!(numbers.to_vec(), [-1, 2, -3, 4]);
});

shmem::test!(updates_of_several_pes_are_all_kept, pes = PES, |shmem| {
    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let most = shmem.atomic(-1i32);
    let least = shmem.atomic(u64::MAX);
    let sum = shmem.atomic(0u64);
    let left = shmem.atomic(0i64);
    let energy = shmem.atomic(1.0f32);
    let last = shmem.pe(n - 1);
    for step in 0..50 {
        let value = (step * n + me) as i32;
        assert!(most.on(last).fetch_max(value) < (50 * n) as i32);
        least.on(last).fetch_min(value as u64 + 3);
        let old = sum.on(last).fetch_update(|old| Some(old + 3));
        assert_eq!(old.map(|old| old % 3), Ok(0));
        left.on(last).fetch_sub(2);
    }
    shmem.barrier_all();
    assert_eq!(most.on(last).load(), (50 * n) as i32 - 1);
    assert_eq!(least.on(last).load(), 3);
    assert_eq!(sum.on(last).load(), 150 * n as u64);
    assert_eq!(left.on(last).load(), -100 * n as i64);

    // What does not change the value returns it, too.
    assert_eq!(most.on(last).fetch_max(-7), (50 * n) as i32 - 1);
    assert_eq!(least.on(last).fetch_min(3), 3);
    assert_eq!(sum.on(last).fetch_update(|_| None), Err(150 * n as u64));
    assert_eq!(energy.on(shmem.next()).fetch_sub(0.25), 1.0);
    shmem.barrier_all();
    assert_eq!(energy.load(), 0.75);
});

shmem::test!(own_elements_are_exchanged_and_updated, pes = 1, |shmem| {
    let triples = shmem.array_from(&[[1u8, 2, 3], [4, 5, 6]]);
    triples[0].swap(&triples[1]);
    triples[1].swap(&triples[1]);
    assert_eq!(triples.to_vec(), [[4, 5, 6], [1, 2, 3]]);
    triples[1].update(|[a, b, c]| [c, b, a]);
    assert_eq!(triples[1].load(), [3, 2, 1]);
});

shmem::test!(a_lock_keeps_others_out, pes = PES, |shmem| {
    let own = shmem.zeroed::<Lock>();
    let value = shmem.boxed(0u64);
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

    // Between the two syncs PE 0 holds the lock.
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
        let me = shmem.my_pe();
        let n = shmem.n_pes();
        let world = shmem.world();
        let reverse = world
            .split(Some(0), -(me as isize))
            .expect("few teams are made")
            .expect("every PE has a color");
        assert_eq!((reverse.my_pe(), reverse.n_pes()), (n - 1 - me, n));
        assert_eq!(reverse.translate(0, world), Some(n - 1));

        let inbox = shmem.array::<usize>(3);
        let one = reverse.context();
        let other = reverse.context();
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
        let me = shmem.my_pe();
        let n = shmem.n_pes();
        let world = shmem.world();

        assert!(shmem.peers().map(Peer::pe).eq(0..n));
        let from_me = (me..n).chain(0..me);
        assert!(world.peers_from_me().map(Peer::pe).eq(from_me));

        let ring = [shmem.prev(), shmem.me(), shmem.next()].map(Peer::pe);
        assert_eq!(ring, [(me + n - 1) % n, me, (me + 1) % n]);

        let before = shmem.neighbor(-1).map(Peer::pe);
        assert_eq!(before, me.checked_sub(1));
        let after = shmem.neighbor(1).map(Peer::pe);
        assert_eq!(after, if me + 1 < n { Some(me + 1) } else { None });
        assert!(shmem.try_pe(n).is_none() && shmem.neighbor(isize::MIN).is_none());
        assert!(shmem.neighbor(isize::MAX).is_none());

        // A member of a team has another number there, and is the same PE.
        let half = world
            .split(Some(me % 2), 0)
            .expect("few teams are made")
            .expect("every PE has a color");
        let inbox = shmem.array::<usize>(2);
        inbox[0].on(half.next()).write(me);
        let context = half.context();
        inbox[1].on(context.prev()).write(me);
        context.quiet();
        shmem.barrier_all();

        let in_world = |pe: usize| half.translate(pe, world).expect("all are in the world");
        let my_pe = half.my_pe();
        let n_pes = half.n_pes();
        let previous = in_world((my_pe + n_pes - 1) % n_pes);
        let next = in_world((my_pe + 1) % n_pes);
        assert_eq!(inbox.to_vec(), [previous, next]);
        assert_eq!(half.pe(n_pes - 1).pe(), in_world(n_pes - 1));
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
    let me = shmem.my_pe();
    let n = shmem.n_pes();
    let world = shmem.world();
    assert!(world.split_strided(0, 1, n + 1).is_err());
    assert!(world.split_2d(0).is_err());

    let config = TeamOptions::new().contexts(3);
    let even = world
        .split_strided_with(config, 0, 2, n.div_ceil(2))
        .expect("there are such PEs");
    assert_eq!(even.is_some(), me.is_multiple_of(2));
    if let Some(even) = even {
        assert_eq!(even.my_pe(), me / 2);
        assert_eq!(even.config(), config);
    }

    let (row, column) = world.split_2d(2).expect("there are such PEs");
    assert_eq!((row.my_pe(), column.my_pe()), (me % 2, me / 2));

    // The PEs beyond the grid are in none of its teams.
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
        let inbox = shmem.boxed(0usize);
        let world = shmem.world();
        let context = ContextOptions::new().create_as::<Movable>(world);
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
