//! The man pages and completions of the installed prefix have no errors, and name the options that
//! the commands have.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{is_here, needs, runs, succeed};
use testkit::prefix;

/// The programs whose options shells complete.
const PROGRAMS: [&str; 3] = ["oshrun", "shmem-info", "shmem-perf"];
const OTHERS: [&str; 6] = [
    "oshcc",
    "oshcxx",
    "oshc++",
    "oshCC",
    "oshfort",
    "shmem-verify",
];

fn commands() -> impl Iterator<Item = &'static str> {
    OTHERS.into_iter().chain(PROGRAMS)
}

fn pages() -> Vec<PathBuf> {
    let man = prefix().join("share/man");
    let commands = commands().map(|name| man.join(format!("man1/{name}.1")));
    commands.chain([man.join("man7/rushmem.7")]).collect()
}

/// Returns the page as a reader sees it, in long lines.
fn rendered(page: &Path) -> String {
    needs("mandoc");
    let text = succeed(runs("mandoc").args(["-Tutf8", "-Owidth=500"]).arg(page));
    // Letters in bold or italics are written twice, with a backspace in between.
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '\u{8}' => _ = plain.pop(),
            _ => plain.push(c),
        }
    }
    plain
}

/// Returns the output of a command, in an environment without settings.
fn printed(command: &str, arguments: &[&str]) -> String {
    let mut command = runs(prefix().join("bin").join(command));
    succeed(
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap()),
    )
}

/// Returns the long options that a command lists.
fn options(command: &str) -> Vec<String> {
    let help = printed(command, &["--help"]);
    // Text further to the right describes an option, and may begin with the name of another one.
    let is_entry = |line: &&str| {
        let indent = line.find('-');
        indent.is_some_and(|indent| indent <= 6 && line[..indent].trim().is_empty())
    };
    let entries = help.lines().filter(is_entry).map(str::trim_start);
    let terms = entries.map(|entry| entry.split("  ").next().unwrap_or(entry));
    let options: Vec<String> = terms
        .flat_map(|term| words(term, "--"))
        .map(str::to_owned)
        .collect();
    assert!(options.contains(&"--help".to_owned()), "{help}");
    options
}

/// Returns the words of a text that begin with `start`, without punctuation.
fn words<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |c: char| c.is_alphanumeric() || "-_:".contains(c);
    text.split(move |c| !is_part(c))
        .map(|word| word.trim_end_matches(':'))
        .filter(move |word| word.len() > start.len() && word.starts_with(start))
}

fn man_pages_have_no_mistakes() {
    for page in pages() {
        assert!(page.exists(), "{}", page.display());
    }
    needs("mandoc");
    for page in pages() {
        succeed(runs("mandoc").args(["-Tlint", "-Wwarning"]).arg(&page));
    }
}

fn man_pages_name_every_option() {
    for command in commands() {
        let page = prefix().join(format!("share/man/man1/{command}.1"));
        let page = rendered(&page);
        assert!(page.contains("NAME") && page.contains("SYNOPSIS"), "{page}");
        for option in options(command) {
            assert!(page.contains(&option), "{command}: {option}\n{page}");
        }
    }
}

fn man_pages_refer_to_pages_that_exist() {
    for page in pages() {
        let text = rendered(&page);
        let words = text
            .split_whitespace()
            .map(|word| word.trim_end_matches([',', '.', ';']));
        let names = words.filter_map(|word| word.strip_suffix("(1)"));
        for name in names.filter(|name| name.starts_with("osh") || name.starts_with("shmem")) {
            let other = prefix().join(format!("share/man/man1/{name}.1"));
            assert!(other.exists(), "{}: {name}(1)", page.display());
        }
    }
}

fn man_pages_name_documents_that_are_installed() {
    let mut n_named = 0;
    for page in pages() {
        let text = rendered(&page);
        for (_, rest) in text
            .match_indices("share/doc/rushmem/")
            .map(|(at, _)| text.split_at(at))
        {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-/.".contains(c);
            let named = rest.split(|c| !is_part(c)).next().unwrap_or_default();
            let path = prefix().join(named.trim_end_matches('.'));
            assert!(path.exists(), "{}: {named}", page.display());
            n_named += 1;
        }
    }
    assert!(n_named >= 3, "{n_named}");
}

fn a_man_page_names_every_setting() {
    // The page breaks long lines.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = one_line(&rendered(&prefix().join("share/man/man7/rushmem.7")));
    let settings = printed("shmem-info", &["--describe"]);
    assert!(words(&settings, "SHMEM_").count() > 10, "{settings}");
    for line in settings.lines() {
        assert!(page.contains(&one_line(line)), "{line}\n{page}");
    }
}

/// Returns what bash proposes for the last of `words` on a command line.
fn proposed(command: &str, words: &[&str]) -> Vec<String> {
    let script = "source \"$1\" && shift && COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))
        \"_${1//-/__}\" \"$1\" \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\" && echo \"${COMPREPLY[@]}\"";
    let completion = prefix()
        .join("share/bash-completion/completions")
        .join(command);
    let mut bash = runs("bash");
    bash.args(["--norc", "-c", script, "bash"])
        .arg(completion)
        .arg(command)
        .args(words);
    succeed(&mut bash)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn bash_completes_options() {
    needs("bash");
    assert_eq!(proposed("oshrun", &["--output-f"]), ["--output-files"]);
    assert_eq!(
        proposed("oshrun", &["-n", "4", "--output-f"]),
        ["--output-files"]
    );
    assert_eq!(
        proposed("oshrun", &["--np", "=", "4", "--output-f"]),
        ["--output-files"]
    );
    assert_eq!(
        proposed("oshrun", &["-np", "4", "--output-f"]),
        ["--output-files"]
    );
    assert_eq!(proposed("shmem-info", &["--topo"]), ["--topology"]);
    // If nothing is proposed, bash completes the names of files.
    assert!(proposed("oshrun", &["-n", "4", "./program", "in"]).is_empty());
    // docs/installing.md says that options are also proposed after the name of the program.
    let after_program = ["-n", "4", "./program", "--output-f"];
    assert_eq!(proposed("oshrun", &after_program), ["--output-files"]);
}

fn completions_name_every_option() {
    for command in PROGRAMS {
        let zsh = format!("share/zsh/site-functions/_{command}");
        let fish = format!("share/fish/vendor_completions.d/{command}.fish");
        let bash = format!("share/bash-completion/completions/{command}");
        for (file, before) in [(bash, "--"), (zsh, "--"), (fish, "-l ")] {
            let text = fs::read_to_string(prefix().join(&file)).unwrap();
            for option in options(command) {
                let option = option.replacen("--", before, 1);
                assert!(text.contains(&option), "{file}: {option}");
            }
        }
    }
}

fn shells_can_read_their_completions() {
    let share = prefix().join("share");
    for command in PROGRAMS {
        for (shell, file) in [
            ("bash", format!("bash-completion/completions/{command}")),
            ("zsh", format!("zsh/site-functions/_{command}")),
            ("fish", format!("fish/vendor_completions.d/{command}.fish")),
        ] {
            let file = share.join(file);
            assert!(file.exists(), "{}", file.display());
            if is_here(shell) {
                succeed(runs(shell).arg("-n").arg(&file));
            }
        }
    }
}

testkit::module_tests! {
    man_pages_have_no_mistakes,
    man_pages_name_every_option,
    man_pages_refer_to_pages_that_exist,
    man_pages_name_documents_that_are_installed,
    a_man_page_names_every_setting,
    bash_completes_options,
    completions_name_every_option,
    shells_can_read_their_completions,
}
