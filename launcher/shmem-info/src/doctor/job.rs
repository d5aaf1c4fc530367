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
use super::outcome::{CheckOutcome, Tagged};
use super::pe::{HostReport, PairReport};
use super::times::{self, seconds};
use super::to_verify;
use crate::Answer;
use crate::terminal::progress;

/// Limit in seconds of the job in which each host reports. `oshrun` waits less long for a daemon,
/// so it can report which host is missing.
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

/// Examines the job. Returns all that was found; the job can run if it does as the user would start
/// it.
pub fn examine(examined: &Examined) -> Result<Answer, String> {
    progress("examining the hosts");
    let hosts = examine_hosts(examined)?;
    if let Some(first) = &hosts.first_repair {
        progress("");
        return Ok(unusable(first, &hosts.text));
    }

    let job = examine_job(examined, hosts)?;
    progress("");

    let mut layout = job.layout;
    let mut rest = "; use:".to_owned();
    if let Some(first) = &job.complaint {
        let Some(name) = job.working else {
            return Ok(unusable(first, &job.text));
        };
        layout.extend(["-x".to_owned(), format!("SHMEM_TRANSPORT={name}")]);
        rest = format!(": repair first: {first}; until then use:");
    }

    let is_ok = job.complaint.is_none();
    let verdict = verdict(is_ok, &rest);
    // The command is one line, to be copied.
    let command = examined.command_line(&layout, "./program");
    let mut text = format!("{verdict}  {command}\n\n{}", job.text);
    if is_ok {
        text += &to_verify(&examined.command_line(&layout, "shmem-verify"));
    }
    Ok(Answer { text, is_ok })
}

/// Returns the answer for a job that cannot run until something is repaired.
fn unusable(first: &str, text: &str) -> Answer {
    Answer {
        text: verdict(false, &format!(": repair first: {first}")) + text,
        is_ok: false,
    }
}

/// What the short jobs have shown.
struct JobFindings {
    /// The findings on the hosts and on the jobs.
    text: String,
    /// The options that distribute the PEs of the user's job.
    layout: Vec<String>,
    /// Why the user's job failed, if it did.
    complaint: Option<String>,
    /// The first of the other transports over which a job succeeded.
    working: Option<String>,
}

/// Runs the user's job, and one over each of the other transports that all hosts can use.
fn examine_job(examined: &Examined, found: Hosts) -> Result<JobFindings, String> {
    let Hosts {
        mut text, hosts, ..
    } = found;
    let is_one_host = hosts.len() == 1;
    let mut layout = examined.layout.clone();
    if layout.is_empty() && is_one_host && !examined.names_hosts() {
        layout = vec!["-n".to_owned(), hosts[0].report.cpus.max(2).to_string()];
    }

    let few = FewPes::of(&hosts);

    text += "\nthe job\n";
    text += &shared_cpus(&hosts);
    progress("running the job");
    let outcome = examined.run(&layout, &pe("pairs"), JOB_LIMIT, &[])?;
    let n_cpus = hosts.iter().map(|host| host.report.cpus).sum();
    let path = add_reports(&outcome, n_cpus, &mut text);
    if outcome.succeeded {
        text += &examined.measure(&few, &[])?;
    }

    let mut working = None;
    let chosen = path.or_else(|| environment("SHMEM_TRANSPORT"));
    for name in others(&hosts, chosen.as_deref()) {
        progress(&format!("running a job over {name}"));
        let mut variables = vec![("SHMEM_TRANSPORT", name.as_str())];
        if is_one_host {
            text += &format!("\ntransport {name}, as between hosts\n");
            // Otherwise the PEs of one host would use no transport.
            variables.push(("SHMEM_ONNODE", "off"));
        } else {
            text += &format!("\ntransport {name}\n");
        }

        let other = examined.run(&few.layout, &pe("pairs"), OTHER_LIMIT, &variables)?;
        add_reports(&other, n_cpus, &mut text);
        if other.succeeded {
            text += &examined.measure(&few, &variables)?;
            working.get_or_insert(name);
        }
    }

    let complaint = if outcome.succeeded {
        None
    } else {
        let first = outcome.complaints().into_iter().next();
        Some(first.unwrap_or_else(|| "the job failed without a message".to_owned()))
    };
    Ok(JobFindings {
        text,
        layout,
        complaint,
        working,
    })
}

/// The PEs of the jobs of shmem-perf and of those over other transports: one on each host, or two
/// if there is only one host.
struct FewPes {
    /// The options of `oshrun` that start them.
    layout: [String; 4],
    /// The names of the PEs in findings.
    names: Vec<String>,
}

impl FewPes {
    fn of(hosts: &[ExaminedHost]) -> Self {
        let mut per_host = "1";
        let mut names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        if hosts.len() == 1 {
            per_host = "2";
            names = vec!["PE 0".to_owned(), "PE 1".to_owned()];
        }

        Self {
            layout: ["--ppn", per_host, "--host-limit", OTHER_HOST_LIMIT].map(str::to_owned),
            names,
        }
    }
}

/// Returns the findings that other programs use the CPUs of a host, which distorts measurements.
fn shared_cpus(hosts: &[ExaminedHost]) -> String {
    let mut text = String::new();
    for finding in hosts.iter().flat_map(ExaminedHost::findings) {
        if finding.name == LOAD {
            text += &finding.lines();
        }
    }
    text
}

/// The hosts of a job.
struct Hosts {
    /// The findings on the first host, and what differs on the others.
    text: String,
    hosts: Vec<ExaminedHost>,
    /// What to repair first, if a host cannot run a PE or a job.
    first_repair: Option<String>,
}

/// A host of the job.
struct ExaminedHost {
    /// The name that the job has for it.
    name: String,
    report: HostReport,
}

impl ExaminedHost {
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.report
            .sections
            .iter()
            .flat_map(|section| &section.findings)
    }

    /// Returns true if a part of this transport is usable on the host.
    fn can_use(&self, transport: &str) -> bool {
        let title = format!("transport {transport}:");
        let sections = &self.report.sections;
        let own = sections
            .iter()
            .filter(|section| section.title.starts_with(&title));
        own.flat_map(|section| &section.findings)
            .any(|finding| finding.grade == Grade::Ok)
    }
}

fn examine_hosts(examined: &Examined) -> Result<Hosts, String> {
    let one_each = ["--ppn".to_owned(), "1".to_owned()];
    let outcome = examined.run(&one_each, &pe("host"), HOSTS_LIMIT, &[])?;
    let mut hosts = Vec::new();
    for Tagged { tag, content } in outcome.reports::<HostReport>() {
        hosts.push(ExaminedHost {
            name: tag.host_name(&content.host),
            report: content,
        });
    }

    let mut text = String::new();
    if let Some((first, others)) = hosts.split_first() {
        if first.name != first.report.host {
            text += &format!("{} is\n", first.name);
        }
        for section in &first.report.sections {
            text += &section.text(false);
        }
        for other in others {
            text += &different(first, other).text(false);
        }
    }

    let first_repair = if !outcome.succeeded || hosts.is_empty() {
        let complaint = outcome.complaints().into_iter().next();
        Some(complaint.unwrap_or_else(|| "no host has reported".to_owned()))
    } else {
        hosts.iter().find_map(|host| {
            let bad = host
                .findings()
                .find(|finding| finding.grade == Grade::Bad)?;
            Some(format!("on {}, {bad}", host.name))
        })
    };
    Ok(Hosts {
        text,
        hosts,
        first_repair,
    })
}

/// Returns the findings on a host that the first one does not have with the same grade, and all
/// that are warnings or worse.
fn different(first: &ExaminedHost, host: &ExaminedHost) -> Section {
    let mut findings = Vec::new();
    for finding in host.findings() {
        let mut known = first.findings();
        let is_known =
            known.any(|known| known.name == finding.name && known.grade == finding.grade);
        if finding.grade >= Grade::Warning || !is_known {
            findings.push(finding.clone());
        }
    }

    let own_build = &host.report.build;
    let first_build = &first.report.build;
    if own_build != first_build {
        let text = format!("{own_build} here, {first_build} on {}", first.name);
        let finding = Finding::new("build of Rushmem", Grade::Warning, text)
            .remedy("install the same build on all hosts");
        findings.insert(0, finding);
    }

    if findings.is_empty() {
        let name = host.name.clone();
        findings.push(Finding::ok(name, format!("as {}", first.name)));
    }
    Section {
        title: format!("host {}", host.name),
        findings,
    }
}

/// Returns the transports that all hosts can use, without the one that `chosen` names: the path of
/// the user's job, or the value of SHMEM_TRANSPORT.
fn others(hosts: &[ExaminedHost], chosen: Option<&str>) -> Vec<String> {
    // The reason for the choice follows a colon in a path. It may name other transports.
    let without_reason = chosen.unwrap_or_default().split(':').next();
    let chosen: Vec<&str> = without_reason
        .unwrap_or_default()
        .split([' ', ','])
        .collect();

    let mut others = Vec::new();
    for provider in rushmem_providers::ALL {
        let name = provider.name;
        if !chosen.contains(&name) && hosts.iter().all(|host| host.can_use(name)) {
            others.push(name.to_owned());
        }
    }
    others
}

/// Adds the reports of a job on `n_cpus` CPUs to `text`, and the messages if the job failed.
/// Returns the path between the PEs, which names their transport, if PE 0 has reported it.
fn add_reports(outcome: &CheckOutcome, n_cpus: usize, text: &mut String) -> Option<String> {
    let reports: Vec<Tagged<PairReport>> = outcome.reports();
    let hosts = HostNames::of(&reports);

    let mut path = None;
    for report in reports {
        match report.content {
            PairReport::Host(_) => {}
            PairReport::Job {
                n_pes,
                path: reported,
                init,
                clocks,
            } => {
                *text += &start(n_pes, init, clocks).lines();
                if n_pes > n_cpus {
                    let shared = format!("{n_pes} PEs share {n_cpus} CPUs");
                    let finding = Finding::new("times", Grade::Note, shared);
                    *text += &finding.remedy("they measure the scheduler").lines();
                }
                *text += &Finding::ok("path", reported.clone()).lines();
                path = Some(reported);
            }
            PairReport::Pair { from, to, first } => {
                let pair = format!(
                    "PE {from} on {} to PE {to} on {}",
                    hosts.host_of(from),
                    hosts.host_of(to)
                );
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

/// The name of each host that has reported, by its first PE.
struct HostNames(BTreeMap<usize, String>);

impl HostNames {
    fn of(reports: &[Tagged<PairReport>]) -> HostNames {
        let mut hosts = BTreeMap::new();
        for Tagged { tag, content } in reports {
            if let PairReport::Host(own) = content {
                hosts.insert(tag.pe as usize, tag.host_name(own));
            }
        }
        HostNames(hosts)
    }

    /// Returns the name of the host of a PE: that of the nearest PE at or below it that has
    /// reported its host. Pairs consist of the first PEs of hosts, unless there is one host.
    fn host_of(&self, pe: usize) -> &str {
        self.0.range(..=pe).next_back().map_or("", |(_, name)| name)
    }
}

/// Returns the finding on the start of a job: how long it took, and how far the clocks differ.
fn start(n_pes: usize, init: f64, clocks: f64) -> Finding {
    let text = format!(
        "{n_pes} PEs, shmem_init took {} at most; clocks are within {}",
        seconds(init),
        seconds(clocks)
    );
    if clocks < CLOCKS {
        Finding::ok("start", text)
    } else {
        Finding::new("start", Grade::Warning, text)
            .remedy("set the clocks of the hosts, for example by NTP")
    }
}

/// Options of `oshrun` that list hosts.
const LISTS: [&str; 2] = ["-H", "--hostfile"];

/// Returns the program and the arguments of the doctor's PEs in this role.
fn pe(role: &str) -> [String; 3] {
    ["shmem-info", "--doctor-pe", role].map(str::to_owned)
}

impl Examined {
    fn names_hosts(&self) -> bool {
        self.oshrun
            .iter()
            .any(|word| LISTS.iter().any(|list| word == list))
    }

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

        Ok(CheckOutcome {
            succeeded: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Measures operations between the first and the last of these PEs, and between each pair if
    /// there are more than two.
    fn measure(&self, pes: &FewPes, variables: &[(&str, &str)]) -> Result<String, String> {
        let mut words = vec!["shmem-perf".to_owned()];
        words.extend(times::OPTIONS.iter().map(|&word| word.to_owned()));
        words.push(format!("0,{}", pes.names.len() - 1));
        if pes.names.len() > 2 {
            words.push("--matrix".to_owned());
        }

        let outcome = self.run(&pes.layout, &words, OTHER_LIMIT, variables)?;
        let findings = times::findings(&outcome, &pes.names);
        Ok(findings.iter().map(Finding::lines).collect())
    }

    /// Returns the directory of this program on the hosts.
    fn bin(&self) -> Result<PathBuf, String> {
        if let Some(option) = self.oshrun.iter().position(|word| word == "--prefix")
            && let Some(prefix) = self.oshrun.get(option + 1)
        {
            return Ok(PathBuf::from(prefix).join("bin"));
        }

        let own = std::env::current_exe()
            .map_err(|error| format!("it cannot find its own file: {error}"))?;
        Ok(own.with_file_name(""))
    }

    /// Returns the command line with which a user starts this job with a program.
    fn command_line(&self, layout: &[String], program: &str) -> String {
        let mut words = vec!["oshrun".to_owned()];
        words.extend(layout.iter().map(|word| quoted(word)));
        for option in &self.oshrun[1..] {
            words.push(quoted(&option.to_string_lossy()));
        }
        words.push(program.to_owned());
        words.join(" ")
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    if word.contains([' ', '*', '$', '"', '\'', ';']) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, findings: Vec<Finding>) -> ExaminedHost {
        let sections = vec![Section {
            title: "transport ucx: none".to_owned(),
            findings,
        }];
        ExaminedHost {
            name: name.to_owned(),
            report: HostReport {
                host: "own".to_owned(),
                build: "1".to_owned(),
                cpus: 2,
                sections,
            },
        }
    }

    #[test]
    fn a_host_is_described_by_what_differs_from_the_first() {
        let ok = || Finding::ok("eth0", "10.0.0.1");
        let first = host("a", vec![ok()]);
        let same = host("b", vec![Finding::ok("eth0", "10.0.0.2")]);
        assert_eq!(
            different(&first, &same).text(false),
            "host b\n  ok      b: as a\n"
        );

        let absent = Finding::new("UCX", Grade::Note, "absent");
        let mut other = host("c", vec![ok(), absent]);
        other.report.build = "2".to_owned();
        let text = different(&first, &other).text(false);
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
        let usable = || host("a", vec![Finding::ok("tcp", "usable")]);
        let without = host("b", vec![Finding::new("UCX", Grade::Note, "absent")]);
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
