//! Composes the commands that start a daemon on another host: by ssh, by srun, or by a command that
//! the user names. `spawn` executes them.
//!
//! docs/launching.md describes each of them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ends::mark;

/// The argument that selects the role of a daemon.
pub const ROLE: &str = "--daemon";

/// The command that starts daemons on other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agent {
    /// These words, followed by the host and a command line for its shell.
    Remote(Vec<OsString>),
    /// srun with these options, inside an allocation.
    Slurm(Vec<OsString>),
}

impl Agent {
    /// Returns ssh without a terminal, X11 and prompts. It gives up after 10 s if the host does not
    /// answer, and then says why, before the time within which daemons must have started is over.
    pub fn ssh() -> Agent {
        let words = [
            "ssh",
            "-T",
            "-x",
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=10",
        ];
        Agent::Remote(words.map(OsString::from).to_vec())
    }

    /// Returns the name of the program, for messages.
    pub fn name(&self) -> String {
        match self {
            Agent::Remote(words) => match words.first() {
                Some(word) => {
                    let file = Path::new(word).file_name().unwrap_or(word);
                    file.to_string_lossy().into_owned()
                }
                None => String::new(),
            },
            Agent::Slurm(_) => "srun".to_string(),
        }
    }

    /// Returns the command that starts `oshrun` as a daemon on `host`.
    pub fn command(&self, host: &str, oshrun: &Path) -> Command {
        let mut command = match self {
            Agent::Remote(words) => {
                let mut words = words.iter();
                let program = words.next().map_or(OsStr::new(""), OsString::as_os_str);
                let mut command = Command::new(program);
                command.args(words).arg(host);

                // Every shell understands this line, also csh.
                let mut line = OsString::from("exec ");
                line.push(quoted(oshrun.as_os_str()));
                line.push(" ");
                line.push(ROLE);
                command.arg(line);
                command
            }
            Agent::Slurm(options) => {
                let mut command = Command::new("srun");
                command.args(options).arg(format!("--nodelist={host}"));
                command.arg(oshrun).arg(ROLE);

                // Otherwise srun would apply the options of the allocation's tasks to the daemon.
                for (name, _) in std::env::vars_os() {
                    if is_task_option(&name) {
                        command.env_remove(name);
                    }
                }
                command
            }
        };
        command.env(mark::VARIABLE, mark::for_agent());
        command
    }
}

/// The launch agent, and the file that it executes on other hosts.
#[derive(Clone, Debug)]
pub struct DaemonCommand {
    pub agent: Agent,
    /// The executable of oshrun on other hosts.
    pub oshrun: PathBuf,
    /// The variable of the allocation that has the hosts; `None` if the user has named them.
    pub allocated_by: Option<&'static str>,
}

/// Quotes a word for a shell.
pub fn quoted(word: &OsStr) -> OsString {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    if !word.is_empty() && word.as_bytes().iter().all(is_plain) {
        return word.to_owned();
    }

    let mut bytes = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            // No character can escape a quote inside of quotes, so this one stands outside of them.
            b'\'' => bytes.extend(b"'\\''"),
            byte => bytes.push(*byte),
        }
    }
    bytes.push(b'\'');
    OsStr::from_bytes(&bytes).to_owned()
}

/// Returns true if srun takes this variable as an option for its tasks.
fn is_task_option(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let starts = [
        "SLURM_NTASKS",
        "SLURM_NPROCS",
        "SLURM_TASKS_PER_NODE",
        "SLURM_STEP_",
        "SLURM_CPU_BIND",
        "SLURM_CPUS_PER_TASK",
        "SLURM_TRES_PER_TASK",
        "SLURM_MEM_",
        "SLURM_DISTRIBUTION",
        "SLURM_LABELIO",
        "SLURM_MPI_TYPE",
        "SLURM_OUTPUT",
        "SLURM_UNBUFFEREDIO",
    ];
    let names = [
        "SLURM_NNODES",
        "SLURM_JOB_NUM_NODES",
        "SLURM_EXACT",
        "SLURM_EXCLUSIVE",
    ];
    starts.iter().any(|start| name.starts_with(start)) || names.contains(&name.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &Command) -> Vec<String> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn an_agent_is_called_like_ssh() {
        let agent = Agent::Remote(vec!["/opt/my agent".into(), "-q".into()]);
        let command = agent.command("node7", Path::new("/opt/it's here/bin/oshrun"));
        let line = r"exec '/opt/it'\''s here/bin/oshrun' --daemon";
        assert_eq!(shown(&command), ["/opt/my agent", "-q", "node7", line]);
        assert_eq!(agent.name(), "my agent");
        let ssh = shown(&Agent::ssh().command("b", Path::new("/usr/bin/oshrun")));
        assert_eq!(ssh[0], "ssh");
        assert_eq!(ssh[ssh.len() - 2..], ["b", "exec /usr/bin/oshrun --daemon"]);
    }

    #[test]
    fn srun_gets_the_words_themselves() {
        let command =
            Agent::Slurm(vec!["--mpi=none".into()]).command("n1", Path::new("/a b/oshrun"));
        let words = [
            "srun",
            "--mpi=none",
            "--nodelist=n1",
            "/a b/oshrun",
            "--daemon",
        ];
        assert_eq!(shown(&command), words);
    }

    #[test]
    fn task_options_do_not_apply_to_the_daemon() {
        let is = |name| is_task_option(OsStr::new(name));
        assert!(is("SLURM_NTASKS_PER_NODE") && is("SLURM_CPUS_PER_TASK") && is("SLURM_NNODES"));
        assert!(!is("SLURM_JOB_ID") && !is("SLURM_CONF") && !is("SLURM_JOB_NODELIST"));
    }
}
