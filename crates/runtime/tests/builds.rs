//! A job whose PEs have different builds of the library ends with a message. PE 1 exchanges what a
//! PE of another build would.

use rushmem_bootstrap::{JoinOptions, Membership};
use rushmem_runtime::build::Build;
use rushmem_runtime::start;
use testkit::{Job, Outcome};

/// What PE 1 does, by a variable of the environment.
const ROLE: &str = "ROLE_OF_PE_1";

/// The program of the job's PEs, which the other tests start.
#[test]
fn a_pe() {
    match std::env::var("SHMEM_LOCAL_ID").as_deref() {
        Err(_) => {}
        Ok("0") => start::init(rushmem_runtime::call!("shmem_init"), &[]),
        Ok(_) => {
            let membership = Membership::join(&JoinOptions::default(), |_, _| ());
            let mut membership = membership.expect("oshrun has started it");
            let records = membership.exchange(b"a record of another build");
            records.expect("PE 0 has sent its record");

            if std::env::var(ROLE).as_deref() == Ok("describes itself") {
                let described = membership.exchange(b"build 1 in /old/lib on host h2");
                described.expect("PE 0 has sent its description");
                membership.barrier().expect_err("PE 0 ends the job");
                std::thread::sleep(testkit::LIMIT);
            }
            std::process::exit(3);
        }
    }
}

fn job_of_two_builds(role: &str) -> Outcome {
    let this = std::env::current_exe().expect("a test program knows its path");
    Job::new(this)
        .n(2)
        .arg("a_pe")
        .arg("--exact")
        .arg("--nocapture")
        .env(ROLE, role)
        .run()
}

#[test]
fn both_builds_are_named() {
    let own = Build::of(&[]);
    let host = rushmem_system::host::host_name();
    let program = std::env::current_exe().expect("a test program knows its path");

    job_of_two_builds("describes itself").assert_fails(&[
        "PE 0: shmem_init: PE 0 and PE 1 have different builds of Rushmem",
        &format!(
            "PE 0 has build {own} in {} on host {host}",
            program.display()
        ),
        "PE 1 has build 1 in /old/lib on host h2",
        "install one build on all hosts",
    ]);
}

#[test]
fn a_build_that_ends_instead_of_describing_itself_is_refused() {
    job_of_two_builds("ends").assert_fails(&["PE 1"]);
}
