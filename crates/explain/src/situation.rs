//! The situation of one PE: what its process and its status say together.

use crate::report::{PeReport, ProcessState};
use crate::status::{Stage, Subject, Wait};

/// Nanoseconds from which on a wait counts as long: shorter ones may end while the reports are
/// collected, and nothing is concluded from them.
const LONG: u64 = 1_000_000_000;

/// What a PE does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Situation<'a> {
    /// Nothing is known of it: it is on another host.
    Elsewhere,
    /// Nothing is known: its host does not answer.
    HostSilent(&'a str),
    /// Its process has ended.
    Ended(&'a str),
    /// It has called finalize for the last time.
    Finalized,
    /// It has come to its exit without finalize.
    Leaving,
    /// A signal has stopped it.
    Stopped,
    /// A debugger has stopped it.
    Traced,
    /// It waits for a disk.
    WaitsForDisk,
    /// It has no status that can be read: it has not come through `shmem_init`, or its memory is
    /// not accessible.
    NoStatus,
    /// It has not called `shmem_init`.
    Uninitialized,
    /// It is in `shmem_init`.
    Starting,
    /// It sleeps outside the library.
    Sleeps,
    /// It uses CPU time and does not wait in the library.
    Computes,
    /// It waits in the library.
    Waits(&'a [Wait]),
}

impl<'a> Situation<'a> {
    /// The situation of a PE, of which there is no report if it is on another host.
    pub fn of(report: Option<&'a PeReport>) -> Situation<'a> {
        let Some(report) = report else { return Situation::Elsewhere };
        let stage = report.status.as_ref().map(|status| status.stage);
        let waits = report.status.as_ref().map_or(&[][..], |status| &status.waits);
        let runs = match &report.process {
            ProcessState::HostSilent(host) => return Situation::HostSilent(host),
            ProcessState::Ended(how) => return Situation::Ended(how),
            ProcessState::Stopped => return Situation::Stopped,
            ProcessState::Traced => return Situation::Traced,
            ProcessState::WaitsForDisk => return Situation::WaitsForDisk,
            ProcessState::Runs { .. } => true,
            ProcessState::Sleeps => false,
        };
        match stage {
            Some(Stage::Finalized) => Situation::Finalized,
            _ if waits.iter().any(is_at_exit) => Situation::Leaving,
            _ if !waits.is_empty() => Situation::Waits(waits),
            Some(Stage::Starting) => Situation::Starting,
            Some(Stage::Uninitialized) => Situation::Uninitialized,
            None => Situation::NoStatus,
            Some(Stage::Initialized) if runs => Situation::Computes,
            Some(Stage::Initialized) => Situation::Sleeps,
        }
    }

    /// Whether the PE takes part in nothing any more.
    pub fn is_gone(&self) -> bool {
        matches!(self, Situation::Ended(_) | Situation::Finalized | Situation::Leaving)
    }

    /// Whether the PE cannot serve operations of others, as far as is known.
    pub fn is_hindered(&self) -> bool {
        use Situation::{Elsewhere, Ended, HostSilent, Stopped, Traced, WaitsForDisk};
        matches!(self, Elsewhere | HostSilent(_) | Ended(_) | Stopped | Traced | WaitsForDisk)
    }

    /// What `n` PEs in this situation do, after their names as a subject. Waits have none.
    pub fn predicate(&self, n: usize) -> String {
        let verb = |one: &str, many: &str| if n == 1 { one } else { many }.to_owned();
        let is = verb("is", "are");
        let has = verb("has", "have");
        match self {
            Situation::Elsewhere => {
                let hosts = verb("another host", "other hosts");
                format!("{is} on {hosts}, of which nothing is known here")
            }
            Situation::HostSilent(host) => format!("{is} on host {host}, which does not answer"),
            Situation::Ended(how) => format!("{has} ended ({how})"),
            Situation::Finalized => format!("{has} finalized"),
            Situation::Leaving => format!("{has} come to the exit without shmem_finalize"),
            Situation::Stopped => format!("{is} stopped by a signal"),
            Situation::Traced => format!("{is} stopped by a debugger"),
            Situation::WaitsForDisk => verb("waits", "wait") + " for a disk or for swapped memory",
            Situation::NoStatus => {
                let they_have = verb("it has", "they have");
                format!(
                    "{has} no status that can be read; perhaps {they_have} not passed shmem_init"
                )
            }
            Situation::Uninitialized => format!("{has} not called shmem_init"),
            Situation::Starting => format!("{is} in shmem_init"),
            Situation::Sleeps => verb("sleeps", "sleep") + " outside the library",
            Situation::Computes => verb("computes", "compute"),
            Situation::Waits(_) => verb("waits", "wait"),
        }
    }
}

/// Whether the wait is that of a PE which exits without finalize. At the end of finalize a PE waits
/// for all others too, in a call of another name.
fn is_at_exit(wait: &Wait) -> bool {
    wait.subject == Subject::Exit && wait.call == "exit"
}

/// How long a wait has lasted, in nanoseconds.
pub fn age(report: &PeReport, wait: &Wait) -> u64 {
    report.read_at.saturating_sub(wait.since)
}

/// Whether a conclusion may rest on the wait.
pub fn is_long(report: &PeReport, wait: &Wait) -> bool {
    age(report, wait) >= LONG
}
