//! Jobs that cannot start end within seconds, name the cause and the remedy, and leave nothing
//! behind. `fallback.rs` has the failures of devices, by stand-ins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::namespaces::{Hosts, ip};
use testkit::{Job, absent, needs_library, patient, scenario};

/// The libraries that transports open at run time.
const UCX: &str = "libucp.so.0";
const LIBFABRIC: &str = "libfabric.so.1";

/// The time limit of a start that fails. It is longer than a host may be silent.
const SOON: Duration = Duration::from_secs(20);

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns a job of two PEs that share no memory.
fn job(variables: &[(&str, &str)]) -> Job {
    Job::new(scenario!("heap_size.c"))
        .n(2)
        .args([1 << 20, 0])
        .env("SHMEM_ONNODE", "off")
        .envs(variables)
}

/// Checks that the job fails soon, and that the message of `shmem_init` has all of these words.
#[track_caller]
fn fails(job: Job, words: &[&str]) {
    let outcome = job.timeout(patient(SOON)).run();
    let message = outcome
        .stderr
        .lines()
        .find(|line| line.contains("shmem_init: "))
        .unwrap_or_else(|| panic!("no message\n{outcome}"));

    assert!(!outcome.status.success(), "{outcome}");
    for word in words {
        assert!(message.contains(word), "{word}\n{outcome}");
    }
}

fn without_the_library_of_a_transport() {
    for (transport, library) in [("ucx", UCX), ("ofi", LIBFABRIC)] {
        let dir = tmpdir().join(format!("without-{library}"));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join(library), "").expect("a file");
        let dir = dir.to_str().expect("a plain path");
        let hidden = [("SHMEM_TRANSPORT", transport), ("LD_LIBRARY_PATH", dir)];

        let named = format!("SHMEM_TRANSPORT is {transport}, which cannot be used here");
        let remedy = "set SHMEM_TRANSPORT to another transport or to auto";
        fails(job(&hidden), &[&named, library, "install ", remedy]);

        job(&hidden[1..]).run().assert_ok(2);
    }
}

/// Returns a job of two PEs over a provider of libfabric.
fn over_provider(name: &str) -> Job {
    job(&[("SHMEM_TRANSPORT", "ofi"), ("SHMEM_OFI_PROVIDER", name)])
}

fn with_a_provider_of_libfabric_that_refuses() {
    needs_library(LIBFABRIC);

    let udp = "udp: refuses FI_EP_RDM (reliable datagrams): with FI_EP_DGRAM it would do";
    let words = ["SHMEM_OFI_PROVIDER=udp", udp, "--doctor"];
    fails(over_provider("udp"), &words);

    let none = "SHMEM_OFI_PROVIDER is nosuch, and there is no such provider: there are ";
    fails(over_provider("nosuch"), &[none, "tcp;ofi_rxm"]);

    let by_libfabric = job(&[("SHMEM_TRANSPORT", "ofi"), ("FI_PROVIDER", "nosuch")]);
    fails(by_libfabric, &["with FI_PROVIDER=nosuch"]);

    let over_tcp = over_provider("tcp;ofi_rxm").env("SHMEM_TCP_INTERFACE", "nosuch0");
    let words = ["its interface is ", ", but SHMEM_TCP_INTERFACE is nosuch0"];
    fails(over_tcp, &words);

    let dir = strict_fabric::dir(tmpdir()).expect("it is built");
    let strict = over_provider("strict")
        .env("FI_PROVIDER_PATH", dir.display())
        .env("SHMEM_AMOS", "network")
        .env("SHMEM_OFI_DOMAIN", "efa");
    fails(
        strict,
        &[
            "strict: refuses FI_ATOMIC",
            "SHMEM_AMOS=network",
            "SHMEM_OFI_DOMAIN=efa",
        ],
    );
}

fn with_a_variable_in_the_way_of_ucx() {
    needs_library(UCX);

    for (variable, value) in [
        ("UCX_TLS", "nosuch"),
        ("SHMEM_UCX_TLS", "nosuch"),
        ("UCX_TLS", "self"),
        ("UCX_NET_DEVICES", "nosuch0"),
    ] {
        let is = format!("{variable} is {value}, but UCX has ");
        let job = job(&[("SHMEM_TRANSPORT", "ucx"), (variable, value)]);
        fails(job, &["all PEs: UCX ", &is, "change or unset that"]);
    }
}

/// Returns a job whose PEs are all on the first of these hosts and use its interface `w`.
fn over_w(hosts: &Hosts) -> Job {
    let script = format!("exec ip netns exec {} \"$0\" \"$@\"", hosts.host(0));
    Job::new("/bin/sh")
        .n(2)
        .arg("-c")
        .arg(script)
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0])
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_TCP_INTERFACE", "w")
}

fn over_an_interface_without_a_usable_address() {
    let absent = [
        ("SHMEM_TRANSPORT", "tcp"),
        ("SHMEM_TCP_INTERFACE", "nosuch0"),
    ];
    let words = [
        "SHMEM_TCP_INTERFACE is nosuch0, but there is no nosuch0",
        "there are ",
        "lo",
    ];
    fails(job(&absent), &words);

    let hosts = Hosts::new("i", 2);
    let host = hosts.host(0);

    ip(&["-n", &host, "addr", "flush", "dev", "w"]).expect("a device of ours");
    let none = "SHMEM_TCP_INTERFACE is w, but w has no address; there are lo (127.0.0.1";
    fails(over_w(&hosts), &[none]);

    let local = ["-n", &host, "addr", "add", "169.254.3.1/16", "dev", "w"];
    ip(&local).expect("a device of ours");
    let only = "SHMEM_TCP_INTERFACE is w, but w has only the link-local 169.254.3.1";
    fails(over_w(&hosts), &[only, ": give it another address"]);

    ip(&["-n", &host, "addr", "flush", "dev", "w"]).expect("a device of ours");
    ip(&["-n", &host, "link", "set", "w", "down"]).expect("a device of ours");
    let down = "SHMEM_TCP_INTERFACE is w, but w is down (`ip link set w up`)";
    fails(over_w(&hosts), &[down]);
}

/// The loopback interface of a new network namespace is down. `/sys` may still show the interfaces
/// of the original namespace.
fn without_a_loopback_interface() {
    let enter = ["unshare", "-rn"];
    let entered = Command::new(enter[0]).args([enter[1], "true"]).output();
    if !entered.is_ok_and(|output| output.status.success()) {
        absent("there are no network namespaces");
    }

    let tcp = [("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "tcp")];
    let words = [
        "no route leads there",
        "of this host's interfaces lo is down",
        "ip link set lo up",
    ];
    fails(job(&tcp).wrap(enter), &words);
}

fn with_ipv6_addresses_alone() {
    needs_library(UCX);
    let script = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec \"$@\"";
    let enter = ["unshare", "-rn", "sh", "-c", script, "sh"];
    let entered = Command::new(enter[0]).args(&enter[1..]).arg("true").output();
    if !entered.is_ok_and(|output| output.status.success()) {
        absent("there are no network namespaces");
    }

    let over_ucx = [("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "ucx")];
    let outcome = job(&over_ucx).wrap(enter).run();
    if outcome.status.success() {
        absent("this UCX needs no IPv4 address");
    }
    // UCX warns, too.
    for words in ["this host has IPv6 addresses alone", "SHMEM_TRANSPORT=tcp"] {
        assert!(outcome.stderr.contains(words), "{outcome}");
    }
}

/// Returns a job with a PE on each host.
fn across(hosts: &Hosts) -> Job {
    let prefix = hosts.prefix();
    let script = format!("exec ip netns exec {prefix}$SHMEM_LOCAL_ID \"$0\" \"$@\"");
    Job::new("/bin/sh")
        .n(2)
        .arg("-c")
        .arg(script)
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0])
        .env("SHMEM_VIRTUAL_NODES", 2)
}

fn between_hosts_of_which_one_cannot_be_reached() {
    let hosts = Hosts::new("u", 2);
    let [first, second] = [0, 1].map(|host| hosts.host(host));
    across(&hosts).run().assert_ok(2);

    // The second host drops its replies, so it seems silent to the first one, as behind a firewall.
    let by_port = ["ipproto", "tcp", "sport", "1024-65534", "blackhole"];
    let add_rule = [&["-n", &second, "rule", "add"][..], &by_port].concat();
    if let Err(why) = ip(&add_rule) {
        absent(format!("this kernel has no rules by port: {why}"));
    }
    let silent = "nothing answers there: its host is down, or a firewall drops what is sent";
    let put = "PE 0: a put to PE 1";
    let words = [put, silent, "10.77.0.2:", "SHMEM_TCP_INTERFACE"];
    fails(across(&hosts), &words);
    let delete_rule = [&["-n", &second, "rule", "del"][..], &by_port].concat();
    ip(&delete_rule).expect("it was added");

    let no_route = "no route leads there";
    let route = ["blackhole", "10.77.0.1/32"];
    let add_route = [&["-n", &second, "route", "add"][..], &route].concat();
    ip(&add_route).expect("a route of ours");
    let words = ["PE 1: a put to PE 0", no_route, "10.77.0.1:"];
    fails(across(&hosts), &words);
    let delete_route = [&["-n", &second, "route", "del"][..], &route].concat();
    ip(&delete_route).expect("it was added");

    let down = "of this host's interfaces w is down";
    ip(&["-n", &second, "link", "set", "w", "down"]).expect("a device of ours");
    fails(across(&hosts), &[no_route, down, "PE 0", "PE 1"]);
    ip(&["-n", &first, "link", "set", "w", "down"]).expect("a device of ours");
    fails(across(&hosts), &[no_route, down]);
}

fn on_a_host_that_does_not_answer() {
    if Command::new("ssh").arg("-V").output().is_err() {
        absent("ssh is not here");
    }

    let hosts = Hosts::new("s", 2);
    let host = hosts.host(0);
    // What is sent to this address goes to a link-layer address that nothing has.
    let neighbor = "neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev w nud permanent";
    let mut words = vec!["-n", &host];
    words.extend(neighbor.split(' '));
    ip(&words).expect("a device of ours");

    for (address, said) in [
        ("10.77.0.9", "Connection timed out"),
        ("10.77.0.7", "No route to host"),
        ("10.77.0.2", "Connection refused"),
    ] {
        let outcome = Job::new(scenario!("heap_size.c"))
            .launcher_options(["-H", address])
            .wrap(["ip", "netns", "exec", &host])
            .timeout(patient(SOON))
            .run();

        let check = format!("check that ssh {address} true works");
        let message = outcome.assert_fails(&[said, &check]);
        let start = format!("oshrun: cannot start the PEs of host {address}: ");
        assert!(message.starts_with(&start), "{outcome}");
    }
}

/// Returns a job whose PEs have a limit, which is set by this shell command.
fn limited(command: &str, n: usize) -> Job {
    Job::new("/bin/sh")
        .n(n)
        .arg("-c")
        .arg(format!("{command}; exec \"$0\" \"$@\""))
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0])
        .env("SHMEM_ONNODE", "off")
}

fn with_too_few_descriptors() {
    let of_pes = limited("ulimit -n 8", 6).timeout(patient(SOON)).run();
    let words = [
        "this PE has 8 files open and may have no more",
        "raise `ulimit -n`",
    ];
    of_pes.assert_fails(&words);

    let script = "ulimit -n 20; exec \"$@\"";
    let of_oshrun = job(&[])
        .wrap(["sh", "-c", script, "sh"])
        .timeout(patient(SOON))
        .run();
    of_oshrun.assert_fails(&[
        "oshrun: any job needs ",
        "the limit is 20",
        "raise it with ulimit -n",
    ]);
}

/// The shared memory of a node is not in /dev/shm, and UCX and libfabric work without files there.
fn with_a_full_dev_shm_jobs_run() {
    let mount = "mount -t tmpfs -o ro,size=4k tiny /dev/shm && exec \"$@\"";
    let with_tiny = ["unshare", "-m", "sh", "-c", mount, "sh"];
    let probe = Job::direct("true").wrap(with_tiny).run();
    if !probe.status.success() {
        absent("no file system can be mounted here");
    }

    for (transport, library) in [("tcp", None), ("ucx", Some(UCX)), ("ofi", Some(LIBFABRIC))] {
        if let Some(library) = library {
            needs_library(library);
        }
        job(&[("SHMEM_TRANSPORT", transport)])
            .wrap(with_tiny)
            .run()
            .assert_ok(2);
    }
}

/// A control group for memory, of version 1 or 2, which is removed when this is dropped.
struct Group(PathBuf);

impl Group {
    /// Makes a group with this limit in bytes. The test is ignored if that is impossible.
    fn with_memory(limit: &str) -> Group {
        let name = format!("rushmem-test-{}", std::process::id());
        // Version 1, version 2, and version 2 beside version 1.
        for (dir, file) in [
            ("memory", "memory.limit_in_bytes"),
            ("", "memory.max"),
            ("unified", "memory.max"),
        ] {
            let path = Path::new("/sys/fs/cgroup").join(dir).join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }

            // Dropped, and so removed, if it has no such limit.
            let group = Group(path);
            if fs::write(group.0.join(file), limit).is_ok() {
                return group;
            }
        }
        absent("no control group for memory can be made here")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn in_a_control_group_with_too_little_memory() {
    let group = Group::with_memory("67108864");
    let text = "
        #include <shmem.h>
        #include <stdio.h>
        #include <string.h>
        int main(void) {
            /* The kernel ends PEs first, and not oshrun, which is in the group, too. */
            FILE *score = fopen(\"/proc/self/oom_score_adj\", \"w\");
            fputs(\"1000\", score);
            fclose(score);
            shmem_init();
            size_t nbytes = (size_t)256 << 20;
            memset(shmem_malloc(nbytes), 1, nbytes);
            shmem_barrier_all();
            shmem_finalize();
        }
    ";

    let program = testkit::compile_text("touches.c", text, tmpdir(), &[]);
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let outcome = Job::new(program)
        .n(2)
        .wrap(["sh", "-c", &enter, "sh"])
        .run();

    assert_eq!(outcome.code(), 137, "{outcome}");
    let mut lines = outcome.stderr.lines();
    let warning = lines.next().unwrap_or_default();
    let shortage = "bytes of their symmetric heaps, but";
    assert!(warning.contains(shortage), "{outcome}");

    let message = lines.next().unwrap_or_default();
    let killed = "oshrun: the kernel has killed PE ";
    assert!(message.starts_with(killed), "{outcome}");
    for word in [
        "for lack of memory",
        "64 MiB (",
        "request more memory",
        "start fewer PEs",
    ] {
        assert!(message.contains(word), "{word}\n{outcome}");
    }

    // A heap that is larger than the memory takes only what the program touches.
    let outcome = Job::new(scenario!("heap_size.c"))
        .n(2)
        .args([1 << 20, 0])
        .env("SHMEM_SYMMETRIC_SIZE", "1g")
        .wrap(["sh", "-c", &enter, "sh"])
        .run();
    outcome.assert_ok(2);
    assert!(outcome.stderr.is_empty(), "{outcome}");
}

fn as_processes_that_would_each_be_alone() {
    for (variables, words) in [
        (
            &[("PMI_SIZE", "2"), ("PMI_RANK", "1")][..],
            ["PE 1 of several", "PMI_FD", "oshrun"],
        ),
        (
            &[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")],
            ["PE 1 of several", "without a PMI", "srun --mpi=pmix"],
        ),
        (
            &[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")],
            ["PE 1 of several", "PMIX_RANK is not set", "oshrun"],
        ),
    ] {
        Job::direct(scenario!("heap_size.c"))
            .args([0, 0])
            .timeout(patient(SOON))
            .envs(variables)
            .run()
            .assert_fails(&words);
    }
}

testkit::module_tests! {
    without_the_library_of_a_transport,
    with_a_provider_of_libfabric_that_refuses,
    with_a_variable_in_the_way_of_ucx,
    over_an_interface_without_a_usable_address,
    without_a_loopback_interface,
    with_ipv6_addresses_alone,
    between_hosts_of_which_one_cannot_be_reached,
    on_a_host_that_does_not_answer,
    with_too_few_descriptors,
    with_a_full_dev_shm_jobs_run,
    in_a_control_group_with_too_little_memory,
    as_processes_that_would_each_be_alone,
}
