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
        .find(|line| line.contains("shmem_init: "));
    let message = message.unwrap_or_else(|| panic!("no message\n{outcome}"));

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

fn with_a_provider_of_libfabric_that_refuses() {
    needs_library(LIBFABRIC);
    let ofi = ("SHMEM_TRANSPORT", "ofi");
    let udp = "udp: refuses FI_EP_RDM (reliable datagrams): with FI_EP_DGRAM it would do";
    let provider = |name| job(&[ofi, ("SHMEM_OFI_PROVIDER", name)]);

    fails(
        provider("udp"),
        &["SHMEM_OFI_PROVIDER=udp", udp, "--doctor"],
    );

    let none = "SHMEM_OFI_PROVIDER is nosuch, and there is no such provider: there are ";
    fails(provider("nosuch"), &[none, "tcp;ofi_rxm"]);

    fails(
        job(&[ofi, ("FI_PROVIDER", "nosuch")]),
        &["with FI_PROVIDER=nosuch"],
    );

    let over_tcp = provider("tcp;ofi_rxm").env("SHMEM_TCP_INTERFACE", "nosuch0");
    fails(
        over_tcp,
        &["its interface is ", ", but SHMEM_TCP_INTERFACE is nosuch0"],
    );

    let dir = strict_fabric::dir(tmpdir()).expect("it is built");
    let strict = provider("strict")
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
    let program = scenario!("heap_size.c");

    let job = Job::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg(program.display());
    let job = job.n(2).arg(1 << 20).arg(0).env("SHMEM_ONNODE", "off");
    job.env("SHMEM_TRANSPORT", "tcp")
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

/// Returns a job with a PE on each host.
fn across(hosts: &Hosts) -> Job {
    let script = format!(
        "exec ip netns exec {}$SHMEM_LOCAL_ID \"$0\" \"$@\"",
        hosts.prefix()
    );
    let program = scenario!("heap_size.c");

    let job = Job::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg(program.display());
    job.n(2).arg(1 << 20).arg(0).env("SHMEM_VIRTUAL_NODES", 2)
}

fn between_hosts_of_which_one_cannot_be_reached() {
    let hosts = Hosts::new("u", 2);
    let [first, second] = [0, 1].map(|host| hosts.host(host));
    across(&hosts).run().assert_ok(2);

    // The second host drops its replies, so it seems silent to the first one, as behind a firewall.
    let filter = ["rule", "ipproto", "tcp", "sport", "1024-65534", "blackhole"];
    let filtered = |verb| {
        let words = [&["-n", &second, filter[0], verb][..], &filter[1..]].concat();
        ip(&words)
    };
    if let Err(why) = filtered("add") {
        absent(format!("this kernel has no rules by port: {why}"));
    }

    let silent = "nothing answers there: its host is down, or a firewall drops what is sent";
    fails(
        across(&hosts),
        &[
            "PE 0: a put to PE 1",
            silent,
            "10.77.0.2:",
            "SHMEM_TCP_INTERFACE",
        ],
    );
    filtered("del").expect("it was added");

    let way = |verb| ip(&["-n", &second, "route", verb, "blackhole", "10.77.0.1/32"]);
    way("add").expect("a route of ours");
    fails(
        across(&hosts),
        &["PE 1: a put to PE 0", "no route leads there", "10.77.0.1:"],
    );
    way("del").expect("it was added");

    ip(&["-n", &second, "link", "set", "w", "down"]).expect("a device of ours");
    let down = "no route leads there";
    fails(
        across(&hosts),
        &[down, "of this host's interfaces w is down", "PE 0", "PE 1"],
    );

    ip(&["-n", &first, "link", "set", "w", "down"]).expect("a device of ours");
    fails(
        across(&hosts),
        &[down, "of this host's interfaces w is down"],
    );
}

fn on_a_host_that_does_not_answer() {
    if Command::new("ssh").arg("-V").output().is_err() {
        absent("ssh is not here");
    }

    let hosts = Hosts::new("s", 2);
    let host = hosts.host(0);
    let words = [
        "neigh",
        "add",
        "10.77.0.9",
        "lladdr",
        "02:00:00:00:00:09",
        "dev",
        "w",
    ];
    ip(&[&["-n", &host][..], &words, &["nud", "permanent"]].concat()).expect("a device of ours");

    for (address, said) in [
        ("10.77.0.9", "Connection timed out"),
        ("10.77.0.7", "No route to host"),
        ("10.77.0.2", "Connection refused"),
    ] {
        let job = Job::new(scenario!("heap_size.c")).launcher_options(["-H", address]);
        let outcome = job
            .wrap(["ip", "netns", "exec", &host])
            .timeout(patient(SOON))
            .run();

        let start = format!("oshrun: cannot start the PEs of host {address}: ");
        let check = format!("check that ssh {address} true works");
        assert!(
            outcome.assert_fails(&[said, &check]).starts_with(&start),
            "{outcome}"
        );
    }
}

/// Returns a job whose PEs have a limit, which is set by this shell command.
fn limited(command: &str, n: usize) -> Job {
    let program = scenario!("heap_size.c");
    let job = Job::new("/bin/sh")
        .arg("-c")
        .arg(format!("{command}; exec \"$0\" \"$@\""));
    job.n(n)
        .arg(program.display())
        .arg(1 << 20)
        .arg(0)
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
    let words = ["unshare", "-m", "sh", "-c"];
    let tiny = "mount -t tmpfs -o ro,size=4k tiny /dev/shm && exec \"$@\"";
    if !Job::direct("true")
        .wrap(words)
        .wrap([tiny, "sh"])
        .run()
        .status
        .success()
    {
        absent("no file system can be mounted here");
    }

    let over = |transport| {
        job(&[("SHMEM_TRANSPORT", transport)])
            .wrap(words)
            .wrap([tiny, "sh"])
            .run()
            .assert_ok(2);
    };

    over("tcp");
    for (transport, library) in [("ucx", UCX), ("ofi", LIBFABRIC)] {
        needs_library(library);
        over(transport);
    }
}

/// A control group for memory, of version 1 or 2, which is removed when this is dropped.
struct Group(PathBuf);

impl Group {
    /// Makes a group with this limit in bytes. The test is ignored if that is impossible.
    fn with_memory(limit: &str) -> Group {
        let name = format!("rushmem-test-{}", std::process::id());
        let files = [
            "memory/memory.limit_in_bytes",
            "memory.max",
            "unified/memory.max",
        ];

        let made = files.iter().find_map(|file| {
            let (dir, file) = file.rsplit_once('/').unwrap_or(("", file));
            let group = Group(Path::new("/sys/fs/cgroup").join(dir).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(file), limit)
                .is_ok()
                .then_some(group)
        });

        made.unwrap_or_else(|| absent("no control group for memory can be made here"))
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
        #include <string.h>
        int main(void) {
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
    let warns = lines
        .next()
        .is_some_and(|line| line.contains("bytes of their symmetric heaps, but"));
    let first = lines.next().unwrap_or_default();
    assert!(
        warns && first.starts_with("oshrun: the kernel has killed PE "),
        "{outcome}"
    );
    for word in [
        "for lack of memory",
        "64 MiB (",
        "request more memory",
        "start fewer PEs",
    ] {
        assert!(first.contains(word), "{word}\n{outcome}");
    }

    // A heap that is larger than the memory takes only what the program touches.
    let with_little = Job::new(scenario!("heap_size.c")).n(2).arg(1 << 20).arg(0);
    let job = with_little
        .env("SHMEM_SYMMETRIC_SIZE", "1g")
        .wrap(["sh", "-c", &enter, "sh"]);
    let outcome = job.run();
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
        let job = Job::direct(scenario!("heap_size.c"))
            .args([0, 0])
            .timeout(patient(SOON))
            .envs(variables);
        job.run().assert_fails(&words);
    }
}

testkit::module_tests! {
    without_the_library_of_a_transport,
    with_a_provider_of_libfabric_that_refuses,
    with_a_variable_in_the_way_of_ucx,
    over_an_interface_without_a_usable_address,
    without_a_loopback_interface,
    between_hosts_of_which_one_cannot_be_reached,
    on_a_host_that_does_not_answer,
    with_too_few_descriptors,
    with_a_full_dev_shm_jobs_run,
    in_a_control_group_with_too_little_memory,
    as_processes_that_would_each_be_alone,
}
