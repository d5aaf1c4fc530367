//! The variables by which processes form a job without a launcher: `SHMEM_JOB`, which names the
//! meeting, and the rank and the number of processes, from our variables or those of a scheduler.
//!
//! A lookup function provides the variables. The secret may be in a file.

use std::fs;

use rushmem_connect::Secret;

use super::route::{MeetingAddress, MeetingRoute};
use super::unique_id::UniqueId;
use crate::env;
use crate::error::Error;

/// A scheduler, with its variables for the rank of a process and for the number of processes, if it
/// has one.
struct RankSource {
    scheduler: &'static str,
    rank: &'static str,
    size: Option<&'static str>,
}

/// The schedulers in the order of precedence: one that may run inside a job of another one comes
/// before that one.
const SOURCES: [RankSource; 4] = [
    RankSource {
        scheduler: "torchrun",
        rank: "RANK",
        size: Some("WORLD_SIZE"),
    },
    RankSource {
        scheduler: "Flux",
        rank: "FLUX_TASK_RANK",
        size: Some("FLUX_JOB_SIZE"),
    },
    RankSource {
        scheduler: "Slurm",
        rank: env::SLURM_PROCID,
        size: Some(env::SLURM_STEP_NUM_TASKS),
    },
    RankSource {
        scheduler: "Kubernetes",
        rank: "JOB_COMPLETION_INDEX",
        size: None,
    },
];

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable with the rank or the number of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenVariable {
    /// The name of the variable.
    pub name: &'static str,
    /// The value of the variable, which is not checked yet.
    pub value: String,
    /// The scheduler that sets the variable; `None` for `SHMEM_RANK` and `SHMEM_SIZE`.
    pub scheduler: Option<&'static str>,
}

impl GivenVariable {
    fn is_above_one(&self) -> bool {
        self.value.trim().parse().is_ok_and(|n: u32| n > 1)
    }

    /// Returns the value as a number. `what` names the number in the message of an error, such as
    /// "number of processes".
    fn number(&self, what: &str) -> Result<u32, Error> {
        self.value.trim().parse().map_err(|_| {
            Error::JobVariables(format!(
                "{} is {}, which is no {what}",
                self.name, self.value
            ))
        })
    }
}

/// The variables that are set and say which of how many processes this one is: `SHMEM_RANK` and
/// `SHMEM_SIZE`, or those of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedJob {
    /// The variable with the rank of this process; `None` if none is set.
    pub rank: Option<GivenVariable>,
    /// The variable with the number of processes; `None` if none is set.
    pub size: Option<GivenVariable>,
}

/// Returns the variables of the environment that name the rank and the number of processes.
pub fn given(lookup: Lookup<'_>) -> NamedJob {
    let variable = |name: &'static str, scheduler| {
        lookup(name).map(|value| GivenVariable {
            name,
            value,
            scheduler,
        })
    };
    let mut given = NamedJob {
        rank: variable(env::RANK, None),
        size: variable(env::SIZE, None),
    };

    // Both come from one scheduler: the variables of another one may be those of another job.
    if let Some(source) = SOURCES.iter().find(|source| lookup(source.rank).is_some()) {
        let scheduler = Some(source.scheduler);
        if given.rank.is_none() {
            given.rank = variable(source.rank, scheduler);
        }
        if let Some(size) = source.size
            && given.size.is_none()
        {
            given.size = variable(size, scheduler);
        }
    }
    given
}

/// Returns a hint that `SHMEM_JOB` may have been forgotten: it is not set, but `SHMEM_RANK` or
/// `SHMEM_SIZE` is, or a scheduler shows several processes.
pub fn forgotten_job_hint(lookup: Lookup<'_>) -> Option<String> {
    if lookup(env::JOB).is_some() {
        return None;
    }

    let NamedJob { rank, size } = given(lookup);
    let is_several = rank.is_some() && size.as_ref().is_some_and(GivenVariable::is_above_one);
    let variables: Vec<GivenVariable> = [rank, size].into_iter().flatten().collect();
    // Short names such as those of torchrun may have another meaning unless both are set.
    let has_own = variables
        .iter()
        .any(|variable| variable.scheduler.is_none());
    if !has_own && !is_several {
        return None;
    }

    let assignments: Vec<String> = variables
        .iter()
        .map(|variable| format!("{}={}", variable.name, variable.value))
        .collect();
    let verb = if assignments.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} {verb} set but not {}: this process is a job of one PE; set {} to the host and a free port of the process \
         with rank 0, the same on all, to form one job",
        assignments.join(" and "),
        env::JOB,
        env::JOB
    ))
}

/// Returns the route to the meeting that the variables name; `None` if `SHMEM_JOB` is not set.
///
/// # Errors
/// If a variable is missing or invalid.
pub(crate) fn meeting(lookup: Lookup<'_>) -> Result<Option<MeetingRoute>, Error> {
    let Some(job) = lookup(env::JOB) else {
        return Ok(None);
    };

    let NamedJob { rank, size } = given(lookup);
    let Some(rank) = rank else {
        let others = SOURCES.map(|source| source.rank).join(" or ");
        return Err(unset("rank", env::RANK, &others));
    };
    let pe = rank.number("rank")?;

    let Some(size) = size else {
        let others: Vec<&str> = SOURCES.iter().filter_map(|source| source.size).collect();
        return Err(unset(
            "number of processes",
            env::SIZE,
            &others.join(" or "),
        ));
    };
    let n_pes = size.number("number of processes")?;

    if pe >= n_pes {
        return Err(Error::JobVariables(format!(
            "{} is {pe} and {} is {n_pes}, but ranks are numbered from 0",
            rank.name, size.name
        )));
    }

    if let Ok(id) = job.trim().parse::<UniqueId>() {
        return Ok(Some(id.route(pe, n_pes)));
    }

    let is_address = job.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if !is_address {
        return Err(Error::JobVariables(
            "SHMEM_JOB must be the host and a port of PE 0, such as node1:5000, or a unique id"
                .to_owned(),
        ));
    }

    // Jobs with other addresses are other jobs, also where the user has given them the same secret.
    let secret = secret(lookup)?.derive("place", &[job.as_bytes()]);
    Ok(Some(MeetingRoute {
        address: MeetingAddress::Named(job),
        secret,
        pe,
        n_pes,
    }))
}

/// Returns the error that no variable has a number of this process. `own` and `others` are the
/// variables that may have it.
fn unset(what: &str, own: &str, others: &str) -> Error {
    Error::JobVariables(format!(
        "SHMEM_JOB is set, but nothing says the {what} of this process: set {own}, or let the scheduler set {others}"
    ))
}

/// Returns the value of a variable for output. A secret is replaced by a text, since a process that
/// knows the secret of a job can join the job.
pub fn without_secret(name: &str, value: String) -> String {
    let is_secret = match name {
        env::JOB_SECRET => !value.starts_with('@'),
        env::JOB => value.parse::<UniqueId>().is_ok(),
        _ => false,
    };

    if is_secret {
        "a secret".to_owned()
    } else {
        value
    }
}

/// Returns the secret in the variable, or in the file that the variable names.
fn secret(lookup: Lookup<'_>) -> Result<Secret, Error> {
    let value = lookup(env::JOB_SECRET).unwrap_or_default();
    let text = match value.strip_prefix('@') {
        Some(file) => fs::read_to_string(file).map_err(|error| {
            Error::JobVariables(format!(
                "SHMEM_JOB_SECRET names {file}, which cannot be read: {error}"
            ))
        })?,
        None => value,
    };

    // A file usually ends with a newline.
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::JobVariables(
            "SHMEM_JOB names a host, so SHMEM_JOB_SECRET must be set, too, to a text that only the processes of the job \
             know, or to @ and the name of a file that holds one"
                .to_owned(),
        ));
    }
    Ok(Secret::new(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<MeetingRoute>, String> {
        meeting(&|name| find(variables, name)).map_err(|error| error.to_string())
    }

    fn find(variables: &[(&str, &str)], name: &str) -> Option<String> {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    const JOB: [(&str, &str); 2] = [("SHMEM_JOB", "node1:5000"), ("SHMEM_JOB_SECRET", "x")];

    #[test]
    fn schedulers_say_rank_and_size() {
        for (variables, expected) in [
            (vec![("SHMEM_RANK", "1"), ("SHMEM_SIZE", "4")], (1, 4)),
            (
                vec![("RANK", "2"), ("WORLD_SIZE", "3"), ("SLURM_PROCID", "0")],
                (2, 3),
            ),
            (
                vec![("FLUX_TASK_RANK", "2"), ("FLUX_JOB_SIZE", "3")],
                (2, 3),
            ),
            (
                vec![("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")],
                (0, 2),
            ),
            (
                vec![("JOB_COMPLETION_INDEX", "5"), ("SHMEM_SIZE", "8")],
                (5, 8),
            ),
            (
                vec![("RANK", "2"), ("WORLD_SIZE", "3"), ("SHMEM_RANK", "0")],
                (0, 3),
            ),
        ] {
            let route = of(&[&JOB[..], &variables].concat()).expect("it is right");
            let route = route.expect("there is a job");
            assert_eq!((route.pe, route.n_pes), expected, "{variables:?}");
        }
        assert_eq!(of(&[("RANK", "2"), ("WORLD_SIZE", "3")]), Ok(None));
    }

    #[test]
    fn jobs_at_two_addresses_do_not_have_the_same_secret() {
        let secret = |job| {
            let own = [("SHMEM_RANK", "0"), ("SHMEM_SIZE", "2"), ("SHMEM_JOB", job)];
            let route = of(&[&own[..], &JOB[1..]].concat()).expect("it is right");
            route.expect("there is a job").secret
        };
        assert_eq!(secret("node1:5000"), secret("node1:5000"));
        assert_ne!(secret("node1:5000"), secret("node1:5001"));
        assert_ne!(secret("node1:5000"), secret("node2:5000"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let both = [("SHMEM_RANK", "0"), ("SHMEM_SIZE", "2")];
        for (variables, words) in [
            (
                vec![JOB[0], JOB[1]],
                "set SHMEM_RANK, or let the scheduler set RANK or ",
            ),
            (
                vec![JOB[0], JOB[1], ("JOB_COMPLETION_INDEX", "1")],
                "set SHMEM_SIZE",
            ),
            (
                vec![JOB[0], both[0], both[1]],
                "SHMEM_JOB_SECRET must be set",
            ),
            (
                vec![JOB[0], both[0], both[1], ("SHMEM_JOB_SECRET", "@/nowhere")],
                "/nowhere",
            ),
            (
                vec![JOB[0], JOB[1], ("SHMEM_RANK", "one"), both[1]],
                "SHMEM_RANK is one",
            ),
            (
                vec![JOB[0], JOB[1], ("SHMEM_RANK", "2"), both[1]],
                "numbered from 0",
            ),
            // The message shows an address with a port.
            (
                vec![("SHMEM_JOB", "node1"), JOB[1], both[0], both[1]],
                "node1:5000",
            ),
        ] {
            let error = of(&variables).expect_err("something is wrong");
            assert!(error.contains(words), "{variables:?}: {error}");
        }
    }

    #[test]
    fn half_of_the_variables_give_a_hint() {
        let hint = |variables: &[(&str, &str)]| forgotten_job_hint(&|name| find(variables, name));

        let said = hint(&[("SHMEM_RANK", "1")]).expect("a hint");
        assert!(
            said.starts_with("SHMEM_RANK=1 is set but not SHMEM_JOB"),
            "{said}"
        );
        assert!(hint(&[("RANK", "1"), ("WORLD_SIZE", "2")]).is_some());

        // One process is a job by itself, and a rank alone may be another program's.
        for none in [
            &[("RANK", "1")][..],
            &[("RANK", "0"), ("WORLD_SIZE", "1")],
            &[JOB[0]],
            &[],
        ] {
            assert_eq!(hint(none), None, "{none:?}");
        }
    }
}
