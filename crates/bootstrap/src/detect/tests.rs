//! Unit tests of `detect`.

use super::*;

/// Returns the route for these variables, where descriptor 7 is a socket; the variable named by a
/// refusal.
fn found(vars: &[(&str, &str)]) -> Result<JoinRoute, &'static str> {
    found_by(Protocol::Any, vars)
}

fn found_by(protocol: Protocol, vars: &[(&str, &str)]) -> Result<JoinRoute, &'static str> {
    let lookup =
        |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    route(protocol, &lookup, |fd| fd == 7).map_err(|error| match error {
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
        &[("FLUX_TASK_RANK", "0"), ("FLUX_JOB_SIZE", "1")],
        &[("JSM_NAMESPACE_RANK", "0"), ("JSM_NAMESPACE_SIZE", "1"), ("PMIX_RANK", "0")],
        // A shell inside an allocation is no member of a step.
        &[("SLURM_NTASKS", "8")],
    ] {
        assert_eq!(found(vars), Ok(JoinRoute::Alone), "{vars:?}");
    }
}

#[test]
fn each_launcher_is_joined_in_its_way() {
    let hydra = [("PMI_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "4")];
    assert_eq!(found(&hydra), Ok(JoinRoute::Inherited { fd: 7, pe: 2, n_pes: 4 }));
    let port = [("PMI_PORT", "host:77"), ("PMI_ID", "3")];
    assert_eq!(found(&port), Ok(JoinRoute::Port { address: "host:77".to_owned(), id: 3 }));
    let mpirun = [("PMIX_NAMESPACE", "a"), ("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
    assert_eq!(found(&mpirun), Ok(JoinRoute::Pmix));
}

#[test]
fn what_can_be_used_counts_more_than_what_is_set() {
    let pmix = [("PMIX_NAMESPACE", "a"), ("PMIX_RANK", "0")];
    let wire = |fd| [("PMI_FD", fd), ("PMI_RANK", "0"), ("PMI_SIZE", "4")];
    let both = |fd| [&pmix[..], &wire(fd)].concat();
    assert_eq!(found(&both("7")), Ok(JoinRoute::Inherited { fd: 7, pe: 0, n_pes: 4 }));
    assert_eq!(found(&both("8")), Ok(JoinRoute::Pmix));
    assert_eq!(found_by(Protocol::Pmix, &both("7")), Ok(JoinRoute::Pmix));
    assert_eq!(found_by(Protocol::Pmi2, &both("8")), Err("PMI_SIZE"));
}

#[test]
fn several_processes_are_refused() {
    for (vars, name) in [
        (&[("PMI_SIZE", "4")][..], "PMI_SIZE"),
        (&[("PMI_SIZE", "many")], "PMI_SIZE"),
        (&[("FLUX_TASK_RANK", "1"), ("FLUX_JOB_SIZE", "4")], "FLUX_JOB_SIZE"),
        (&[("JSM_NAMESPACE_RANK", "1"), ("JSM_NAMESPACE_SIZE", "4")], "JSM_NAMESPACE_SIZE"),
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
fn the_sentence_names_variable_and_remedy() {
    let slurm = |name: &str| match name {
        env::SLURM_PROCID | env::SLURM_NTASKS => Some("4".to_string()),
        _ => None,
    };
    let text = several(Protocol::Any, &slurm).expect("refused").to_string();
    assert!(text.contains("SLURM_NTASKS=4") && text.contains("--mpi=pmix"), "{text}");
}
