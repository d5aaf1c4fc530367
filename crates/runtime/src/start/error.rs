//! Why a start is refused. The steps return such an error, and [`init`](super::init) ends the job
//! with its text, which names the PE, the setting and the remedy.

use rushmem_bootstrap as bootstrap;
use rushmem_system::codec::Damaged;

/// The reason why this PE does not become part of its job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// A setting, an argument or a file of this PE is wrong; a sentence.
    #[error("{0}")]
    Invalid(String),
    /// The launcher cannot be reached, or refuses something.
    #[error(transparent)]
    Join(#[from] bootstrap::Error),
    /// The variables of `oshrun` are gone.
    #[error(
        "oshrun started this process, but its variables are gone from the environment: the program has removed them, or \
         another copy of the library in this process has joined the job; keep the environment, and link one copy alone \
         (share/doc/rushmem/rust-reference.md says how Rust and C share one)"
    )]
    NoVariables,
    /// The rank among the arguments is not the number that `oshrun` has given this process.
    #[error(
        "argument rank is {rank} of {n_ranks}, but oshrun has started this process as PE {pe} of {n_pes}; pass \
         SHMEM_LOCAL_ID as the rank there, or start the processes without oshrun"
    )]
    Rank {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        n_ranks: u32,
        /// The number of this PE.
        pe: u32,
        /// The number of PEs.
        n_pes: u32,
    },
    /// The handler that recognizes children of `fork` cannot be registered.
    #[error("no memory to register a handler for fork")]
    NoForkHandler,
    /// `SHMEM_VIRTUAL_NODES` does not divide the PEs.
    #[error(
        "SHMEM_VIRTUAL_NODES does not fit the {n_pes} PEs of the job: no node may be empty, and a list must add up to them"
    )]
    VirtualNodes {
        /// The number of PEs of the job.
        n_pes: u32,
    },
    /// `SHMEM_VIRTUAL_NODES` is set although the job is on several machines.
    #[error("SHMEM_VIRTUAL_NODES splits one machine, but the job is on several")]
    SeveralMachines,
    /// The kernel gives no random bytes.
    #[error("the kernel gives no random bytes for the job's secret: {0}")]
    NoSecret(getrandom::Error),
    /// Two PEs have different builds of the library.
    #[error(
        "PE 0 and PE {pe} have different builds of Rushmem, which may not run together. PE 0 has {first}, PE {pe} has {other}; \
         install one build on all hosts, and link a program that carries its library again with the oshcc of that build"
    )]
    Builds {
        /// The first PE whose build is not that of PE 0.
        pe: u32,
        /// The build of PE 0.
        first: String,
        /// The build of the other PE.
        other: String,
    },
    /// No record has the build of this PE, not even its own.
    #[error("the records of all PEs were changed on the way to this one")]
    ChangedRecords,
    /// The record of PE 0 lacks what only PE 0 gives the job.
    #[error(
        "the record of PE 0 has no secret for the job; start all PEs with the same installation"
    )]
    SecretMissing,
    /// A setting differs between this PE and another one.
    #[error("{name} is {here} here and {there} on PE {pe}; it must be the same on all")]
    Setting {
        /// The name of the variable.
        name: &'static str,
        /// The value here.
        here: String,
        /// The value on the other PE.
        there: String,
        /// The first PE that differs in any setting.
        pe: u32,
    },
    /// PEs force different algorithms.
    #[error(
        "PE {pe} and PE {me} have different algorithms in the variables SHMEM_..._ALGORITHM; they must be the same on all"
    )]
    Forced {
        /// The first PE that differs.
        pe: u32,
        /// This PE.
        me: u32,
    },
    /// PEs have read different files of algorithms.
    #[error(
        "PE {pe} and PE {me} read different rows from the file of SHMEM_COLL_TUNING; give each host the same file"
    )]
    Tuned {
        /// The first PE that differs.
        pe: u32,
        /// This PE.
        me: u32,
    },
    /// PEs run different programs.
    #[error(
        "PE {pe} runs another program than PE {me}: its static data are laid out differently; \
         start all PEs with the same executable"
    )]
    Program {
        /// The first PE that differs.
        pe: u32,
        /// This PE.
        me: u32,
    },
    /// The symmetric memory cannot be mapped.
    #[error(
        "a symmetric heap of {nbytes} bytes for each of {n_local} PEs cannot be mapped: {why}; {}",
        why.remedy()
    )]
    Memory {
        /// `SHMEM_SYMMETRIC_SIZE`.
        nbytes: u64,
        /// The number of PEs of the machine.
        n_local: u32,
        /// The reason.
        why: rushmem_heap::Error,
    },
    /// PEs request different transports or executors of atomic operations.
    #[error("{name} is {first} on PE 0 and {other} on PE {pe}; it must be the same on all PEs")]
    Requested {
        /// The name of the variable.
        name: &'static str,
        /// The value on PE 0.
        first: String,
        /// The value on the other PE.
        other: String,
        /// The first PE that differs from PE 0.
        pe: u32,
    },
    /// A PE has other providers than this one.
    #[error("PE {pe} knows other transports; start all PEs alike")]
    Providers {
        /// The first PE that differs.
        pe: u32,
    },
    /// No transport works on all PEs; a sentence, which is the same on all.
    #[error("{0}")]
    NoTransport(String),
    /// What a PE has sent is damaged.
    #[error("the data of PE {pe} cannot be read: {why}")]
    Data {
        /// The PE that has sent it.
        pe: u32,
        /// What is wrong with it.
        why: Damaged,
    },
}

/// Describes which PEs have failed for which reason; `None` if none has. PEs with the same reason
/// are named together.
pub(super) fn complaint(outcomes: &[Result<(), String>]) -> Option<String> {
    let mut reasons: Vec<SharedReason<'_>> = Vec::new();
    for (outcome, pe) in outcomes.iter().zip(0..) {
        let Err(why) = outcome else { continue };
        match reasons.iter_mut().find(|reason| reason.why == why) {
            Some(reason) => reason.pes.push(pe),
            None => reasons.push(SharedReason { why, pes: vec![pe] }),
        }
    }
    if reasons.is_empty() {
        return None;
    }

    let mut sentences = Vec::new();
    for SharedReason { why, pes } in reasons {
        if pes.len() == outcomes.len() && pes.len() > 1 {
            sentences.push(format!("all PEs: {why}"));
        } else {
            sentences.push(format!("{}: {why}", list_pes(&pes)));
        }
    }
    Some(sentences.join("; "))
}

/// A reason, and the PEs that have failed for it.
struct SharedReason<'a> {
    why: &'a str,
    pes: Vec<u32>,
}

/// Lists PEs, of many only the first ones.
pub(super) fn list_pes(pes: &[u32]) -> String {
    const SHOWN: usize = 4;
    let named: Vec<String> = pes
        .iter()
        .take(SHOWN)
        .map(|pe| format!("PE {pe}"))
        .collect();
    let named = named.join(", ");
    match pes.len().saturating_sub(SHOWN) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
