//! Jobs on two hosts in network namespaces: PEs with different addresses, a link that loses
//! packets, and a link that fails. PEs inherit their sockets to the launcher, so it need not be in
//! a namespace.
//!
//! If there are no namespaces, the tests are ignored.

use std::path::Path;
use std::process::Command;

use crate::namespaces::{Hosts, ip};
use testkit::{Job, absent, program, scenario};

/// A shell script that runs a PE in the namespace of its host. The first half of the PEs is on host
/// 0.
const ENTER: &str = "exec ip netns exec \"$HOSTS$((SHMEM_LOCAL_ID * 2 / PES))\" \"$0\" \"$@\"";

fn job(hosts: &Hosts, program: &Path, n: usize) -> Job {
    Job::new("/bin/sh")
        .arg("-c")
        .arg(ENTER)
        .arg(program.display())
        .n(n)
        .env("HOSTS", hosts.prefix())
        .env("PES", n)
        .env("SHMEM_VIRTUAL_NODES", 2)
        .env("SHMEM_SYMMETRIC_SIZE", "64m")
}

fn programs_run_across_two_hosts() {
    let hosts = Hosts::new("p", 2);
    for (n, source) in [
        (2, "rma.c"),
        (2, "amo.c"),
        (2, "signal.c"),
        (4, "split_2d.c"),
        (4, "collectives_team.c"),
        (4, "lock.c"),
    ] {
        job(&hosts, &program!(source), n).run().assert_ok(n);
    }
}

fn a_link_that_loses_packets_slows_a_job_and_no_more() {
    let hosts = Hosts::new("l", 2);

    // With this low rate, the queue of the interface overflows, so packets are lost as on a busy
    // network.
    let narrow = ["tbf", "rate", "40mbit", "burst", "16kb", "limit", "24kb"];
    for host in [0, 1] {
        let name = hosts.host(host);
        let mut tc = Command::new("tc");
        tc.args(["-n", &name, "qdisc", "add", "dev", "w", "root"])
            .args(narrow);
        if !tc.status().is_ok_and(|status| status.success()) {
            absent("this kernel has no queue that drops packets");
        }
    }

    job(&hosts, &program!("rma.c"), 2).run().assert_ok(2);
    job(&hosts, &program!("collectives_team.c"), 2)
        .run()
        .assert_ok(2);
}

fn a_partition_ends_the_job_with_a_message() {
    let hosts = Hosts::new("x", 2);
    let mut running = job(&hosts, &scenario!("endless.c"), 2).start();
    running.wait_for_line("n_pes 2");

    ip(&["-n", &hosts.host(1), "link", "set", "w", "down"]).expect("a device of ours");
    running.finish().assert_fails(&["was lost", "PE"]);
}

testkit::module_tests! {
    programs_run_across_two_hosts,
    a_link_that_loses_packets_slows_a_job_and_no_more,
    a_partition_ends_the_job_with_a_message,
}
