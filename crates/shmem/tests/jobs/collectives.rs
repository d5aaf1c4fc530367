//! Collectives on symmetric memory and on values, on the world and on a part of it.

use shmem::{
    And, Blocks, Complex, Local, Max, MaxLoc, Min, MinLoc, Or, Prod, Shmem, Strides, Sum, Team,
    Threads, Xor,
};

const PES: [usize; 5] = [1, 2, 3, 4, 7];

/// Calls `body` on the world, then on the two teams of the PEs with even and with odd numbers.
fn on_teams<C: Threads>(shmem: &Shmem<C>, body: impl Fn(&Shmem<C>, &Team<'_, C>)) {
    let world = shmem.world();
    body(shmem, world);
    let half = world
        .split(Some(shmem.my_pe() % 2), 0)
        .expect("few teams are made");
    // All PEs allocate objects together, so both halves allocate the same ones.
    body(shmem, &half.expect("every PE has a color"));
}

fn numbers(team: &Team<'_>, of: impl Fn(u64) -> u64) -> Vec<u64> {
    (0..team.n_pes() as u64).map(of).collect()
}

/// The operator that combines two functions of the kind `factor * x + term` to the one that calls
/// the first and then the second: associative, but not commutative.
#[derive(Clone, Copy, Debug, PartialEq, shmem::Element)]
#[repr(C)]
struct Linear {
    factor: u64,
    term: u64,
    /// Not a whole number of words.
    uses: [u16; 4],
}

impl Linear {
    fn then(self, next: Linear) -> Linear {
        Linear {
            factor: self.factor.wrapping_mul(next.factor),
            term: self.term.wrapping_mul(next.factor).wrapping_add(next.term),
            uses: [self.uses[0] + next.uses[0], 0, 0, next.uses[3]],
        }
    }
}

shmem::test!(
    functions_combine_in_the_order_of_members,
    pes = PES,
    |shmem| {
        on_teams(&shmem, |_, team| {
            let of = |pe: usize| Linear {
                factor: 3 + pe as u64,
                term: 10 * pe as u64 + 1,
                uses: [1, 0, 0, pe as u16],
            };
            let expected = (0..team.n_pes()).map(of).reduce(Linear::then);
            let all = team.all_reduce_with(of(team.my_pe()), Linear::then);
            assert_eq!(Some(all), expected);

            // A closure may have a state of its own, and combine what has no bytes.
            let mut calls = 0;
            team.all_reduce_with((), |(), ()| calls += 1);
            assert_eq!(calls, team.n_pes() - 1);
            let last = team.all_reduce_with([team.my_pe() as u8; 3], |_, right| right);
            assert_eq!(last, [team.n_pes() as u8 - 1; 3]);
        });
    }
);

shmem::test!(extremes_are_found_with_their_places, pes = PES, |shmem| {
    on_teams(&shmem, |_, team| {
        let (me, n) = (team.my_pe(), team.n_pes());
        // The first member has the least value, as has the last one, and the one before the most.
        let value = |pe: usize| if pe + 1 == n { 0.0 } else { -(pe as f64) };
        let most = team.all_reduce((-value(me), 10 * me), MaxLoc);
        let least = team.all_reduce((value(me), 10 * me), MinLoc);
        let first = n.saturating_sub(2);
        assert_eq!(most, (first as f64, 10 * first));
        assert_eq!(least, (-(first as f64), 10 * first));
        assert_eq!(team.all_reduce((7i8, me), MaxLoc), (7, 0));
        assert_eq!(team.all_reduce((-7i8, n - me), MinLoc), (-7, 1));
        assert!(team.all_reduce((f32::NAN, me), MaxLoc).0.is_nan());

        assert_eq!(
            team.inclusive_scan((me as u16, me), MaxLoc),
            (me as u16, me)
        );
        let before = me.checked_sub(1).unwrap_or(usize::MAX);
        let least_before = if me == 0 { u32::MAX } else { 5 };
        let place = if me == 0 { before } else { 0 };
        assert_eq!(team.exclusive_scan((5, me), MinLoc), (least_before, place));
    });
});

shmem::test!(truths_are_combined, pes = PES, |shmem| {
    on_teams(&shmem, |_, team| {
        let (me, n) = (team.my_pe(), team.n_pes());
        assert!(team.all_reduce(true, And));
        assert!(!team.all_reduce(me > 0, And));
        assert_eq!(team.all_reduce(me == 1, Or), n > 1);
        assert_eq!(team.all_reduce(true, Xor), n % 2 == 1);
        assert!(team.exclusive_scan(true, And));
        assert_eq!(team.exclusive_scan(true, Or), me > 0);
    });
});

shmem::test!(elements_move_between_all_members, pes = PES, |shmem| {
    on_teams(&shmem, |shmem: &Shmem<Local>, team| {
        let me = team.my_pe() as u64;
        let n = team.n_pes();
        let all = shmem.n_pes();
        let source = shmem.array::<u64>(all);
        let dest = shmem.array::<u64>(2 * all * all);
        let result = |len| {
            team.sync();
            let elements = dest[..len].to_vec();
            // Other members may write to `dest` from the next call on.
            team.sync();
            elements
        };

        source.fill(100 + me);
        team.broadcast_into(&source[..n], &dest[..n], team.n_pes() - 1);
        assert_eq!(result(n), vec![99 + n as u64; n]);

        team.all_gather_into(&source[0], &dest[..n]);
        assert_eq!(result(n), numbers(team, |pe| 100 + pe));

        let total = team.all_gather_varying_into(&source[..team.my_pe()], &dest);
        assert_eq!(total, n * (n - 1) / 2);
        let mut expected = Vec::new();
        for pe in 0..n {
            expected.extend(vec![100 + pe as u64; pe]);
        }
        assert_eq!(result(total), expected);

        source[..n].copy_from_slice(&numbers(team, |pe| 100 * me + pe));
        team.all_to_all_into(&source[..n], &dest[..n]);
        assert_eq!(result(n), numbers(team, |pe| 100 * pe + me));

        dest.fill(0);
        team.sync();
        let strides = Strides::new(1).dest(2);
        team.all_to_all_strided_into(&source[..n], &dest, strides);
        let mut expected = Vec::new();
        for element in numbers(team, |pe| 100 * pe + me) {
            expected.extend([element, 0]);
        }
        assert_eq!(result(2 * n), expected);
    });
});

shmem::test!(blocks_have_lengths_of_their_own, pes = PES, |shmem| {
    on_teams(&shmem, |shmem: &Shmem<Local>, team| {
        let me = team.my_pe();
        let n = team.n_pes();
        let all = shmem.n_pes();
        let source = shmem.array::<usize>(all);
        let dest = shmem.array::<usize>(2 * all);
        // Sends one element to members with even numbers, and none to the others.
        let counts: Vec<usize> = (0..n).map(|to| (to + 1) % 2).collect();
        let offsets: Vec<usize> = (0..n).collect();
        let blocks = Blocks::new(&offsets, &counts);
        let expected: Vec<usize> = (0..n).map(|from| 10 * from + me).collect();
        let is_even = me % 2 == 0;

        let packed: Vec<usize> = (0..n).step_by(2).map(|to| 10 * me + to).collect();
        source[..packed.len()].copy_from_slice(&packed);
        let came = team.all_to_all_blocks(&source, &counts, &dest[..all]);
        assert_eq!(came, if is_even { n } else { 0 });
        team.sync();
        if is_even {
            assert_eq!(dest[..n].to_vec(), expected);
        }
        team.sync();

        let elements: Vec<usize> = (0..n).map(|to| 10 * me + to).collect();
        source[..n].copy_from_slice(&elements);
        // Stores the blocks in the reverse order, in the second half of `dest`. Each member passes
        // the offsets at which it receives.
        let places: Vec<usize> = (0..n).map(|from| all + n - 1 - from).collect();
        let came = team.all_to_all_blocks_at(&source, blocks, &dest, &places);
        assert_eq!(came, vec![usize::from(is_even); n]);
        team.sync();
        if is_even {
            let reverse: Vec<usize> = expected.into_iter().rev().collect();
            assert_eq!(dest[all..all + n].to_vec(), reverse);
        }
    });
});

shmem::test!(vectors_are_combined_and_added_up, pes = PES, |shmem| {
    on_teams(&shmem, |shmem: &Shmem<Local>, team| {
        let me = team.my_pe() as u64;
        let n = team.n_pes() as u64;
        let source = shmem.array::<u64>(5000);
        let dest = shmem.array::<u64>(5000);
        for len in [1, 3, 5000] {
            let source = &source[..len];
            let dest = &dest[..len];
            // The element `i` of member `m` is `i + m`.
            for i in 0..len {
                source[i].store(i as u64 + me);
            }
            let require = |expected: &dyn Fn(u64) -> u64| {
                team.sync();
                for i in 0..len {
                    assert_eq!(dest[i].load(), expected(i as u64), "element {i}");
                }
                team.sync();
            };
            let sum_of_first =
                |members: u64, i: u64| members * i + members * members.saturating_sub(1) / 2;

            team.sync();
            team.all_reduce_into(source, dest, Sum);
            require(&|i| sum_of_first(n, i));
            team.all_reduce_into(source, dest, Max);
            require(&|i| i + n - 1);

            team.inclusive_scan_into(source, dest, Sum);
            require(&|i| sum_of_first(me + 1, i));
            team.exclusive_scan_into(source, dest, Sum);
            require(&|i| sum_of_first(me, i));
            team.exclusive_scan_into(source, dest, Min);
            require(&|i| if me == 0 { u64::MAX } else { i });

            // The source is the destination.
            team.all_reduce_into(source, source, Min);
            team.sync();
            assert_eq!(source[len - 1].load(), len as u64 - 1);
        }
    });
});

fn values_are_combined<C: Threads>(shmem: &Shmem<C>, team: &Team<'_, C>) {
    let me = team.my_pe();
    let n = team.n_pes();
    let sum = n * (n - 1) / 2;
    assert_eq!(team.all_reduce(me, Sum), sum);
    assert_eq!(team.all_reduce(me as f64, Max), (n - 1) as f64);
    assert_eq!(team.all_reduce(7 - me as i8, Min), 8 - n as i8);
    assert_eq!(team.all_reduce(1u16 << me, Or), (1u16 << n) - 1);
    assert_eq!(team.all_reduce(!(1u64 << me), And), !((1u64 << n) - 1));
    assert_eq!(team.all_reduce(1u8 << me, Xor), ((1u16 << n) - 1) as u8);

    let complex = |re: f64, im: f64| Complex { re, im };
    let i = complex(0.0, 1.0);
    let powers_of_i = [complex(1.0, 0.0), i, complex(-1.0, 0.0), complex(0.0, -1.0)];
    assert_eq!(team.all_reduce(i, Prod), powers_of_i[n % 4]);

    let sum_up_to_me = (me * (me + 1) / 2) as u64;
    assert_eq!(team.inclusive_scan(me as u64, Sum), sum_up_to_me);
    assert_eq!(team.exclusive_scan(me as u64 + 1, Sum), sum_up_to_me);
    assert_eq!(team.exclusive_scan(i, Sum), complex(0.0, me as f64));

    // The first member has none before it, and gets what changes no other value.
    let before = |of_first: i32, of_others: i32| if me == 0 { of_first } else { of_others };
    let last = me as i32 - 1;
    assert_eq!(team.exclusive_scan(me as i32, Max), before(i32::MIN, last));
    assert_eq!(
        team.exclusive_scan(-(me as i32), Min),
        before(i32::MAX, -last)
    );
    assert_eq!(team.exclusive_scan(-1, Prod), before(1, [1, -1][me % 2]));
    assert_eq!(team.exclusive_scan(6, And), before(-1, 6));
    assert_eq!(
        team.exclusive_scan([6, 5], Or),
        [before(0, 6), before(0, 5)]
    );
    assert_eq!(team.inclusive_scan(vec![6i16; 3], Xor), [[6, 0][me % 2]; 3]);
    let greatest = team.exclusive_scan(-1.5, Max);
    assert_eq!(greatest, if me == 0 { f64::NEG_INFINITY } else { -1.5 });

    assert!(team.all_gather(me).into_iter().eq(0..n));
    let long = |member: usize| [member as u64, 1, 2, member as u64 + 3];
    assert!(team.all_gather(long(me)).into_iter().eq((0..n).map(long)));
    let short = |member: usize| [member as u8; 11];
    assert!(team.all_gather(short(me)).into_iter().eq((0..n).map(short)));

    for len in [0, 1, 3, 17, 3000] {
        let own: Vec<i32> = (0..len).map(|i| i + me as i32).collect();
        let sums: Vec<i32> = (0..len).map(|i| i * n as i32 + sum as i32).collect();
        assert_eq!(team.all_reduce(own.to_vec(), Sum), sums, "{len} elements");

        let mut values: Vec<u8> = own.iter().map(|&x| x as u8).collect();
        team.broadcast_in_place(&mut values, n - 1);
        assert!(
            (0..len).all(|i| values[i as usize] == (i + n as i32 - 1) as u8),
            "{len} bytes"
        );
    }
    assert_eq!(team.broadcast([f32::from(me as u8); 3], 0), [0.0; 3]);
    shmem.sync_all();
}

shmem::test!(values_need_no_symmetric_memory, pes = PES, |shmem| {
    on_teams(&shmem, values_are_combined);
});

shmem::test!(values_are_combined_where_threads_call, pes = PES, || {
    let shmem = shmem::init_shared().expect("it is the first");
    on_teams(&shmem, values_are_combined);
    let teams = [(); 2].map(|()| {
        let team = shmem.world().split(Some(0), 0).expect("few teams are made");
        team.expect("every PE has a color")
    });

    std::thread::scope(|threads| {
        for team in teams {
            threads.spawn(move || {
                for round in 0..20 {
                    let sum = team.all_reduce([round; 3], Sum);
                    assert_eq!(sum, [round * team.n_pes() as u64; 3]);
                }
            });
        }
    });
});

shmem::test!(teams_that_overlap_take_turns, pes = [3, 4, 7], |shmem| {
    let world = shmem.world();
    let me = shmem.my_pe();
    let split = |color| {
        let team = world.split(Some(color), 0).expect("few teams are made");
        team.expect("every PE has a color")
    };
    let row = split(me / 2);
    let column = split(me % 2);

    for round in 0..50 {
        let of_row = row.all_reduce(me as u64, Sum);
        let of_column = column.all_reduce([round; 40], Max);
        let scanned = column.inclusive_scan(1u64, Sum);
        assert_eq!(of_column, [round; 40]);
        assert_eq!(scanned, column.my_pe() as u64 + 1);
        assert!(of_row >= me as u64);
        let of_last = shmem.n_pes() as u64 - 1 + round;
        assert_eq!(world.all_reduce(me as u64 + round, Max), of_last);
    }
});
