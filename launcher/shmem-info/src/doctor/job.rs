//! Examines the hosts of a job for `oshrun --doctor`. First each host reports on itself; then a
//! short job runs as the user would start it, and one over each of the other transports that all
//! hosts can use. After each that succeeds, a job of `shmem-perf` measures it. A time limit ends
//! jobs that hang.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rushmem_system::setting::environment;

use super::finding::{Finding, Grade, Section, verdict};
use super::host::LOAD;
use super::outcome::{CheckOutcome, Tag};
use super::pe::{HostReport, PairReport};
use super::times::{self, seconds};
use super::to_verify;
use crate::terminal::progress;

/// Limit in seconds of the job in which each host reports; longer than `oshrun` waits for a daemon.
const HOSTS_LIMIT: u32 = 90;
/// Limit in seconds of the user's job. It suffices for a job that opens another transport after one
/// that hangs.
const JOB_LIMIT: u32 = 90;
/// Limit in seconds of a job over one of the other transports, and of one of `shmem-perf`.
const OTHER_LIMIT: u32 = 20;
/// The `--host-limit` of the jobs with [`OTHER_LIMIT`], in seconds.
const OTHER_HOST_LIMIT: &str = "2";
/// Difference of clocks in seconds from which on times in logs of several hosts are useless.
const CLOCKS: f64 = 1.0;

/// The job that is examined.
pub struct Examined {
    /// `oshrun`, and its options that name the hosts and how to reach them.
    pub oshrun: Vec<OsString>,
    /// The options of `oshrun` that distribute the PEs.
    pub layout: Vec<String>,
}

/// Examines the job. Returns the verdict with all that was found, and true if the job can run as
/// the user would start it.
pub fn examine(examined: &Examined) -> Result<(String, bool), String> {
    progress("examining the hosts");
    let (mut text, hosts) = match examine_hosts(examined)? {
        Ok(found) => found,
        Err((text, first)) => {
            progress("");
            return Ok((
                verdict(false, &format!(": repair first: {first}")) + &text,
                false,
            ));
        }
    };
    let one_host = hosts.len() == 1;
    let mut layout = examined.layout.clone();
    let names_hosts = examined
        .oshrun
        .iter()
        .any(|word| LISTS.iter().any(|list| word == list));
    if layout.is_empty() && one_host && !names_hosts {
        layout = vec!["-n".to_owned(), hosts[0].1.cpus.max(2).to_string()];
    }
    // The PEs of the jobs of shmem-perf: one on each host, or two if there is only one host.
    let names: Vec<String> = match &hosts[..] {
        [_] => ["PE 0", "PE 1"].map(str::to_owned).into(),
        hosts => hosts.iter().map(|(name, _)| name.clone()).collect(),
    };
    let few = [
        "--ppn",
        if one_host { "2" } else { "1" },
        "--host-limit",
        OTHER_HOST_LIMIT,
    ]
    .map(str::to_owned);
    text += "\nthe job\n";
    text += &shared_cpus(&hosts);
    progress("running the job");
    let outcome = examined.run(&layout, &pe("pairs"), JOB_LIMIT, &[])?;
    let n_cpus = hosts.iter().map(|(_, host)| host.cpus).sum();
    let chosen =
        add_reports(&outcome, n_cpus, &mut text).or_else(|| environment("SHMEM_TRANSPORT"));
    if outcome.succeeded {
        text += &examined.measure(&few, &names, &[])?;
    }
    let mut working = None;
    for name in others(&hosts, chosen.as_deref()) {
        let title = if one_host { ", as between hosts" } else { "" };
        text += &format!("\ntransport {name}{title}\n");
        progress(&format!("running a job over {name}"));
        let mut variables = vec![("SHMEM_TRANSPORT", name.as_str())];
        if one_host {
            variables.push(("SHMEM_ONNODE", "off"));
        }
        let other = examined.run(&few, &pe("pairs"), OTHER_LIMIT, &variables)?;
        add_reports(&other, n_cpus, &mut text);
        if other.succeeded {
            text += &examined.measure(&few, &names, &variables)?;
        }
        working = working.or(other.succeeded.then_some(name));
    }
    progress("");
    let first = outcome
        .complaints()
        .into_iter()
        .next()
        .unwrap_or_else(|| "the job failed without a message".to_owned());
    let rest = match (outcome.succeeded, working) {
        (true, _) => "; use:".to_owned(),
        (false, None) => {
            return Ok((
                verdict(false, &format!(": repair first: {first}")) + &text,
                false,
            ));
        }
        (false, Some(name)) => {
            layout.extend(["-x".to_owned(), format!("SHMEM_TRANSPORT={name}")]);
            format!(": repair first: {first}; until then use:")
        }
    };
    // The command is one line, to be copied.
    let command = examined.command_line(&layout, "./program");
    let verdict = verdict(outcome.succeeded, &rest);
    let next = match outcome.succeeded {
        true => to_verify(&examined.command_line(&layout, "shmem-verify")),
        false => String::new(),
    };
    Ok((
        format!("{verdict}  {command}\n\n{text}{next}"),
        outcome.succeeded,
    ))
}

/// Returns the findings that other programs use the CPUs of a host, which distorts measurements.
fn shared_cpus(hosts: &[(String, HostReport)]) -> String {
    let sections = hosts.iter().flat_map(|(_, host)| &host.sections);
    let loads = sections
        .flat_map(|section| &section.findings)
        .filter(|one| one.name == LOAD);
    loads.map(Finding::lines).collect()
}

/// The summary, and the name and report of every host of the job; or the summary and the first
/// repair, if a host cannot run a PE or a job.
type FoundHosts = Result<(String, Vec<(String, HostReport)>), (String, String)>;

/// Examines the hosts of the job.
fn examine_hosts(examined: &Examined) -> Result<FoundHosts, String> {
    let one_each = ["--ppn".to_owned(), "1".to_owned()];
    let outcome = examined.run(&one_each, &pe("host"), HOSTS_LIMIT, &[])?;
    let named = |(tag, host): (Tag, HostReport)| (tag.host_name(&host.host), host);
    let hosts: Vec<(String, HostReport)> = outcome
        .reports::<HostReport>()
        .into_iter()
        .map(named)
        .collect();
    let mut text = String::new();
    for (number, host) in hosts.iter().enumerate() {
        match number {
            0 => {
                if host.0 != host.1.host {
                    text += &format!("{} is\n", host.0);
                }
                host.1
                    .sections
                    .iter()
                    .for_each(|section| text += &section.text(false));
            }
            _ => text += &different(&hosts[0], host).text(false),
        }
    }
    let complaints = outcome.complaints();
    let bad = hosts.iter().find_map(|(name, host)| {
        let mut findings = host.sections.iter().flat_map(|section| &section.findings);
        let bad = findings.find(|finding| finding.grade == Grade::Bad)?;
        Some(format!("on {name}, {bad}"))
    });
    let first = match outcome.succeeded && !hosts.is_empty() {
        false => complaints
            .first()
            .cloned()
            .or(Some("no host has reported".to_owned())),
        true => bad,
    };
    match first {
        None => Ok(Ok((text, hosts))),
        Some(first) => Ok(Err((text, first))),
    }
}

/// Returns the findings on a host that the first one does not have with the same grade, and all
/// that are warnings or worse.
fn different(
    (first_name, first): &(String, HostReport),
    (name, host): &(String, HostReport),
) -> Section {
    let is_same = |finding: &&Finding| {
        let mut known = first.sections.iter().flat_map(|section| &section.findings);
        known.any(|known| (&known.name, known.grade) == (&finding.name, finding.grade))
    };
    let mut findings: Vec<Finding> = host
        .sections
        .iter()
        .flat_map(|section| &section.findings)
        .filter(|finding| finding.grade >= Grade::Warning || !is_same(finding))
        .cloned()
        .collect();
    if host.build != first.build {
        let text = format!("{} here, {} on {first_name}", host.build, first.build);
        let finding = Finding::new("build of Rushmem", Grade::Warning, text)
            .remedy("install the same build on all hosts");
        findings.insert(0, finding);
    }
    if findings.is_empty() {
        findings.push(Finding::ok(name.clone(), format!("as {first_name}")));
    }
    Section {
        title: format!("host {name}"),
        findings,
    }
}

/// Returns the transports that all hosts can use, without the one that `chosen` names: the path of
/// the user's job, or the value of SHMEM_TRANSPORT.
fn others(hosts: &[(String, HostReport)], chosen: Option<&str>) -> Vec<String> {
    let usable = |host: &HostReport, name: &str| {
        let title = format!("transport {name}:");
        let mut sections = host
            .sections
            .iter()
            .filter(|section| section.title.starts_with(&title));
        sections.any(|section| {
            section
                .findings
                .iter()
                .any(|finding| finding.grade == Grade::Ok)
        })
    };
    let is_chosen = |name: &str| {
        chosen.is_some_and(|path| {
            path.split(':')
                .next()
                .is_some_and(|scope| scope.split([' ', ',']).any(|word| word == name))
        })
    };
    let all = rushmem_providers::ALL.iter().map(|provider| provider.name);
    all.filter(|name| hosts.iter().all(|(_, host)| usable(host, name)) && !is_chosen(name))
        .map(str::to_owned)
        .collect()
}

/// Adds the reports of a job on `n_cpus` CPUs to `text`, and the messages if the job failed.
/// Returns the path between the PEs, which names their transport, if PE 0 has reported it.
fn add_reports(outcome: &CheckOutcome, n_cpus: usize, text: &mut String) -> Option<String> {
    let reports: Vec<(Tag, PairReport)> = outcome.reports();
    let name = |(tag, report): &(Tag, PairReport)| match report {
        PairReport::Host(own) => Some((tag.pe as usize, tag.host_name(own))),
        _ => None,
    };
    let names: BTreeMap<usize, String> = reports.iter().filter_map(name).collect();
    // A PE that is not the first of its host is in a pair only where there is one host.
    let on = |pe| names.range(..=pe).next_back().map_or("", |(_, name)| name);
    let mut path = None;
    for (_, report) in reports {
        match report {
            PairReport::Host(_) => {}
            PairReport::Job {
                n_pes,
                path: how,
                init,
                clocks,
            } => {
                let started = format!(
                    "{n_pes} PEs, shmem_init took {} at most; clocks are within {}",
                    seconds(init),
                    seconds(clocks)
                );
                let grade = if clocks < CLOCKS {
                    Grade::Ok
                } else {
                    Grade::Warning
                };
                let mut finding = Finding::new("start", grade, started);
                if clocks >= CLOCKS {
                    finding = finding.remedy("set the clocks of the hosts, for example by NTP");
                }
                *text += &finding.lines();
                if n_pes > n_cpus {
                    let shared = format!("{n_pes} PEs share {n_cpus} CPUs");
                    let finding = Finding::new("times", Grade::Note, shared);
                    *text += &finding.remedy("they measure the scheduler").lines();
                }
                *text += &Finding::ok("path", how.clone()).lines();
                path = Some(how);
            }
            PairReport::Pair((from, to), first) => {
                let pair = format!("PE {from} on {} to PE {to} on {}", on(from), on(to));
                *text += &Finding::ok(pair, format!("first put {}", seconds(first))).lines();
            }
            PairReport::AllPairs {
                n_others,
                first,
                again,
            } => {
                let written = format!(
                    "each PE wrote to {n_others} others in {} at most, and once more in {}: connections take the difference",
                    seconds(first),
                    seconds(again)
                );
                *text += &Finding::ok("all pairs", written).lines();
            }
        }
    }
    if !outcome.succeeded {
        for complaint in outcome.complaints() {
            *text += &Finding::new("failed", Grade::Bad, complaint).lines();
        }
    }
    path
}

/// Options of `oshrun` that list hosts.
const LISTS: [&str; 2] = ["-H", "--hostfile"];

/// Returns the program and the arguments of the doctor's PEs in this role.
fn pe(role: &str) -> [String; 3] {
    ["shmem-info", "--doctor-pe", role].map(str::to_owned)
}

impl Examined {
    /// Runs a job of a program of Rushmem: `words` are its name and its arguments, `limit` the time
    /// limit in seconds, and `variables` are added to the environment of `oshrun`.
    fn run(
        &self,
        layout: &[String],
        words: &[String],
        limit: u32,
        variables: &[(&str, &str)],
    ) -> Result<CheckOutcome, String> {
        let output = Command::new(&self.oshrun[0])
            .args(&self.oshrun[1..])
            .args(layout)
            .args(["--tag-output", "--timeout", &limit.to_string()])
            .arg(self.bin()?.join(&words[0]))
            .args(&words[1..])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("oshrun cannot be started: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(CheckOutcome {
            succeeded: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    /// Measures operations between the first and the last of the PEs with these names, and between
    /// each pair if there are more than two.
    fn measure(
        &self,
        layout: &[String],
        names: &[String],
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let mut words = vec!["shmem-perf".to_owned()];
        words.extend(times::OPTIONS.iter().map(|&word| word.to_owned()));
        words.push(format!("0,{}", names.len() - 1));
        if names.len() > 2 {
            words.push("--matrix".to_owned());
        }
        let outcome = self.run(layout, &words, OTHER_LIMIT, variables)?;
        Ok(times::findings(&outcome, names)
            .iter()
            .map(Finding::lines)
            .collect())
    }

    /// Returns the directory of this program on the hosts.
    fn bin(&self) -> Result<PathBuf, String> {
        let mut words = self.oshrun.iter();
        if let Some(prefix) = words
            .find(|word| *word == "--prefix")
            .and_then(|_| words.next())
        {
            return Ok(PathBuf::from(prefix).join("bin"));
        }
        let own = std::env::current_exe()
            .map_err(|error| format!("it cannot find its own file: {error}"))?;
        Ok(own.with_file_name(""))
    }

    /// Returns the command line with which a user starts this job with a program.
    fn command_line(&self, layout: &[String], program: &str) -> String {
        let options = self.oshrun[1..]
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        let quoted = |word: String| match word.contains([' ', '*', '$', '"', '\'', ';']) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word,
        };
        let words: Vec<String> = layout.iter().cloned().chain(options).map(quoted).collect();
        format!("oshrun {} {program}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(findings: Vec<Finding>) -> HostReport {
        let sections = vec![Section {
            title: "transport ucx: none".to_owned(),
            findings,
        }];
        HostReport {
            host: "own".to_owned(),
            build: "1".to_owned(),
            cpus: 2,
            sections,
        }
    }

    #[test]
    fn a_host_is_described_by_what_differs_from_the_first() {
        let ok = || Finding::ok("eth0", "10.0.0.1");
        let first = ("a".to_owned(), host(vec![ok()]));
        let same = ("b".to_owned(), host(vec![Finding::ok("eth0", "10.0.0.2")]));
        assert_eq!(
            different(&first, &same).text(false),
            "host b\n  ok      b: as a\n"
        );
        let absent = Finding::new("UCX", Grade::Note, "absent");
        let other = HostReport {
            build: "2".to_owned(),
            ..host(vec![ok(), absent])
        };
        let text = different(&first, &("c".to_owned(), other)).text(false);
        assert!(
            text.contains("build of Rushmem: 2 here, 1 on a; install"),
            "{text}"
        );
        assert!(
            text.contains("note    UCX: absent") && !text.contains("eth0"),
            "{text}"
        );
    }

    #[test]
    fn a_transport_is_tried_once_and_only_if_all_hosts_have_it() {
        let usable = || ("a".to_owned(), host(vec![Finding::ok("tcp", "usable")]));
        let without = (
            "b".to_owned(),
            host(vec![Finding::new("UCX", Grade::Note, "absent")]),
        );
        assert_eq!(others(&[usable()], None), ["ucx"]);
        assert_eq!(others(&[usable()], Some("tcp: every PE has it")), ["ucx"]);
        assert!(others(&[usable(), without], None).is_empty());
        let path = "shared memory on a node, ucx between nodes: SHMEM_TRANSPORT is ucx";
        assert!(others(&[usable()], Some(path)).is_empty());
    }

    #[test]
    fn the_command_line_can_be_typed() {
        let words =
            ["/opt/bin/oshrun", "-H", "a,b", "--launch-agent", "ssh -q"].map(OsString::from);
        let examined = Examined {
            oshrun: words.into(),
            layout: Vec::new(),
        };
        let line = examined.command_line(&["-n".to_owned(), "4".to_owned()], "./program");
        assert_eq!(line, "oshrun -n 4 -H a,b --launch-agent 'ssh -q' ./program");
    }
}
