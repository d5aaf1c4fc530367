//! Runs the commands of the pages for users. tests/sites has the pages that need more than every
//! machine has.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use testkit::pages::{Page, blocks};
use testkit::{Job, compile, prefix};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const REGISTRY: &str = "needs a registry of packages; python.rs runs the program";
const RELEASE: &str = "the step `release` makes and installs these files";

/// Blocks that are not run: the page, the start of the block, and the reason.
const LEFT_OUT: [(&str, &str, &str); 9] = [
    ("first-hour", "python3 -m venv", REGISTRY),
    ("first-hour", "oshrun -n 4 python ring.py", REGISTRY),
    (
        "installing",
        "cd /usr/local",
        "removes files; ci/task-support/src/installation/files.rs tests it",
    ),
    ("installing", "pip install cargo-zigbuild", RELEASE),
    (
        "installing",
        "./configure CC=oshcc",
        "ci/xtask/tests/installed/packages.rs configures a project",
    ),
    (
        "installing",
        "./configure PKG",
        "ci/xtask/tests/installed/packages.rs configures a project",
    ),
    (
        "launching",
        "shmem-info --topology --xml",
        "needs hwloc, which `cargo xtask test --bare` hides; launcher/shmem-info/tests run it",
    ),
    ("races", "cargo +nightly", "needs a nightly compiler"),
    (
        "measuring",
        "shmem-perf build",
        "needs another library; `cargo xtask bench-peer` does it",
    ),
];

/// Scripts that stand for programs that a test machine lacks.
const STAND_INS: [(&str, &str); 4] = [
    // Every host is this machine.
    ("ssh", "for command; do :; done; exec sh -c \"$command\""),
    // The step `slurm` of the tests has a real Slurm.
    ("salloc", "exit 0"),
    // The library is installed, and one build serves the release of a page and its other runs.
    (
        "cargo",
        "case $* in \"xtask install --prefix $HOME/rushmem\") exit ;; run) set -- run --release ;; esac\n\
         exec \"$CARGO\" \"$@\"",
    ),
    // A short measurement.
    (
        "shmem-perf",
        "case $1 in compare) shift; set -- compare --threshold 100000 \"$@\" ;; *) set -- \"$@\" --time 0.2 ;; esac\n\
         exec \"$HOME/rushmem/bin/shmem-perf\" \"$@\"",
    ),
];

/// Runs the blocks of commands of a page, after the commands `prepare`.
fn run(name: &'static str, prepare: &str) {
    let page = Page::open(name, env!("CARGO_TARGET_TMPDIR"));
    for (command, script) in STAND_INS {
        page.stand_in(command, script);
    }
    add_installations(&page);
    add_files(&page);
    page.shell(prepare);

    let mut left_out = Vec::new();
    for (of, begin, why) in LEFT_OUT {
        if of == name {
            left_out.push((begin, why));
        }
    }

    let blocks = page.blocks("sh");
    for (begin, why) in &left_out {
        let is_there = blocks.iter().any(|block| block.starts_with(begin));
        assert!(is_there, "no {begin}: {why}");
    }
    for block in &blocks {
        let is_left_out = left_out.iter().any(|(begin, _)| block.starts_with(begin));
        if !is_left_out {
            page.shell(block);
        }
    }
    page.end();
}

/// Makes the directories of two installations, which pages compare.
fn add_installations(page: &Page) {
    for of in ["old/bin", "new/bin"] {
        let bin = page.dir().join(of);
        fs::create_dir_all(&bin).expect("a directory");
        symlink(prefix().join("bin/oshrun"), bin.join("oshrun")).expect("a link");
        symlink(page.dir().join("bin/shmem-perf"), bin.join("shmem-perf")).expect("a link");
    }
}

/// Writes the files that commands of pages name.
fn add_files(page: &Page) {
    let first_hour = fs::read_to_string(format!("{ROOT}/docs/first-hour.md")).expect("a page");
    let program = &blocks(&first_hour, "c")[0];
    page.write("ring.c", program);
    page.write("program.c", program);
    page.write("ring.f90", &blocks(&first_hour, "fortran")[0]);
    page.write("hosts", "a\nb slots=2\n");
}

/// The README shows the output of its program, and the report of a race in the same program without
/// the barrier. The numbers of PEs in the report vary.
#[test]
fn readme() {
    let text = fs::read_to_string(format!("{ROOT}/README.md")).expect("a page");
    let program = &blocks(&text, "c")[0];
    let [output, race] = &blocks(&text, "text")[..] else {
        panic!("two outputs are shown")
    };

    let output: Vec<String> = output.lines().map(any_pe).collect();
    assert_eq!(printed(program, ""), output);

    let without_barrier: String = program
        .split_inclusive('\n')
        .filter(|line| !line.contains("barrier"))
        .collect();
    let report = printed(&without_barrier, "--race");
    for line in race.lines().map(any_pe) {
        assert!(report.contains(&line), "no {line:?} in {report:#?}");
    }
}

/// Compiles a program with these options, and runs it on 4 PEs. Returns the lines of its output,
/// without the numbers of PEs.
fn printed(program: &str, options: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("ring.c"), program).expect("a file");

    let commands = format!("oshcc {options} ring.c -o ring && oshrun -n 4 ./ring");
    let bin = prefix().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("timeout")
        .args(["60", "bash", "-c", &commands])
        .current_dir(dir.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .output()
        .expect("bash");

    let both = [output.stdout, output.stderr].concat();
    let both = String::from_utf8(both).expect("text");
    both.lines().map(any_pe).collect()
}

/// Returns a line without the numbers of PEs.
fn any_pe(line: &str) -> String {
    let mut parts = line.split("PE ");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result += "PE ";
        result += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    result
}

#[test]
fn first_hour() {
    run("first-hour", "");
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn installing() {
    run("installing", "");
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn launching() {
    run("launching", "oshcc program.c -o program");
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn checking() {
    run("checking", "oshcc program.c -o program");
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn crashes() {
    run("crashes", "");
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn races() {
    run("races", "");
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn profiling() {
    run("profiling", "oshcc program.c -o program");
}

#[test]
#[ignore = "part of `cargo xtask test --full`"]
fn measuring() {
    let runs = "for side in before after; do for i in 1 2 3 4; do \
                oshrun -n 2 shmem-perf -o $side-$i.json; done; cp $side-1.json $side.json; done";
    run("measuring", runs);
}

/// The programs of this page are also examples of the Rust documentation, which `--more` runs; here
/// they are built as a user's. The library is compiled without optimization, and the result is kept
/// for the next run. The package of the program is a workspace of its own: otherwise, in a target
/// directory within the repository, it would be a part of the repository's workspace.
#[test]
#[ignore = "part of `cargo xtask test --full`"]
fn rust() {
    let text = fs::read_to_string(format!("{ROOT}/docs/rust.md")).expect("a page");
    let program = &blocks(&text, "rust")[0];
    let config = &blocks(&text, "toml")[0];

    let settings = "[net]\noffline = true\n[profile.release]\nopt-level = 0\ndebug = 0\n";
    let manifest = "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [workspace]\nexclude = [\"rushmem\"]\n";
    let prepare = format!(
        "ln -s '{ROOT}' rushmem\ncp rushmem/Cargo.lock .\nmkdir -p src .cargo ../pages-target\n\
         ln -s ../pages-target target\ncat > .cargo/config.toml <<'END'\n{config}{settings}END\n\
         cat > Cargo.toml <<'END'\n{manifest}END\ncat > src/main.rs <<'END'\n{program}END"
    );
    run("rust", &prepare);
}

/// The C programs that produced figures of the pages compile. Those that no `cargo xtask bench-...`
/// runs are run here with few operations.
#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn programs_behind_figures_compile_and_run() {
    let benches = Path::new(ROOT).join("benches");
    let mut oshcc = Command::new(prefix().join("bin/oshcc"));
    oshcc
        .args(["-fsyntax-only", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg("-pthread");
    for dir in [benches.clone(), benches.join("kernels")] {
        for file in fs::read_dir(dir).expect("a directory") {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|name| name == "c") {
                oshcc.arg(path);
            }
        }
    }
    assert!(oshcc.status().expect("oshcc starts").success());

    let tmpdir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (source, nodes, arguments) in [
        ("contexts.c", "1", &["2", "p", "own", "100"][..]),
        ("contexts.c", "1", &["2", "inc", "default", "100"]),
        ("sessions.c", "2", &["4"]),
        ("by_hand.c", "1", &["2"]),
    ] {
        let program = compile(&benches.join(source), tmpdir, &["-pthread"]);
        let outcome = Job::new(program)
            .n(2)
            .args(arguments)
            .env("SHMEM_VIRTUAL_NODES", nodes)
            .run();
        assert!(outcome.status.success(), "{source}: {outcome}");
        assert!(!outcome.stdout.is_empty(), "{source}: {outcome}");
    }
}
