//! A job whose PEs have different versions of the library ends with a message. PE 1 sends a startup
//! record as another version would.

use rushmem_bootstrap::{JobSession, Joining};
use rushmem_runtime::setup;
use rushmem_system::formats::RECORD;
use testkit::Job;

/// The program of the job's PEs, which `the_versions_are_named` starts.
#[test]
fn a_pe() {
    match std::env::var("SHMEM_LOCAL_ID").as_deref() {
        Err(_) => {}
        Ok("0") => setup::init(rushmem_runtime::call!("shmem_init"), &[]),
        Ok(_) => {
            let session = JobSession::open(&Joining::default(), |_, _| ());
            let mut session = session.expect("oshrun has started it");
            let records = session.exchange(&[RECORD.version - 1, 0, 0, 0]);
            records.expect("PE 0 has sent its record");
            session.barrier().expect_err("PE 0 ends the job");
            std::thread::sleep(testkit::LIMIT);
        }
    }
}

#[test]
fn the_versions_are_named() {
    let this = std::env::current_exe().expect("a test program knows its path");
    let outcome = Job::new(this)
        .n(2)
        .arg("a_pe")
        .arg("--exact")
        .arg("--nocapture")
        .run();

    let there = RECORD.version - 1;
    let here = RECORD.version;
    outcome.assert_fails(&[
        "PE 0: shmem_init: the record of PE 1 cannot be read",
        &format!("the record of a PE has version {there} there and {here} here"),
        "start all PEs with the same version of Rushmem",
    ]);
}
