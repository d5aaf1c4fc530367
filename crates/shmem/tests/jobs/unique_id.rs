//! A job of processes that no launcher has started, which join by a unique id.

use shmem::{Init, UniqueId};
use std::process::Command;

const RANK: &str = "TEST_RANK";
const ID: &str = "TEST_ID";
const RANKS: usize = 3;

/// A process of the job below.
#[test]
fn a_pe() {
    let Ok(rank) = std::env::var(RANK) else {
        return;
    };
    let id: UniqueId = std::env::var(ID)
        .expect("an id")
        .parse()
        .expect("it is short");
    join(&id, rank.parse().expect("a number"));
}

fn join(id: &UniqueId, rank: usize) {
    let shmem = Init::new()
        .by_id(id, rank, RANKS)
        .start_shared()
        .expect("the first initialization");
    assert_eq!(shmem.my_pe(), rank);
    assert_eq!(shmem.n_pes(), RANKS);
    let sum = shmem.world().all_reduce(rank, shmem::Sum);
    assert_eq!(sum, RANKS * (RANKS - 1) / 2);
}

#[test]
fn processes_form_a_job() {
    if std::env::var(RANK).is_ok() {
        return;
    }
    let id = UniqueId::new().expect("an address to listen at");
    assert_eq!(id.to_string().parse(), Ok(id.clone()));
    assert!(!format!("{id:?}").contains(&id.to_string()));
    assert!("x".repeat(200).parse::<UniqueId>().is_err());

    let this = std::env::current_exe().expect("a test program knows its path");
    let mut pes = Vec::new();
    for rank in 0..RANKS {
        let pe = Command::new(&this)
            .args(["unique_id::a_pe", "--exact"])
            .env(RANK, rank.to_string())
            .env(ID, id.to_string())
            .env("SHMEM_SYMMETRIC_SIZE", "16m")
            .spawn()
            .expect("it starts");
        pes.push(pe);
    }
    for mut pe in pes {
        assert!(pe.wait().expect("it ends").success());
    }
}
