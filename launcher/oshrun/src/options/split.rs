//! Splits a command line into the options of oshrun, and the program with its arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::failure::StartFailure;
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
    let has_name = |arg: &clap::Arg, name: &str| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long()
            .into_iter()
            .chain(aliases)
            .any(|long| long == name)
    };
    // The number of words that follow as the values of an option.
    let values = |word: &OsStr| {
        let takes_word =
            |arg: &&clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
        let is_named = |arg: &&clap::Arg| {
            let short = arg
                .get_short()
                .is_some_and(|short| word == format!("-{short}").as_str());
            let long = word.to_str().and_then(|word| word.strip_prefix("--"));
            short || long.is_some_and(|name| has_name(arg, name))
        };
        let arg = command.get_arguments().filter(takes_word).find(is_named);
        arg.map_or(0, |arg| {
            arg.get_num_args().map_or(1, |range| range.min_values())
        })
    };
    let is_long = |word: &str| {
        let name = word[1..].split('=').next().filter(|name| name.len() > 1);
        let has = |arg: &clap::Arg| name.is_some_and(|name| has_name(arg, name));
        command.get_arguments().any(has)
    };
    let short = |letter: char| {
        let is_it = |arg: &&clap::Arg| arg.get_short() == Some(letter);
        command.get_arguments().find(is_it)
    };
    // Letters up to the first option with a value, which the rest of the word is.
    let is_group = |word: &str| {
        for letter in word[1..].chars() {
            match short(letter) {
                Some(arg) if arg.get_action().takes_values() => return true,
                Some(_) => {}
                None => return matches!(letter, 'h' | 'V'),
            }
        }
        true
    };
    let mut own = Vec::new();
    let mut words = words.into_iter().peekable();
    own.extend(words.next());
    while let Some(word) = words.next_if(|word| word.as_bytes().starts_with(b"-") && word != "--") {
        let word = match word.to_str() {
            Some(text) if is_long(text) => format!("-{text}").into(),
            Some(text) if !text.starts_with("--") && !is_group(text) => {
                return Err(StartFailure::usage(format!(
                    "unexpected argument '{text}' found; oshrun --help lists the options"
                )));
            }
            _ => word,
        };
        let n_values = values(&word);
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

/// Refuses the command line of a job with several programs, `a : -n 2 b`, in which oshrun would
/// give all that follows to the first program as arguments.
pub fn refuse_second_program(arguments: &[OsString]) -> Result<(), StartFailure> {
    let path = std::env::var_os("PATH");
    let begins_program = |word: &OsString| {
        let bytes = word.as_bytes();
        bytes.starts_with(b"-n") || bytes.starts_with(b"--np") || {
            !bytes.starts_with(b"-") && program::find(word, path.as_deref()).is_ok()
        }
    };
    let is_second = |pair: &[OsString]| pair[0] == ":" && begins_program(&pair[1]);
    if !arguments.windows(2).any(is_second) {
        return Ok(());
    }
    Err(StartFailure::usage(
        "all PEs of a job run one program, so : cannot add a second one; start a program that acts by the number \
         of its PE, or write -- before the program if : is its argument"
            .to_string(),
    ))
}
