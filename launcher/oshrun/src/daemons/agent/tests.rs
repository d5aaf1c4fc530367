//! Unit tests of `agent`.

use super::*;

fn shown(command: &Command) -> Vec<String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect()
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
    let command = Agent::Slurm(vec!["--mpi=none".into()]).command("n1", Path::new("/a b/oshrun"));
    let words = ["srun", "--mpi=none", "--nodelist=n1", "/a b/oshrun", "--daemon"];
    assert_eq!(shown(&command), words);
}

#[test]
fn task_options_do_not_apply_to_the_daemon() {
    let is = |name| is_task_option(OsStr::new(name));
    assert!(is("SLURM_NTASKS_PER_NODE") && is("SLURM_CPUS_PER_TASK") && is("SLURM_NNODES"));
    assert!(!is("SLURM_JOB_ID") && !is("SLURM_CONF") && !is("SLURM_JOB_NODELIST"));
}
