//! Several threads of a PE in collectives at once, on a team each, as with SHMEM_THREAD_MULTIPLE:
//! teams with receive buffers of their own, and teams beyond those that have some.

use super::kit::{Shape, job};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::api::team::{TeamConfig, destroy, split_strided};
use crate::coll::combine::Combine;
use crate::coll::private::{ReductionKind, broadcast, combine, gather};
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::memory::areas::RECEIVE_BUFFER_SETS;

const COLLECTIVES: [Collective; 7] = [
    Collective::Reduce(&OPERATORS[0]),
    Collective::Fcollect,
    Collective::Inscan(&OPERATORS[0]),
    Collective::Collect,
    Collective::Alltoall,
    Collective::Broadcast(1),
    Collective::Alltoallv,
];

/// Each thread has a team. More teams exist than there are sets of receive buffers.
#[test]
fn threads_are_in_collectives_of_their_teams_at_once() {
    for shape in [
        Shape::of(&[3]),
        Shape::of(&[2, 2]),
        Shape::over_tcp(&[2, 1]),
    ] {
        job(&shape.threads().late(13), |pe| {
            let n = pe.n();
            let members: Vec<usize> = (0..n).collect();
            let mut teams = Vec::new();
            for _ in 0..RECEIVE_BUFFER_SETS + 2 {
                let config = TeamConfig::default();
                let team = split_strided(pe, TeamHandle::WORLD, 0, 1, n as i32, config);
                teams.push(team.expect("a slot is free"));
            }
            // The first of them have a set, the last ones have none.
            let chosen = [0, 1, teams.len() - 2, teams.len() - 1].map(|index| teams[index]);

            pe.with_threads(chosen.len(), |pe, number| {
                let mut offset = number * (1 << 20);
                for turn in 0..28 {
                    let collective = COLLECTIVES[(turn + number) % COLLECTIVES.len()];
                    let nelems = [1, 5, 200][turn % 3];
                    let case = Case::of(collective, nelems, (turn * 10 + number) as u64);
                    let place = Place {
                        team: chosen[number].into(),
                        members: &members,
                        source: offset,
                        dest: offset + case.room(n),
                    };
                    offset += 2 * case.room(n);
                    case.run(pe, place);
                }
            });
            for team in teams {
                destroy(pe, team);
            }
        });
    }
}

/// The collectives of the Rust interface, on memory that no peer reaches.
#[test]
fn collectives_on_private_memory_are_right() {
    static SUM: Combine = Combine::sum::<u32>();
    for shape in [
        Shape::of(&[4]),
        Shape::of(&[3, 2]),
        Shape::over_tcp(&[2, 1]),
        Shape::of(&[3]).threads(),
    ] {
        job(&shape.late(14), |pe| {
            let (me, n) = (pe.me() as u32, pe.n() as u32);
            // With threads, the last teams have no receive buffers.
            let teams: Vec<TeamHandle> = (0..RECEIVE_BUFFER_SETS + 1)
                .map(|_| {
                    let config = TeamConfig::default();
                    let team = split_strided(pe, TeamHandle::WORLD, 0, 1, n as i32, config);
                    team.expect("a slot is free")
                })
                .collect();

            for team in [TeamHandle::WORLD, teams[0], teams[RECEIVE_BUFFER_SETS]] {
                for nelems in [1, 2, 5, 3000] {
                    for (kind, first, end) in [
                        (ReductionKind::AllReduce, 0, n),
                        (ReductionKind::InclusiveScan, 0, me + 1),
                        (ReductionKind::ExclusiveScan, 0, me),
                    ] {
                        let nelems = if nelems > 5 && team != TeamHandle::WORLD {
                            7
                        } else {
                            nelems
                        };
                        let of = |pe: u32, i: u32| (pe + 1) * 1000 + i;
                        let own = (0..nelems).flat_map(|i| of(me, i).to_ne_bytes());
                        let mut memory: Vec<u8> = own.collect();
                        combine(pe, team, &mut memory, &SUM, kind);
                        let sum = |i| (first..end).map(|pe| of(pe, i)).sum::<u32>();
                        let expected: Vec<u8> =
                            (0..nelems).flat_map(|i| sum(i).to_ne_bytes()).collect();
                        assert!(memory == expected, "{kind:?} of {nelems}");
                    }
                }

                let own: Vec<u8> = (0..19).map(|i| me as u8 * 20 + i).collect();
                let mut all = vec![0; 19 * n as usize];
                gather(pe, team, &own, &mut all);
                let expected = (0..n as u8).flat_map(|pe| (0..19).map(move |i| pe * 20 + i));
                assert!(all.iter().copied().eq(expected));

                for root in 0..n {
                    let mut memory = own.clone();
                    broadcast(pe, team, &mut memory, root);
                    assert!(
                        memory
                            .iter()
                            .copied()
                            .eq((0..19).map(|i| root as u8 * 20 + i))
                    );
                }
            }
        });
    }
}
