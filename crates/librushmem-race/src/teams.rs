//! Teams of threads in an OpenMP program, whichever library carries them out: the objects by which
//! they synchronize.

use rushmem_race::private;
use rushmem_race::process::{ProcessDetector, active};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// The team of threads, and the barriers that this thread has passed in it.
    pub static TEAM: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Returns a number for a new team, of which the calling thread makes part: the program has several
/// threads from now on.
pub fn fork() -> usize {
    static TEAMS: AtomicUsize = AtomicUsize::new(1);
    private::have_threads();
    let team = TEAMS.fetch_add(1, Relaxed);
    release(object(TeamObject::Fork, team, 0));
    team
}

/// Objects by which the threads of a team synchronize.
#[derive(Clone, Copy)]
pub enum TeamObject {
    /// The start of the team.
    Fork = 3,
    /// Its end.
    Join = 4,
    /// A barrier.
    Barrier = 5,
    /// Tasks that are done.
    Tasks = 6,
    /// Critical sections without a name.
    Critical = 7,
    /// The ordered part of a loop.
    Ordered = 8,
    /// The object by which one thread copies data to the others.
    Single = 9,
}

/// Returns an object of a team.
pub fn object(kind: TeamObject, team: usize, phase: usize) -> usize {
    (kind as usize) << 60 | (team & 0xff_ffff_ffff) << 2 | phase & 3
}

/// Returns an object of the team of the calling thread.
pub fn of_team(kind: TeamObject) -> usize {
    object(kind, TEAM.get().0, 0)
}

/// Calls the detector, if it is active.
pub fn with(f: impl FnOnce(&ProcessDetector)) {
    if let Some(process) = active() {
        f(process);
    }
}

/// Makes the calling thread acquire an object.
pub fn acquire(object: usize) {
    with(|process| process.acquire(object));
}

/// Makes the calling thread release an object.
pub fn release(object: usize) {
    with(|process| process.release_object(object));
}

/// Begins a barrier, which ends the section that the thread is in: what all threads and tasks of
/// the team did before it is known after it.
pub fn barrier_begins() {
    let (team, phase) = TEAM.get();
    with(ProcessDetector::end_sections);
    release(object(TeamObject::Barrier, team, phase));
}

/// Ends the barrier.
pub fn barrier_ends() {
    let (team, phase) = TEAM.get();
    acquire(object(TeamObject::Barrier, team, phase));
    acquire(object(TeamObject::Tasks, team, 0));
    TEAM.set((team, (phase + 1) % 3));
}
