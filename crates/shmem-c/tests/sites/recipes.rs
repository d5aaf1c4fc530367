//! Runs the recipes of docs/unlaunched.md unchanged. `slurm` runs those of Slurm.
//!
//! They run in network namespaces, where their ports are free. Scripts stand for Flux and
//! Kubernetes, and for `torchrun` if that is not installed. Without podman or pytest, their tests
//! are ignored.

use std::process::{Command, Output};

use crate::namespaces::Hosts;
use testkit::absent;
use testkit::pages::{Page, blocks};

/// Words that identify each block of commands on the page. A test here or in `slurm` runs each
/// block.
const COMMANDS: [&str; 9] = [
    "SHMEM_RANK=$rank ./program",
    "podman run",
    "apptainer",
    "torchrun",
    "python3 test_ring.py",
    "pytest test_ring.py",
    "> ~/secret",
    "srun --mpi=none",
    "flux run",
];

/// Opens the page in a directory of this test, with a program that [`assert_rings`] knows.
pub fn page(test: &str) -> Page {
    let dir = format!("{}/recipes-{test}", env!("CARGO_TARGET_TMPDIR"));
    let page = Page::open("unlaunched", &dir);

    let first_hour = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/first-hour.md");
    let text = std::fs::read_to_string(first_hour).expect("a page");
    page.write("ring.c", &blocks(&text, "c")[0]);
    page.shell("oshcc ring.c -o program");

    page
}

/// Checks the output of the program in a job of `n` PEs.
#[track_caller]
pub fn assert_rings(output: &Output, n: usize) {
    let mut expected = Vec::new();
    for pe in 0..n {
        expected.push(format!("PE {pe} heard from PE {}", (pe + n - 1) % n));
    }
    assert_prints(output, &expected);
}

/// Checks the lines of an output, which come in any order. `expected` is sorted.
#[track_caller]
fn assert_prints(output: &Output, expected: &[String]) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();

    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(lines, expected, "{errors}");
}

/// Runs the block of commands with these words on the first host.
fn run(page: &Page, hosts: &Hosts, words: &str) -> Output {
    run_on_host(page, hosts, &page.block("sh", words))
}

fn run_on_host(page: &Page, hosts: &Hosts, commands: &str) -> Output {
    page.write("block.sh", commands);
    let host = hosts.host(0);
    // `ip netns exec` cannot be used, since it mounts a /sys without control groups. Without
    // buffering, Python would write a line in two parts.
    let enter = format!("env -u PYTHONUNBUFFERED nsenter --net=/run/netns/{host}");
    page.shell(&format!("{enter} bash -euo pipefail block.sh"))
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|found| found.status.success())
}

fn every_block_of_commands_is_known() {
    let page = page("all");
    assert_eq!(page.blocks("sh").len(), COMMANDS.len());
    for words in COMMANDS {
        page.block("sh", words);
    }
    page.end();
}

fn by_a_shell() {
    let hosts = Hosts::new("s", 1);
    let page = page("shell");

    assert_rings(&run(&page, &hosts, "SHMEM_RANK=$rank ./program"), 4);
    page.end();
}

/// Stands for `torchrun --nproc_per_node 4 PROGRAM`.
const TORCHRUN: &str = "export WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=29500; s=0; p=
for r in 0 1 2 3; do RANK=$r python3 \"$3\" & p=\"$p $!\"; done
for i in $p; do wait $i || s=$?; done; exit $s";

fn torchrun() {
    let hosts = Hosts::new("t", 1);
    let page = page("torchrun");
    page.write("train.py", &page.block("python", "MASTER_ADDR"));
    if !is_installed("torchrun") {
        page.stand_in("torchrun", TORCHRUN);
    }

    let output = run(&page, &hosts, "torchrun");
    assert_prints(&output, &[0, 1, 2, 3].map(|pe| format!("PE {pe} of 4")));
    page.end();
}

fn multiprocessing() {
    let hosts = Hosts::new("m", 1);
    let page = page("multiprocessing");
    page.write("test_ring.py", &page.block("python", "multiprocessing"));

    run(&page, &hosts, "python3 test_ring.py");
    page.end();
}

fn pytest() {
    if !is_installed("pytest") {
        absent("pytest is not here");
    }

    let hosts = Hosts::new("p", 1);
    let page = page("pytest");
    page.write("test_ring.py", &page.block("python", "multiprocessing"));

    let output = run(&page, &hosts, "pytest test_ring.py");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(" 1 passed"), "{output:?}");
    page.end();
}

/// Stands for Flux in an allocation of this machine. It sets the variables that flux-run(1) names.
const FLUX: &str = "case $* in
'hostlist -n 0 local') echo localhost; exit ;;
'run -n 8 ./program') ;;
*) exit 2 ;;
esac
export FLUX_JOB_ID=f1 FLUX_JOB_SIZE=8 FLUX_JOB_NNODES=1; s=0; p=
for r in $(seq 0 7); do FLUX_TASK_RANK=$r FLUX_TASK_LOCAL_ID=$r ./program & p=\"$p $!\"; done
for i in $p; do wait $i || s=$?; done; exit $s";

fn flux() {
    let hosts = Hosts::new("f", 1);
    let page = page("flux");
    page.stand_in("flux", FLUX);

    run(&page, &hosts, "> ~/secret");
    assert_rings(&run(&page, &hosts, "flux run"), 8);
    page.end();
}

/// A wrapper for podman. It keeps images in the directory of the test, and the state of containers
/// in `RUN`, whose path must be short. Containers share this machine's `/usr`, and have limits that
/// every user may set. runc is preferred, since crun fails if both versions of control groups are
/// mounted. A build is tried again, since it starts from a copy of podman in memory, which Linux
/// sometimes refuses to seal while it is in use.
const PODMAN: &str = "command=$1; shift
case $command in
build) options='--isolation chroot --volume /usr:/usr:ro' ;;
run) options='--volume /usr:/usr:ro --ulimit nofile=1024:1024 --ulimit nproc=4096:4096' ;;
esac
runtime=$(command -v runc || command -v crun)
set -- --root \"$HOME/images\" --runroot \"$RUN\" --runtime \"$runtime\" --cgroup-manager cgroupfs \\
    $command ${options-} \"$@\"
PATH=${PATH#*:}
if [ $command = build ]; then
    for attempt in 1 2; do podman \"$@\" && exit; done
fi
exec podman \"$@\"";

/// Makes the base images of the page from this machine's files. If podman cannot run a container,
/// prints the reason.
const BASES: &str = "mkdir -p base/usr base/tmp base/opt
for link in bin sbin lib lib64; do cp -a /$link base; done
printf '%s\\n' 'FROM scratch' 'COPY . /' 'ENV PATH=/opt/rushmem/bin:/usr/bin OSHCC_CC=gcc' > Base
podman build -q -t docker.io/library/debian:bookworm-slim -f Base base >&2
if podman run --rm --network host debian:bookworm-slim true 2>why; then
    cp -a \"$(realpath ~/rushmem)\" base/opt/rushmem
    podman build -q -t rushmem -f Base base >&2
else
    cat why
fi";

fn one_container_for_each_pe() {
    if !is_installed("podman") {
        absent("podman is not here");
    }

    let hosts = Hosts::new("c", 1);
    let page = page("podman");
    let run_dir = tempfile::tempdir().expect("a directory");
    let podman = format!("RUN={}\n{PODMAN}", run_dir.path().display());
    page.stand_in("podman", &podman);

    let why = String::from_utf8_lossy(&page.shell(BASES).stdout).into_owned();
    if !why.is_empty() {
        page.shell("podman system reset --force");
        page.end();
        absent(format!("podman runs no containers here: {}", why.trim()));
    }

    page.write("Dockerfile", &page.block("dockerfile", "FROM rushmem"));
    page.shell("podman build -t ring .");

    let commands = "export SHMEM_DEBUG=2\n".to_owned() + &page.block("sh", "podman run");
    let output = run_on_host(&page, &hosts, &commands);
    assert_rings(&output, 4);

    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches(" n_pes=4 n_local=4 ").count(), 4, "{said}");

    page.shell("podman system reset --force");
    page.end();
}

/// Stands for Kubernetes: checks the manifest and starts its pods in network namespaces. The name
/// of the first pod is replaced by its address. The arguments are the program and the namespaces.
const KUBERNETES: &str = r#"
import os, subprocess, sys, yaml
service, secret, job = yaml.safe_load_all(sys.stdin)
assert [part["kind"] for part in (service, secret, job)] == ["Service", "Secret", "Job"]
assert [part["apiVersion"] for part in (service, secret, job)] == ["v1", "v1", "batch/v1"]
name, size, spec = job["metadata"]["name"], job["spec"]["completions"], job["spec"]
assert spec["completionMode"] == "Indexed" and spec["parallelism"] == size
assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
assert service["spec"]["selector"] == {"job-name": name}
pod = spec["template"]["spec"]
assert pod["subdomain"] == service["metadata"]["name"] and pod["restartPolicy"] == "Never"
[container] = pod["containers"]
assert container["image"] and container["command"]
variables = {}
for variable in container["env"]:
    source = variable.get("valueFrom", {}).get("secretKeyRef")
    if source:
        assert source["name"] == secret["metadata"]["name"]
        variables[variable["name"]] = secret["stringData"][source["key"]]
    else:
        assert isinstance(variable["value"], str)
        variables[variable["name"]] = variable["value"]
place = f"{name}-0.{pod['subdomain']}"
assert variables["SHMEM_JOB"].startswith(place + ":") and variables["SHMEM_SIZE"] == str(size)
variables["SHMEM_JOB"] = variables["SHMEM_JOB"].replace(place, "10.77.0.1")
pods = []
for index, host in enumerate(sys.argv[2:]):
    environment = os.environ | variables | {"JOB_COMPLETION_INDEX": str(index)}
    pods.append(subprocess.Popen(["ip", "netns", "exec", host, sys.argv[1]], env=environment))
assert len(pods) == size and all(pod.wait() == 0 for pod in pods)
"#;

fn kubernetes() {
    let import = Command::new("python3").args(["-c", "import yaml"]).status();
    if !import.is_ok_and(|status| status.success()) {
        absent("there is no python3 with the module yaml");
    }

    let hosts = Hosts::new("k", 4);
    let page = page("kubernetes");
    page.write("job.yaml", &page.blocks("yaml")[0]);
    if is_installed("kubernetes-validate") {
        page.shell("kubernetes-validate --strict job.yaml");
    }

    page.write("pods.py", KUBERNETES);
    let names: Vec<String> = (0..4).map(|number| hosts.host(number)).collect();
    let pods = format!("python3 pods.py ./program {} < job.yaml", names.join(" "));
    assert_rings(&page.shell(&pods), 4);
    page.end();
}

testkit::module_tests! {
    every_block_of_commands_is_known,
    by_a_shell,
    torchrun,
    multiprocessing,
    pytest,
    flux,
    one_container_for_each_pe,
    kubernetes,
}
