//! The guide in C, docs/c.md: it shows parts of the installed examples, its commands work, and each
//! mistake that it shows gets the message that it shows. The programs of docs/from-mpi.md print
//! what it says; `launchers` in tests/sites compares them with their forms for MPI.

use std::fs;
use std::process::Command;

use testkit::pages::{Page, blocks};
use testkit::{Job, prefix};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c.md");

/// The line that stands for what the page leaves out of a program.
const LEFT_OUT: &str = "/* ... */";

/// A section of the page, with the whole program of which it shows parts.
struct Section {
    text: String,
    program: String,
    /// The name of the installed file with the program.
    file_name: String,
}

/// Returns the sections of the page that have a program.
fn sections() -> Vec<Section> {
    let page = fs::read_to_string(PAGE).expect("a page");

    let mut sections = Vec::new();
    for text in page.split("\n## ") {
        match &blocks(text, "c")[..] {
            [] => {}
            [excerpt] => {
                let (file_name, program) = example_with(excerpt);
                sections.push(Section {
                    text: text.to_owned(),
                    program,
                    file_name,
                });
            }
            _ => panic!("more than one program in {text}"),
        }
    }
    assert_eq!(sections.len(), 5);
    sections
}

/// Returns the name and the text of the installed example from which an excerpt is.
fn example_with(excerpt: &str) -> (String, String) {
    let examples = prefix().join("share/rushmem/examples");
    for file in fs::read_dir(examples).expect("the examples are installed") {
        let file = file.expect("a file");
        if let Ok(text) = fs::read_to_string(file.path())
            && is_excerpt(excerpt, &text)
        {
            return (file.file_name().to_string_lossy().into_owned(), text);
        }
    }
    panic!("no example has the parts of {excerpt}");
}

/// Returns true if a program has the parts of an excerpt, in their order.
fn is_excerpt(excerpt: &str, program: &str) -> bool {
    let lines: Vec<&str> = excerpt.split_inclusive('\n').collect();
    let mut rest = program;
    for part in lines.split(|line| line.trim() == LEFT_OUT) {
        let Some((_, after)) = rest.split_once(&part.concat()) else {
            return false;
        };
        rest = after;
    }
    true
}

/// Returns a program with a change in the format of `diff`, whose lines occur once in the program.
fn changed(program: &str, diff: &str) -> String {
    let mut old = String::new();
    let mut new = String::new();
    for line in diff.split_inclusive('\n') {
        if let Some(line) = line.strip_prefix(['-', ' ']) {
            old += line;
        }
        if let Some(line) = line.strip_prefix(['+', ' ']) {
            new += line;
        }
    }

    assert_eq!(program.matches(&old).count(), 1, "{old}");
    program.replace(&old, &new)
}

/// Returns a line of a message without what differs from run to run: the PEs that print it, and all
/// numbers but those of lines of the program, which follow a colon.
fn without_numbers(line: &str) -> String {
    let line = line.trim();
    let message = match line.split_once(": ") {
        Some((pes, message)) if pes.starts_with("PE") || pes.starts_with("all ") => message,
        _ => line,
    };

    let mut result = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from_number) = rest.split_at(start);
        let end = from_number
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(from_number.len());
        let (number, after) = from_number.split_at(end);

        result += before;
        result += if before.ends_with(':') { number } else { "#" };
        rest = after;
    }
    result + rest
}

#[test]
fn commands() {
    let page = Page::open("c", env!("CARGO_TARGET_TMPDIR"));
    for section in sections() {
        page.write(&section.file_name, &section.program);
    }

    // In one shell, as by somebody who types them one after the other.
    let has_cmake = Command::new("cmake").arg("--version").output().is_ok();
    let mut commands = String::new();
    for line in page.blocks("sh").concat().lines() {
        if has_cmake || !line.contains("cmake") {
            // The shell goes on by itself if a command before `&&` fails.
            commands += &format!("{line}\n[ $? = 0 ] || exit 1\n");
        }
    }
    page.shell(&commands);
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

    // A comment behind each command is what it prints.
    let commands = page.blocks("sh").concat();
    assert_eq!(commands.lines().count(), 3);
    for line in commands.lines() {
        let (command, expected) = line.split_once('#').expect("what it prints");
        let output = page.shell(command);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.trim(), expected.trim());
    }
    page.end();
}

#[test]
fn mistakes_get_the_messages_of_the_page() {
    let page = Page::open("c", &format!("{}/mistakes", env!("CARGO_TARGET_TMPDIR")));
    for section in sections() {
        let mistakes = blocks(&section.text, "diff");
        let messages = blocks(&section.text, "text");
        assert!(!mistakes.is_empty());
        assert_eq!(mistakes.len(), messages.len());

        for (mistake, message) in mistakes.iter().zip(&messages) {
            let name = &section.file_name;
            page.write(name, &changed(&section.program, mistake));
            page.shell(&format!("oshcc --race -g {name} -o wrong -lm"));

            let outcome = Job::new(page.dir().join("wrong"))
                .n(4)
                .dir(page.dir())
                // As the page says: a mistake may make the program hang.
                .launcher_options(["--timeout", "20s"])
                .run();
            assert!(!outcome.status.success(), "{outcome}");

            let printed: Vec<String> = outcome.stderr.lines().map(without_numbers).collect();
            for line in message.lines().map(without_numbers) {
                assert!(printed.contains(&line), "no {line:?} in {printed:#?}");
            }
        }
    }
    page.end();
}
