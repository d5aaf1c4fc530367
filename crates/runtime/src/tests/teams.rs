//! Teams: splits of all kinds, teams of teams, teams that are destroyed and made again in the same
//! slots, slots that run out, and the generations that keep the values of one team from the next.

use super::kit::{Shape, TestPe, WORLD, job};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::api::cray_splits::{split_color, split_grid, split_strided_by_members};
use crate::api::team::{
    TeamConfig, config, destroy, my_pe, n_pes, split_2d, split_strided, translate_pe,
};
use crate::coll::collectives::gather_words;
use crate::own_pe::Caller;
use rushmem_pe::extension_constants::SHMEM_COLOR_UNDEFINED;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::memory::areas::TEAM_SLOTS;
use std::thread::sleep;
use std::time::Duration;

/// Splits a team without a configuration.
fn split(pe: TestPe, parent: TeamHandle, [start, stride, size]: [i32; 3]) -> TeamHandle {
    split_strided(pe, parent, start, stride, size, TeamConfig::default()).expect("a slot is free")
}

/// Makes several collectives in a row on a team with these members of the world, without a sync
/// between them.
fn use_team(pe: TestPe, team: TeamHandle, members: &[usize], salt: u64) {
    let collectives = [
        Collective::Reduce(&OPERATORS[0]),
        Collective::Fcollect,
        Collective::Sync,
        Collective::Reduce(&OPERATORS[1]),
        Collective::Collect,
        Collective::Inscan(&OPERATORS[0]),
        Collective::Broadcast(1),
        Collective::Alltoall,
    ];
    // Where no other team has its arrays: the sets of members of these tests are apart, or used
    // one after the other.
    let mut offset = 0;
    for (turn, collective) in (0..).zip(collectives) {
        let case = Case::of(collective, [1, 3, 700][turn % 3], salt * 8 + turn as u64);
        let room = case.room(members.len());
        let place = Place {
            team: team.into(),
            members,
            source: offset,
            dest: offset + room,
        };
        offset += 2 * room;
        case.run(pe, place);
    }
    assert_eq!(n_pes(pe, team), members.len() as i32);
    assert_eq!(members[my_pe(pe, team) as usize], pe.me());
}

/// The shapes of jobs of six PEs.
fn shapes() -> [Shape; 4] {
    [
        Shape::of(&[6]),
        Shape::of(&[3, 2, 1]),
        Shape::of(&[6]).threads(),
        Shape::over_tcp(&[4, 2]),
    ]
}

#[test]
fn strided_splits_have_the_members_of_their_stride() {
    for shape in shapes() {
        job(&shape.late(1), |pe| {
            for (turn, (triplet, members)) in [
                ([0, 1, 6], &[0, 1, 2, 3, 4, 5][..]),
                ([1, 2, 3], &[1, 3, 5]),
                ([5, -1, 4], &[5, 4, 3, 2]),
                ([2, 1, 1], &[2]),
                ([0, 3, 2], &[0, 3]),
            ]
            .into_iter()
            .enumerate()
            {
                let team = split(pe, TeamHandle::WORLD, triplet);
                assert_eq!(team != TeamHandle::INVALID, members.contains(&pe.me()));
                if team == TeamHandle::INVALID {
                    assert_eq!([my_pe(pe, team), n_pes(pe, team)], [-1, -1]);
                } else {
                    use_team(pe, team, members, turn as u64);
                    destroy(pe, team);
                }
                pe.sync_all();
            }
        });
    }
}

#[test]
fn rows_and_columns_of_a_grid() {
    for shape in shapes() {
        job(&shape.late(2), |pe| {
            let wide = TeamConfig { num_contexts: 2 };
            let none = TeamConfig::default();
            let teams = split_2d(pe, TeamHandle::WORLD, 4, wide, none);
            let (row, column) = teams.expect("slots are free");
            assert_eq!(config(pe, row), Some(wide));

            let (x, y) = (pe.me() % 4, pe.me() / 4);
            let of_row: Vec<usize> = (4 * y..6.min(4 * y + 4)).collect();
            let of_column: Vec<usize> = (x..6).step_by(4).collect();
            use_team(pe, row, &of_row, 1);
            pe.sync_all();
            use_team(pe, column, &of_column, 2);
            assert_eq!(translate_pe(pe, row, 0, TeamHandle::WORLD), 4 * y as i32);
            assert_eq!(translate_pe(pe, TeamHandle::WORLD, 5, column), {
                let index = of_column.iter().position(|&member| member == 5);
                index.map_or(-1, |index| index as i32)
            });

            pe.sync_all();
            for team in [row, column] {
                destroy(pe, team);
            }
        });
    }
}

/// Members of one color, in the order of their keys, and a grid with more cells than PEs.
#[test]
fn splits_by_color_and_along_three_axes() {
    for shape in shapes() {
        job(&shape.late(3), |pe| {
            let me = pe.me();
            // PE 5 is in no team. Keys reverse the order.
            let color = if me == 5 {
                SHMEM_COLOR_UNDEFINED
            } else {
                (me % 2) as i32
            };
            let team = split_color(pe, TeamHandle::WORLD, color, -(me as i32));
            let team = team.expect("a slot is free");
            match me {
                5 => assert_eq!(team, TeamHandle::INVALID),
                0 | 2 | 4 => use_team(pe, team, &[4, 2, 0], 1),
                _ => use_team(pe, team, &[3, 1], 2),
            }
            destroy(pe, team);
            pe.sync_all();

            let ranges = [("x", 2), ("y", 2), ("z", 2)];
            let teams = split_grid(pe, TeamHandle::WORLD, ranges).expect("slots are free");
            let along_x: Vec<usize> = (me / 2 * 2..me / 2 * 2 + 2).collect();
            use_team(pe, teams[0], &along_x, 3);
            pe.sync_all();
            let along_z: Vec<usize> = (me % 4..6).step_by(4).collect();
            use_team(pe, teams[2], &along_z, 4);
            pe.sync_all();
            for team in teams {
                destroy(pe, team);
            }
        });
    }
}

/// A team of a team of a team, and a split that only the members of the new team call, one of them
/// late.
#[test]
fn teams_of_teams() {
    for shape in shapes() {
        job(&shape.late(4), |pe| {
            let me = pe.me();
            let five = split(pe, TeamHandle::WORLD, [1, 1, 5]);
            if me > 0 {
                let odd = split(pe, five, [0, 2, 3]);
                if me % 2 == 1 {
                    let two = split(pe, odd, [2, -1, 2]);
                    if me > 1 {
                        use_team(pe, two, &[5, 3], 1);
                        assert_eq!(translate_pe(pe, two, 1, five), 2);
                        destroy(pe, two);
                    }
                    use_team(pe, odd, &[1, 3, 5], 2);
                }
                destroy(pe, odd);
                use_team(pe, five, &[1, 2, 3, 4, 5], 3);
            }

            if me == 2 {
                sleep(Duration::from_millis(3));
            }
            if me % 2 == 0 {
                let even = split_strided_by_members(pe, TeamHandle::WORLD, 0, 2, 3);
                use_team(pe, even.expect("a slot is free"), &[0, 2, 4], 4);
            }
            pe.sync_all();
        });
    }
}

/// The same slots and counters serve one team after the other, with other members each time. A PE
/// may still be in the last collective of a team when another one is in the first of the next.
#[test]
fn teams_are_destroyed_and_made_again() {
    for shape in shapes() {
        job(&shape.late(5), |pe| {
            for turn in 0..40_usize {
                let [start, size] = [turn % 3, 2 + turn % 4];
                let members: Vec<usize> = (start..6.min(start + size)).collect();
                let triplet = [start as i32, 1, members.len() as i32];
                let team = split(pe, TeamHandle::WORLD, triplet);
                if members.contains(&pe.me()) {
                    for (step, operator) in OPERATORS.iter().take(3).enumerate() {
                        let salt = (turn * 3 + step) as u64;
                        let case = Case::of(Collective::Reduce(operator), 1 + step, salt);
                        let offset = 1024 * (turn * 3 + step);
                        let place = Place {
                            team: team.into(),
                            members: &members,
                            source: offset,
                            dest: offset + 512,
                        };
                        case.run(pe, place);
                    }
                }
                destroy(pe, team);
            }
        });
    }
}

/// A handle names its generation: in the slot of a destroyed team is another one.
#[test]
fn a_slot_is_used_again_with_a_higher_generation() {
    job(&Shape::of(&[3]), |pe| {
        let first = split(pe, TeamHandle::WORLD, [0, 1, 3]);
        let kept = split(pe, TeamHandle::WORLD, [0, 1, 3]);
        destroy(pe, first);
        assert!(pe.teams.get(first).is_none(), "it was destroyed");
        let second = split(pe, TeamHandle::WORLD, [0, 1, 3]);
        assert_ne!(first, second);
        assert_ne!(kept, second);
        assert!(pe.teams.get(first).is_none(), "it was destroyed");
        use_team(pe, kept, &[0, 1, 2], 1);
        use_team(pe, second, &[0, 1, 2], 2);
    });
}

/// All slots but those of the library can be used at once, on all PEs and on some. What is released
/// can be used again.
#[test]
fn slots_run_out_on_all_members_alike() {
    job(&Shape::of(&[3]), |pe| {
        let all = |pe| split_strided(pe, TeamHandle::WORLD, 0, 1, 3, TeamConfig::default());
        let mut teams = Vec::new();
        while let Some(team) = all(pe) {
            teams.push(team);
        }
        // Three are predefined, and finalize has one.
        assert_eq!(teams.len(), TEAM_SLOTS - 4);
        assert_eq!(all(pe), None);
        let two = split_2d(
            pe,
            TeamHandle::WORLD,
            2,
            TeamConfig::default(),
            TeamConfig::default(),
        );
        assert_eq!(two, None);

        // The slot of a team in the middle, and one that PE 2 alone gets back.
        destroy(pe, teams.swap_remove(500));
        let again = all(pe).expect("a slot is free");
        use_team(pe, again, &[0, 1, 2], 1);
        assert_eq!(all(pe), None);
        destroy(pe, again);

        let pair = split(pe, TeamHandle::WORLD, [0, 1, 2]);
        // PE 2 has released the slot at once, but the others use it.
        assert_eq!(all(pe), None);
        destroy(pe, pair);
        assert!(all(pe).is_some());
        use_team(pe, TeamHandle::WORLD, &[0, 1, 2], 2);
    });
}

/// A split that no member can make is refused on all, and leaves no slot in use.
#[test]
fn a_split_beyond_the_parent_is_refused() {
    for shape in [Shape::of(&[3]), Shape::over_tcp(&[2, 1])] {
        job(&shape, |pe| {
            for [start, stride, size] in [[0, 1, 4], [2, 1, 2], [0, 2, 3], [-1, 1, 1], [0, 0, 2]] {
                let config = TeamConfig::default();
                let refused = split_strided(pe, TeamHandle::WORLD, start, stride, size, config);
                assert_eq!(refused, None, "{start} {stride} {size}");
            }
            let invalid = TeamHandle::INVALID;
            assert_eq!(
                split_strided(pe, invalid, 0, 1, 1, TeamConfig::default()),
                None
            );
            let team = split(pe, TeamHandle::WORLD, [0, 1, 3]);
            // The first one of a window: what was refused has taken none.
            let slot = team.slot().expect("a team has one");
            assert!(slot == 4 || slot.is_multiple_of(64), "slot {slot}");
            use_team(pe, team, &[0, 1, 2], 1);
        });
    }
}

/// The predefined teams.
#[test]
fn predefined_teams_are_the_world_and_the_node() {
    job(&Shape::over_tcp(&[2, 3]), |pe| {
        let node: Vec<usize> = if pe.me() < 2 {
            vec![0, 1]
        } else {
            vec![2, 3, 4]
        };
        use_team(pe, TeamHandle::SHARED, &node, 1);
        pe.sync_all();
        use_team(pe, TeamHandle::NODE, &[0, 1, 2, 3, 4], 2);
        let place = Place {
            team: WORLD,
            members: &[0, 1, 2, 3, 4],
            source: 0,
            dest: 1 << 20,
        };
        pe.sync_all();
        Case::of(Collective::Fcollect, 2, 3).run(pe, place);
    });
}

/// Returns the numbers of messages from any member that a team has counted, by CPUs and over the
/// network, in even and in odd turns.
fn counted(pe: TestPe, team: TeamHandle) -> [u64; 2] {
    let slot = team.slot().expect("a team has one");
    [0, 1].map(|parity| {
        let counters = pe.area().areas().counted(slot as u16, parity);
        pe.area().flag(counters.by_cpu) + pe.area().flag(counters.by_network)
    })
}

/// A team that ends leaves its counters of messages at zero, as a later team in its slot expects.
/// A team that finds more returns from an all-to-all before its blocks have arrived.
#[test]
fn the_counts_of_messages_end_with_their_team() {
    for shape in [Shape::of(&[3]), Shape::over_tcp(&[1, 1, 1])] {
        let shape = shape.rows("alltoall 0+ any any any any pairwise");
        job(&shape, |pe| {
            let team = split(pe, TeamHandle::WORLD, [0, 1, 3]);
            let place = Place {
                team: team.into(),
                members: &[0, 1, 2],
                source: 0,
                dest: 1 << 16,
            };
            for turn in 0..2 {
                Case::of(Collective::Alltoall, 100, turn).run(pe, place);
                pe.sync_all();
            }
            assert!(!counted(pe, team).contains(&0));

            destroy(pe, team);
            assert_eq!(counted(pe, team), [0, 0]);
        });
    }
}

/// The words of a gather stay until the PE enters the next one: until then it may read them.
#[test]
fn gathered_words_stay_until_the_next_gather() {
    job(&Shape::of(&[1, 1]), |pe| {
        let (own, call) = pe.enter();
        let gather = |word| gather_words(own, call, own.teams.world(), word);
        assert_eq!(gather(1 + pe.me() as u64), [1, 2]);

        if pe.me() == 1 {
            // PE 0 is in the next gather meanwhile.
            for _ in 0..100 {
                let mut words = [0; 2];
                pe.area().read(pe.area().areas().table(), &mut words);
                assert_eq!(words, [1, 2]);
                sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(gather(3 + pe.me() as u64), [3, 4]);
    });
}
