//! Safe code may leak the object whose drop would wait for an operation. Epochs and drops of arrays
//! wait for the operations on the array themselves.

use shmem::{SymArray, Team, Threads};
use std::mem::forget;

const PES: [usize; 2] = [2, 4];
const LEN: usize = 1 << 16;
/// The number of broadcasts that are leaked. They take much longer than two barriers.
const REQUESTS: u32 = 50;

/// Starts broadcasts of zeros and then one of ones, and leaks their requests. All have one root,
/// since broadcasts of different roots to one destination overtake each other.
fn leak<C: Threads>(
    team: &Team<'_, C>,
    dest: &SymArray<'_, u64>,
    [zeros, ones]: &[SymArray<'_, u64>; 2],
) {
    for request in 1..=REQUESTS {
        let source = if request == REQUESTS { ones } else { zeros };
        forget(team.start_broadcast_into(source, dest, team.n_pes() - 1));
    }
}

/// Defines a team other than the world, an array for the broadcasts, and two sources, of zeros and
/// ones. A macro, since the arrays borrow the handle.
macro_rules! with_team {
    ($shmem:ident, $team:ident, $dest:ident, $sources:ident) => {
        let $team = $shmem
            .world()
            .split_strided(0, 1, $shmem.n_pes())
            .expect("there are such members")
            .expect("this PE is one");

        #[allow(unused_mut)]
        let mut $dest = $shmem.array::<u64>(LEN);
        #[allow(unused_mut)]
        let mut $sources = [$shmem.array::<u64>(LEN), $shmem.array::<u64>(LEN)];

        $dest.fill(17);
        $sources[1].fill(1);
        $shmem.barrier_all();
    };
}

shmem::test!(an_epoch_waits_for_leaked_collectives, pes = PES, |shmem| {
    with_team!(shmem, team, dest, sources);
    leak(&team, &dest, &sources);

    // In an epoch nothing reads the sources any more, or writes to the destination.
    for source in &mut sources {
        source.epoch(|own| own.fill(99));
    }
    dest.epoch(|own| {
        assert!(own.iter().all(|&element| element == 1));
        own.fill(100);
    });

    // The sync waits for the requests of its team.
    team.sync();
    assert_eq!(dest.to_vec(), [100; LEN]);
});

shmem::test!(a_drop_waits_for_leaked_collectives, pes = PES, |shmem| {
    with_team!(shmem, team, dest, sources);
    leak(&team, &dest, &sources);
    drop(dest);
    drop(sources);

    let later = shmem.array::<u64>(2 * LEN);
    later.fill(7);
    // The sync waits for the requests of its team.
    team.sync();
    shmem.barrier_all();
    assert_eq!(later.to_vec(), [7; 2 * LEN]);
});

shmem::test!(
    a_new_length_waits_for_leaked_collectives,
    pes = PES,
    |shmem| {
        with_team!(shmem, team, dest, sources);
        leak(&team, &dest, &sources);
        // An allocation of one element ends long before the broadcasts.
        dest.resize(1).expect("there is room");
        assert_eq!(dest.to_vec(), [1]);
    }
);

shmem::test!(
    an_epoch_waits_for_what_another_thread_leaked,
    pes = PES,
    || {
        let shmem = shmem::init_shared().expect("it is the first");
        with_team!(shmem, team, dest, sources);
        std::thread::scope(|threads| {
            threads.spawn(|| leak(&team, &dest, &sources));
        });
        dest.epoch(|own| assert!(own.iter().all(|&element| element == 1)));
    }
);

#[test]
fn over_tcp_too() {
    crate::over_tcp::passes("leaks::an_epoch_waits_for_leaked_collectives");
    crate::over_tcp::passes("leaks::a_drop_waits_for_leaked_collectives");
}

shmem::test!(an_epoch_leaves_other_collectives_alone, pes = 2, |shmem| {
    with_team!(shmem, team, dest, sources);
    let mut other = shmem.array::<u64>(1);

    // The broadcast of PE 0 is complete only when PE 1 has started it, in the epoch.
    let broadcast = if shmem.my_pe() == 0 {
        let early = team.start_broadcast_into(&sources[1], &dest, 1);
        other.epoch(|_| ());
        early
    } else {
        other.epoch(|_| team.start_broadcast_into(&sources[1], &dest, 1))
    };
    broadcast.wait();
    assert_eq!(dest.to_vec(), [1; LEN]);
    shmem.barrier_all();
});
