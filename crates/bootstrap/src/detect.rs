//! Finds out which launcher started this process, so that no PE ever takes itself for a job of one by mistake.
//!
//! Pure: it decides what a lookup returns and reads no environment itself. Variables of an outer launcher may still be
//! there where another one was started inside its job, so what can be used counts more than what is merely set.

use crate::env;
use crate::error::Error;

/// How this process joins its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A job of one PE.
    Alone,
    /// PMI-1 or PMI-2 over an inherited socket.
    Inherited {
        /// The descriptor's number.
        fd: i32,
        /// This process's number.
        pe: u32,
        /// Number of processes.
        n_pes: u32,
    },
    /// PMI-1 or PMI-2 over a connection to be made.
    Port {
        /// Host and port.
        address: String,
        /// What the manager knows this process by.
        id: u32,
    },
    /// PMIx.
    Pmix,
}

/// What [`env::BOOTSTRAP`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Whatever the variables show.
    Any,
    /// PMI-1, whatever else there is.
    Pmi1,
    /// PMI-2, whatever else there is.
    Pmi2,
    /// PMIx, whatever else there is.
    Pmix,
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The value of [`env::BOOTSTRAP`].
///
/// # Errors
/// When it means nothing.
pub(crate) fn asked(lookup: Lookup<'_>) -> Result<Asked, Error> {
    match lookup(env::BOOTSTRAP).as_deref() {
        None | Some("" | "auto") => Ok(Asked::Any),
        Some("pmi1") => Ok(Asked::Pmi1),
        Some("pmi2") => Ok(Asked::Pmi2),
        Some("pmix") => Ok(Asked::Pmix),
        Some(other) => Err(Error::Bootstrap { value: other.to_owned() }),
    }
}

/// The way that the variables show; `is_socket` tells whether a descriptor is a connected socket.
///
/// # Errors
/// When they show several processes and no way to the others.
pub(crate) fn way(
    asked: Asked,
    lookup: Lookup<'_>,
    is_socket: impl Fn(i32) -> bool,
) -> Result<Route, Error> {
    let number = |name: &str| lookup(name)?.trim().parse::<u32>().ok();
    let wire = asked != Asked::Pmix;
    if wire && let Some(fd) = number(env::PMI_FD).and_then(|fd| i32::try_from(fd).ok()) {
        let place = (number(env::PMI_RANK), number(env::PMI_SIZE));
        if let (true, (Some(pe), Some(n_pes))) = (is_socket(fd), place) {
            return Ok(Route::Inherited { fd, pe, n_pes });
        }
    }
    if wire && let (Some(address), Some(id)) = (lookup(env::PMI_PORT), number(env::PMI_ID)) {
        return Ok(Route::Port { address, id });
    }
    let has_pmix = lookup(env::PMIX_NAMESPACE).is_some() && lookup(env::PMIX_RANK).is_some();
    if matches!(asked, Asked::Any | Asked::Pmix) && has_pmix {
        return Ok(Route::Pmix);
    }
    match several(lookup) {
        Some(error) => Err(error),
        None => Ok(Route::Alone),
    }
}

/// The error that refuses a job of one PE, when the variables show more processes or leave their number open.
pub(crate) fn several(lookup: Lookup<'_>) -> Option<Error> {
    let refuse = |launcher, rank, name: &'static str, cure: String| {
        let value = lookup(name).unwrap_or_default();
        let pe = lookup(rank).and_then(|rank| rank.trim().parse().ok());
        Some(Error::Foreign { launcher, pe, name, value, cure })
    };
    // What cannot be read as a number is not a proof of one process, so it counts as several.
    let more_than_one = |name: &str| lookup(name).map(|value| value.trim().parse() != Ok(1_u32));

    let mut known_single = false;
    match more_than_one(env::PMI_SIZE) {
        Some(true) => {
            let cure = lost_socket(lookup);
            return refuse(
                "a PMI launcher such as Hydra or Slurm",
                env::PMI_RANK,
                env::PMI_SIZE,
                cure,
            );
        }
        Some(false) => known_single = true,
        None => {}
    }
    match more_than_one(env::OMPI_SIZE) {
        Some(true) => {
            return refuse("Open MPI's launcher", env::OMPI_RANK, env::OMPI_SIZE, LOST_PMIX.into());
        }
        Some(false) => known_single = true,
        None => {}
    }
    if lookup(env::SLURM_PROCID).is_some() {
        let size = [env::SLURM_STEP_NUM_TASKS, env::SLURM_NTASKS]
            .into_iter()
            .find(|name| lookup(name).is_some());
        if let Some(name) = size {
            if more_than_one(name) == Some(true) {
                return refuse("Slurm", env::SLURM_PROCID, name, NO_PMI.into());
            }
            known_single = true;
        }
    }
    if lookup(env::PMIX_RANK).is_some() && !known_single {
        return refuse("a PMIx launcher", env::PMIX_RANK, env::PMIX_RANK, LOST_PMIX.into());
    }
    None
}

/// Why the way over PMI's socket is closed.
fn lost_socket(lookup: Lookup<'_>) -> String {
    if lookup(env::BOOTSTRAP).as_deref() == Some("pmix") {
        return "but SHMEM_BOOTSTRAP=pmix asks for PMIx, and PMIX_NAMESPACE or PMIX_RANK is not set: unset \
                SHMEM_BOOTSTRAP"
            .to_owned();
    }
    let unset = [env::PMI_FD, env::PMI_RANK].into_iter().find(|name| lookup(name).is_none());
    let missing = match unset {
        Some(name) => format!("{name}, which belongs to it, is not set"),
        None => format!(
            "{}={} is no connected socket",
            env::PMI_FD,
            lookup(env::PMI_FD).unwrap_or_default()
        ),
    };
    format!(
        "but {missing}: a program between has closed its descriptors or changed its environment, MPI_Finalize came \
         before shmem_init, or the variables are left from another job; start the program with that launcher directly \
         or with oshrun, or unset PMI_FD, PMI_RANK and PMI_SIZE to run it alone"
    )
}

const LOST_PMIX: &str = "but PMIx does not show the others, since PMIX_NAMESPACE or PMIX_RANK is not set or \
                         SHMEM_BOOTSTRAP asks for another way: start the program with that launcher directly, with \
                         SHMEM_BOOTSTRAP unset, or with oshrun";
const NO_PMI: &str = "but without a PMI: use srun --mpi=pmix or srun --mpi=pmi2";

#[cfg(test)]
mod tests {
    use super::*;

    /// The way for these variables, where descriptor 7 is a socket; the variable named by a refusal.
    fn found(vars: &[(&str, &str)]) -> Result<Route, &'static str> {
        let lookup = |name: &str| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        };
        let asked = asked(&lookup).map_err(|_| env::BOOTSTRAP)?;
        way(asked, &lookup, |fd| fd == 7).map_err(|error| match error {
            Error::Foreign { name, .. } => name,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn single_processes_pass() {
        for vars in [
            &[][..],
            &[("PMI_SIZE", "1"), ("PMI_RANK", "0")],
            &[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "8")],
            // A shell inside an allocation is no member of a step.
            &[("SLURM_NTASKS", "8")],
        ] {
            assert_eq!(found(vars), Ok(Route::Alone), "{vars:?}");
        }
    }

    #[test]
    fn each_launcher_is_joined_in_its_way() {
        let hydra = [("PMI_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "4")];
        assert_eq!(found(&hydra), Ok(Route::Inherited { fd: 7, pe: 2, n_pes: 4 }));
        let port = [("PMI_PORT", "host:77"), ("PMI_ID", "3")];
        assert_eq!(found(&port), Ok(Route::Port { address: "host:77".to_owned(), id: 3 }));
        let mpirun = [("PMIX_NAMESPACE", "a"), ("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(found(&mpirun), Ok(Route::Pmix));
    }

    #[test]
    fn what_can_be_used_counts_more_than_what_is_set() {
        let pmix = [("PMIX_NAMESPACE", "a"), ("PMIX_RANK", "0")];
        let wire = |fd| [("PMI_FD", fd), ("PMI_RANK", "0"), ("PMI_SIZE", "4")];
        let both = |fd| [&pmix[..], &wire(fd)].concat();
        assert_eq!(found(&both("7")), Ok(Route::Inherited { fd: 7, pe: 0, n_pes: 4 }));
        assert_eq!(found(&both("8")), Ok(Route::Pmix));
        assert_eq!(
            found(&[&both("7")[..], &[("SHMEM_BOOTSTRAP", "pmix")]].concat()),
            Ok(Route::Pmix)
        );
        assert_eq!(
            found(&[&both("8")[..], &[("SHMEM_BOOTSTRAP", "pmi2")]].concat()),
            Err("PMI_SIZE")
        );
        assert_eq!(found(&[("SHMEM_BOOTSTRAP", "pmi")]), Err("SHMEM_BOOTSTRAP"));
    }

    #[test]
    fn several_processes_are_refused() {
        for (vars, name) in [
            (&[("PMI_SIZE", "4")][..], "PMI_SIZE"),
            (&[("PMI_SIZE", "many")], "PMI_SIZE"),
            (&[("PMI_SIZE", "4"), ("PMI_RANK", "1"), ("PMI_FD", "8")], "PMI_SIZE"),
            (&[("PMI_SIZE", "4"), ("PMI_FD", "7")], "PMI_SIZE"),
            (&[("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")], "OMPI_COMM_WORLD_SIZE"),
            (&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")], "SLURM_NTASKS"),
            (&[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")], "SLURM_STEP_NUM_TASKS"),
            (&[("PMIX_RANK", "0")], "PMIX_RANK"),
        ] {
            assert_eq!(found(vars), Err(name), "{vars:?}");
        }
    }

    #[test]
    fn the_sentence_names_variable_and_cure() {
        let slurm = |name: &str| match name {
            env::SLURM_PROCID | env::SLURM_NTASKS => Some("4".to_string()),
            _ => None,
        };
        let text = several(&slurm).expect("refused").to_string();
        assert!(text.contains("SLURM_NTASKS=4") && text.contains("--mpi=pmix"), "{text}");
    }
}
