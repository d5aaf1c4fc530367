//! The nodes of the Slurm allocation in which oshrun runs, and srun as their launch agent.

use std::ffi::OsString;
use std::process::Command;

use super::slots::HostSlots;
use crate::daemons::agent::Agent;
use crate::report::failure::{StartFailure, reason};

/// Returns the nodes of the allocation, if oshrun runs in one, with the number of tasks that Slurm
/// assigns to each.
pub fn allocation() -> Result<Option<Vec<HostSlots>>, StartFailure> {
    let variable = |name| std::env::var(name).ok();
    let nodes = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST"));
    let (Some(_), Some(nodes)) = (variable("SLURM_JOB_ID"), nodes) else {
        return Ok(None);
    };
    let tasks = variable("SLURM_TASKS_PER_NODE").map(|text| per_node(&text)).unwrap_or_default();
    let tasks = tasks.into_iter().map(Some).chain(std::iter::repeat(None));
    let names = names(&nodes)?;
    Ok(Some(names.into_iter().zip(tasks).map(|(name, slots)| HostSlots { name, slots }).collect()))
}

/// Expands a Slurm node list.
fn names(nodes: &str) -> Result<Vec<String>, StartFailure> {
    let output = Command::new("scontrol").args(["show", "hostnames", nodes]).output();
    let why = match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            return Ok(text.split_whitespace().map(str::to_string).collect());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
        Err(error) => reason(&error),
    };
    // Cause: Slurm's tool is not installed here or fails.
    Err(StartFailure::general(format!(
        "scontrol does not list the nodes of this Slurm allocation ({why}); name the hosts with -H or --hostfile"
    )))
}

/// Expands a Slurm list of numbers: `2(x3),1` is 2, 2, 2, 1.
fn per_node(text: &str) -> Vec<u32> {
    let one = |part: &str| {
        let (number, times) = match part.strip_suffix(')').and_then(|part| part.split_once("(x")) {
            Some((number, times)) => (number, times.parse().ok()?),
            None => (part, 1),
        };
        Some(std::iter::repeat_n(number.parse().ok()?, times))
    };
    text.split(',').filter_map(one).flatten().collect()
}

/// Returns the srun command for one node. It uses those options that this version of srun supports.
pub fn agent() -> Agent {
    let help = Command::new("srun").arg("--help").output();
    let help = help.map(|output| output.stdout).unwrap_or_default();
    let help = String::from_utf8_lossy(&help);
    let wanted = ["--overlap", "--cpu-bind=none", "--kill-on-bad-exit=0", "--mem=0"];
    let is_known = |option: &&str| help.contains(option.split('=').next().unwrap_or_default());
    let always = ["--nodes=1", "--ntasks=1", "--mpi=none", "--quiet"];
    let options = always.into_iter().chain(wanted.into_iter().filter(is_known));
    Agent::Slurm(options.map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_short_form() {
        assert_eq!(per_node("2(x3),1"), [2, 2, 2, 1]);
        assert_eq!(per_node("8"), [8]);
        assert_eq!(per_node(""), Vec::<u32>::new());
    }
}
