//! The interfaces and ports at which sockets listen: those of the settings, also on machines with
//! unusual addresses. Each machine is a network namespace.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::namespaces::{Hosts, ip};
use testkit::{Job, Outcome, absent, has_library, patient, scenario};

/// The limit of a job that fails.
const SOON: Duration = Duration::from_secs(30);

/// Returns the transports that can be used here, all of which use sockets.
fn transports() -> Vec<&'static str> {
    let mut transports = vec!["tcp"];
    for (transport, library) in [("ucx", "libucp.so.0"), ("ofi", "libfabric.so.1")] {
        if has_library(library) {
            transports.push(transport);
        }
    }
    transports
}

/// Adds an interface to each of two hosts, as Docker does. Its address seems to be in the same
/// subnet on both hosts, but reaches no other host.
fn add_docker0(hosts: &Hosts, addresses: [&str; 2]) {
    for (number, address) in (0..).zip(addresses) {
        let host = hosts.host(number);
        for command in [
            "link add docker0 type veth peer name unused",
            &format!("addr add {address}/16 dev docker0"),
            "link set unused up",
            "link set docker0 up",
        ] {
            let mut words = vec!["-n", &host];
            words.extend(command.split(' '));
            ip(&words).expect("a device of ours");
        }
    }
}

/// Returns a job with a PE on each host, whose sockets listen at these interfaces.
fn across(hosts: &Hosts, interfaces: &str) -> Job {
    let prefix = hosts.prefix();
    let script = format!("exec ip netns exec {prefix}$SHMEM_LOCAL_ID \"$0\" \"$@\"");
    Job::new("/bin/sh")
        .n(2)
        .arg("-c")
        .arg(script)
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0])
        .env("SHMEM_VIRTUAL_NODES", 2)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_TCP_INTERFACE", interfaces)
        .timeout(patient(SOON))
}

/// Returns a job of PEs on one host that checks that its sockets listen at these ports, and that
/// there are at least `min_sockets`.
fn at_ports(hosts: &Hosts, n: usize, ports: RangeInclusive<u16>, min_sockets: usize) -> Job {
    let script = format!("exec ip netns exec {} \"$0\" \"$@\"", hosts.host(0));
    Job::new("/bin/sh")
        .n(n)
        .arg("-c")
        .arg(script)
        .arg(scenario!("ports.c").display())
        .arg(ports.start())
        .arg(ports.end())
        .arg(min_sockets)
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
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
    add_docker0(&hosts, ["172.17.0.1", "172.17.0.1"]);

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

        let listens: Vec<&str> = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("listens on ["))
            .collect();
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
        let message = format!("SHMEM_TCP_INTERFACE is {list}, {words}");
        words_of_failure(&outcome, &[&message]);
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
        let message = format!("SHMEM_TCP_INTERFACE is {list}, {words}");
        words_of_failure(&outcome, &[&message]);
    }
}

fn sockets_listen_at_the_ports_of_the_range() {
    let hosts = Hosts::new("r", 2);

    for transport in transports() {
        // A job of one PE needs no socket, others one for each PE.
        for (n, min_sockets) in [(1, 0), (3, 3)] {
            at_ports(&hosts, n, 50000..=50099, min_sockets)
                .env("SHMEM_TRANSPORT", transport)
                .env("SHMEM_TCP_PORTS", "50000-50099")
                .run()
                .assert_ok(n);
        }
    }
}

fn taken_ports_are_one_message() {
    let hosts = Hosts::new("t", 2);

    let outcome = at_ports(&hosts, 3, 50000..=50001, 0)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_TCP_PORTS", "50000-50001")
        .run();
    let taken = "all ports of SHMEM_TCP_PORTS (50000-50001) are taken on 127.0.0.1: give a wider";
    words_of_failure(&outcome, &[taken]);

    let outcome = at_ports(&hosts, 2, 1..=1, 0)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_TCP_PORTS", "50000-")
        .run();
    let no_range = "SHMEM_TCP_PORTS is 50000-, but it must be a range of ports";
    words_of_failure(&outcome, &[no_range]);
}

/// UCX tries the ports of a range for ever if none is free.
fn ucx_is_given_no_range_without_a_free_port() {
    if !has_library("libucp.so.0") {
        absent("UCX is not installed");
    }

    let hosts = Hosts::new("u", 1);
    // A PE takes three ports.
    at_ports(&hosts, 2, 50000..=50005, 6)
        .env("SHMEM_TRANSPORT", "ucx")
        .env("SHMEM_TCP_PORTS", "50000-50005")
        .run()
        .assert_ok(2);

    let taken = " are taken: give a wider one, or end what listens there (`ss -tlnp`)";
    for (variable, range) in [
        ("SHMEM_TCP_PORTS", "50000-50001"),
        ("UCX_TCP_PORT_RANGE", "50000-50001"),
        ("SHMEM_TCP_PORTS", "50000"),
    ] {
        let outcome = at_ports(&hosts, 2, 50000..=50001, 0)
            .env("SHMEM_TRANSPORT", "ucx")
            .env(variable, range)
            .run();
        words_of_failure(&outcome, &["all ports of the range 50000-5000", taken]);
    }
}

fn libfabric_without_a_free_port_names_the_range() {
    if !has_library("libfabric.so.1") {
        absent("libfabric is not installed");
    }

    let hosts = Hosts::new("f", 1);
    // Each PE listens at an address of the host, of which there are two: at most four could.
    let outcome = at_ports(&hosts, 5, 50000..=50001, 0)
        .env("SHMEM_TRANSPORT", "ofi")
        .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
        .env("SHMEM_TCP_PORTS", "50000-50001")
        .run();
    let taken = "all ports of SHMEM_TCP_PORTS (50000-50001) may be taken: give a wider range";
    words_of_failure(&outcome, &[taken]);
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
    add_docker0(&hosts, ["172.17.0.1", "172.17.0.2"]);

    let debug = ("SHMEM_DEBUG", "2");
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
    let across = [
        ("TEST_NETNS", second.as_str()),
        ("SHMEM_TRANSPORT", "tcp"),
        debug,
    ];
    by_id(&first, &across).assert_ok(4);

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
    at_ports(&hosts, 2, 1..=65535, 2)
        .env("SHMEM_TRANSPORT", "tcp")
        .run()
        .assert_ok(2);
    at_ports(&hosts, 2, 1..=65535, 0).run().assert_ok(2);

    by_id(&host, &[]).assert_ok(4);
    let over_tcp = [("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "tcp")];
    by_id(&host, &over_tcp).assert_ok(4);
}

fn addresses_that_do_not_answer_are_passed_over_or_all_named() {
    let hosts = Hosts::new("d", 2);
    add_docker0(&hosts, ["172.17.0.1", "172.17.0.2"]);

    // The interface of the PE's NIC is tried first.
    let job = across(&hosts, "").env("SHMEM_NIC", "docker0,docker0");
    job.clone().run().assert_ok(2);

    let second = hosts.host(1);
    ip(&["-n", &second, "route", "add", "blackhole", "10.77.0.1/32"]).expect("a route of ours");
    let outcome = job.run();
    let words = ["no route leads there", "172.17.0.1:", "10.77.0.1:"];
    words_of_failure(&outcome, &words);
}

fn sockets_that_do_not_reach_the_other_host_name_the_variable() {
    let hosts = Hosts::new("v", 2);
    add_docker0(&hosts, ["172.17.0.1", "172.17.0.2"]);

    for transport in transports() {
        // TCP tries the other addresses of a peer, too.
        if transport == "tcp" {
            continue;
        }
        let outcome = across(&hosts, "docker0")
            .env("SHMEM_TRANSPORT", transport)
            .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
            .env("SHMEM_HOST_LIMIT", "2s")
            .run();
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
