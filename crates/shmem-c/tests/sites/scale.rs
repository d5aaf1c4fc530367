//! Jobs with far more PEs than processors, and with an ordinary user's limits: the 3-D example, a
//! thousand barriers, hundreds of PEs, and the memory that each PE registers and receives at its
//! start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Job, Outcome, compile, every_size, needs_library, prefix, program, scenario};

fn example(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    compile(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &[])
}

fn split_3d() -> PathBuf {
    example("split_3d.c")
}

/// Returns the expected output of the example, where PE x + xdim (y + ydim z) is at (x, y, z).
fn box_of([xdim, ydim, zdim]: [usize; 3]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    lines.insert(format!("xdim = {xdim}, ydim = {ydim}, zdim = {zdim}"));
    for pe in 0..xdim * ydim * zdim {
        let x = pe % xdim;
        let y = pe / xdim % ydim;
        let z = pe / xdim / ydim;
        lines.insert(format!("({x}, {y}, {z}) is mype = {pe}"));
    }
    lines
}

fn assert_prints_box(outcome: &Outcome, dimensions: [usize; 3]) {
    let expected = box_of(dimensions);

    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.lines().count(), expected.len(), "{outcome}");
    let printed: BTreeSet<String> = outcome.lines().map(str::to_owned).collect();
    assert_eq!(printed, expected, "{outcome}");
}

/// Point 84: 12 PEs print 13 lines.
fn the_3d_example_on_few_pes() {
    for (n, dimensions) in [
        (1, [1, 1, 1]),
        (2, [2, 1, 1]),
        (8, [2, 2, 2]),
        (12, [3, 2, 2]),
    ] {
        assert_prints_box(&Job::new(split_3d()).n(n).run(), dimensions);
    }
}

fn the_3d_example_on_64_pes() {
    assert_prints_box(&Job::new(split_3d()).n(64).run(), [4, 4, 4]);
}

fn the_example_of_the_strided_split() {
    for (n, sum) in [(1, 0), (2, 0), (7, 12), (8, 12)] {
        let outcome = Job::new(example("team_split_strided.c")).n(n).run();
        assert!(outcome.status.success(), "{outcome}");

        let mut lines: Vec<&str> = outcome.lines().collect();
        lines.sort_unstable();
        let even = format!("the {} even PEs add up to {sum}", n.div_ceil(2));
        let expected = ["PE 1 is not among them", &even];
        assert_eq!(lines, expected[usize::from(n == 1)..], "{outcome}");
    }
}

fn a_thousand_barriers_on_64_pes() {
    Job::new(program!("barriers.c")).n(64).run().assert_ok(64);
}

/// Runs a program without privileges, with limits of `descriptors` (soft) and 64 KiB of locked
/// memory. The installation is copied, so that such a user can read it.
fn as_an_ordinary_user(program: &Path, n: usize, descriptors: usize) -> Outcome {
    let place = tempfile::tempdir().expect("a temporary directory");
    open_to_all(place.path());
    let copy = place.path().join("prefix");
    copy_all(&prefix(), &copy);
    let readable = place.path().join("program");
    copy_all(program, &readable);

    let mut job = Job::new(&readable)
        .launcher(copy.join("bin/oshrun"))
        .n(n)
        .dir(place.path())
        .timeout(Duration::from_secs(180));
    if rustix::process::geteuid().is_root() {
        job = job.wrap([
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]);
    }
    let limits = format!("ulimit -Sn {descriptors} && ulimit -l 64 && exec \"$@\"");
    job.wrap(["sh", "-c", &limits, "sh"]).run()
}

fn an_ordinary_user_runs_the_3d_example() {
    assert_prints_box(&as_an_ordinary_user(&split_3d(), 12, 1024), [3, 2, 2]);
}

/// Half as many PEs as descriptors: in `--full` 512 PEs with the usual limit.
fn an_ordinary_user_starts_half_as_many_pes_as_descriptors() {
    let n = if every_size() { 512 } else { 128 };
    as_an_ordinary_user(&scenario!("grid.c"), n, 2 * n).assert_ok(n);
}

/// A fabric pins registered memory. Besides the user's memory, a PE registers at most 1 MiB and 200
/// bytes for each PE of the job, also with 1,000 teams.
fn the_library_registers_little_memory_of_its_own() {
    for (program, n) in [
        (scenario!("teams_thousand.c"), 3),
        (scenario!("grid.c"), 48),
    ] {
        let outcome = Job::new(program)
            .n(n)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", "tcp")
            .env("SHMEM_DEBUG", 2)
            .run();
        outcome.assert_ok(n);

        let allowed = (1 << 20) + 200 * n;
        let mut n_lines = 0;
        for line in outcome.stderr.lines() {
            if line.contains("registers memory") {
                let nbytes = number(line, "own=");
                assert!(0 < nbytes && nbytes <= allowed, "{line}");
                n_lines += 1;
            }
        }
        assert_eq!(n_lines, n, "one for each PE: {outcome}");
    }
}

/// Returns the number that follows `name` in a line.
fn number(line: &str, name: &str) -> usize {
    line.split([' ', ','])
        .find_map(|word| word.strip_prefix(name))
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no number {name} in {line}"))
}

/// Returns the number of bytes that each PE has received from `oshrun` while it joined a job on 16
/// virtual nodes over this transport.
fn received_at_start(n: usize, transport: &str) -> Vec<usize> {
    let outcome = Job::new(scenario!("heap_size.c"))
        .n(n)
        .args([1 << 20, 0])
        .env("SHMEM_VIRTUAL_NODES", 16)
        .env("SHMEM_TRANSPORT", transport)
        .env("SHMEM_SYMMETRIC_SIZE", "2M")
        .env("SHMEM_DEBUG", "bootstrap=trace")
        .timeout(Duration::from_secs(180))
        .run();
    outcome.assert_ok(n);

    let mut received = vec![0; n];
    for line in outcome.stderr.lines() {
        if line.contains("has the records of all PEs") {
            let of_pe = &mut received[number(line, "pe=")];
            *of_pe = number(line, "received=").max(*of_pe);
        }
    }
    received
}

/// Returns the maximum of the PEs that are not the first of a machine.
fn max_of_others(received: &[usize]) -> usize {
    received[1..].iter().copied().max().expect("several PEs")
}

/// The first PE of a machine receives the addresses of all PEs. The others receive as many bytes in
/// a large job as in a small one.
fn what_a_pe_receives_at_its_start_does_not_grow_with_the_job() {
    for (transport, library, sizes) in [
        ("tcp", None, [16, 64]),
        ("ucx", Some("libucp.so.0"), [16, 48]),
        ("ofi", Some("libfabric.so.1"), [16, 48]),
    ] {
        if let Some(library) = library {
            needs_library(library);
        }
        let [few, many] = sizes.map(|n| received_at_start(n, transport));
        let are_counted = many.iter().all(|&nbytes| nbytes > 0);
        assert!(are_counted, "{transport}: {many:?}");

        let of_few = max_of_others(&few);
        let of_many = max_of_others(&many);
        assert!(of_many <= of_few + 100, "{transport}: {of_few} {of_many}");

        let first = many[0];
        let allowed = of_many + 250 * many.len();
        assert!(first <= allowed, "{transport}: {first}");
    }
}

fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// Copies a file or directory by the program `cp`. If this process wrote the file, a child of
/// another test could still have it open for writing, and the kernel would refuse to run it.
fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-rL").arg(from).arg(to).status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "{} is not copied",
        from.display()
    );
}

testkit::module_tests! {
    the_3d_example_on_few_pes,
    the_3d_example_on_64_pes,
    the_example_of_the_strided_split,
    a_thousand_barriers_on_64_pes,
    an_ordinary_user_runs_the_3d_example,
    an_ordinary_user_starts_half_as_many_pes_as_descriptors,
    the_library_registers_little_memory_of_its_own,
    what_a_pe_receives_at_its_start_does_not_grow_with_the_job,
}
