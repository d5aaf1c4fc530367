//! Teams of threads in an OpenMP program, over libgomp and over libomp: the objects by which they
//! synchronize.

use crate::synchronization::{Tag, acquire, object, release, with};
use rushmem_race::private;
use rushmem_race::process::ProcessDetector;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// The number of the calling thread's team, and the number of barriers that the thread has
    /// passed in it.
    pub static TEAM: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The number of objects of one tag that a team has.
const PARTS: usize = 4;

/// Returns object `number` modulo [`PARTS`] of the objects of a team with this tag.
pub fn part(tag: Tag, team: usize, number: usize) -> usize {
    object(tag, team * PARTS + number % PARTS)
}

/// Returns the object of a team with a tag of which each team has only one object.
pub fn of_team(tag: Tag, team: usize) -> usize {
    part(tag, team, 0)
}

/// Works as [`of_team`] for the calling thread's team.
pub fn own(tag: Tag) -> usize {
    of_team(tag, TEAM.get().0)
}

/// Returns a number for a new team, which the calling thread starts. From now on the program counts
/// as one with several threads.
pub fn fork() -> usize {
    static TEAMS: AtomicUsize = AtomicUsize::new(1);
    private::mark_multithreaded();
    let team = TEAMS.fetch_add(1, Relaxed);
    release(of_team(Tag::TeamFork, team));
    team
}

/// Begins a barrier, which ends the current section of the thread. Accesses of all threads and
/// tasks of the team before the barrier are ordered before accesses after it.
pub fn begin_barrier() {
    let (team, passed) = TEAM.get();
    with(ProcessDetector::end_sections);
    release(part(Tag::Barrier, team, passed));
}

/// Ends the barrier.
pub fn end_barrier() {
    let (team, passed) = TEAM.get();
    acquire(part(Tag::Barrier, team, passed));
    acquire(of_team(Tag::Tasks, team));
    TEAM.set((team, passed + 1));
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
        let others = [Tag::In, Tag::Out, Tag::Set]
            .into_iter()
            .filter(|tag| *tag != self.tag || self.tag == Tag::Out);
        others.for_each(|tag| acquire(object(tag, self.addr)));
    }

    /// Orders the calling thread, whose task has this dependence and ends, before the tasks that
    /// depend on it.
    pub fn end(self) {
        release(object(self.tag, self.addr));
    }
}
