//! Recognises that another launcher started this process as one of several, so that no PE ever takes itself for a job
//! of one by mistake.
//!
//! Pure: it judges what a lookup returns and reads no environment itself.
#![forbid(unsafe_code)]

use crate::env;
use crate::error::Error;

/// The error that refuses a job of one PE, when the variables show more processes or leave their number open.
pub(crate) fn several(lookup: impl Fn(&str) -> Option<String>) -> Option<Error> {
    let refuse = |launcher, name: &'static str| {
        let value = lookup(name).unwrap_or_default();
        Some(Error::Foreign { launcher, name, value })
    };
    // What cannot be read as a number is not a proof of one process, so it counts as several.
    let more_than_one = |name: &str| lookup(name).map(|value| value.trim().parse() != Ok(1_u32));

    let mut known_single = false;
    let sizes = [
        ("a PMI launcher such as Hydra or Slurm", env::PMI_SIZE),
        ("Open MPI's launcher", env::OMPI_SIZE),
    ];
    for (launcher, name) in sizes {
        match more_than_one(name) {
            Some(true) => return refuse(launcher, name),
            Some(false) => known_single = true,
            None => {}
        }
    }
    if lookup(env::SLURM_PROCID).is_some() {
        let size = [env::SLURM_STEP_NUM_TASKS, env::SLURM_NTASKS]
            .into_iter()
            .find(|name| lookup(name).is_some());
        if let Some(name) = size {
            if more_than_one(name) == Some(true) {
                return refuse("Slurm", name);
            }
            known_single = true;
        }
    }
    if lookup(env::PMIX_RANK).is_some() && !known_single {
        return refuse("a PMIx launcher", env::PMIX_RANK);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(vars: &[(&str, &str)]) -> Option<&'static str> {
        let lookup = |name: &str| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        };
        several(lookup).map(|error| match error {
            Error::Foreign { name, .. } => name,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn single_processes_pass() {
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]), None);
        assert_eq!(named(&[("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")]), None);
        assert_eq!(
            named(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "8")]),
            None
        );
        // A shell inside an allocation is no member of a step.
        assert_eq!(named(&[("SLURM_NTASKS", "8")]), None);
    }

    #[test]
    fn several_processes_are_refused() {
        assert_eq!(named(&[("PMI_SIZE", "4")]), Some("PMI_SIZE"));
        assert_eq!(named(&[("PMI_SIZE", "many")]), Some("PMI_SIZE"));
        assert_eq!(
            named(&[("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")]),
            Some("OMPI_COMM_WORLD_SIZE")
        );
        assert_eq!(named(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")]), Some("SLURM_NTASKS"));
        assert_eq!(
            named(&[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")]),
            Some("SLURM_STEP_NUM_TASKS")
        );
        assert_eq!(named(&[("PMIX_RANK", "0")]), Some("PMIX_RANK"));
    }

    #[test]
    fn the_sentence_names_variable_and_cure() {
        let error =
            several(|name| (name == env::PMI_SIZE).then(|| "4".to_string())).expect("refused");
        let text = error.to_string();
        assert!(text.contains("PMI_SIZE=4") && text.contains("oshrun"), "{text}");
    }
}
