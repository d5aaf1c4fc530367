//! The command line: options of oshrun, then the program and its arguments, which are passed on
//! unchanged.
//!
//! The variables that `-x NAME` exports are read from the environment, and so is the default of
//! `--host-limit`, after the settings of `-x` and of files are in it.

mod foreign;
mod split;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, ValueHint};
use rushmem_bootstrap::{env, time_limit};
use rushmem_system::stderr::print_line;
use rushmem_topology::{BindTo, MapBy};

use self::foreign::ForeignOptions;
use self::split::{CommandLine, refuse_second_program, split};
use crate::errors::{StartFailure, cannot};
use crate::spawn::placement::PlacementRequest;
use crate::spawn::program::{self, Debugged};

/// Groups of options in the help.
const HOSTS: &str = "PEs and hosts";
const OUTPUT: &str = "Output";
const TIME: &str = "Time";
const TROUBLE: &str = "Trouble";

/// Start a program as the PEs of one OpenSHMEM job, on this machine or on several hosts.
#[derive(Debug, Parser)]
#[command(
    name = "oshrun",
    version,
    max_term_width = 100,
    override_usage = "oshrun [OPTIONS] PROGRAM [ARGUMENT]...",
    after_help = "Exit status:\n  \
                  0         All PEs exited with status 0\n  \
                  N         That of the first PE that failed; of one killed by a signal, its number + 128\n  \
                  124       --timeout ended the job\n  \
                  126, 127  The program cannot be run, or was not found\n\n\
                  Files:\n  \
                  etc/rushmem.conf of the installation, /etc/rushmem.conf, ~/.config/rushmem.conf or\n  \
                  SHMEM_CONFIG: lines NAME=value with settings for all PEs\n\n\
                  Examples:\n  \
                  oshrun -n 4 ./program                    4 PEs on this machine\n  \
                  oshrun -H a:4,b:4 ./program              4 PEs on each of two hosts\n  \
                  oshrun -n 2 --tag-output ./program -v    The program gets the argument -v"
)]
pub struct Options {
    /// Number of PEs (also -np N); by default the number of slots of the hosts, or 1 on this
    /// machine
    #[arg(short = 'n', long = "np", alias = "n", value_name = "N", value_parser = n_pes, allow_hyphen_values = true, help_heading = HOSTS)]
    pub n_pes: Option<u32>,

    /// Hosts, each with the maximum number of its PEs (slots)
    #[arg(short = 'H', long = "host", value_name = "HOST[:N],...", visible_alias = "hosts", value_hint = ValueHint::Hostname, help_heading = HOSTS)]
    pub hosts: Option<String>,

    /// A file with one host per line: HOST, HOST:N or HOST slots=N
    #[arg(short = 'f', long, value_name = "FILE", visible_alias = "machinefile", help_heading = HOSTS)]
    pub hostfile: Option<PathBuf>,

    /// Maximum number of PEs on each host (also -ppn N, --npernode N, --map-by ppr:N:node)
    #[arg(short = 'N', long, aliases = ["npernode", "ntasks-per-node"], value_name = "N", value_parser = n_pes, allow_hyphen_values = true, help_heading = HOSTS)]
    pub ppn: Option<u32>,

    /// Command that starts daemons on other hosts, called with the host and a command line; by
    /// default ssh, or srun in a Slurm allocation
    #[arg(long, value_name = "COMMAND", value_parser = words, allow_hyphen_values = true, help_heading = HOSTS)]
    pub launch_agent: Option<AgentCommand>,

    /// Directory that contains bin/oshrun on other hosts, if it is not the same as here
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = HOSTS)]
    pub prefix: Option<PathBuf>,

    /// Time within which the job ends everywhere when another host stops answering; by default
    /// SHMEM_HOST_LIMIT, or 10s
    #[arg(long = "host-limit", value_name = "TIME", value_parser = time, allow_hyphen_values = true, help_heading = TIME)]
    host_limit: Option<Duration>,

    /// Working directory of the PEs (also -wdir DIR); the program, and the directory of
    /// --output-files, are relative to it
    #[arg(long, value_name = "DIR", visible_alias = "chdir", alias = "wd", value_hint = ValueHint::DirPath, help_heading = HOSTS)]
    wdir: Option<PathBuf>,

    /// Set an environment variable for the PEs, or pass on one that is set here (repeatable)
    #[arg(short = 'x', value_name = "NAME[=VALUE]", allow_hyphen_values = true, help_heading = HOSTS)]
    export: Vec<OsString>,

    /// Prefix every line of output with the number of its PE in brackets, and with its host if
    /// there are several
    #[arg(short = 'l', long, alias = "prepend-rank", help_heading = OUTPUT)]
    pub tag_output: bool,

    /// Write the output of each PE unchanged to the files PE.out and PE.err in this directory on
    /// its host; without this option, a newline separates the unfinished line of one PE from the
    /// output of another one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    pub output_files: Option<PathBuf>,

    /// End the job with status 124 after this time, and print which PE waits for which
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, help_heading = TIME)]
    pub timeout: Option<Duration>,

    /// Print which PE waits for which when a wait has lasted this long; the job goes on. SIGQUIT
    /// (Ctrl-\) and SIGUSR1 print it immediately
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, help_heading = TIME)]
    pub explain_after: Option<Duration>,

    /// Distribute PEs in blocks over the whole machine (spread, the default), to one hardware
    /// thread after the other (slot), to one core after the other (core), or in turn to each l3,
    /// numa or socket
    #[arg(long, value_name = "PLACE", value_parser = map_by, help_heading = HOSTS)]
    map_by: Option<MapRequest>,

    /// Bind each PE to its core, l3, numa or socket, or to none; the default is numa on machines
    /// with several NUMA nodes while PEs do not outnumber the CPUs, and none otherwise
    #[arg(long, value_name = "PLACE", value_parser = bind_to, help_heading = HOSTS)]
    pub bind_to: Option<BindTo>,

    /// Print the CPUs, the NUMA node and the NIC of each PE
    #[arg(long, help_heading = OUTPUT)]
    pub report_bindings: bool,

    /// Start the program without address space layout randomization (ASLR), so that its static
    /// variables have the same address on all PEs
    #[arg(long, help_heading = TROUBLE)]
    pub no_aslr: bool,

    /// Print what would be started on which host, with which variables and bindings, and start
    /// nothing
    #[arg(long, help_heading = TROUBLE)]
    pub dry_run: bool,

    /// Examine the hosts before a job instead of starting one: limits, NICs, all transports, and
    /// short jobs over them; end with the command line to use, or with what to repair and status 1
    #[arg(long, help_heading = TROUBLE)]
    pub doctor: bool,

    /// Print at the end of the job when each of its phases was complete
    #[arg(long, help_heading = OUTPUT)]
    pub timings: bool,

    /// Run all PEs, or these, under gdb: each in an xterm if there is a display, otherwise without
    /// a terminal, so that gdb prints a backtrace if a signal stops the PE
    #[arg(long, value_name = "PE,...", num_args = 0..=1, require_equals = true, default_missing_value = "all", help_heading = TROUBLE)]
    pub gdb: Option<Debugged>,

    /// Print which options have no effect here, since they are of other launchers
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = OUTPUT)]
    verbose: u8,

    #[command(flatten)]
    foreign: ForeignOptions,

    /// The variables that `-x` and other options set for the PEs.
    #[arg(skip)]
    pub exported: Vec<(OsString, OsString)>,

    /// The program, as the user wrote it.
    #[arg(skip)]
    pub program: OsString,

    #[arg(skip)]
    pub arguments: Vec<OsString>,
}

impl Options {
    /// Returns the requested placement.
    pub fn placement(&self) -> PlacementRequest {
        let map_by = match self.map_by {
            Some(MapRequest::Place(place)) => Some(place),
            Some(MapRequest::PerHost(_)) | None => None,
        };
        PlacementRequest {
            map_by,
            bind_to: self.bind_to,
            report: self.report_bindings,
        }
    }

    /// Returns the limit of a silent host, which PEs get, too: that of `-x`, `--host-limit`, the
    /// environment or a file, or the built-in one.
    pub fn host_limit() -> Result<Duration, StartFailure> {
        host_limit(std::env::var_os(env::HOST_LIMIT))
    }

    /// Returns a note if no option gives the number of PEs, but the first arguments of the program
    /// look like that option.
    pub fn misplaced_n_pes(&self) -> Option<String> {
        let option = self.arguments.first()?.to_str()?;
        let name = option.trim_end_matches(|character: char| character.is_ascii_digit());
        let has_name = matches!(name, "-n" | "-np" | "--np" | "--n");
        if self.n_pes.is_some() || !has_name {
            return None;
        }

        let number = match option.strip_prefix(name)? {
            "" => self.arguments.get(1)?.to_str()?,
            number => number,
        };
        number.parse::<u32>().ok()?;
        let program = self.program.to_string_lossy();
        Some(format!(
            "1 PE is started: {name} {number} is behind the program, which gets it as an argument; for {number} PEs, \
             write oshrun -n {number} {program}"
        ))
    }

    /// Enters the directory of `--wdir`, from which PEs on all hosts start. The file of hosts stays
    /// relative to the present directory.
    pub fn enter_directory(&mut self) -> Result<(), StartFailure> {
        let Some(dir) = &self.wdir else {
            return Ok(());
        };

        let what = format!("enter the directory {} of --wdir", dir.display());
        if let Some(file) = &mut self.hostfile {
            *file = std::path::absolute(&*file).map_err(|error| cannot(&what, &error))?;
        }

        let entered = std::env::set_current_dir(dir)
            .and_then(|()| std::env::current_dir())
            .map_err(|error| cannot(&what, &error))?;
        // A variable of -x has precedence, and later ones replace earlier ones.
        self.exported.insert(0, ("PWD".into(), entered.into()));
        Ok(())
    }

    /// Carries out `--doctor`: replaces this process by `shmem-info`, which is installed beside it
    /// and examines the hosts of this job. Returns only if that fails.
    pub fn examine(&self) -> StartFailure {
        let mut layout = Vec::new();
        if let Some(n_pes) = self.n_pes {
            layout.push(format!("-n {n_pes}"));
        }
        if let Some(ppn) = self.ppn {
            layout.push(format!("--ppn {ppn}"));
        }

        let own = program::own_file();
        let doctor = own.with_file_name("shmem-info");
        let mut command = Command::new(&doctor);
        command.arg("--doctor-layout").arg(layout.join(" "));

        // All that follows `--doctor-job` is the command line of the job.
        command.arg("--doctor-job").arg(own);
        if let Some(hosts) = &self.hosts {
            command.arg("-H").arg(hosts);
        }
        if let Some(file) = &self.hostfile {
            command.arg("--hostfile").arg(file);
        }
        if let Some(agent) = &self.launch_agent {
            command
                .arg("--launch-agent")
                .arg(agent.words.join(OsStr::new(" ")));
        }
        if let Some(prefix) = &self.prefix {
            command.arg("--prefix").arg(prefix);
        }
        if let Some(limit) = self.host_limit {
            let seconds = limit.as_secs_f64().to_string();
            command.arg("--host-limit").arg(seconds);
        }
        for word in &self.export {
            command.arg("-x").arg(word);
        }

        let error = command.exec();
        cannot(
            &format!("run {}, which --doctor needs", doctor.display()),
            &error,
        )
    }
}

/// Returns the command line for the man page and completions.
pub fn command() -> clap::Command {
    let program = Arg::new("PROGRAM")
        .num_args(1..)
        .trailing_var_arg(true)
        .value_hint(ValueHint::CommandWithArguments);
    // The parsers accept more, which needs no completion. The help of the options names the words.
    let map_by = PossibleValuesParser::new(MapBy::WORDS.map(|(word, _)| word));
    let bind_to = PossibleValuesParser::new(BindTo::WORDS.map(|(word, _)| word));
    Options::command()
        .mut_arg("map_by", |arg| {
            arg.value_parser(map_by).hide_possible_values(true)
        })
        .mut_arg("bind_to", |arg| {
            arg.value_parser(bind_to).hide_possible_values(true)
        })
        .arg(program.help("The program and its arguments"))
}

/// Parses a command line, including the name of oshrun. Returns `None` if it has printed the help
/// or the version.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, StartFailure> {
    let command = foreign::add_refused(Options::command());
    let CommandLine {
        own,
        is_marked,
        rest,
    } = split(&command, words.into_iter().collect())?;

    let matches = command.try_get_matches_from(own);
    let mut options = match matches.and_then(|matches| Options::from_arg_matches(&matches)) {
        Ok(options) => options,
        Err(answer) => match answer.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                answer
                    .print()
                    .map_err(|error| StartFailure::general(format!("cannot print: {error}")))?;
                return Ok(None);
            }
            _ => return Err(usage(&answer.to_string())),
        },
    };

    let mut rest = rest.into_iter();
    options.program = match rest.next() {
        Some(program) => program,
        None if options.doctor => OsString::new(),
        None => {
            let example = "no program is given; for example: oshrun -n 2 ./program";
            return Err(StartFailure::usage(example.to_string()));
        }
    };
    options.arguments = rest.collect();
    // After `--`, a colon is certainly an argument.
    if !is_marked {
        refuse_second_program(&options.arguments)?;
    }

    if let Some(MapRequest::PerHost(n)) = options.map_by {
        options.ppn.get_or_insert(n);
    }
    if options.verbose > 0 {
        for line in options.foreign.ignored() {
            print_line(format_args!("oshrun: {line}"));
        }
    }
    options.exported = exported(&options)?;
    Ok(Some(options))
}

/// Returns the variables that options set for the PEs. Later ones replace earlier ones, so those of
/// `-x` come last.
fn exported(options: &Options) -> Result<Vec<(OsString, OsString)>, StartFailure> {
    let mut variables = Vec::new();
    // PEs get the same limit as oshrun.
    if let Some(limit) = options.host_limit {
        let seconds = limit.as_secs_f64().to_string();
        variables.push((env::HOST_LIMIT.into(), seconds.into()));
    }
    if options.explain_after.is_some() {
        variables.push((env::EXPLAINED.into(), "1".into()));
    }
    for word in options.foreign.exported() {
        variables.push(assignment(word)?);
    }
    for word in &options.export {
        variables.push(assignment(word.clone())?);
    }
    Ok(variables)
}

/// Returns the failure for an error message of clap: its first line, and its hints.
fn usage(text: &str) -> StartFailure {
    let line = text.lines().next().unwrap_or_default();
    let mut parts = vec![line.strip_prefix("error: ").unwrap_or(line)];
    parts.extend(text.lines().filter_map(|line| line.strip_prefix("  tip: ")));
    parts.push("oshrun --help lists the options");
    StartFailure::usage(parts.join("; "))
}

/// A command with its arguments.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    pub words: Vec<OsString>,
}

/// Parses a command whose words are separated by spaces.
fn words(text: &str) -> Result<AgentCommand, String> {
    let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    if words.is_empty() {
        Err("no command is given".to_string())
    } else {
        Ok(AgentCommand { words })
    }
}

fn n_pes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_string()),
        Ok(n_pes) => Ok(n_pes),
        Err(_) => Err("it must be a whole number above 0".to_string()),
    }
}

/// The value of `--map-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapRequest {
    /// The order of places on a machine.
    Place(MapBy),
    /// Open MPI's form of the number of PEs on each host.
    PerHost(u32),
}

fn map_by(text: &str) -> Result<MapRequest, String> {
    // Open MPI's modifier has no effect here: PEs may outnumber CPUs without it.
    let text = match text.rsplit_once(':') {
        Some((place, modifier)) if modifier.eq_ignore_ascii_case("oversubscribe") => place,
        _ => text,
    };

    if let Some(number) = text.strip_prefix("ppr:") {
        return match number.strip_suffix(":node") {
            Some(number) => n_pes(number).map(MapRequest::PerHost),
            None => Err("ppr:N:node is the only form of ppr".to_string()),
        };
    }
    match text {
        "node" => Err(
            "hosts get blocks of consecutive PEs, in the order of the list; --ppn N limits the PEs of each"
                .to_string(),
        ),
        "" => Ok(MapRequest::Place(MapBy::default())),
        place => place.parse().map(MapRequest::Place),
    }
}

fn bind_to(text: &str) -> Result<BindTo, String> {
    match text {
        "hwthread" => Err("PEs are bound to whole cores or more; use core".to_string()),
        _ => text.parse(),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    time_limit::parse(text).ok_or_else(|| format!("it must be {}", time_limit::EXPECTED))
}

/// Parses the value `set` of SHMEM_HOST_LIMIT. Returns the built-in default if there is none.
fn host_limit(set: Option<OsString>) -> Result<Duration, StartFailure> {
    let text = set.unwrap_or_else(|| time_limit::DEFAULT_HOST_LIMIT.into());
    let text = text.to_string_lossy();
    time_limit::parse(&text).ok_or_else(|| {
        let name = env::HOST_LIMIT;
        let value = if text.is_empty() { "empty" } else { &text };
        let expected = time_limit::EXPECTED;
        StartFailure::usage(format!("{name} is {value}, but it must be {expected}"))
    })
}

/// Parses an argument of `-x`: `NAME=VALUE`, or the name of a variable of oshrun.
fn assignment(word: OsString) -> Result<(OsString, OsString), StartFailure> {
    let shown = word.to_string_lossy();
    let bytes = word.as_bytes();
    let equals_sign = bytes.iter().position(|&byte| byte == b'=');
    let name = OsStr::from_bytes(&bytes[..equals_sign.unwrap_or(bytes.len())]);
    if name.is_empty() {
        return Err(StartFailure::usage(format!(
            "-x {shown}: the name of the variable is missing"
        )));
    }

    let value = match equals_sign {
        Some(equals_sign) => OsStr::from_bytes(&bytes[equals_sign + 1..]).to_os_string(),
        None => match std::env::var_os(name) {
            Some(value) => value,
            None => {
                return Err(StartFailure::usage(format!(
                    "-x {shown}: {shown} is not set; set it or give -x {shown}=VALUE"
                )));
            }
        },
    };
    Ok((name.to_os_string(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn parsed(line: &str) -> Result<Options, StartFailure> {
        let words = std::iter::once("oshrun")
            .chain(line.split_whitespace())
            .map(OsString::from);
        parse(words).map(|options| options.expect("neither help nor version"))
    }

    #[test]
    fn numbers_of_pes_in_every_spelling() {
        for line in [
            "-n 3 p",
            "-n3 p",
            "-np 3 p",
            "-np=3 p",
            "--np 3 p",
            "--n 3 p",
            "--np=3 p",
            "-n 3 -- p",
        ] {
            let options = parsed(line).expect(line);
            assert_eq!(options.n_pes, Some(3), "{line}");
            assert_eq!(options.program, "p", "{line}");
        }
        assert_eq!(parsed("p").expect("options").n_pes, None);
    }

    #[test]
    fn the_program_keeps_its_arguments() {
        let options = parsed("--tag-output -x A=1=2 --timeout 1.5 -x B= p -np 4 --help -- -n")
            .expect("options");
        assert_eq!(options.arguments, ["-np", "4", "--help", "--", "-n"]);
        assert_eq!(
            options.exported,
            [("A".into(), "1=2".into()), ("B".into(), "".into())]
        );
        assert_eq!(options.timeout, Some(Duration::from_millis(1500)));
        assert!(options.tag_output);

        assert_eq!(parsed("--gdb p").expect("options").gdb, Some(Debugged::All));
        let some = parsed("--gdb=1,3 --timings p").expect("options");
        assert_eq!(some.gdb, Some(Debugged::Some(vec![1, 3])));
        assert!(some.timings);

        assert_eq!(parsed("-- -p").expect("options").program, "-p");
        for line in [
            "cut -d : -f 1",
            "sh -c :",
            "-- a : -n 2 b",
            "awk -F : {}",
            "a :",
        ] {
            let options = parsed(line).expect(line);
            assert!(options.arguments.contains(&":".into()), "{line}");
        }
    }

    #[test]
    fn a_number_of_pes_behind_the_program_is_noted() {
        for line in ["p -n 4", "p -np 4", "p -n4", "--timings p --np 4 -v"] {
            let note = parsed(line).expect(line).misplaced_n_pes().expect(line);
            assert!(note.ends_with("write oshrun -n 4 p"), "{note}");
        }
        for line in [
            "p",
            "p 4",
            "p -n",
            "p -n x",
            "p -v -n 4",
            "-n 1 p -n 4",
            "p -nv 4",
        ] {
            assert_eq!(parsed(line).expect(line).misplaced_n_pes(), None, "{line}");
        }
    }

    #[test]
    fn hosts_are_named_in_every_spelling() {
        for line in [
            "-H a,b:2 p",
            "--host a,b:2 p",
            "--hosts=a,b:2 p",
            "-host a,b:2 p",
            "-Ha,b:2 p",
        ] {
            let options = parsed(line).expect(line);
            assert_eq!(options.hosts.as_deref(), Some("a,b:2"), "{line}");
            assert_eq!(options.program, "p", "{line}");
        }
        for line in [
            "--hostfile f -ppn 3 p",
            "--machinefile f --ppn=3 p",
            "-machinefile f -N 3 p",
            "-f f --npernode 3 p",
            "--hostfile f --map-by ppr:3:node p",
        ] {
            let options = parsed(line).expect(line);
            assert_eq!(options.hostfile, Some("f".into()), "{line}");
            assert_eq!(options.ppn, Some(3), "{line}");
        }

        let options = parsed("p").expect("options");
        assert!(options.hosts.is_none() && options.hostfile.is_none() && options.ppn.is_none());
        assert!(options.launch_agent.is_none());

        let agent = ["--launch-agent", "my ssh -q", "p"].map(OsString::from);
        let words = std::iter::once("oshrun".into()).chain(agent);
        let options = parse(words)
            .expect("options")
            .expect("neither help nor version");
        let expected = ["my", "ssh", "-q"].map(OsString::from).to_vec();
        assert_eq!(
            options.launch_agent.map(|agent| agent.words),
            Some(expected)
        );
    }

    #[test]
    fn the_directory_is_named_in_every_spelling() {
        for line in [
            "--wdir d p",
            "-wdir d p",
            "--chdir=d p",
            "-wd d p",
            "--wd d p",
        ] {
            let options = parsed(line).expect(line);
            assert_eq!(options.wdir, Some("d".into()), "{line}");
            assert_eq!(options.program, "p", "{line}");
        }
    }

    #[test]
    fn places_are_named() {
        let placed = |line| parsed(line).expect(line).placement();
        assert_eq!(
            placed("--map-by numa --bind-to=core --report-bindings p"),
            PlacementRequest {
                map_by: Some(MapBy::Numa),
                bind_to: Some(BindTo::Core),
                report: true
            }
        );
        assert_eq!(placed("p"), PlacementRequest::default());

        for (line, map_by) in [
            ("--map-by numa:OVERSUBSCRIBE p", MapBy::Numa),
            ("--map-by :oversubscribe p", MapBy::default()),
        ] {
            assert_eq!(placed(line).map_by, Some(map_by), "{line}");
        }
        let per_host = parsed("--map-by ppr:3:node:OVERSUBSCRIBE p").expect("options");
        assert_eq!(per_host.ppn, Some(3));
    }

    #[test]
    fn options_of_other_launchers_are_carried_out_or_have_no_effect() {
        let line = "--mca btl self,vader --oversubscribe --allow-run-as-root --bind-to none -v \
                    -genv A -1 -env B 2 -x C=3 -l --prtemca a b --mca c d -genvall -q -n 2 p --mca e f";
        let options = parsed(line).expect("options");
        assert_eq!(options.n_pes, Some(2));
        assert!(options.tag_output);
        assert_eq!(options.arguments, ["--mca", "e", "f"]);

        let exported = [("A", "-1"), ("B", "2"), ("C", "3")];
        assert_eq!(
            options.exported,
            exported.map(|(name, value)| (name.into(), value.into()))
        );

        let ignored = options.foreign.ignored();
        assert_eq!(ignored.len(), 7, "{ignored:?}");
        assert!(
            ignored[0].starts_with("--mca btl self,vader: "),
            "{ignored:?}"
        );
        assert!(parsed("p").expect("options").foreign.ignored().is_empty());
    }

    #[test]
    fn errors_are_one_sentence() {
        for (line, words) in [
            ("-n 0 p", "it must be at least 1"),
            ("-n two p", "whole number"),
            ("-n -1 p", "whole number"),
            ("-n", "-n"),
            ("-n 2", "no program is given"),
            ("", "no program is given"),
            ("--bogus p", "--bogus"),
            ("--timeout 0 p", "above 0"),
            ("--host-limit 0 p", "above 0"),
            ("--ppn 0 p", "at least 1"),
            ("--timeout soon p", "above 0"),
            ("--timeout -1 p", "above 0"),
            ("-x OSHRUN_TEST_UNSET p", "OSHRUN_TEST_UNSET is not set"),
            ("-x =1 p", "name of the variable is missing"),
            ("--bind-to board p", "one of none, core, l3, numa, socket"),
            ("--map-by ppr:2:socket p", "ppr:N:node"),
            ("--map-by slot:PE=2 p", "one of spread, slot"),
            (
                "--tag-outptu p",
                "a similar argument exists: '--tag-output'",
            ),
            ("-c 4 p", "-n N is the number of PEs"),
            (
                "-genvlist OSHRUN_TEST_UNSET p",
                "OSHRUN_TEST_UNSET is not set",
            ),
            ("--mca btl", "--mca"),
            ("--map-by node p", "hosts get blocks of consecutive PEs"),
            ("--bind-to hwthread p", "bound to whole cores or more"),
            ("-launcher fork p", "--launch-agent COMMAND names"),
            ("-bootstrap slurm p", "--launch-agent COMMAND names"),
            ("--timestamp-output p", "pipe its output through ts"),
            ("--rankfile f p", "in the order of -H or --hostfile"),
            ("-outfile-pattern f p", "--output-files DIR"),
            ("-wdr / p", "unexpected argument '-wdr' found"),
            ("-lz p", "unexpected argument '-lz' found"),
            ("-n 2 a : -n 2 b", "all PEs of a job run one program"),
            ("-n 2 a : -np 2 b", "all PEs of a job run one program"),
            ("-n 2 a -v : sh -c x", "all PEs of a job run one program"),
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
    fn the_host_limit_of_pes_is_that_of_oshrun() {
        let options = parsed("--host-limit 2.5 -x SHMEM_HOST_LIMIT=3 p").expect("options");
        let exported = ["2.5", "3"].map(|value| ("SHMEM_HOST_LIMIT".into(), value.into()));
        assert_eq!(options.exported, exported);

        assert_eq!(host_limit(None), Ok(Duration::from_secs(10)));
        assert_eq!(host_limit(Some("7".into())), Ok(Duration::from_secs(7)));
        let longest = host_limit(Some("1e19".into())).expect("it is a number");
        assert!(Instant::now().checked_add(3 * longest).is_some());

        let failure = host_limit(Some("long".into())).expect_err("no number");
        let sentence = "SHMEM_HOST_LIMIT is long, but it must be a time above 0 such as 30s or 5m";
        assert_eq!((failure.status, failure.sentence.as_str()), (2, sentence));
    }

    #[test]
    fn the_help_has_groups_and_fits_a_terminal() {
        let help = command().term_width(80).render_long_help().to_string();
        for heading in [HOSTS, OUTPUT, TIME, TROUBLE] {
            assert!(
                help.contains(&format!("\n{heading}:\n")),
                "{heading}\n{help}"
            );
        }
        assert!(
            help.lines().all(|line| line.chars().count() <= 80),
            "{help}"
        );
    }

    #[test]
    fn the_flags_are_consistent() {
        command().debug_assert();
    }
}
