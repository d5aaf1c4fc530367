//! Non-blocking collectives: several in flight, on several teams, beside blocking ones.

use super::kit::{Shape, TestPe, job, with_requests};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::api::requests::{detach, poll, test, wait};
use crate::api::team::{TeamConfig, destroy, split_strided};
use rushmem_pe::job::handle::{RequestHandle, TeamHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Wake, Waker};

/// A collective that is in flight.
struct Started {
    case: Case,
    team: TeamHandle,
    members: Vec<usize>,
    source: usize,
    dest: usize,
    request: RequestHandle,
}

impl Started {
    fn new(pe: TestPe, case: Case, team: TeamHandle, members: &[usize], offset: usize) -> Started {
        let place = Place {
            team: team.into(),
            members,
            source: offset,
            dest: offset + case.room(members.len()),
        };
        let place = case.prepare(pe, place);
        let request = case.start(pe, team, place);
        Started {
            case,
            team,
            members: members.to_vec(),
            source: place.source,
            dest: place.dest,
            request: request.expect("it has a non-blocking form"),
        }
    }

    /// Checks the result. The request is complete.
    fn check(&self, pe: TestPe) {
        let place = Place {
            team: self.team.into(),
            members: &self.members,
            source: self.source,
            dest: self.dest,
        };
        self.case.check(pe, place);
    }
}

const NONBLOCKING: [Collective; 12] = [
    Collective::Reduce(&OPERATORS[0]),
    Collective::Fcollect,
    Collective::Broadcast(1),
    Collective::Sync,
    Collective::Inscan(&OPERATORS[0]),
    Collective::Collect,
    Collective::Alltoall,
    Collective::Exscan(&OPERATORS[2]),
    Collective::ReduceTo(&OPERATORS[0], 1),
    Collective::ReduceScatter(&OPERATORS[0]),
    Collective::Gather(1),
    Collective::Scatter(1),
];

fn shapes() -> [Shape; 4] {
    [
        Shape::of(&[4]),
        Shape::of(&[2, 2]),
        Shape::of(&[4]).threads(),
        Shape::over_tcp(&[2, 2]),
    ]
}

/// All kinds in flight on two teams at once, completed in another order than that of the calls,
/// while blocking collectives run on a third team.
#[test]
fn several_are_in_flight_on_two_teams() {
    let _requests = with_requests();
    for shape in shapes() {
        job(&shape.late(8), |pe| {
            let all = [0, 1, 2, 3];
            let config = TeamConfig::default();
            let split = |pe| split_strided(pe, TeamHandle::WORLD, 0, 1, 4, config);
            let [first, second] = [(); 2].map(|()| split(pe).expect("a slot is free"));

            for round in 0..4 {
                let mut started = Vec::new();
                let mut offset = 0;
                for (turn, collective) in NONBLOCKING.into_iter().enumerate() {
                    for team in [first, second] {
                        let nelems = [1, 40, 3000][(turn + round) % 3];
                        let salt = (round * 100 + started.len()) as u64;
                        let case = Case::of(collective, nelems, salt);
                        started.push(Started::new(pe, case, team, &all, offset));
                        offset += 2 * case.room(4);
                    }
                    let case = Case::of(Collective::Reduce(&OPERATORS[0]), 5, turn as u64);
                    let place = Place {
                        team: TeamHandle::WORLD.into(),
                        members: &all,
                        source: (3 << 20) + 4096 * turn,
                        dest: (3 << 20) + 4096 * turn + 2048,
                    };
                    case.run(pe, place);
                }

                // Each PE in its own order.
                let n = started.len();
                for i in 0..n {
                    let one = &started[(i * 7 + pe.me() * 3) % n];
                    if i % 3 == 0 {
                        while test(pe, one.request).is_none() {}
                    } else {
                        wait(pe, one.request);
                    }
                    one.check(pe);
                }
                pe.sync_all();
            }
            for team in [first, second] {
                destroy(pe, team);
            }
        });
    }
}

/// A blocking collective on the team begins after its requests, and destroy waits for them.
#[test]
fn blocking_collectives_follow_the_requests_of_their_team() {
    let _requests = with_requests();
    for shape in shapes() {
        job(&shape.late(9), |pe| {
            let all = [0, 1, 2, 3];
            for round in 0..6 {
                let config = TeamConfig::default();
                let team = split_strided(pe, TeamHandle::WORLD, 3, -1, 4, config);
                let team = team.expect("a slot is free");
                let members = all.map(|pe| 3 - pe);
                let reduce = Collective::Reduce(&OPERATORS[0]);
                let case = |turn| Case::of(reduce, 9, round * 10 + turn);
                let [a, b] = [0, 1].map(|turn: u64| {
                    let offset = 4096 * (6 * round + turn) as usize;
                    Started::new(pe, case(turn), team, &members, offset)
                });
                let offset = 4096 * (6 * round + 2) as usize;
                let place = Place {
                    team: team.into(),
                    members: &members,
                    source: offset,
                    dest: offset + 2048,
                };
                case(2).run(pe, place);
                // Both are complete, since the blocking one is.
                a.check(pe);
                b.check(pe);
                assert!(test(pe, a.request).is_some() && test(pe, b.request).is_some());

                let offset = 4096 * (6 * round + 3) as usize;
                let last = Started::new(pe, case(3), team, &members, offset);
                destroy(pe, team);
                last.check(pe);
                wait(pe, last.request);
                assert_eq!(test(pe, RequestHandle::NULL), Some(0));
            }
        });
    }
}

/// A task that awaits a request is woken, and one that is given up goes on.
#[test]
fn a_request_wakes_its_task_or_is_given_up() {
    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    let _requests = with_requests();
    job(&Shape::of(&[4]).late(10), |pe| {
        let all = [0, 1, 2, 3];
        for turn in 0..20_u64 {
            let case = Case::of(Collective::Fcollect, 10, turn);
            let offset = 8192 * turn as usize;
            let [awaited, dropped] = [0, 4096]
                .map(|part| Started::new(pe, case, TeamHandle::WORLD, &all, offset + part));
            detach(pe, dropped.request);

            let count = Arc::<Count>::default();
            let waker = Waker::from(count.clone());
            if poll(pe, awaited.request, &waker).is_none() {
                while count.0.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
                assert!(poll(pe, awaited.request, &waker).is_some());
            }
            awaited.check(pe);
            // The next blocking collective on the team is behind the request that was given up.
            pe.sync_all();
            dropped.check(pe);
        }
        // The thread that has completed a request forgets it next.
        while pe.requests.n_held() > 0 {
            std::thread::yield_now();
        }
    });
}
