//! Runs each block of commands of the pages for users as it stands, in bash, in a directory with
//! the programs that the page is about. What no machine of tests has is a stand-in (other hosts are
//! this one) or is left out, with the reason.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::prefix;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Seconds for a block.
const LIMIT: &str = "900";

const REGISTRY: &str = "needs a registry of packages; shmem4py.rs runs such programs";
const RELEASE: &str = "the step `release` makes and installs these files";

/// Blocks that are left out: the page, how the block begins, and why.
const LEFT_OUT: [(&str, &str, &str); 9] = [
    ("first-hour", "python3 -m venv", REGISTRY),
    ("first-hour", "oshrun -n 4 python ring.py", REGISTRY),
    (
        "installing",
        "cd /usr/local",
        "removes files; a test of ci/xtask/src/install/files.rs runs it",
    ),
    ("installing", "pip install cargo-zigbuild", RELEASE),
    (
        "installing",
        "./configure CC=oshcc",
        "ci/xtask/tests/installed/packages.rs configures a project",
    ),
    ("installing", "./configure PKG", "ci/xtask/tests/installed/packages.rs configures a project"),
    (
        "launching",
        "shmem-info --topology --xml",
        "needs hwloc, which `cargo xtask test --bare` hides; launcher/shmem-info/tests run it",
    ),
    ("races", "cargo +nightly", "needs a nightly compiler"),
    ("measuring", "shmem-perf build", "needs another library; `cargo xtask bench-peer` does it"),
];

/// Programs that stand for what is not here.
const STAND_INS: [(&str, &str); 4] = [
    // Every host is this machine.
    ("ssh", "for command; do :; done; exec sh -c \"$command\""),
    // The step `slurm` has a real one.
    ("salloc", "exit 0"),
    ("cargo", "[ \"$*\" = \"xtask install --prefix $HOME/rushmem\" ] || exec \"$CARGO\" \"$@\""),
    // A short measurement.
    (
        "shmem-perf",
        "case $1 in compare) shift; set -- compare --threshold 100000 \"$@\" ;; *) set -- \"$@\" --time 0.2 ;; esac\n\
         exec \"$HOME/rushmem/bin/shmem-perf\" \"$@\"",
    ),
];

/// Returns the fenced blocks of a page, in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut parts = text.split("\n```");
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if head.split(',').next() == Some(language) {
            found.push(format!("{body}\n"));
        }
    }
    found
}

fn place(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// Returns a directory as a user of the page has it.
fn dir(page: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pages-{page}"));
    let _ = fs::remove_dir_all(&dir);
    for name in ["home", "bin", "old/bin", "new/bin"] {
        fs::create_dir_all(dir.join(name)).expect("a directory");
    }
    symlink(prefix(), dir.join("home/rushmem")).expect("a link");
    for (name, text) in STAND_INS {
        place(&dir.join("bin").join(name), &format!("#!/bin/sh\n{text}\n"));
    }
    for of in ["old", "new"] {
        symlink(prefix().join("bin/oshrun"), dir.join(of).join("bin/oshrun")).expect("a link");
        symlink(dir.join("bin/shmem-perf"), dir.join(of).join("bin/shmem-perf")).expect("");
    }
    fs::write(dir.join("hosts"), "a\nb slots=2\n").expect("a file");
    dir
}

/// Runs the blocks of a page, after `prepare`.
fn run(page: &str, prepare: &str) {
    let text = fs::read_to_string(format!("{ROOT}/docs/{page}.md")).expect("a page");
    let first_hour = fs::read_to_string(format!("{ROOT}/docs/first-hour.md")).expect("a page");
    let dir = dir(page);
    let program = &blocks(&first_hour, "c")[0];
    fs::write(dir.join("ring.c"), program).expect("a file");
    fs::write(dir.join("program.c"), program).expect("a file");
    fs::write(dir.join("ring.f90"), &blocks(&first_hour, "fortran")[0]).expect("a file");
    let shell = |block: &str| {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = prefix().join("bin");
        let mut bash = Command::new("timeout");
        bash.args([LIMIT, "bash", "-euo", "pipefail", "-c", block]).current_dir(&dir);
        bash.env("PATH", format!("{}:{}:{path}", dir.join("bin").display(), bin.display()));
        bash.env("HOME", dir.join("home"))
            .env("CARGO", env!("CARGO"))
            .env("MALLOC_ARENA_MAX", "1")
            .env_remove("CARGO_TARGET_DIR");
        bash.env("CARGO_HOME", home().join(".cargo")).env("RUSTUP_HOME", home().join(".rustup"));
        let output = bash.output().expect("bash");
        let printed = [output.stdout, output.stderr].concat();
        assert!(
            output.status.success(),
            "docs/{page}.md:\n{block}\n{}: {}",
            output.status,
            String::from_utf8_lossy(&printed)
        );
    };
    shell(prepare);
    let left_out: Vec<_> = LEFT_OUT.iter().filter(|(of, _, _)| *of == page).collect();
    let blocks = blocks(&text, "sh");
    for (_, begin, why) in &left_out {
        assert!(blocks.iter().any(|block| block.starts_with(begin)), "no {begin}: {why}");
    }
    let is_left_out = |block: &str| left_out.iter().any(|(_, begin, _)| block.starts_with(begin));
    blocks.iter().filter(|block| !is_left_out(block)).for_each(|block| shell(block));
    fs::remove_dir_all(&dir).expect("the directory");
}

/// Returns where cargo has its files.
fn home() -> PathBuf {
    std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default()
}

/// The README shows what is printed: by its program, and by the same without the barrier about the
/// race. Which PE a report is about differs.
#[test]
fn readme() {
    let text = fs::read_to_string(format!("{ROOT}/README.md")).expect("a page");
    let dir = dir("readme");
    let printed = |program: &str, options: &str| {
        fs::write(dir.join("ring.c"), program).expect("a file");
        let block = format!("oshcc {options} ring.c -o ring && oshrun -n 4 ./ring");
        let mut bash = Command::new("timeout");
        bash.args(["60", "bash", "-c", &block]).current_dir(&dir);
        let path = std::env::var("PATH").unwrap_or_default();
        bash.env("PATH", format!("{}:{path}", prefix().join("bin").display()));
        let output = bash.output().expect("bash");
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8(both).expect("text").lines().map(any_pe).collect::<Vec<_>>()
    };
    let program = &blocks(&text, "c")[0];
    let [heard, race] = &blocks(&text, "text")[..] else { panic!("two outputs are shown") };
    let ring = printed(program, "");
    assert_eq!(heard.lines().map(any_pe).collect::<Vec<_>>(), ring);
    let without: String =
        program.split_inclusive('\n').filter(|line| !line.contains("barrier")).collect();
    let report = printed(&without, "--race");
    for line in race.lines().map(any_pe) {
        assert!(report.contains(&line), "no {line:?} in {report:#?}");
    }
}

/// Returns a line without the numbers of PEs.
fn any_pe(line: &str) -> String {
    let mut parts = line.split("PE ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| {
        line + "PE " + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn first_hour() {
    run("first-hour", "");
}

#[test]
fn installing() {
    run("installing", "");
}

#[test]
fn launching() {
    run("launching", "oshcc program.c -o program");
}

#[test]
fn checking() {
    run("checking", "oshcc program.c -o program");
}

#[test]
fn races() {
    run("races", "");
}

#[test]
fn profiling() {
    run("profiling", "oshcc program.c -o program");
}

#[test]
#[ignore = "takes minutes"]
fn measuring() {
    let runs = "for side in before after; do for i in 1 2 3 4; do \
                oshrun -n 2 shmem-perf -o $side-$i.json; done; cp $side-1.json $side.json; done";
    run("measuring", runs);
}

/// The library is compiled without optimization, and kept for the next time. A target directory in
/// the repository makes the program's package a part of its workspace, unless it is one itself.
#[test]
fn rust() {
    let text = fs::read_to_string(format!("{ROOT}/docs/rust.md")).expect("a page");
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [workspace]\nexclude = [\"rushmem\"]\n\n{}",
        blocks(&text, "toml")[0]
    );
    let (program, config) = (&blocks(&text, "rust")[0], &blocks(&text, "toml")[1]);
    let settings = "[net]\noffline = true\n[profile.release]\nopt-level = 0\ndebug = 0\n";
    run(
        "rust",
        &format!(
            "ln -s '{ROOT}' rushmem\ncp rushmem/Cargo.lock .\nmkdir -p src .cargo ../pages-target\n\
             ln -s ../pages-target target\ncat > .cargo/config.toml <<'END'\n{config}{settings}END\n\
             cat > Cargo.toml <<'END'\n{manifest}END\ncat > src/main.rs <<'END'\n{program}END"
        ),
    );
}
