//! The command line: options of oshrun, then a program and its own arguments, which are passed on untouched.
//!
//! Pure but for `-x NAME`, which looks whether the variable is set.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use rushmem_topology::{BindTo, MapBy};

use crate::failure::Failure;
use crate::placement::Wish;

/// Start a program as the PEs of one OpenSHMEM job on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "oshrun",
    version,
    override_usage = "oshrun [OPTIONS] PROGRAM [ARGUMENT]...",
    after_help = "The exit status is that of the first PE that failed: what it exited with, or 128 + the signal that \
                  killed it. 124: --timeout ended the job; 126, 127: the program cannot be run, or was not found."
)]
struct Flags {
    /// Number of PEs (also -np N)
    #[arg(short = 'n', long = "np", value_name = "N", default_value = "1", value_parser = n_pes, allow_hyphen_values = true)]
    n_pes: u32,

    /// Set a variable for the PEs; NAME alone must be set already (repeatable)
    #[arg(short = 'x', value_name = "NAME[=VALUE]", allow_hyphen_values = true)]
    export: Vec<OsString>,

    /// Put the PE in brackets in front of every line of output
    #[arg(long)]
    tag_output: bool,

    /// End the job after this time, with status 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Deal PEs in blocks over the whole machine (spread, the default), to one hardware thread after the other (slot), to
    /// one core after the other (core), or in turn to each l3, numa or socket
    #[arg(long, value_name = "PLACE")]
    map_by: Option<MapBy>,

    /// Bind each PE to its core, l3, numa or socket, or to none; by default to numa on machines with several such
    /// nodes while PEs do not outnumber the CPUs, else to none
    #[arg(long, value_name = "PLACE")]
    bind_to: Option<BindTo>,

    /// Say where each PE is: its CPUs, NUMA node and card of the network
    #[arg(long)]
    report_bindings: bool,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of PEs, at least 1.
    pub n_pes: u32,
    /// Variables to set for the PEs.
    pub export: Vec<(OsString, OsString)>,
    /// Whether lines of output start with the number of their PE.
    pub tag_output: bool,
    /// When to end the job.
    pub timeout: Option<Duration>,
    /// Where PEs shall be.
    pub wish: Wish,
    /// The program as the user named it.
    pub program: OsString,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
}

/// Reads a command line whose first word is oshrun's own name. `None` when help or version was asked for and printed.
///
/// # Errors
/// One sentence about the first thing that is wrong.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, Failure> {
    let command = Flags::command();
    let (own, rest) = split(&command, words.into_iter().collect());
    let flags = match command
        .try_get_matches_from(own)
        .and_then(|matches| Flags::from_arg_matches(&matches))
    {
        Ok(flags) => flags,
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            return error
                .print()
                .map(|()| None)
                .map_err(|error| Failure::general(format!("cannot print: {error}")));
        }
        Err(error) => return Err(usage(&error.to_string())),
    };
    let mut rest = rest.into_iter();
    let Some(program) = rest.next() else {
        return Err(Failure::usage(
            "no program is given; for example: oshrun -n 2 ./program".to_string(),
        ));
    };
    let export = flags.export.into_iter().map(assignment).collect::<Result<_, _>>()?;
    Ok(Some(Options {
        n_pes: flags.n_pes,
        export,
        tag_output: flags.tag_output,
        timeout: flags.timeout,
        wish: Wish { map_by: flags.map_by, bind_to: flags.bind_to, report: flags.report_bindings },
        program,
        arguments: rest.collect(),
    }))
}

/// Splits off the program and its arguments, and writes the customary `-np` as `--np`.
fn split(command: &clap::Command, words: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let valued = |word: &OsStr| {
        command.get_arguments().filter(|arg| arg.get_action().takes_values()).any(|arg| {
            let short = arg.get_short().is_some_and(|short| word == format!("-{short}").as_str());
            short || arg.get_long().is_some_and(|long| word == format!("--{long}").as_str())
        })
    };
    let mut own = Vec::new();
    let mut words = words.into_iter().peekable();
    own.extend(words.next());
    while let Some(word) = words.next_if(|word| word.as_bytes().starts_with(b"-") && word != "--") {
        let word = match word.as_bytes().strip_prefix(b"-np") {
            Some(rest) if rest.is_empty() || rest[0] == b'=' => {
                let mut long = OsString::from("--np");
                long.push(OsStr::from_bytes(rest));
                long
            }
            _ => word,
        };
        let takes_value = valued(&word);
        own.push(word);
        if takes_value {
            own.extend(words.next());
        }
    }
    words.next_if(|word| word == "--");
    (own, words.collect())
}

/// The first line of clap's words, as a sentence of ours.
fn usage(text: &str) -> Failure {
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    Failure::usage(format!("{line}; oshrun --help lists the options"))
}

fn n_pes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a job has at least one PE".to_string()),
        Ok(n_pes) => Ok(n_pes),
        Err(_) => Err("a number of PEs is a whole number from 1 on".to_string()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "a time is a number of seconds above 0".to_string())
}

fn assignment(word: OsString) -> Result<(OsString, OsString), Failure> {
    let bytes = word.as_bytes();
    let (name, value) = match bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_os_string())),
        None => (bytes, std::env::var_os(&word)),
    };
    let shown = word.to_string_lossy();
    match value {
        _ if name.is_empty() => Err(Failure::usage(format!("-x {shown}: a variable has a name"))),
        Some(value) => Ok((OsStr::from_bytes(name).to_os_string(), value)),
        None => Err(Failure::usage(format!(
            "-x {shown}: {shown} is not set; set it or give -x {shown}=VALUE"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, Failure> {
        let words = std::iter::once("oshrun").chain(line.split_whitespace()).map(OsString::from);
        parse(words).map(|options| options.expect("no help asked for"))
    }

    #[test]
    fn numbers_of_pes_in_every_spelling() {
        for line in ["-n 3 p", "-n3 p", "-np 3 p", "-np=3 p", "--np 3 p", "--np=3 p", "-n 3 -- p"] {
            let options = parsed(line).expect(line);
            assert_eq!((options.n_pes, options.program), (3, "p".into()), "{line}");
        }
        assert_eq!(parsed("p").expect("one PE").n_pes, 1);
    }

    #[test]
    fn the_program_keeps_its_arguments() {
        let options = parsed("--tag-output -x A=1=2 --timeout 1.5 -x B= p -np 4 --help -- -n")
            .expect("options");
        assert_eq!(options.arguments, ["-np", "4", "--help", "--", "-n"]);
        assert_eq!(options.export, [("A".into(), "1=2".into()), ("B".into(), "".into())]);
        assert_eq!(options.timeout, Some(Duration::from_millis(1500)));
        assert!(options.tag_output);
        assert_eq!(parsed("-- -p").expect("options").program, "-p");
    }

    #[test]
    fn places_are_named() {
        let options = parsed("--map-by numa --bind-to=core --report-bindings p").expect("options");
        let (map_by, bind_to) = (Some(MapBy::Numa), Some(BindTo::Core));
        assert_eq!(options.wish, Wish { map_by, bind_to, report: true });
        assert_eq!(parsed("p").expect("options").wish, Wish::default());
    }

    #[test]
    fn errors_are_one_sentence() {
        for (line, words) in [
            ("-n 0 p", "a job has at least one PE"),
            ("-n two p", "whole number"),
            ("-n -1 p", "whole number"),
            ("-n", "-n"),
            ("-n 2", "no program is given"),
            ("", "no program is given"),
            ("--bogus p", "--bogus"),
            ("--timeout 0 p", "above 0"),
            ("--timeout soon p", "above 0"),
            ("--timeout -1 p", "above 0"),
            ("-x OSHRUN_TEST_UNSET p", "OSHRUN_TEST_UNSET is not set"),
            ("-x =1 p", "has a name"),
            ("--bind-to board p", "one of none, core, l3, numa, socket"),
            ("--map-by node p", "one of spread, slot, core, l3, numa, socket"),
        ] {
            let failure = parsed(line).expect_err(line);
            assert_eq!(failure.status, 2, "{line}");
            assert!(
                failure.sentence.contains(words) && !failure.sentence.contains('\n'),
                "{line}: {failure:?}"
            );
        }
    }

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
    }
}
