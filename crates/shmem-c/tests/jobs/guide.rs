//! The guide in C, docs/c.md: its programs are the installed examples, its commands work, and each
//! mistake that it shows gets the message that it shows. The programs of docs/from-mpi.md print
//! what it says; `launchers` in tests/sites compares them with their forms for MPI.

use std::fs;
use std::process::Command;

use testkit::pages::{Page, blocks};
use testkit::{Job, prefix};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c.md");

/// Returns the sections of the page that have a program.
fn sections() -> Vec<String> {
    let text = fs::read_to_string(PAGE).expect("a page");
    let mut sections: Vec<String> = text.split("\n## ").map(str::to_owned).collect();
    sections.retain(|section| !blocks(section, "c").is_empty());
    assert_eq!(sections.len(), 5);
    sections
}

/// Returns the program of a section, and the name of the installed file with the same text.
fn program(section: &str) -> (String, String) {
    let [program] = &blocks(section, "c")[..] else {
        panic!("one program in {section}");
    };
    let examples = prefix().join("share/rushmem/examples");
    let mut names = fs::read_dir(examples)
        .expect("the examples are installed")
        .map(|file| file.expect("a file").path());
    let found = names.find(|path| fs::read_to_string(path).is_ok_and(|text| text == *program));
    let path = found.unwrap_or_else(|| panic!("no example is equal to {program}"));
    let name = path.file_name().expect("a file").to_string_lossy();
    (program.clone(), name.into_owned())
}

/// Returns a program with a change in the format of `diff`, whose lines occur once in the program.
fn changed(program: &str, diff: &str) -> String {
    let lines_with = |signs: [char; 2]| -> String {
        let lines = diff.split_inclusive('\n');
        lines.filter_map(|line| line.strip_prefix(signs)).collect()
    };
    let (old, new) = (lines_with(['-', ' ']), lines_with(['+', ' ']));
    assert_eq!(program.matches(&old).count(), 1, "{old}");
    program.replace(&old, &new)
}

/// Returns a line of a message without what differs from run to run: the PEs that print it, and all
/// numbers but those of lines of the program, which follow a colon.
fn without_numbers(line: &str) -> String {
    let line = line.trim();
    let says = match line.split_once(": ") {
        Some((pes, says)) if pes.starts_with("PE") || pes.starts_with("all ") => says,
        _ => line,
    };
    let mut result = String::new();
    let mut last = ' ';
    for c in says.chars() {
        let is_in_a_number = c.is_ascii_digit() && last == '#';
        if c.is_ascii_digit() && last != ':' && !is_in_a_number {
            last = '#';
            result.push('#');
        } else if !is_in_a_number {
            result.push(c);
            // Further digits of the number of a line are kept, too.
            last = if c.is_ascii_digit() { ':' } else { c };
        }
    }
    result
}

#[test]
fn commands() {
    let page = Page::open("c", env!("CARGO_TARGET_TMPDIR"));
    let has_cmake = Command::new("cmake").arg("--version").output().is_ok();
    for section in sections() {
        let (text, name) = program(&section);
        page.write(&name, &text);
    }
    for block in page.blocks("sh") {
        if has_cmake || !block.contains("cmake") {
            page.shell(&block);
        }
    }
    page.end();
}

#[test]
fn programs_beside_those_for_mpi() {
    let page = Page::open("from-mpi", env!("CARGO_TARGET_TMPDIR"));
    let programs = page.blocks("c");
    let ours = programs.iter().filter(|text| text.contains("<shmem.h>"));
    for (name, program) in ["ring.c", "pi.c", "tasks.c"].into_iter().zip(ours) {
        page.write(name, program);
    }
    let commands = page.blocks("sh").concat();
    assert_eq!(commands.lines().count(), 3);
    for line in commands.lines() {
        let (command, prints) = line.split_once('#').expect("what it prints");
        let output = page.shell(command);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed.trim(), prints.trim());
    }
    page.end();
}

#[test]
fn mistakes_get_the_messages_of_the_page() {
    let page = Page::open("c", &format!("{}/mistakes", env!("CARGO_TARGET_TMPDIR")));
    for section in sections() {
        let (program, name) = program(&section);
        let (mistakes, messages) = (blocks(&section, "diff"), blocks(&section, "text"));
        assert!(!mistakes.is_empty() && mistakes.len() == messages.len());
        for (mistake, message) in mistakes.iter().zip(&messages) {
            page.write(&name, &changed(&program, mistake));
            page.shell(&format!("oshcc --race -g {name} -o wrong -lm"));
            let job = Job::new(page.dir().join("wrong")).n(4).dir(page.dir());
            let outcome = job.launcher_options(["--timeout", "20s"]).run();
            assert!(!outcome.status.success(), "{outcome}");

            let said: Vec<String> = outcome.stderr.lines().map(without_numbers).collect();
            for line in message.lines().map(without_numbers) {
                assert!(said.contains(&line), "no {line:?} in {said:#?}");
            }
        }
    }
    page.end();
}
