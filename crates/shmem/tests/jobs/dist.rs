//! Arrays that are distributed over the PEs of a team: who has which elements, transfers of ranges,
//! and additions.

use serde_json::Value;
use shmem::{Atomic, Sum};
use std::thread;

/// With the last one there are more PEs than CPUs of a small machine.
const PES: [usize; 4] = [1, 2, 3, 7];
/// No element, fewer than PEs, and numbers that few numbers of PEs divide.
const LENGTHS: [usize; 5] = [0, 1, 2, 10, 1001];

/// The value of an element in the tests of transfers.
fn value(index: usize) -> usize {
    3 * index + 1
}

shmem::test!(each_element_is_on_one_pe, pes = PES, |shmem| {
    let world = shmem.world();
    let n_pes = shmem.n_pes();
    for len in LENGTHS {
        let array = world.block_array::<usize>(len);
        assert_eq!(array.len(), len);
        assert_eq!(array.is_empty(), len == 0);
        assert!(array.block_len() * n_pes >= len);

        // Each PE writes the elements of the next one.
        for index in 0..len {
            if array.owner(index) == shmem.next().pe() {
                array.at(index).write(value(index));
            }
        }
        shmem.barrier_all();

        assert_eq!(array.own_range().len(), array.own().len());
        assert!(array.own_range().all(|i| array.owner(i) == shmem.my_pe()));
        let mine: Vec<usize> = array.own_range().map(value).collect();
        assert_eq!(array.own().to_vec(), mine);
        assert_eq!(world.all_reduce(array.own().len(), Sum), len);
        assert!((0..len).all(|index| array.at(index).read() == value(index)));
        shmem.barrier_all();
    }
});

shmem::test!(ranges_are_copied, pes = PES, |shmem| {
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    for len in LENGTHS {
        let array = shmem.world().block_array::<usize>(len);
        // Not the elements of a PE: these parts are rounded down, and written in the other order.
        let part = |pe: usize| (n_pes - 1 - pe) * len / n_pes..(n_pes - pe) * len / n_pes;
        array.write(part(me), &part(me).map(value).collect::<Vec<_>>());
        shmem.barrier_all();

        let all: Vec<usize> = (0..len).map(value).collect();
        assert_eq!(array.read(..), all);
        for (first, last) in [(0, len / 2), (len / 3, len - len / 4), (len, len)] {
            assert_eq!(array.read(first..last), all[first..last]);
        }
        let mut got = vec![0; len + 1];
        array.read_into(0.., &mut got[1..]);
        assert_eq!(got[0], 0);
        assert_eq!(got[1..], all);
        shmem.barrier_all();
    }
});

shmem::test!(additions_reach_each_element, pes = PES, |shmem| {
    let n_pes = shmem.n_pes() as u64;
    for len in LENGTHS {
        let counts = shmem.world().block_array::<Atomic<u64>>(len);
        // Two for each element, and not in the order of elements.
        let additions = (0..2 * len).map(|i| (i * 7 % len, 1 + (i % len) as u64));
        counts.add_each(additions.clone());
        shmem.barrier_all();

        let mut expected = vec![0; len];
        for (index, value) in additions {
            expected[index] += n_pes * value;
        }
        let mine = counts.own().on(shmem.me()).load_each();
        assert_eq!(mine, expected[counts.own_range()]);
        if len > 0 {
            assert_eq!(counts.at(len - 1).load(), expected[len - 1]);
        }
        shmem.barrier_all();
    }
});

shmem::test!(
    elements_anywhere_are_accessed_together,
    pes = PES,
    |shmem| {
        let (me, n_pes) = (shmem.my_pe(), shmem.n_pes());
        for len in LENGTHS {
            let mut array = shmem.world().block_array::<usize>(len);
            array.fill(5);
            assert_eq!(array.read(..), vec![5; len]);
            shmem.barrier_all();

            let mine = (0..len).rev().filter(|index| index % n_pes == me);
            array.write_each(mine.clone().map(|index| (index, value(index))));
            shmem.barrier_all();
            let twice = (0..2 * len).map(|i| i * 7 % len);
            let expected: Vec<usize> = twice.clone().map(value).collect();
            assert_eq!(array.read_each(twice.clone()), expected);
            for (index, element) in array.own_iter() {
                assert_eq!(element.load(), value(index));
            }
            shmem.barrier_all();

            let mut counts = shmem.world().block_array::<Atomic<i64>>(len);
            counts.fill(-1);
            assert_eq!(counts.own().to_vec(), vec![-1; counts.own().len()]);
            assert_eq!(counts.load_each(0..len), vec![-1; len]);
            shmem.barrier_all();
            counts.store_each(mine.clone().map(|index| (index, 10 * index as i64)));
            shmem.barrier_all();

            // One PE after the other would get these, in any order; an index comes twice.
            let old = counts.fetch_add_each(twice.clone().map(|index| (index, 1)));
            for (old, index) in old.iter().zip(twice) {
                let added = old - 10 * index as i64;
                assert!((0..2 * len as i64 * n_pes as i64).contains(&added));
            }
            shmem.barrier_all();
            let mut expected: Vec<i64> = (0..len).map(|index| 10 * index as i64).collect();
            for i in 0..2 * len {
                expected[i * 7 % len] += n_pes as i64;
            }
            assert_eq!(counts.load_each(0..len), expected);
            shmem.barrier_all();
        }
    }
);

shmem::test!(an_epoch_lends_the_elements_of_a_pe, pes = PES, |shmem| {
    for len in LENGTHS {
        let mut array = shmem.world().block_array::<usize>(len);
        let range = array.own_range();
        let lent = array.epoch(|own| {
            own.iter_mut().zip(range).for_each(|(x, i)| *x = value(i));
            own.len()
        });
        assert_eq!(lent, array.own().len());
        assert!(array.read(..).into_iter().eq((0..len).map(value)));
        shmem.barrier_all();
    }
});

shmem::test!(a_team_has_an_array_of_its_own, pes = [1, 4, 6], |shmem| {
    let me = shmem.my_pe();
    let n_pes = shmem.n_pes();
    // The even PEs and the odd ones, or all if there is one, numbered from the last one on.
    let n_teams = 2.min(n_pes);
    let team = shmem
        .world()
        .split(Some(me % n_teams), -(me as isize))
        .expect("few teams are made")
        .expect("every PE has a color");
    let array = team.block_array::<usize>(11);
    let block_len = 11_usize.div_ceil(team.n_pes());
    let first = (team.my_pe() * block_len).min(11);
    // The array does not need its team.
    drop(team);
    assert_eq!(array.own_range().start, first);
    array.own().fill(100 * me);
    shmem.barrier_all();

    // The member 0 is the last PE of the team.
    let last = n_pes - n_teams + me % n_teams;
    for (index, element) in array.read(..).into_iter().enumerate() {
        let owner = last - n_teams * array.owner(index);
        assert_eq!(element, 100 * owner);
    }
    shmem.barrier_all();
});

shmem::test!(threads_share_an_array, pes = 3, || {
    let shmem = shmem::init_shared().expect("it is the first");
    let counts = shmem.world().block_array::<Atomic<u64>>(10);
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| counts.add_each((0..10).map(|index| (index, 1))));
        }
    });
    shmem.barrier_all();
    assert!((0..10).all(|index| counts.at(index).load() == 9));
    shmem.barrier_all();
});

shmem::test!(a_range_is_read_and_written, pes = 3, |shmem| {
    let array = shmem.world().block_array::<usize>(1000);
    if shmem.my_pe() == 0 {
        array.write(.., &(0..1000).collect::<Vec<_>>());
        assert_eq!(array.read(100..900), (100..900).collect::<Vec<_>>());
    }
    shmem.barrier_all();
});

/// Returns the number of operations of a kind that all PEs have issued.
fn operations(statistics: &Value, kind: &str) -> u64 {
    let mut n = 0;
    for pe in statistics["pes"].as_array().expect("PEs") {
        for context in pe["contexts"].as_array().expect("contexts") {
            for place in ["on_node", "off_node"] {
                // An operation of which there was none is not listed.
                n += context[place][kind]["operations"].as_u64().unwrap_or(0);
            }
        }
    }
    n
}

#[test]
fn over_tcp() {
    for n in [2, 5] {
        crate::over_tcp::passes_on(n, "dist::each_element_is_on_one_pe");
        crate::over_tcp::passes_on(n, "dist::ranges_are_copied");
        crate::over_tcp::passes_on(n, "dist::additions_reach_each_element");
        crate::over_tcp::passes_on(n, "dist::elements_anywhere_are_accessed_together");
    }
    crate::over_tcp::passes_on(3, "dist::threads_share_an_array");
    crate::over_tcp::passes_on(4, "dist::a_team_has_an_array_of_its_own");
}

#[test]
fn a_range_is_one_transfer_for_each_pe() {
    let file = std::env::temp_dir().join(format!("dist-statistics-{}.json", std::process::id()));
    let job = crate::over_tcp::job("dist::a_range_is_read_and_written", 3, "tcp");
    let outcome = job
        .env("SHMEM_STATS", format!("json:{}", file.display()))
        .run();
    assert!(outcome.status.success(), "{outcome}");

    let text = std::fs::read_to_string(&file).expect("the job has written it");
    std::fs::remove_file(&file).expect("it is there");
    let statistics = serde_json::from_str(&text).expect("statistics");
    let transfers = ["put", "put_nbi", "p", "get", "get_nbi", "g"];
    let numbers = transfers.map(|kind| operations(&statistics, kind));
    assert_eq!(numbers, [3, 0, 0, 0, 3, 0], "{text}");
}
