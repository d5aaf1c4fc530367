//! Runs the programs of `suite`, compiled by `oshcc --race`. In each the detector must find the one
//! race, with the lines of both accesses, and none if the program is compiled with `CLEAN` defined.
//!
//! A line with a comment `RACE` has one of the two accesses, one with `RACE with itself` both.
//! `PEs: N` in the first lines is the number of PEs, and `FLAGS:` has flags for the compiler.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use testkit::{Job, Outcome, Test, compile};

/// The exit status of a job with a race.
const STATUS: i32 = 66;

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A program of the suite: its source, how many PEs it has, and the lines that race.
#[derive(Clone)]
struct Program {
    source: PathBuf,
    name: String,
    n: usize,
    flags: Vec<String>,
    lines: [u64; 2],
}

impl Program {
    fn read(source: PathBuf) -> Self {
        let text = std::fs::read_to_string(&source).expect("a source of the suite");

        let n = text
            .split_once("PEs: ")
            .and_then(|(_, rest)| rest[..1].parse().ok());
        let flags = text
            .split_once("FLAGS: ")
            .map_or("", |(_, rest)| rest.lines().next().unwrap_or(""));
        // The end of the comment, and words for the reader, are no flags.
        let flags = flags
            .split_whitespace()
            .filter(|word| word.starts_with('-'))
            .map(str::to_owned)
            .collect();

        let mut marked = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.contains(" RACE") {
                marked.push(number);
            }
        }
        let lines = match marked[..] {
            [first, second] => [first, second],
            // A line that races with itself on another PE.
            [one] => [one, one],
            _ => panic!("{} marks {marked:?}", source.display()),
        };

        let name = source
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        Self {
            name,
            n: n.unwrap_or_else(|| panic!("{}: PEs", source.display())),
            flags,
            lines,
            source,
        }
    }

    fn compile(&self, flags: &[&str]) -> PathBuf {
        // With -O0 the compiler keeps stores that nothing reads.
        let mut all = vec!["--race", "-O0"];
        if self.is_fortran() {
            all.push("-cpp");
        }
        all.extend(self.flags.iter().map(String::as_str));
        all.extend(flags);
        compile(&self.source, tmpdir(), &all)
    }

    fn is_fortran(&self) -> bool {
        self.source
            .extension()
            .is_some_and(|extension| extension == "f90")
    }

    fn job(&self, program: &Path, environment: &[(&str, &str)]) -> Job {
        let mut job = Job::new(program)
            .n(self.n)
            .env("SHMEM_SYMMETRIC_SIZE", "16m");
        for (name, value) in environment {
            job = job.env(name, value);
        }
        job
    }

    /// Runs the program with its race, and without.
    fn check(&self, environment: &[(&str, &str)]) {
        let found = tempfile::NamedTempFile::new().expect("a file for the reports");
        let json = found.path().to_str().expect("a plain name");
        let racy = self
            .job(&self.compile(&[]), environment)
            .env("SHMEM_RACES_JSON", json)
            .run();
        let reports = std::fs::read_to_string(found.path()).expect("the reports");
        let lines: Vec<[u64; 2]> = reports.lines().map(lines).collect();
        assert_eq!(lines, [self.lines], "not the race of {}\n{racy}", self.name);
        assert_eq!(racy.code(), STATUS, "{racy}");
        assert!(summary(&racy).starts_with("rushmem: 1 race in "), "{racy}");

        let clean = self.job(&self.compile(&["-DCLEAN"]), environment).run();
        assert!(clean.status.success(), "{clean}");
        assert!(
            summary(&clean).starts_with("rushmem: no race in "),
            "{clean}"
        );
    }
}

/// Returns the last line that the detector has printed.
fn summary(outcome: &Outcome) -> &str {
    outcome
        .stderr
        .lines()
        .rfind(|line| line.starts_with("rushmem: "))
        .unwrap_or("nothing")
}

/// Returns the source lines of the two accesses of a report, sorted.
fn lines(report: &str) -> [u64; 2] {
    let report: Value = serde_json::from_str(report).expect("JSON");
    let line = |i: usize| {
        report["accesses"][i]["frames"][0]["line"]
            .as_u64()
            .expect("a line")
    };
    let mut lines = [line(0), line(1)];
    lines.sort_unstable();
    lines
}

fn main() -> ExitCode {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(&dir).expect("the suite") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end != "h") {
            programs.push(Program::read(path));
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(programs.len() > 60, "{} programs", programs.len());

    let mut tests = Vec::new();
    for program in programs {
        let name = program.name.clone();
        let on_node = program.clone();
        tests.push(Test::new(name.clone(), move || on_node.check(&[])));

        // Only PEs of one node share SHMEM_TEAM_SHARED, and have pointers to each other.
        if name.starts_with("domains") || name.starts_with("pointer_") {
            continue;
        }
        let over_tcp = program.clone();
        let test = Test::new(format!("tcp::{name}"), move || {
            over_tcp.check(&[("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", "tcp")])
        });
        tests.push(test.ignored("part of --full"));

        if program.n == 2 {
            let test = Test::new(format!("virtual_nodes::{name}"), move || {
                program.check(&[("SHMEM_VIRTUAL_NODES", "1+1"), ("SHMEM_TRANSPORT", "tcp")])
            });
            tests.push(test.ignored("part of --full"));
        }
    }
    testkit::run(tests)
}
