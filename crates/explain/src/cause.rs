//! A cause of waits, as a rule finds it.

use crate::graph::Graph;
use crate::job::{Description, Pe};

/// Causes of a kind that are shown.
pub const OF_A_KIND: usize = 3;

/// A cause of waits.
pub struct Cause {
    pub kind: Kind,
    /// The nodes of the graph that are the cause, and the PEs that are.
    pub nodes: Vec<u32>,
    pub pes: Vec<u32>,
    /// What is said of it.
    pub description: Description,
}

/// The kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hosts do not answer.
    // Cause: the host is down, or the network between the hosts. Remedy: look at the host; the job
    // ends after SHMEM_HOST_LIMIT.
    HostSilent,
    /// PEs have ended, finalized or come to their exit.
    // Cause: a PE returned from `main` or exited before a collective that others are in. Remedy:
    // look for the first message of that PE, or for a path on which it leaves early.
    Gone,
    /// Signals or debuggers have stopped PEs.
    // Cause: SIGSTOP, Ctrl-Z, a breakpoint, or a container that is paused. Remedy: send SIGCONT, or
    // continue in the debugger.
    Stopped,
    /// PEs wait for a disk.
    // Cause: a file system that does not answer, or swapping. Remedy: look at the disk, and use
    // less memory on the host.
    WaitsForDisk,
    /// The members of a team have called different collectives.
    // Cause: PEs of a team have made different calls, as where `if (me == 0) shmem_barrier_all();`.
    // Remedy: make the same calls in the same order on all members.
    Mismatch,
    /// PEs wait for each other, each for the next one and the last one for the first.
    // Cause: locks that are taken in different orders, or each PE waits before it writes. Remedy:
    // follow the rule that the explanation names.
    Cycle,
    /// PEs wait for words that no PE can write any more.
    // Cause: the put or the signal was forgotten, or went to another PE or element. Remedy: look at
    // the writers of that word.
    WordOfNobody,
    /// PEs have not come through `shmem_init`, by what is known.
    // Cause: the program is still in its start, or is no program of OpenSHMEM. Remedy: wait, or
    // look at the process.
    NotStarted,
    /// PEs sleep outside the library.
    // Cause: a system call of the program, such as `read` or `sleep`. Remedy: look at the stack
    // that the explanation shows.
    Sleeps,
    /// PEs compute.
    // Cause: the program works between two calls. Remedy: wait, or attach a debugger if it takes
    // too long.
    Computes,
    /// PEs are on other hosts, of which nothing is known.
    Elsewhere,
    /// PEs wait for words that others can still write.
    // Cause: a word is not written yet. Remedy: wait; look at the PEs that can write it.
    WordOfOthers,
    /// PEs wait without an end in sight, though nothing is known to prevent it.
    // Cause: the network is slow, or a wait has just begun. Remedy: wait, and ask again.
    Open,
    /// All members are in the collective.
    // Cause: the collective is long, or the members pass different arguments. Remedy: wait, or run
    // with `SHMEM_CHECK=1`.
    UnderWay,
}

/// Returns the PEs in this kind of situation, if there are any. `awaited`: only those for which
/// others wait.
pub fn states(graph: &Graph, kind: Kind, awaited: bool, is: impl Fn(&Pe) -> bool) -> Option<Cause> {
    let mut pes = graph.job.all(is);
    pes.retain(|pe| !awaited || !graph.backward[*pe as usize].is_empty());
    let description = graph.job.describe(&pes);
    (!pes.is_empty()).then(|| Cause { kind, nodes: pes.clone(), pes, description })
}
