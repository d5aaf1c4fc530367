//! The interfaces and ports at which sockets listen: those of the settings, also on machines with
//! unusual addresses. Each machine is a network namespace.

use std::time::Duration;

use crate::namespaces::{Hosts, ip};
use testkit::{Job, Outcome, absent, has_library, patient, scenario};

/// The limit of a job that fails.
const SOON: Duration = Duration::from_secs(30);

/// Returns the transports that can be used here, all of which use sockets.
fn transports() -> impl Iterator<Item = &'static str> {
    let all = [
        ("tcp", None),
        ("ucx", Some("libucp.so.0")),
        ("ofi", Some("libfabric.so.1")),
    ];
    all.into_iter()
        .filter(|(_, library)| library.is_none_or(has_library))
        .map(|(name, _)| name)
}

/// Adds an interface to each host, as Docker does. Its address seems to be in the same subnet on
/// all hosts, but reaches no other host.
fn with_docker0(hosts: &Hosts, n: u32, addresses: &[&str]) {
    for number in 0..n {
        let host = hosts.host(number);
        let run = |words: &str| {
            let words: Vec<&str> = ["-n", &host].into_iter().chain(words.split(' ')).collect();
            ip(&words).expect("a device of ours");
        };

        run("link add docker0 type veth peer name unused");
        run(&format!(
            "addr add {}/16 dev docker0",
            addresses[number as usize]
        ));
        run("link set unused up");
        run("link set docker0 up");
    }
}

/// Returns a job with a PE on each host.
fn across(hosts: &Hosts, list: &str) -> Job {
    let script = format!(
        "exec ip netns exec {}$SHMEM_LOCAL_ID \"$0\" \"$@\"",
        hosts.prefix()
    );
    let program = scenario!("heap_size.c");

    let job = Job::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg(program.display());
    let job = job.n(2).arg(1 << 20).arg(0).env("SHMEM_VIRTUAL_NODES", 2);
    let job = job
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_TCP_INTERFACE", list);
    job.timeout(patient(SOON))
}

/// Returns a job of PEs on one host that checks that its sockets listen at these ports, and that
/// there are at least `least`.
fn at_ports(hosts: &Hosts, n: usize, (first, last): (u16, u16), least: u32) -> Job {
    let script = format!("exec ip netns exec {} \"$0\" \"$@\"", hosts.host(0));
    let program = scenario!("ports.c");

    let job = Job::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg(program.display())
        .n(n);
    let job = job
        .arg(first)
        .arg(last)
        .arg(least)
        .env("SHMEM_ONNODE", "off");
    job.env("SHMEM_SYMMETRIC_SIZE", "16m")
        .timeout(patient(SOON))
}

fn words_of_failure(outcome: &Outcome, words: &[&str]) {
    assert!(!outcome.status.success(), "{outcome}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
    }
}

fn lists_select_interfaces() {
    let hosts = Hosts::new("l", 2);
    with_docker0(&hosts, 2, &["172.17.0.1", "172.17.0.1"]);

    for (list, is_docker_used) in [
        ("w", false),
        ("10.77.0.0/16", false),
        ("fd00::/8, 10.77.0.0/24", false),
        ("^docker0,virbr0", false),
        ("^172.16.0.0/12", false),
        ("w,docker0", true),
        ("", true),
    ] {
        let outcome = across(&hosts, list).env("SHMEM_DEBUG", "2").run();
        outcome.assert_ok(2);

        let listens = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("listens on ["));
        let listens: Vec<&str> = listens.collect();

        assert_eq!(listens.len(), 2, "{outcome}");
        for line in listens {
            assert!(line.contains("10.77.0."), "{list}: {line}");
            assert_eq!(line.contains("172.17.0."), is_docker_used, "{list}: {line}");
        }
    }
}

fn lists_that_select_nothing_are_explained() {
    let hosts = Hosts::new("n", 2);
    let there = ["; there are lo (127.0.0.1", "), w (10.77.0."];

    for (list, words) in [
        ("10.78.0.0/16", "but no address here is in 10.78.0.0/16"),
        (
            "eth9,fd00::/8",
            "but there is no eth9 here, no address here is in fd00::/8",
        ),
        (
            "^w",
            "but that leaves no address that another machine could reach",
        ),
    ] {
        let outcome = across(&hosts, list).run();
        words_of_failure(
            &outcome,
            &[&format!("SHMEM_TCP_INTERFACE is {list}, {words}")],
        );
        words_of_failure(&outcome, &there);
    }

    for (list, words) in [
        (
            "10.77.0.0/40",
            "but 10.77.0.0/40 is no subnet: an address and the number of its ",
        ),
        (
            "w,^docker0",
            "but ^ stands once, before a list of all that are left out",
        ),
    ] {
        let outcome = across(&hosts, list).run();
        words_of_failure(
            &outcome,
            &[&format!("SHMEM_TCP_INTERFACE is {list}, {words}")],
        );
    }
}

fn sockets_listen_at_the_ports_of_the_range() {
    let hosts = Hosts::new("r", 2);
    let range = (50000, 50099);

    for transport in transports() {
        for n in [1, 3] {
            let job = at_ports(&hosts, n, range, u32::from(n > 1) * n as u32);
            let job = job.env("SHMEM_TRANSPORT", transport);
            job.env("SHMEM_TCP_PORTS", "50000-50099").run().assert_ok(n);
        }
    }
}

fn taken_ports_are_one_message() {
    let hosts = Hosts::new("t", 2);

    let job = at_ports(&hosts, 3, (50000, 50001), 0).env("SHMEM_TRANSPORT", "tcp");
    let outcome = job.env("SHMEM_TCP_PORTS", "50000-50001").run();
    let taken = "all ports of SHMEM_TCP_PORTS (50000-50001) are taken on 127.0.0.1: give a wider";
    words_of_failure(&outcome, &[taken]);

    let job = at_ports(&hosts, 2, (1, 1), 0).env("SHMEM_TRANSPORT", "tcp");
    let outcome = job.env("SHMEM_TCP_PORTS", "50000-").run();
    words_of_failure(
        &outcome,
        &["SHMEM_TCP_PORTS is 50000-, but it must be a range of ports"],
    );
}

/// UCX tries the ports of a range for ever if none is free.
fn ucx_is_given_no_range_without_a_free_port() {
    if !has_library("libucp.so.0") {
        absent("UCX is not installed");
    }

    let hosts = Hosts::new("u", 1);
    // A PE takes three ports.
    let job = at_ports(&hosts, 2, (50000, 50005), 6).env("SHMEM_TRANSPORT", "ucx");
    job.env("SHMEM_TCP_PORTS", "50000-50005").run().assert_ok(2);

    let taken = " are taken: give a wider one, or end what listens there (`ss -tlnp`)";
    for (variable, range) in [
        ("SHMEM_TCP_PORTS", "50000-50001"),
        ("UCX_TCP_PORT_RANGE", "50000-50001"),
        ("SHMEM_TCP_PORTS", "50000"),
    ] {
        let job = at_ports(&hosts, 2, (50000, 50001), 0).env("SHMEM_TRANSPORT", "ucx");
        let outcome = job.env(variable, range).run();
        words_of_failure(&outcome, &["all ports of the range 50000-5000", taken]);
    }
}

fn libfabric_without_a_free_port_names_the_range() {
    if !has_library("libfabric.so.1") {
        absent("libfabric is not installed");
    }

    let hosts = Hosts::new("f", 1);
    // Each PE listens at an address of the host, of which there are two: at most four could.
    let job = at_ports(&hosts, 5, (50000, 50001), 0).env("SHMEM_TRANSPORT", "ofi");
    let job = job.env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm");
    let outcome = job.env("SHMEM_TCP_PORTS", "50000-50001").run();
    words_of_failure(
        &outcome,
        &["all ports of SHMEM_TCP_PORTS (50000-50001) may be taken: give a wider range"],
    );
}

fn by_id(host: &str, variables: &[(&str, &str)]) -> Outcome {
    Job::direct(scenario!("by_id.c"))
        .args(["4", "ok"])
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .envs(variables)
        .wrap(["ip", "netns", "exec", host])
        .timeout(patient(SOON))
        .run()
}

fn a_meeting_listens_as_the_settings_say() {
    let hosts = Hosts::new("m", 2);
    let first = hosts.host(0);
    let second = hosts.host(1);
    with_docker0(&hosts, 2, &["172.17.0.1", "172.17.0.2"]);

    let debug = ("SHMEM_DEBUG", "2");
    let across = [
        ("TEST_NETNS", second.as_str()),
        ("SHMEM_TRANSPORT", "tcp"),
        debug,
    ];

    for (list, ports, words) in [
        ("w", "50000", "at=[10.77.0.1:50000]"),
        ("^docker0,lo", "50000-50000", "at=[10.77.0.1:50000]"),
        ("172.16.0.0/12,10.0.0.0/8", "50000", "172.17.0.1:50000"),
    ] {
        let settings = [("SHMEM_TCP_INTERFACE", list), ("SHMEM_TCP_PORTS", ports)];
        // The PEs share memory, since a transport would need more ports.
        let outcome = by_id(&first, &[&settings[..], &[debug]].concat());
        outcome.assert_ok(4);
        assert!(outcome.stderr.contains(words), "{words}\n{outcome}");
    }

    // The address of docker0 does not answer from the other host.
    let outcome = by_id(&first, &across);
    outcome.assert_ok(4);

    let outcome = by_id(&first, &[("SHMEM_TCP_INTERFACE", "10.78.0.0/16")]);
    words_of_failure(
        &outcome,
        &["serve the meeting", "no address here is in 10.78.0.0/16"],
    );
}

fn a_machine_may_have_only_the_loopback_of_ipv6() {
    let hosts = Hosts::new("6", 2);
    let host = hosts.host(0);
    ip(&["-n", &host, "link", "set", "w", "down"]).expect("a device of ours");
    if ip(&["-n", &host, "addr", "del", "127.0.0.1/8", "dev", "lo"]).is_err() {
        testkit::absent("the loopback interface keeps its address");
    }

    // UCX 1.13 and libfabric 1.17 need an address of IPv4 for their sockets.
    at_ports(&hosts, 2, (1, 65535), 2)
        .env("SHMEM_TRANSPORT", "tcp")
        .run()
        .assert_ok(2);
    at_ports(&hosts, 2, (1, 65535), 0).run().assert_ok(2);
    by_id(&host, &[]).assert_ok(4);
    by_id(
        &host,
        &[("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "tcp")],
    )
    .assert_ok(4);
}

fn addresses_that_do_not_answer_are_passed_over_or_all_named() {
    let hosts = Hosts::new("d", 2);
    with_docker0(&hosts, 2, &["172.17.0.1", "172.17.0.2"]);

    // The interface of the PE's NIC is tried first.
    let job = || across(&hosts, "").env("SHMEM_NIC", "docker0,docker0");
    job().run().assert_ok(2);

    let second = hosts.host(1);
    ip(&["-n", &second, "route", "add", "blackhole", "10.77.0.1/32"]).expect("a route of ours");
    let outcome = job().run();
    words_of_failure(
        &outcome,
        &["no route leads there", "172.17.0.1:", "10.77.0.1:"],
    );
}

fn sockets_that_do_not_reach_the_other_host_name_the_variable() {
    let hosts = Hosts::new("v", 2);
    with_docker0(&hosts, 2, &["172.17.0.1", "172.17.0.2"]);

    for transport in transports().filter(|transport| *transport != "tcp") {
        let job = across(&hosts, "docker0").env("SHMEM_TRANSPORT", transport);
        let job = job.env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm");
        let outcome = job.env("SHMEM_HOST_LIMIT", "2s").run();
        words_of_failure(&outcome, &["SHMEM_TCP_INTERFACE, "]);
    }
}

testkit::module_tests! {
    lists_select_interfaces,
    lists_that_select_nothing_are_explained,
    sockets_listen_at_the_ports_of_the_range,
    taken_ports_are_one_message,
    ucx_is_given_no_range_without_a_free_port,
    libfabric_without_a_free_port_names_the_range,
    sockets_that_do_not_reach_the_other_host_name_the_variable,
    a_meeting_listens_as_the_settings_say,
    a_machine_may_have_only_the_loopback_of_ipv6,
    addresses_that_do_not_answer_are_passed_over_or_all_named,
}
