//! Options that other launchers have: each is refused with what to use here.

use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, ArgAction, Command};

/// Names of one letter are short; others are accepted with one dash or two.
const OPTIONS: [(&[&str], &str); 9] = [
    (
        &["c", "N", "npernode", "ntasks-per-node"],
        "-n N is the number of PEs, --ppn N that of each host",
    ),
    (&["oversubscribe", "overcommit"], "PEs may outnumber CPUs without an option"),
    (&["v", "verbose"], "--timings, --report-bindings and -x SHMEM_DEBUG=1 say more"),
    (&["l", "prepend-rank"], "--tag-output names the PE of each line"),
    (&["genv", "env", "genvlist"], "-x NAME=VALUE sets a variable, -x NAME passes one on"),
    (&["genvall"], "all PEs of this machine have its environment; -x NAME passes a variable on"),
    (&["f"], "--hostfile FILE names the hosts"),
    (&["mca", "prtemca"], "-x NAME=VALUE sets a variable; shmem-info lists those of Rushmem"),
    (&["allow-run-as-root"], "no option is needed"),
];

/// Adds them to a command line, hidden.
pub fn added_to(command: Command) -> Command {
    let arg = |name: &'static str, hint: &'static str| {
        let arg = Arg::new(name).hide(true).action(ArgAction::SetTrue);
        let arg = arg.value_parser(UnknownArgumentValueParser::suggest(hint));
        match name.as_bytes() {
            &[letter] => arg.short(char::from(letter)),
            _ => arg.long(name),
        }
    };
    let all = OPTIONS.iter().flat_map(|(names, hint)| names.iter().map(|name| arg(name, hint)));
    command.args(all)
}
