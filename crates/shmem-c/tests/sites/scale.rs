//! Jobs with far more PEs than processors, and with an ordinary user's limits: the 3-D example, a
//! thousand barriers, 512 PEs, and the memory that each PE registers and receives at its start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Job, Outcome, compile, needs_library, prefix, program, scenario};

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
    let places = (0..xdim * ydim * zdim).map(|pe| {
        let x = pe % xdim;
        let y = pe / xdim % ydim;
        let z = pe / xdim / ydim;
        format!("({x}, {y}, {z}) is mype = {pe}")
    });

    std::iter::once(format!("xdim = {xdim}, ydim = {ydim}, zdim = {zdim}"))
        .chain(places)
        .collect()
}

fn assert_prints_box(outcome: &Outcome, dimensions: [usize; 3]) {
    let expected = box_of(dimensions);

    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.lines().count(), expected.len(), "{outcome}");
    assert_eq!(
        outcome.lines().map(str::to_owned).collect::<BTreeSet<_>>(),
        expected,
        "{outcome}"
    );
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

/// Runs a program without privileges, with limits of 1,024 descriptors (soft) and 64 KiB of locked
/// memory. The installation is copied, so that such a user can read it.
fn as_an_ordinary_user(program: &Path, n: usize) -> Outcome {
    let place = tempfile::tempdir().expect("a temporary directory");
    open_to_all(place.path());
    let copy = place.path().join("prefix");
    copy_all(&prefix(), &copy);
    let readable = place.path().join("program");
    copy_all(program, &readable);

    let is_root = rustix::process::geteuid().is_root();
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let limits = [
        "sh",
        "-c",
        "ulimit -Sn 1024 && ulimit -l 64 && exec \"$@\"",
        "sh",
    ];

    Job::new(&readable)
        .launcher(copy.join("bin/oshrun"))
        .n(n)
        .wrap(if is_root { &nobody[..] } else { &[] }.iter().copied())
        .wrap(limits)
        .dir(place.path())
        .timeout(Duration::from_secs(180))
        .run()
}

fn an_ordinary_user_runs_the_3d_example() {
    assert_prints_box(&as_an_ordinary_user(&split_3d(), 12), [3, 2, 2]);
}

fn an_ordinary_user_starts_512_pes() {
    as_an_ordinary_user(&scenario!("grid.c"), 512).assert_ok(512);
}

/// A fabric pins registered memory. Besides the user's memory, a PE registers at most 1 MiB and 200
/// bytes for each PE of the job, also with 1,000 teams.
fn the_library_registers_little_memory_of_its_own() {
    for (program, n) in [
        (scenario!("teams_thousand.c"), 3),
        (scenario!("grid.c"), 48),
    ] {
        let job = Job::new(program)
            .n(n)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", "tcp");
        let outcome = job.env("SHMEM_DEBUG", 2).run();
        outcome.assert_ok(n);

        let registered = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("registers memory"));

        let field = |line: &str, name: &str| {
            let found = line
                .split([' ', ','])
                .find_map(|word| word.strip_prefix(name));
            found
                .unwrap_or_else(|| panic!("no {name} in {line}"))
                .to_owned()
        };
        let number = |line: &str, name| field(line, name).parse().expect("a number");
        let nbytes: Vec<usize> = registered.map(|line| number(line, "own=")).collect();
        assert_eq!(nbytes.len(), n, "one for each PE: {outcome}");

        let allowed = (1 << 20) + 200 * n;
        assert!(
            nbytes.iter().all(|&nbytes| 0 < nbytes && nbytes <= allowed),
            "{nbytes:?}"
        );
    }
}

/// Returns the number of bytes that each PE has received from `oshrun` while it joined a job on 16
/// virtual nodes over this transport.
fn received_at_start(n: usize, transport: &str) -> Vec<usize> {
    let job = Job::new(scenario!("heap_size.c")).n(n).arg(1 << 20).arg(0);
    let nodes = job
        .env("SHMEM_VIRTUAL_NODES", 16)
        .env("SHMEM_TRANSPORT", transport);
    let job = nodes
        .env("SHMEM_SYMMETRIC_SIZE", "2M")
        .env("SHMEM_DEBUG", "bootstrap=trace");
    let outcome = job.timeout(Duration::from_secs(180)).run();
    outcome.assert_ok(n);

    let mut received = vec![0; n];
    for line in outcome
        .stderr
        .lines()
        .filter(|line| line.contains("has the records of all PEs"))
    {
        let number = |name: &str| -> usize {
            let found = line
                .split([' ', ','])
                .find_map(|word| word.strip_prefix(name));
            found
                .and_then(|number| number.parse().ok())
                .unwrap_or_else(|| panic!("{name}: {line}"))
        };

        let pe = &mut received[number("pe=")];
        *pe = number("received=").max(*pe);
    }

    received
}

/// The first PE of a machine receives the addresses of all PEs. The others receive as many bytes in
/// a large job as in a small one.
fn what_a_pe_receives_at_its_start_does_not_grow_with_the_job() {
    for (transport, library, sizes) in [
        ("tcp", None, [32, 512]),
        ("ucx", Some("libucp.so.0"), [16, 48]),
        ("ofi", Some("libfabric.so.1"), [16, 48]),
    ] {
        library.into_iter().for_each(needs_library);
        let [few, many] = sizes.map(|n| received_at_start(n, transport));
        let most = |received: &[usize]| *received[1..].iter().max().expect("several PEs");

        assert!(
            many.iter().all(|&nbytes| nbytes > 0),
            "{transport}: {many:?}"
        );
        assert!(
            most(&many) <= most(&few) + 100,
            "{transport}: {} {}",
            most(&few),
            most(&many)
        );
        assert!(
            many[0] <= most(&many) + 250 * many.len(),
            "{transport}: {}",
            many[0]
        );
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
    an_ordinary_user_starts_512_pes,
    the_library_registers_little_memory_of_its_own,
    what_a_pe_receives_at_its_start_does_not_grow_with_the_job,
}
