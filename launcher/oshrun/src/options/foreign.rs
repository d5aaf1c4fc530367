//! Options of the launchers of Open MPI and MPICH (Hydra). Those that oshrun has under another name
//! are aliases in [`Options`](super::Options). The others are here: some are carried out, some have
//! no effect, and those that would mean something else are refused with a hint.

use std::ffi::{OsStr, OsString};

use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, ArgAction, Args, Command};

/// Options that are accepted but not listed in the help.
#[derive(Debug, Default, Args)]
pub struct ForeignOptions {
    /// Hydra: a variable for the PEs, and its value.
    #[arg(long, alias = "env", num_args = 2, action = ArgAction::Append, allow_hyphen_values = true, hide = true)]
    genv: Vec<OsString>,

    /// Hydra: variables of oshrun to pass on to the PEs.
    #[arg(long, alias = "envlist", value_delimiter = ',', hide = true)]
    genvlist: Vec<OsString>,

    /// Open MPI: a parameter, and its value.
    #[arg(long, alias = "gmca", num_args = 2, action = ArgAction::Append, allow_hyphen_values = true, hide = true)]
    mca: Vec<String>,

    /// PRRTE (Open MPI 5): a parameter, and its value.
    #[arg(long, num_args = 2, action = ArgAction::Append, allow_hyphen_values = true, hide = true)]
    prtemca: Vec<String>,

    /// Open MPI: PEs may outnumber CPUs.
    #[arg(long, alias = "overcommit", action = ArgAction::Count, hide = true)]
    oversubscribe: u8,

    /// Open MPI: the user may be root.
    #[arg(long, action = ArgAction::Count, hide = true)]
    allow_run_as_root: u8,

    /// Open MPI: print no hints.
    #[arg(short, long, action = ArgAction::Count, hide = true)]
    quiet: u8,

    /// Hydra: pass all variables on.
    #[arg(long, alias = "envall", action = ArgAction::Count, hide = true)]
    genvall: u8,
}

impl ForeignOptions {
    /// Returns the variables for the PEs, as arguments of `-x`.
    pub fn exported(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        let (pairs, _) = self.genv.as_chunks::<2>();
        for [name, value] in pairs {
            words.push([name.as_os_str(), value].join(OsStr::new("=")));
        }
        words.extend(self.genvlist.iter().cloned());
        words
    }

    /// Returns a line for each option that has no effect, with the reason.
    pub fn ignored(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (option, words) in [("mca", &self.mca), ("prtemca", &self.prtemca)] {
            let (pairs, _) = words.as_chunks::<2>();
            for [key, value] in pairs {
                lines.push(format!(
                    "--{option} {key} {value}: parameters of Open MPI have no effect here; shmem-info lists settings"
                ));
            }
        }

        for (count, line) in [
            (
                self.oversubscribe,
                "--oversubscribe: PEs may outnumber CPUs without an option",
            ),
            (
                self.allow_run_as_root,
                "--allow-run-as-root: no option is needed",
            ),
            (
                self.quiet,
                "--quiet: what oshrun prints is about errors, or is asked for by an option",
            ),
            (
                self.genvall,
                "-genvall: all PEs have the environment of oshrun without an option",
            ),
        ] {
            if count > 0 {
                lines.push(line.to_owned());
            }
        }
        lines
    }
}

/// Options that are refused, each with the hint to print. A name of one letter is a short option.
const REFUSED: [(&str, &str); 13] = [
    ("c", "-n N is the number of PEs, --ppn N that of each host"),
    ("pernode", "--ppn 1 starts one PE on each host"),
    ("launcher", AGENT),
    ("launcher-exec", AGENT),
    ("bootstrap", AGENT),
    ("bootstrap-exec", AGENT),
    ("bynode", ORDER),
    ("rankfile", ORDER),
    ("rf", ORDER),
    ("output-filename", FILES),
    ("outfile-pattern", FILES),
    ("errfile-pattern", FILES),
    (
        "timestamp-output",
        "oshrun prints no times; pipe its output through ts",
    ),
];
const AGENT: &str =
    "--launch-agent COMMAND names the command that starts daemons on other hosts, if it is not ssh";
const ORDER: &str = "hosts get blocks of consecutive PEs, in the order of -H or --hostfile; --ppn N limits the PEs of each";
const FILES: &str = "--output-files DIR writes the output of each PE to files there";

/// Adds the options that are refused to a command line.
pub fn add_refused(command: Command) -> Command {
    command.args(REFUSED.map(|(name, hint)| {
        let arg = Arg::new(name)
            .hide(true)
            .action(ArgAction::SetTrue)
            .value_parser(UnknownArgumentValueParser::suggest(hint));
        match name.as_bytes() {
            &[letter] => arg.short(char::from(letter)),
            _ => arg.long(name),
        }
    }))
}
