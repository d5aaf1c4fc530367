//! Detects which launcher has started this process, so that a process that a launcher has started
//! as one of several does not run as a job of one PE.
//!
//! A lookup function provides the variables. The only I/O is to read the file that
//! `SHMEM_JOB_SECRET` may name. If a launcher was started inside a job of another one, variables of
//! the outer one may still be set. Therefore an inherited socket that works has precedence over an
//! address.
//!
//! A launcher whose variables are known here is also in docs/launching.md.

use std::borrow::Cow;
use std::fmt;

use crate::env;
use crate::error::Error;
use crate::unlaunched::route::MeetingRoute;
use crate::unlaunched::variables;

/// Other launchers, whose jobs are joined by PMI or PMIx if they provide it.
const OTHERS: [LauncherVariables; 3] = [
    LauncherVariables {
        name: "Flux",
        rank: "FLUX_TASK_RANK",
        size: "FLUX_JOB_SIZE",
        remedy: Cow::Borrowed(NO_PROTOCOL),
    },
    LauncherVariables {
        name: "jsrun",
        rank: "JSM_NAMESPACE_RANK",
        size: "JSM_NAMESPACE_SIZE",
        remedy: Cow::Borrowed(NO_PROTOCOL),
    },
    LauncherVariables {
        name: "MVAPICH2's mpirun_rsh",
        rank: "MV2_COMM_WORLD_RANK",
        size: "MV2_COMM_WORLD_SIZE",
        remedy: Cow::Borrowed(NO_PROTOCOL),
    },
];

/// How this process joins its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JoinRoute {
    /// A job of one PE.
    Alone,
    /// PMI-1 or PMI-2 over an inherited socket.
    Inherited {
        /// The descriptor's number.
        fd: i32,
        /// The rank of this process.
        pe: u32,
        /// Number of processes.
        n_pes: u32,
    },
    /// PMI-1 or PMI-2 over a connection that this process opens.
    Port {
        /// Host and port.
        address: String,
        /// The number by which the manager identifies this process.
        id: u32,
    },
    /// PMIx.
    Pmix,
    /// The meeting that variables or the program name.
    Meeting(MeetingRoute),
}

impl fmt::Display for JoinRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinRoute::Alone => f.write_str("no process manager"),
            JoinRoute::Inherited { fd, pe, n_pes } => {
                write!(f, "PMI over descriptor {fd} for PE {pe} of {n_pes}")
            }
            JoinRoute::Port { address, id } => write!(f, "PMI at {address} for process {id}"),
            JoinRoute::Pmix => f.write_str("PMIx"),
            JoinRoute::Meeting(MeetingRoute {
                address, pe, n_pes, ..
            }) => {
                write!(f, "the meeting at {address:?} for PE {pe} of {n_pes}")
            }
        }
    }
}

/// The protocol by which a process joins its job under a process manager, as [`env::BOOTSTRAP`]
/// names it. Usually the variables of the launcher show the protocol. The user names it if the
/// variables of several launchers are set, or if a launcher speaks PMI-2, whose variables are the
/// same as those of PMI-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The one that the variables show. Those of PMI-1 and PMI-2 stand for PMI-1.
    Any,
    /// PMI-1, even if the variables of PMIx are set.
    Pmi1,
    /// PMI-2.
    Pmi2,
    /// PMIx.
    Pmix,
}

impl Protocol {
    /// The values of [`env::BOOTSTRAP`].
    pub const EXPECTED: &str = "auto, pmi1, pmi2 or pmix";

    /// Parses a value of [`env::BOOTSTRAP`]; `None` if it is not [`Protocol::EXPECTED`].
    pub fn parse(text: &str) -> Option<Protocol> {
        match text {
            "auto" => Some(Protocol::Any),
            "pmi1" => Some(Protocol::Pmi1),
            "pmi2" => Some(Protocol::Pmi2),
            "pmix" => Some(Protocol::Pmix),
            _ => None,
        }
    }
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the route that the variables show: `SHMEM_JOB` first, then PMI, then PMIx. `is_socket`
/// checks whether a descriptor is a connected socket.
///
/// # Errors
/// If they show several processes and no route to the others, or if those of a meeting are invalid.
pub(crate) fn find(
    protocol: Protocol,
    lookup: Lookup<'_>,
    is_socket: fn(i32) -> bool,
) -> Result<JoinRoute, Error> {
    if let Some(meeting) = variables::meeting(lookup)? {
        return Ok(JoinRoute::Meeting(meeting));
    }

    // An inherited socket that works is that of the innermost launcher, so it comes first.
    let number = |name: &str| lookup(name)?.trim().parse::<u32>().ok();
    if protocol != Protocol::Pmix {
        if let Some(fd) = number(env::PMI_FD).and_then(|fd| i32::try_from(fd).ok())
            && is_socket(fd)
            && let Some(pe) = number(env::PMI_RANK)
            && let Some(n_pes) = number(env::PMI_SIZE)
        {
            return Ok(JoinRoute::Inherited { fd, pe, n_pes });
        }
        if let Some(address) = lookup(env::PMI_PORT)
            && let Some(id) = number(env::PMI_ID)
        {
            return Ok(JoinRoute::Port { address, id });
        }
    }

    let has_pmix = lookup(env::PMIX_NAMESPACE).is_some() && lookup(env::PMIX_RANK).is_some();
    if matches!(protocol, Protocol::Any | Protocol::Pmix) && has_pmix {
        return Ok(JoinRoute::Pmix);
    }

    match refuse_single(protocol, lookup) {
        Some(error) => Err(error),
        None => Ok(JoinRoute::Alone),
    }
}

/// Returns the error that refuses a job of one PE, if the variables show several processes, or only
/// a launcher of PMIx, whose variables do not show how many.
pub(crate) fn refuse_single(protocol: Protocol, lookup: Lookup<'_>) -> Option<Error> {
    let mut is_known_single = false;
    for launcher in launchers_with_size(protocol, lookup) {
        let Some(value) = lookup(launcher.size) else {
            continue;
        };
        // A value that is not a number does not prove that there is one process, so it counts as
        // several.
        if value.trim().parse() != Ok(1_u32) {
            return Some(launcher.refuse(lookup));
        }
        is_known_single = true;
    }

    if lookup(env::PMIX_RANK).is_some() && !is_known_single {
        let launcher = LauncherVariables {
            name: "a PMIx launcher",
            rank: env::PMIX_RANK,
            size: env::PMIX_RANK,
            remedy: LOST_PMIX.into(),
        };
        return Some(launcher.refuse(lookup));
    }
    None
}

/// Returns the launchers whose variables may show a number of processes, in the order in which they
/// are checked.
fn launchers_with_size(protocol: Protocol, lookup: Lookup<'_>) -> Vec<LauncherVariables> {
    let mut launchers = vec![
        LauncherVariables {
            name: "a PMI launcher such as Hydra or Slurm",
            rank: env::PMI_RANK,
            size: env::PMI_SIZE,
            remedy: lost_socket(protocol, lookup).into(),
        },
        LauncherVariables {
            name: "Open MPI's launcher",
            rank: env::OMPI_RANK,
            size: env::OMPI_SIZE,
            remedy: LOST_PMIX.into(),
        },
    ];

    // The number of the step is that of these processes; the allocation may have more.
    let slurm_size = [env::SLURM_STEP_NUM_TASKS, env::SLURM_NTASKS]
        .into_iter()
        .find(|name| lookup(name).is_some());
    if let Some(size) = slurm_size
        && lookup(env::SLURM_PROCID).is_some()
    {
        launchers.push(LauncherVariables {
            name: "Slurm",
            rank: env::SLURM_PROCID,
            size,
            remedy: NO_PMI.into(),
        });
    }
    for launcher in OTHERS {
        if lookup(launcher.rank).is_some() {
            launchers.push(launcher);
        }
    }
    launchers
}

/// The variables of a launcher that may have started this process as one of several.
struct LauncherVariables {
    name: &'static str,
    /// The variable with the rank of this process.
    rank: &'static str,
    /// The variable with the number of processes, or another one that shows that there are several.
    size: &'static str,
    /// What is missing, and the remedy, as the end of a sentence.
    remedy: Cow<'static, str>,
}

impl LauncherVariables {
    fn refuse(self, lookup: Lookup<'_>) -> Error {
        Error::Foreign {
            launcher: self.name,
            pe: lookup(self.rank).and_then(|rank| rank.trim().parse().ok()),
            name: self.size,
            value: lookup(self.size).unwrap_or_default(),
            remedy: self.remedy.into_owned(),
        }
    }
}

/// Explains why the PMI socket cannot be used, with the remedy.
fn lost_socket(protocol: Protocol, lookup: Lookup<'_>) -> String {
    if protocol == Protocol::Pmix {
        return "but SHMEM_BOOTSTRAP=pmix asks for PMIx, and PMIX_NAMESPACE or PMIX_RANK is not set: unset \
                SHMEM_BOOTSTRAP"
            .to_owned();
    }

    let unset = [env::PMI_FD, env::PMI_RANK]
        .into_iter()
        .find(|name| lookup(name).is_none());
    let missing = match unset {
        Some(name) => format!("{name}, which belongs to it, is not set"),
        None => format!(
            "{}={} is not a connected socket",
            env::PMI_FD,
            lookup(env::PMI_FD).unwrap_or_default()
        ),
    };
    format!(
        "but {missing}: a program in between has closed its descriptors or changed its environment, MPI_Finalize came \
         before shmem_init, or the variables are left from another job; start the program with that launcher directly \
         or with oshrun, or unset PMI_FD, PMI_RANK and PMI_SIZE to run it alone"
    )
}

const LOST_PMIX: &str = "but PMIx cannot reach the others, since PMIX_NAMESPACE or PMIX_RANK is not set or \
                         SHMEM_BOOTSTRAP names another protocol: start the program with that launcher directly, with \
                         SHMEM_BOOTSTRAP unset, or with oshrun";
const NO_PROTOCOL: &str = "but offers neither PMI nor PMIx, so that each process would be a job of its own: enable one \
                           of them in that launcher, start the program with oshrun, or set SHMEM_JOB and SHMEM_JOB_SECRET";
const NO_PMI: &str = "but without a PMI: use srun --mpi=pmix or srun --mpi=pmi2, or set SHMEM_JOB and SHMEM_JOB_SECRET";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the route for these variables, where descriptor 7 is a socket; the variable named by
    /// a refusal.
    fn found(vars: &[(&str, &str)]) -> Result<JoinRoute, &'static str> {
        found_by(Protocol::Any, vars)
    }

    fn found_by(protocol: Protocol, vars: &[(&str, &str)]) -> Result<JoinRoute, &'static str> {
        let lookup = |name: &str| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_string())
        };
        find(protocol, &lookup, |fd| fd == 7).map_err(|error| match error {
            Error::Foreign { name, .. } => name,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn single_processes_pass() {
        for vars in [
            &[][..],
            &[("PMI_SIZE", "1"), ("PMI_RANK", "0")],
            &[
                ("SLURM_PROCID", "0"),
                ("SLURM_STEP_NUM_TASKS", "1"),
                ("SLURM_NTASKS", "8"),
            ],
            &[("FLUX_TASK_RANK", "0"), ("FLUX_JOB_SIZE", "1")],
            &[
                ("JSM_NAMESPACE_RANK", "0"),
                ("JSM_NAMESPACE_SIZE", "1"),
                ("PMIX_RANK", "0"),
            ],
            // A shell inside an allocation is no member of a step.
            &[("SLURM_NTASKS", "8")],
        ] {
            assert_eq!(found(vars), Ok(JoinRoute::Alone), "{vars:?}");
        }
    }

    #[test]
    fn each_launcher_is_joined_in_its_way() {
        let hydra = [("PMI_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "4")];
        assert_eq!(
            found(&hydra),
            Ok(JoinRoute::Inherited {
                fd: 7,
                pe: 2,
                n_pes: 4
            })
        );

        let port = [("PMI_PORT", "host:77"), ("PMI_ID", "3")];
        assert_eq!(
            found(&port),
            Ok(JoinRoute::Port {
                address: "host:77".to_owned(),
                id: 3
            })
        );

        let mpirun = [
            ("PMIX_NAMESPACE", "a"),
            ("PMIX_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
        ];
        assert_eq!(found(&mpirun), Ok(JoinRoute::Pmix));
    }

    #[test]
    fn what_can_be_used_counts_more_than_what_is_set() {
        let pmix = [("PMIX_NAMESPACE", "a"), ("PMIX_RANK", "0")];
        let wire = |fd| [("PMI_FD", fd), ("PMI_RANK", "0"), ("PMI_SIZE", "4")];
        let both = |fd| [&pmix[..], &wire(fd)].concat();
        assert_eq!(
            found(&both("7")),
            Ok(JoinRoute::Inherited {
                fd: 7,
                pe: 0,
                n_pes: 4
            })
        );
        assert_eq!(found(&both("8")), Ok(JoinRoute::Pmix));
        assert_eq!(found_by(Protocol::Pmix, &both("7")), Ok(JoinRoute::Pmix));
        assert_eq!(found_by(Protocol::Pmi2, &both("8")), Err("PMI_SIZE"));
    }

    #[test]
    fn several_processes_are_refused() {
        for (vars, name) in [
            (&[("PMI_SIZE", "4")][..], "PMI_SIZE"),
            (&[("PMI_SIZE", "many")], "PMI_SIZE"),
            (
                &[("FLUX_TASK_RANK", "1"), ("FLUX_JOB_SIZE", "4")],
                "FLUX_JOB_SIZE",
            ),
            (
                &[("JSM_NAMESPACE_RANK", "1"), ("JSM_NAMESPACE_SIZE", "4")],
                "JSM_NAMESPACE_SIZE",
            ),
            (
                &[("PMI_SIZE", "4"), ("PMI_RANK", "1"), ("PMI_FD", "8")],
                "PMI_SIZE",
            ),
            (&[("PMI_SIZE", "4"), ("PMI_FD", "7")], "PMI_SIZE"),
            (
                &[("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")],
                "OMPI_COMM_WORLD_SIZE",
            ),
            (
                &[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")],
                "SLURM_NTASKS",
            ),
            (
                &[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")],
                "SLURM_STEP_NUM_TASKS",
            ),
            (&[("PMIX_RANK", "0")], "PMIX_RANK"),
        ] {
            assert_eq!(found(vars), Err(name), "{vars:?}");
        }
    }

    #[test]
    fn the_sentence_names_variable_and_remedy() {
        let slurm = |name: &str| match name {
            env::SLURM_PROCID | env::SLURM_NTASKS => Some("4".to_string()),
            _ => None,
        };
        let text = refuse_single(Protocol::Any, &slurm)
            .expect("refused")
            .to_string();
        assert!(
            text.contains("SLURM_NTASKS=4") && text.contains("--mpi=pmix"),
            "{text}"
        );
    }
}
