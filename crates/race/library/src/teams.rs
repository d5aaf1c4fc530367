//! Teams of threads in an OpenMP program, over libgomp and over libomp: the objects by which they
//! synchronize.

use crate::synchronization::{Tag, acquire, object, release, with};
use rushmem_race::private;
use rushmem_race::process::ProcessDetector;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A thread in a team.
#[derive(Clone, Copy, Debug)]
pub struct TeamMember {
    /// The number of the team; 0 outside of all teams.
    pub team: usize,
    /// The number of barriers that the thread has passed in it.
    pub barriers: usize,
}

impl TeamMember {
    /// A thread that is in no team.
    pub const NONE: TeamMember = TeamMember::of(0);

    /// Returns a thread that has just begun in a team.
    pub const fn of(team: usize) -> TeamMember {
        TeamMember { team, barriers: 0 }
    }
}

thread_local! {
    /// The team of the calling thread.
    pub static TEAM: Cell<TeamMember> = const { Cell::new(TeamMember::NONE) };
}

/// The number of objects of one tag that a team has. Successive barriers have different ones: a
/// thread may enter the next barrier before another thread has left the last one.
const PARTS: usize = 4;

/// Returns object `number` modulo [`PARTS`] of the objects of a team with this tag.
pub fn part(tag: Tag, team: usize, number: usize) -> usize {
    object(tag, team * PARTS + number % PARTS)
}

/// Returns the object of a team with a tag of which each team has only one object.
pub fn of_team(tag: Tag, team: usize) -> usize {
    part(tag, team, 0)
}

/// Returns the object with this tag of the calling thread's team.
pub fn own(tag: Tag) -> usize {
    of_team(tag, TEAM.get().team)
}

/// Returns a number for a new team, which the calling thread starts. From now on the program counts
/// as one with several threads.
pub fn fork() -> usize {
    static TEAMS: AtomicUsize = AtomicUsize::new(1);
    private::mark_multithreaded();
    // Relaxed: the counter only gives each team another number.
    let team = TEAMS.fetch_add(1, Relaxed);
    release(of_team(Tag::TeamFork, team));
    team
}

/// Begins a barrier, which ends the current section of the thread. Accesses of all threads and
/// tasks of the team before the barrier are ordered before accesses after it.
pub fn begin_barrier() {
    let TeamMember { team, barriers } = TEAM.get();
    with(ProcessDetector::end_sections);
    release(part(Tag::Barrier, team, barriers));
}

/// Ends the barrier.
pub fn end_barrier() {
    let TeamMember { team, barriers } = TEAM.get();
    acquire(part(Tag::Barrier, team, barriers));
    acquire(of_team(Tag::Tasks, team));
    TEAM.set(TeamMember {
        team,
        barriers: barriers + 1,
    });
}

/// Ends the team: accesses of all its threads and tasks are ordered before what the calling thread
/// does next.
pub fn join(team: usize) {
    with(|process| {
        process.acquire_last(of_team(Tag::TeamJoin, team));
        process.acquire_last(of_team(Tag::Tasks, team));
        for number in 0..PARTS {
            process.acquire_last(part(Tag::Barrier, team, number));
            process.forget_object(part(Tag::Iterations, team, number));
        }
        for tag in [Tag::TeamFork, Tag::Ordered, Tag::Single] {
            process.forget_object(of_team(tag, team));
        }
    });
}

/// A dependence of a task on an address.
#[derive(Clone, Copy, Debug)]
pub struct Dependence {
    /// The address of the variable or array that stands for the dependence.
    pub addr: usize,
    /// The kind: `Tag::In`, `Tag::Out` or `Tag::Set`.
    pub tag: Tag,
}

impl Dependence {
    /// Orders the calling thread after the ended tasks on which a task with this dependence
    /// depends: when such a task begins, or when a wait with this dependence ends.
    pub fn begin(self) {
        for tag in [Tag::In, Tag::Out, Tag::Set] {
            // Tasks with `in` do not depend on each other, nor do those with `inoutset`.
            if tag != self.tag || self.tag == Tag::Out {
                acquire(object(tag, self.addr));
            }
        }
    }

    /// Orders the calling thread, whose task has this dependence and ends, before the tasks that
    /// depend on it.
    pub fn end(self) {
        release(object(self.tag, self.addr));
    }
}
