//! Two hosts in network namespaces: PEs with addresses of their own, a link that loses packets, a link
//! that goes away. The launcher's sockets are inherited, so it stays outside.
//!
//! Where the kernel gives no namespaces the tests say so and pass.

use std::process::Command;

use testkit::{Job, program};

/// Enters the namespace of the PE's host: the first half of the PEs is on host 0.
const ENTER: &str = "exec ip netns exec \"$HOSTS$((SHMEM_LOCAL_ID * 2 / PES))\" \"$0\" \"$@\"";

/// Two network namespaces with a wire between them.
struct Hosts {
    name: String,
}

impl Hosts {
    /// `None`, with a word, where they cannot be had.
    fn new(test: &str) -> Option<Hosts> {
        let hosts = Hosts { name: format!("rm{}{test}", std::process::id()) };
        let [a, b] = [0, 1].map(|host| hosts.host(host));
        let first = ip(&["netns", "add", &a]);
        if let Err(why) = first {
            println!("skipped: no network namespaces here: {why}");
            // Nothing was made.
            std::mem::forget(hosts);
            return None;
        }
        for words in [
            vec!["netns", "add", &b],
            vec!["-n", &a, "link", "add", "w", "type", "veth", "peer", "name", "w", "netns", &b],
            vec!["-n", &a, "addr", "add", "10.77.0.1/24", "dev", "w"],
            vec!["-n", &b, "addr", "add", "10.77.0.2/24", "dev", "w"],
        ] {
            ip(&words).expect("the first namespace could be made");
        }
        for host in [&a, &b] {
            for device in ["lo", "w"] {
                ip(&["-n", host, "link", "set", device, "up"]).expect("a device of ours");
            }
        }
        Some(hosts)
    }

    fn host(&self, host: u32) -> String {
        format!("{}h{host}", self.name)
    }

    fn job(&self, source: &str, n: usize) -> Job {
        let program = program!(source);
        Job::new("/bin/sh")
            .arg("-c")
            .arg(ENTER)
            .arg(program.display())
            .n(n)
            .env("HOSTS", format!("{}h", self.name))
            .env("PES", n)
            .env("SHMEM_VIRTUAL_NODES", 2)
            .env("SHMEM_SYMMETRIC_SIZE", "64m")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in [0, 1] {
            // The wire goes with the first of its ends.
            let _ = ip(&["netns", "del", &self.host(host)]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(complaint) }
}

#[test]
fn programs_run_across_two_hosts() {
    let Some(hosts) = Hosts::new("p") else { return };
    for source in ["rma.c", "amo.c", "signal.c", "split_2d.c", "collectives_team.c", "lock.c"] {
        for n in [2, 4] {
            hosts.job(source, n).run().assert_ok(n);
        }
    }
}

#[test]
fn a_link_that_loses_packets_slows_a_job_and_no_more() {
    let Some(hosts) = Hosts::new("l") else { return };
    // The queue of a wire this narrow overflows, so packets are lost as on a busy network.
    let narrow = ["tbf", "rate", "40mbit", "burst", "16kb", "limit", "24kb"];
    for host in [0, 1] {
        let name = hosts.host(host);
        let mut tc = Command::new("tc");
        tc.args(["-n", &name, "qdisc", "add", "dev", "w", "root"]).args(narrow);
        if !tc.status().is_ok_and(|status| status.success()) {
            println!("skipped: this kernel has no queue that drops packets");
            return;
        }
    }
    hosts.job("rma.c", 2).run().assert_ok(2);
    hosts.job("collectives_team.c", 2).run().assert_ok(2);
}

#[test]
fn a_partition_ends_the_job_with_a_message() {
    let Some(hosts) = Hosts::new("x") else { return };
    let mut running = hosts.job("endless.c", 2).start();
    running.wait_for(|lines| lines.contains(&"n_pes 2").then_some(()));
    ip(&["-n", &hosts.host(1), "link", "set", "w", "down"]).expect("a device of ours");
    running.finish().assert_fails(&["was lost", "PE"]);
}
