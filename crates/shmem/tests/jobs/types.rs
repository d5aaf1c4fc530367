//! Types that a program names, stores and compares.

use shmem::{Chunks, Context, Peer, Peers, Shmem, SymArray, Until, block_on};
use std::collections::{BTreeSet, HashSet};

/// What a program makes once and keeps as long as the handle.
struct Streams<'s> {
    of_world: Context<'s>,
    of_shared: Context<'s>,
    of_node: Context<'s>,
}

impl<'s> Streams<'s> {
    fn new(shmem: &'s Shmem) -> Streams<'s> {
        Streams {
            of_world: shmem.world().context(),
            of_shared: shmem.shared().context(),
            of_node: shmem.node().context(),
        }
    }
}

shmem::test!(contexts_of_predefined_teams_are_kept, pes = 2, |shmem| {
    let inbox = shmem.array::<u64>(3);
    let streams = Streams::new(&shmem);
    let contexts = [&streams.of_world, &streams.of_shared, &streams.of_node];
    for (element, context) in inbox.iter().zip(contexts) {
        element.on(context.next()).write(7);
        context.quiet();
    }
    shmem.sync_all();
    assert_eq!(inbox.to_vec(), [7; 3]);
});

shmem::test!(peers_are_compared, pes = 4, |shmem| {
    let own = shmem.world().context();
    let even = shmem
        .world()
        .split_strided(0, 2, 2)
        .expect("there are such PEs");
    assert_eq!(shmem.pe(2), shmem.pe(2));
    assert_ne!(shmem.pe(2), shmem.pe(3));
    assert_ne!(shmem.pe(2), own.pe(2));
    if let Some(even) = even {
        assert_eq!(even.pe(1), shmem.pe(2));
    }

    let all: HashSet<Peer<'_>> = shmem.peers().chain(shmem.peers_from_me()).collect();
    assert_eq!(all.len(), 4);
    let sorted: BTreeSet<Peer<'_>> = shmem.peers_from_me().chain(own.peers()).collect();
    let numbers: Vec<usize> = sorted.into_iter().map(Peer::pe).collect();
    assert_eq!(numbers, [0, 0, 1, 1, 2, 2, 3, 3]);

    shmem.scope(|s| {
        assert_eq!(s.pe(1), s.pe(1));
        assert!(s.pe(1) < s.pe(2));
    });
});

/// Iterators and a future, which a program keeps.
struct Work<'a> {
    peers: Peers<'a, Peer<'a>>,
    parts: Chunks<'a, u64>,
    arrived: Until<'a, u64>,
}

impl<'a> Work<'a> {
    fn new(shmem: &'a Shmem, array: &'a SymArray<'_, u64>) -> Work<'a> {
        Work {
            peers: shmem.peers_from_me(),
            parts: array.chunks(2),
            arrived: shmem.until(array[0].ge(1)),
        }
    }
}

shmem::test!(iterators_and_futures_are_kept, pes = 3, |shmem| {
    let me = shmem.my_pe();
    let array = shmem.array::<u64>(6);
    let Work {
        mut peers,
        mut parts,
        arrived,
    } = Work::new(&shmem, &array);

    assert_eq!((peers.len(), parts.len()), (3, 3));
    assert_eq!(peers.next(), Some(shmem.me()));
    assert_eq!(peers.next_back(), Some(shmem.prev()));
    assert_eq!(format!("{peers:?} {parts:?}"), "Peers(1 of 3) Chunks(3)");
    assert_eq!(peers.next().map(Peer::pe), Some((me + 1) % 3));
    assert_eq!(peers.next(), None);
    assert_eq!(parts.next_back().map(|part| part.len()), Some(2));
    assert_eq!(shmem.peers().nth(2), Some(shmem.pe(2)));
    let numbers: Vec<usize> = shmem.world().peers().rev().map(Peer::pe).collect();
    assert_eq!(numbers, [2, 1, 0]);

    array[0].on(shmem.next()).write(3);
    assert_eq!(block_on(arrived), 3);
    shmem.barrier_all();
});
