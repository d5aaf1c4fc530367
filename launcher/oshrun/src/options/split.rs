//! Splits a command line into the options of oshrun, and the program with its arguments. `clap`
//! does not, since it has no long options with one hyphen, such as `-np` and `-ppn`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::errors::StartFailure;
use crate::spawn::program;

/// The parts of a command line.
pub struct CommandLine {
    /// The name of oshrun and its options.
    pub own: Vec<OsString>,
    /// True if `--` separates the two parts.
    pub is_marked: bool,
    /// The program and its arguments.
    pub rest: Vec<OsString>,
}

/// Splits the words into options, and the program with its arguments. Adds a second dash to long
/// names with one dash, as in `-np`, which other launchers accept.
///
/// # Errors
/// If a word with one dash is neither such a name nor a group of short options. clap would name
/// only the first of its letters that is no option.
pub fn split(command: &clap::Command, words: Vec<OsString>) -> Result<CommandLine, StartFailure> {
    let mut own = Vec::new();
    let mut words = words.into_iter().peekable();
    // The name of oshrun.
    own.extend(words.next());

    while let Some(word) = words.next_if(|word| word.as_bytes().starts_with(b"-") && word != "--") {
        let word = match word.to_str() {
            Some(text) if is_long_name(command, text) => format!("-{text}").into(),
            Some(text) if !text.starts_with("--") && !is_group(command, text) => {
                return Err(StartFailure::usage(format!(
                    "unexpected argument '{text}' found; oshrun --help lists the options"
                )));
            }
            _ => word,
        };

        let n_values = n_values(command, &word);
        own.push(word);
        own.extend(words.by_ref().take(n_values));
    }

    let is_marked = words.next_if(|word| word == "--").is_some();
    Ok(CommandLine {
        own,
        is_marked,
        rest: words.collect(),
    })
}

/// Returns true if a word with one dash is the long name of an option, possibly with a value. A
/// name of one letter is a short one.
fn is_long_name(command: &clap::Command, word: &str) -> bool {
    let name = word[1..].split('=').next().unwrap_or_default();
    name.len() > 1 && command.get_arguments().any(|arg| has_name(arg, name))
}

fn has_name(arg: &clap::Arg, name: &str) -> bool {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long() == Some(name) || aliases.contains(&name)
}

/// Returns true if a word with one dash is a group of short options. The first of them that takes a
/// value ends the group: the rest of the word is the value.
fn is_group(command: &clap::Command, word: &str) -> bool {
    for letter in word[1..].chars() {
        let mut all = command.get_arguments();
        match all.find(|arg| arg.get_short() == Some(letter)) {
            Some(arg) if arg.get_action().takes_values() => return true,
            Some(_) => {}
            // clap adds the options of these letters only when it parses.
            None => return matches!(letter, 'h' | 'V'),
        }
    }
    true
}

/// Returns the number of words behind `word` that are values of this option.
fn n_values(command: &clap::Command, word: &OsStr) -> usize {
    let long = word.to_str().and_then(|word| word.strip_prefix("--"));
    let option = command.get_arguments().find(|arg| {
        let is_short = arg
            .get_short()
            .is_some_and(|short| word == format!("-{short}").as_str());
        let is_long = long.is_some_and(|name| has_name(arg, name));
        is_short || is_long
    });

    match option {
        Some(arg) if arg.get_action().takes_values() && !arg.is_require_equals_set() => {
            arg.get_num_args().map_or(1, |range| range.min_values())
        }
        _ => 0,
    }
}

/// Refuses the command line of a job with several programs, `a : -n 2 b`, in which oshrun would
/// give all that follows to the first program as arguments.
pub fn refuse_second_program(arguments: &[OsString]) -> Result<(), StartFailure> {
    for pair in arguments.windows(2) {
        if pair[0] == ":" && begins_program(&pair[1]) {
            return Err(StartFailure::usage(
                "all PEs of a job run one program, so : cannot add a second one; start a program that acts by the number \
                 of its PE, or write -- before the program if : is its argument"
                    .to_string(),
            ));
        }
    }
    Ok(())
}

/// Returns true if a word after a colon is the number of PEs of a second program, or that program.
fn begins_program(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    if bytes.starts_with(b"-") {
        return bytes.starts_with(b"-n") || bytes.starts_with(b"--np");
    }
    // Many programs take a colon as an argument, but what follows it is seldom a program.
    let path = std::env::var_os("PATH");
    program::find(word, path.as_deref()).is_ok()
}
