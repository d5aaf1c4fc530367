//! Drawn programs: hundreds of collectives on teams that come and go, without syncs between them,
//! while each PE is late in its own way. A seed decides the shape of the job, the algorithms, the
//! program and where PEs are late.

use super::kit::{RunningJob, Shape, TestPe, job, start, with_requests};
use super::model::{Case, Collective, OPERATORS, Place};
use crate::api::requests::wait;
use crate::api::team::{TeamConfig, destroy, split_strided};
use fastrand::Rng;
use rushmem_collectives::choice::Table;
use rushmem_pe::job::handle::{RequestHandle, TeamHandle};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The number of seeds.
const SEEDS: u64 = 24;
/// The number of seeds if `cargo xtask test --full` asks for more.
const MORE_SEEDS: u64 = 2000;
/// The number of steps of a program.
const STEPS: usize = 250;
/// The part of the heap that the arrays of one step after the other take.
const ROOM: usize = 3 << 20;
/// The largest number of teams at once, the world included.
const MAX_TEAMS: usize = 7;

/// Runs the programs of all seeds, or that of RUSHMEM_SEED.
fn for_each_seed(test: &str, run: impl Fn(u64)) {
    let one = std::env::var("RUSHMEM_SEED").ok();
    let seeds = match one.map(|seed| seed.parse::<u64>()) {
        Some(seed) => {
            let seed = seed.expect("RUSHMEM_SEED is a number");
            seed..seed + 1
        }
        None if testkit::every_size() => 0..MORE_SEEDS,
        None => 0..SEEDS,
    };
    for seed in seeds {
        if let Err(failure) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("repeat this with RUSHMEM_SEED={seed} cargo test -p rushmem-runtime {test}");
            resume_unwind(failure);
        }
    }
}

/// Draws the shape of a job, and algorithms for some operations.
fn shape_of(seed: u64) -> Shape {
    let mut rng = Rng::with_seed(seed);
    let nodes: &[u32] =
        [&[2][..], &[4], &[5], &[3, 2], &[2, 2], &[1, 1, 1], &[1, 1]][rng.usize(0..7)];
    let mut shape = if rng.u32(0..3) == 0 {
        Shape::over_tcp(nodes)
    } else {
        Shape::of(nodes)
    };
    for operation in Table::OPERATIONS {
        let algorithms = Table::algorithms(operation);
        if rng.bool() {
            let algorithm = algorithms[rng.usize(0..algorithms.len())];
            shape.rows += &format!("{operation} 0+ any any any any {algorithm}\n");
        }
    }
    if rng.u32(0..4) == 0 {
        shape = shape.threads();
    }
    shape.late(seed)
}

/// A team, as every PE knows it.
struct KnownTeam {
    members: Vec<usize>,
    /// The handle on a member.
    handle: TeamHandle,
    /// Requests that were started on the team and not waited for, with their cases.
    started: Vec<(Case, [usize; 2], RequestHandle)>,
}

/// A program that all PEs carry out together. They draw the same numbers.
struct Program {
    pe: TestPe,
    rng: Rng,
    teams: Vec<KnownTeam>,
    /// Where the arrays of the next step begin.
    offset: usize,
}

impl Program {
    fn run(pe: TestPe, seed: u64) {
        let world = KnownTeam {
            members: (0..pe.n()).collect(),
            handle: TeamHandle::WORLD,
            started: Vec::new(),
        };
        let mut program = Program {
            pe,
            rng: Rng::with_seed(seed ^ 0xABCD),
            teams: vec![world],
            offset: 0,
        };
        for step in 0..STEPS {
            match program.rng.u32(0..20) {
                0..3 => program.split(),
                3..5 => program.destroy(),
                5..8 => program.complete(),
                8..12 => program.collective(step, true),
                _ => program.collective(step, false),
            }
        }
        while program.teams.len() > 1 {
            program.destroy();
        }
        program.complete_all();
        pe.sync_all();
    }

    /// Returns arrays that no earlier step uses. Syncs all PEs if there is no room left.
    fn arrays(&mut self, nbytes: usize) -> [usize; 2] {
        if self.offset + 2 * nbytes > ROOM {
            self.complete_all();
            self.pe.sync_all();
            self.offset = 0;
        }
        let first = self.offset;
        self.offset += 2 * nbytes;
        [first, first + nbytes]
    }

    /// Makes a collective on a team, or starts one.
    fn collective(&mut self, step: usize, is_started: bool) {
        let operator = &OPERATORS[self.rng.usize(0..OPERATORS.len())];
        let collective = match self.rng.u32(0..15) {
            0..3 => Collective::Reduce(operator),
            3 => Collective::Inscan(operator),
            4 => Collective::Exscan(operator),
            5 => Collective::Broadcast(self.rng.usize(0..8)),
            6 => Collective::Collect,
            7 => Collective::Fcollect,
            8 => Collective::Alltoall,
            9 if !is_started => Collective::Alltoallv,
            10 => Collective::ReduceTo(operator, self.rng.usize(0..8)),
            11 => Collective::ReduceScatter(operator),
            12 => Collective::Gather(self.rng.usize(0..8)),
            13 => Collective::Scatter(self.rng.usize(0..8)),
            _ => Collective::Sync,
        };
        let case = Case {
            elem_bytes: [1, 2, 4, 8][self.rng.usize(0..4)],
            is_in_place: self.rng.u32(0..4) == 0,
            ..Case::of(
                collective,
                [0, 1, 2, 5, 60, 1500][self.rng.usize(0..6)],
                step as u64,
            )
        };
        let index = self.rng.usize(0..self.teams.len());
        let [source, dest] = self.arrays(case.room(self.teams[index].members.len()));

        let team = &mut self.teams[index];
        if !team.members.contains(&self.pe.me()) {
            return;
        }
        let place = Place {
            team: team.handle.into(),
            members: &team.members,
            source,
            dest,
        };
        let place = case.prepare(self.pe, place);
        if is_started && let Some(request) = case.start(self.pe, team.handle, place) {
            team.started.push((case, [place.source, dest], request));
        } else {
            case.call(self.pe, place);
            case.check(self.pe, place);
        }
    }

    /// Waits for the requests of a team.
    fn complete(&mut self) {
        let index = self.rng.usize(0..self.teams.len());
        self.teams[index].complete(self.pe);
    }

    fn complete_all(&mut self) {
        for team in &mut self.teams {
            team.complete(self.pe);
        }
    }

    /// Makes a team of members of another one.
    fn split(&mut self) {
        if self.teams.len() == MAX_TEAMS {
            return;
        }
        let parent = self.rng.usize(0..self.teams.len());
        let n = self.teams[parent].members.len();
        let start = self.rng.usize(0..n);
        let stride = self.rng.usize(1..3);
        let size = 1 + self.rng.usize(0..(n - start).div_ceil(stride));

        let parent = &self.teams[parent];
        let members: Vec<usize> = (0..size)
            .map(|i| parent.members[start + i * stride])
            .collect();
        let mut handle = TeamHandle::INVALID;
        if parent.members.contains(&self.pe.me()) {
            let [start, stride, size] = [start, stride, size].map(|number| number as i32);
            let config = TeamConfig::default();
            let made = split_strided(self.pe, parent.handle, start, stride, size, config);
            handle = made.expect("a slot is free");
        }
        self.teams.push(KnownTeam {
            members,
            handle,
            started: Vec::new(),
        });
    }

    /// Destroys a team that was made.
    fn destroy(&mut self) {
        if self.teams.len() == 1 {
            return;
        }
        let index = self.rng.usize(1..self.teams.len());
        let mut team = self.teams.swap_remove(index);
        if self.rng.bool() {
            team.complete(self.pe);
        }
        destroy(self.pe, team.handle);
        // Those that were not waited for are complete, too.
        team.complete(self.pe);
    }
}

impl KnownTeam {
    fn complete(&mut self, pe: TestPe) {
        for (case, [source, dest], request) in self.started.drain(..) {
            wait(pe, request);
            let place = Place {
                team: self.handle.into(),
                members: &self.members,
                source,
                dest,
            };
            case.check(pe, place);
        }
    }
}

#[test]
fn drawn_programs_are_right() {
    let _requests = with_requests();
    for_each_seed("drawn_programs_are_right", |seed| {
        job(&shape_of(seed), move |pe| Program::run(pe, seed));
    });
}

/// Two jobs at once in one process share nothing.
#[test]
fn two_jobs_at_once_are_right() {
    let _requests = with_requests();
    for_each_seed("two_jobs_at_once_are_right", |seed| {
        // Two jobs take as long as two programs, so there are fewer.
        if seed % 4 != 0 && std::env::var_os("RUSHMEM_SEED").is_none() {
            return;
        }
        let jobs: [RunningJob<()>; 2] = [seed, seed + 1_000_000]
            .map(|seed| start(&shape_of(seed), move |pe| Program::run(pe, seed)));
        for job in jobs {
            job.finish();
        }
    });
}
