//! The option `--generate` of Rushmem's programs: `man` prints the man page, and the name of a
//! shell, such as `bash`, the completions for that shell. Both are derived from the options of the
//! program.
//!
//! The installation runs each program with it.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{Arg, ArgAction, Command, ValueEnum, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// The man pages of the programs and the overview, with their sections.
const PAGES: [(&str, &str); 8] = [
    ("oshcc", "1"),
    ("oshcxx", "1"),
    ("oshfort", "1"),
    ("oshrun", "1"),
    ("shmem-info", "1"),
    ("shmem-perf", "1"),
    ("shmem-verify", "1"),
    ("rushmem", "7"),
];

/// Prints the man page or the completions if the command line requests them. Returns false if it
/// does not, or if `--generate` has another argument.
pub fn print_if_requested(command: impl FnOnce() -> Command) -> bool {
    let Some(what) = requested(std::env::args_os().skip(1)) else {
        return false;
    };
    let Some(text) = text(command(), &what) else {
        return false;
    };

    // This fails if the reader closes the pipe early.
    let _ = io::stdout().write_all(&text);
    true
}

/// Returns the argument of `--generate`, if the command line consists of these two words.
fn requested(mut words: impl Iterator<Item = OsString>) -> Option<String> {
    let option = words.next()?;
    let what = words.next()?;
    if option == "--generate" && words.next().is_none() {
        what.into_string().ok()
    } else {
        None
    }
}

/// Returns the man page or the completions; `None` if `what` is neither `man` nor a shell.
fn text(command: Command, what: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    if what == "man" {
        page(command, &mut text).ok()?;
    } else {
        let name = command.get_name().to_owned();
        let shell = Shell::from_str(what, false).ok()?;
        clap_complete::generate(shell, &mut completed(&command), name, &mut text);
    }
    Some(text)
}

/// Returns the part of a command that is completed: what is not hidden. Files complete a value only
/// if its name says that it is one, or its hint.
fn completed(command: &Command) -> Command {
    // Names live as long as the process, which ends when the completions are printed.
    let kept = |name: &str| -> &'static str { name.to_owned().leak() };
    let mut shown = Command::new(kept(command.get_name()));
    if let Some(version) = command.get_version() {
        shown = shown.version(kept(version));
    }
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }

    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let names = arg.get_value_names().unwrap_or_default();
        let is_file = names
            .iter()
            .any(|name| name.contains("FILE") || name.contains("DIR"));
        let has_hint = arg.get_value_hint() != ValueHint::Unknown;
        let mut arg = arg.clone();
        if arg.get_action().takes_values() && !has_hint && !is_file {
            arg = arg.value_hint(ValueHint::Other);
        }
        shown = shown.arg(arg);
    }
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() {
            shown = shown.subcommand(completed(subcommand));
        }
    }
    shown.disable_help_subcommand(command.is_disable_help_subcommand_set())
}

/// Writes the man page. The installation replaces `@DATE@` by its date.
fn page(command: Command, text: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_name().to_owned();
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let purpose = about.split(". ").next().unwrap_or(&about).to_owned();
    let version = command.get_version().unwrap_or_default();

    // clap's own text would distinguish -h from --help if a command has a long description.
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .help("Print help");
    let command = command
        .clone()
        .disable_help_flag(true)
        .arg(help)
        .after_help(None::<&str>);

    let man = Man::new(command.clone().about(purpose).long_about(about))
        .source(format!("Rushmem {version}"))
        .manual("OpenSHMEM")
        .date("@DATE@");
    man.render_title(text)?;
    man.render_name_section(text)?;
    synopsis(&command, &man, text)?;
    man.render_description_section(text)?;
    man.render_options_section(text)?;
    text.write_all(commands_section(&command).as_bytes())?;
    text.write_all(sections(&after).as_bytes())?;
    text.write_all(see_also(&name).as_bytes())
}

/// Writes the synopsis: a line with the options, and one for each subcommand. A usage that the
/// command sets replaces it.
fn synopsis(command: &Command, man: &Man, text: &mut Vec<u8>) -> io::Result<()> {
    if command.get_overridden_usage().is_some() || subcommands(command).is_empty() {
        return man.render_synopsis_section(text);
    }

    // clap's own synopsis of the whole command would end with a placeholder for the subcommand.
    let options = Command::new("")
        .bin_name(command.get_name())
        .disable_help_flag(true)
        .args(command.get_arguments().cloned());
    Man::new(options).render_synopsis_section(text)?;

    let mut page = Roff::new();
    for Subcommand { words, .. } in subcommands(command) {
        page.control("br", []).text([bold(words)]);
    }
    text.write_all(page.to_roff().as_bytes())
}

/// Returns the section of the subcommands, which have no pages of their own.
fn commands_section(command: &Command) -> String {
    let subcommands = subcommands(command);
    let mut page = Roff::new();
    if !subcommands.is_empty() {
        page.control("SH", ["COMMANDS"]);
    }
    for Subcommand { words, about } in subcommands {
        page.control("TP", [])
            .text([bold(words)])
            .text([roman(about)]);
    }
    page.to_roff()
}

/// A subcommand as the page shows it.
struct Subcommand {
    /// The words to type.
    words: String,
    about: String,
}

/// Returns the subcommands that are not hidden.
fn subcommands(command: &Command) -> Vec<Subcommand> {
    let mut shown = Vec::new();
    for subcommand in command.get_subcommands() {
        if subcommand.is_hide_set() {
            continue;
        }

        let mut words = format!("{} {}", command.get_name(), subcommand.get_name());
        for word in subcommand.get_positionals() {
            words += &format!(" {word}");
        }
        let about = subcommand
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        shown.push(Subcommand { words, about });
    }
    shown
}

/// Converts the text after the options in the help. A part with a heading becomes a section whose
/// lines are kept; any other part becomes a paragraph.
fn sections(after: &str) -> String {
    let mut page = Roff::new();
    for part in after.split("\n\n").filter(|part| !part.is_empty()) {
        let Some((title, lines)) = part.split_once(":\n") else {
            page.control("PP", []).text([roman(part)]);
            continue;
        };

        page.control("SH", [title.to_uppercase().as_str()])
            .control("nf", []);
        for line in lines.lines() {
            page.text([roman(line)]);
        }
        page.control("fi", []);
    }
    page.to_roff()
}

fn see_also(name: &str) -> String {
    let mut page = Roff::new();
    page.control("SH", ["SEE ALSO"]);
    for (other, section) in PAGES.iter().filter(|(other, _)| *other != name) {
        page.text([bold(*other), roman(format!("({section})"))]);
    }
    page.to_roff()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn program() -> Command {
        Command::new("shmem-info")
            .version("1")
            .about("Show it. Without an option, show all")
            .subcommand(
                Command::new("trace")
                    .about("Show a trace")
                    .arg(Arg::new("DIR")),
            )
            .subcommand(Command::new("hidden").hide(true))
            .after_help("Exit status:\n  0  all\n  1  none\n\nMore of it.")
    }

    #[test]
    fn a_page_has_the_purpose_the_sections_and_other_pages() {
        let page = String::from_utf8(text(program(), "man").unwrap()).unwrap();

        assert!(page.contains("\nshmem\\-info \\- Show it\n"), "{page}");
        assert!(
            page.contains(".SH \"EXIT STATUS\"\n.nf\n  0  all\n  1  none\n.fi\n"),
            "{page}"
        );

        let command = ".TP\n\\fBshmem\\-info trace [DIR]\\fR\nShow a trace\n";
        assert!(page.contains(command) && !page.contains("hidden"), "{page}");

        let synopsis = "help\\fR] \n.br\n\\fBshmem\\-info trace [DIR]\\fR\n";
        assert!(
            page.contains(synopsis) && !page.contains("subcommands"),
            "{page}"
        );

        assert!(page.contains("\\fBoshrun\\fR(1)\n"), "{page}");
        assert!(page.contains("\nPrint help\n"), "{page}");
        assert!(
            !page.contains("EXTRA") && !page.contains("\\fBshmem\\-info\\fR(1)"),
            "{page}"
        );
    }

    #[test]
    fn completions_have_what_is_shown_and_files_for_files() {
        let option = |name: &'static str, value| Arg::new(name).long(name).value_name(value);
        let command = program()
            .arg(option("count", "N"))
            .arg(option("place", "PLACE").value_parser(["core", "numa"]))
            .arg(option("output", "FILE"))
            .arg(Arg::new("quick").long("quick").action(ArgAction::SetTrue))
            .arg(option("secret", "N").hide(true));
        let script = String::from_utf8(text(command, "bash").unwrap()).unwrap();

        let completion = |option: &str| {
            let (_, rest) = script.split_once(&format!("{option})\n")).expect(option);
            rest.lines().next().expect("a line").trim().to_owned()
        };
        assert_eq!(completion("--count"), "COMPREPLY=(\"${cur}\")");
        assert!(completion("--place").contains("compgen -W \"core numa\""));
        assert!(script.contains("--output)") && script.contains("compgen -f"));
        assert!(
            script.contains("trace") && !script.contains("secret"),
            "{script}"
        );
        assert!(!script.contains("hidden"), "{script}");
    }

    #[test]
    fn other_arguments_may_be_any_bytes() {
        let words = |last: &[u8]| {
            let last = OsString::from_vec(last.to_vec());
            requested(["--generate".into(), last].into_iter())
        };
        assert_eq!(words(b"man").as_deref(), Some("man"));
        assert_eq!(words(b"\xff"), None);
        assert_eq!(
            requested([OsString::from_vec(b"\xff".to_vec())].into_iter()),
            None
        );
        assert_eq!(
            requested(["-n", "2", "./a"].map(OsString::from).into_iter()),
            None
        );
    }

    #[test]
    fn what_is_unknown_is_not_generated() {
        assert!(text(program(), "bash").is_some());
        assert!(text(program(), "nonsense").is_none());
    }
}
