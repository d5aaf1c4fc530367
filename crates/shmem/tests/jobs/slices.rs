//! Collectives on private slices: of every kind of length and element, on teams, and between PEs
//! that share no memory.

use bytemuck::Pod;
use shmem::{Max, Shmem, Sum, Team, Threads};
use std::fmt::Debug;

/// Calls `body` on the world, then on the two teams of the PEs with even and with odd numbers.
fn on_teams<C: Threads>(shmem: &Shmem<C>, body: impl Fn(&Team<'_, C>)) {
    let world = shmem.world();
    body(world);
    let half = world
        .split(Some(shmem.my_pe() % 2), 0)
        .expect("few teams are made");
    body(&half.expect("every PE has a color"));
}

/// Checks the collectives with elements that `make` numbers, and slices of about `nelems`.
fn slices_arrive<T: Pod + Debug + PartialEq, C: Threads>(
    team: &Team<'_, C>,
    nelems: usize,
    make: impl Fn(usize) -> T,
) {
    let (me, n) = (team.my_pe(), team.n_pes());
    let (first, last) = (0, n - 1);
    // What member `from` has for member `to`; the slices of `len` elements differ.
    let block = |from: usize, to: usize, len: usize| -> Vec<T> {
        let start = 1000 * from + 100 * to;
        (start..start + len).map(&make).collect()
    };
    let of_each = |of: &dyn Fn(usize) -> Vec<T>| -> Vec<Vec<T>> { (0..n).map(of).collect() };

    let mine = block(me, 0, nelems);
    let of_all = of_each(&|from| block(from, 0, nelems)).concat();
    assert_eq!(team.all_gather_slice(&mine), of_all);
    let at_last = (me == last).then_some(of_all);
    assert_eq!(team.gather(&mine, last), at_last);

    let nelems = nelems.div_ceil(n);
    let outbox = of_each(&|to| block(me, to, nelems)).concat();
    let inbox = of_each(&|from| block(from, me, nelems)).concat();
    assert_eq!(team.all_to_all(&outbox), inbox);
    let at_root = if me == last { &outbox[..] } else { &mine };
    assert_eq!(team.scatter(at_root, last), block(last, me, nelems));

    // Member `from` has `from * to` more elements for member `to`, and the last one none.
    let varying = |from: usize, to: usize| match from {
        from if from == last => vec![],
        from => block(from, to, nelems + from * to),
    };
    let of_all = of_each(&|from| varying(from, from));
    assert_eq!(team.all_gather_varying(&varying(me, me)), of_all);
    let at_first = (me == first).then_some(of_all);
    assert_eq!(team.gather_varying(&varying(me, me), first), at_first);

    let outbox = of_each(&|to| varying(me, to));
    let inbox = of_each(&|from| varying(from, me));
    assert_eq!(team.all_to_all_varying(&outbox), inbox);
    let parts = if me == first { &outbox[..] } else { &[] };
    assert_eq!(team.scatter_varying(parts, first), varying(first, me));
}

shmem::test!(slices_arrive_whole, pes = [1, 2, 3, 4, 7], |shmem| {
    on_teams(&shmem, |team| {
        for nelems in [0, 1, 300] {
            slices_arrive(team, nelems, |i| [i as u8, 1, 2]);
        }
    });
    let world = shmem.world();
    slices_arrive(world, 5, |i| i as u8);
    slices_arrive(world, 5, |i| i as f64);
    slices_arrive(world, 5, |_| ());
    slices_arrive(world, 2000, |i| [i as u64; 5]);

    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let all: Vec<[usize; 5]> = (0..n).map(|pe| [pe; 5]).collect();
    assert_eq!(world.all_gather([me; 5]), all);
});

shmem::test!(long_slices_arrive_whole, pes = [1, 2, 3, 4], |shmem| {
    slices_arrive(shmem.world(), 1 << 20, |i| i as u8);
});

shmem::test!(slices_arrive_where_threads_call, pes = [2, 3], || {
    let shmem = shmem::init_shared().expect("it is the first");
    on_teams(&shmem, |team| slices_arrive(team, 300, |i| [i as u16; 3]));

    // There are more teams than sets of receive buffers.
    let teams = [(); 20].map(|()| {
        let team = shmem.world().split(Some(0), 0).expect("few teams are made");
        team.expect("every PE has a color")
    });
    slices_arrive(&teams[19], 5, |i| [i as u16; 3]);
    let (me, n) = (shmem.my_pe(), shmem.n_pes());
    let total = (me == 1).then(|| vec![n; 3]);
    assert_eq!(teams[19].reduce(vec![1; 3], Sum, 1), total);
    std::thread::scope(|threads| {
        for team in [&teams[0], &teams[18], &teams[19]] {
            threads.spawn(|| slices_arrive(team, 9, |i| i as u32));
        }
    });
});

shmem::test!(
    values_are_combined_on_a_root,
    pes = [1, 2, 3, 4, 7],
    |shmem| {
        on_teams(&shmem, |team| {
            let (me, n) = (team.my_pe(), team.n_pes());
            for root in [0, n - 1] {
                let on_root = |value| (me == root).then_some(value);
                assert_eq!(team.reduce(me, Sum, root), on_root(n * (n - 1) / 2));
                let largest = team.reduce([me as f32, -(me as f32)], Max, root);
                assert_eq!(largest, (me == root).then_some([n as f32 - 1.0, 0.0]));
                assert_eq!(
                    team.reduce(true, shmem::And, root),
                    (me == root).then_some(true)
                );

                for len in [0, 3, 100_000] {
                    let own: Vec<u64> = (0..len).map(|i| i + me as u64).collect();
                    let sums = (0..len).map(|i| i * n as u64 + (n * (n - 1) / 2) as u64);
                    let expected = (me == root).then(|| sums.collect());
                    assert_eq!(team.reduce(own, Sum, root), expected, "{len} elements");
                }
            }
        });
    }
);

#[test]
fn slices_arrive_over_networks() {
    crate::over_tcp::passes_over_all("slices::slices_arrive_whole");
    crate::over_tcp::passes_on(3, "slices::slices_arrive_whole");
    crate::over_tcp::passes("slices::long_slices_arrive_whole");
    crate::over_tcp::passes("slices::slices_arrive_where_threads_call");
    crate::over_tcp::passes_on(3, "slices::values_are_combined_on_a_root");
}

#[test]
fn slices_pass_the_check_of_calls() {
    let job = crate::over_tcp::job("slices::slices_arrive_whole", 3, "tcp");
    let outcome = job.env("SHMEM_CHECK", 1).run();
    assert!(outcome.status.success(), "{outcome}");
}
