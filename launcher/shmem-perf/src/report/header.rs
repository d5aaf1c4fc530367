//! The head of a report: the warnings, the times of operations beside the limits of the machine,
//! the command to repeat a run, its environment, and its settings.

use maud::{Markup, html};

use super::figure::table;
use super::source::{NamedRun, run_name, short_run_name};
use super::style::Entry;
use crate::answer;
use crate::machine::hosts;
use crate::record::Record;
use charts::palette::INK;

pub fn header(runs: &[NamedRun]) -> Markup {
    html! {
        header {
            h1 { "shmem-perf report" }
            (warnings(runs))
            @match runs {
                [a, b] => (answers_of_two(runs, &a.record, &b.record)),
                _ => @for i in 0..runs.len() { (answers(runs, i)) },
            }
            (facts(runs))
            (settings(runs))
            (places(runs))
        }
    }
}

fn warnings(runs: &[NamedRun]) -> Markup {
    let mut items = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let name = if runs.len() > 1 {
            short_run_name(runs, i) + ": "
        } else {
            String::new()
        };

        if !run.record.complete {
            let warning = "The run did not end normally; the figures up to then are shown.";
            items.push(html! { li { b { (name) } (warning) } });
        }
        for warning in &run.record.warnings {
            items.push(html! { li { b { (name) } (warning) } });
        }
    }

    html! {
        @if !items.is_empty() {
            div .warnings role="alert" {
                strong { "These figures are doubtful" }
                ul { @for item in items { (item) } }
            }
        }
    }
}

/// Returns a table of the times of the operations of a run and of their floors, and the likely
/// reasons for the difference.
fn answers(runs: &[NamedRun], run: usize) -> Markup {
    let record = &runs[run].record;
    let title = match runs.len() {
        1 => "What it takes, and what is possible here".into(),
        _ => format!(
            "What it takes, and what is possible: {}",
            short_run_name(runs, run)
        ),
    };

    let mut rows = Vec::new();
    for answer in answer::answers(record) {
        rows.push(answer.row().to_vec());
    }

    html! {
        @if !rows.is_empty() {
            div .answers {
                h3 { (title) }
                (table(&answer::HEAD.map(String::from), &rows, 1))
                (reasons("Likely reasons", record))
            }
        }
    }
}

/// Returns the answers of two runs in one table, and the likely reasons of each.
fn answers_of_two(runs: &[NamedRun], a: &Record, b: &Record) -> Markup {
    let mut rows = Vec::new();
    for row in answer::answers_of_two(a, b) {
        rows.push(row.to_vec());
    }

    html! {
        @if !rows.is_empty() {
            div .answers {
                h3 { "What it takes, and what is possible" }
                (table(&answer::HEAD_OF_TWO.map(String::from), &rows, 1))
                p .note { "A/B is a ratio of times: above 1, A takes longer." }
                @for (i, record) in [a, b].into_iter().enumerate() {
                    (reasons(&format!("Likely reasons: {}", short_run_name(runs, i)), record))
                }
            }
        }
    }
}

fn reasons(title: &str, record: &Record) -> Markup {
    html! {
        p .note { (title) }
        ul .found { @for reason in answer::reasons(record) { li { (reason) } } }
    }
}

/// A row of the table of facts: its head, and what it says about a run.
struct Fact {
    name: &'static str,
    of_record: fn(&Record) -> String,
}

const FACTS: [Fact; 11] = [
    Fact {
        name: "library",
        of_record: |record| record.library.name.clone(),
    },
    Fact {
        name: "OpenSHMEM",
        of_record: |record| record.library.standard.clone(),
    },
    Fact {
        name: "transport",
        of_record: |record| record.library.path(),
    },
    Fact {
        name: "found below",
        of_record: |record| record.library.below.join("; "),
    },
    Fact {
        name: "floors",
        of_record: |record| record.floors.join("; "),
    },
    Fact {
        name: "date",
        of_record: |record| record.date.replace('T', " ").replace('Z', " UTC"),
    },
    Fact {
        name: "PEs",
        of_record: |record| record.job.pes.len().to_string(),
    },
    Fact {
        name: "hosts",
        of_record: |record| hosts(&record.job),
    },
    Fact {
        name: "clock",
        of_record: |record| {
            let clock = &record.clock;
            format!(
                "{}, {:.1} ns to read (subtracted), resolution {:.1} ns",
                clock.name, clock.overhead_ns, clock.resolution_ns
            )
        },
    },
    Fact {
        name: "shmem-perf",
        of_record: |record| record.tool.clone(),
    },
    Fact {
        name: "data",
        of_record: |record| {
            if record.validated {
                "checked (--validate)".into()
            } else {
                "not checked".into()
            }
        },
    },
];

/// Returns a table with a column for each run: the command to repeat it, and the facts.
fn facts(runs: &[NamedRun]) -> Markup {
    let mut rows = Vec::new();
    for fact in FACTS {
        let cells: Vec<String> = runs
            .iter()
            .map(|run| (fact.of_record)(&run.record))
            .collect();
        // A record of an older version lacks some.
        if cells.iter().any(|cell| !cell.is_empty()) {
            rows.push(html! {
                tr { th scope="row" { (fact.name) } @for cell in cells { td { (cell) } } }
            });
        }
    }

    html! {
        div .wide {
            table .facts {
                tr {
                    th {}
                    @for run in 0..runs.len() {
                        th scope="col" {
                            @if runs.len() > 1 {
                                (Entry::of_run(run, INK, String::new()).swatch(0.0, 0.0))
                            }
                            (run_name(runs, run))
                        }
                    }
                }
                tr {
                    th scope="row" { "to repeat it" }
                    @for run in runs {
                        td { code { (repeat_command(&run.record)) } (as_job(&run.record)) }
                    }
                }
                @for row in rows { (row) }
            }
        }
    }
}

/// Returns the number of PEs that a command needs which lacks its launcher.
fn as_job(record: &Record) -> String {
    if !record.launcher.is_empty() {
        return String::new();
    }
    match record.job.pes.len() {
        1 => " as a job of 1 PE".into(),
        n => format!(" as a job of {n} PEs"),
    }
}

/// Returns the command line that repeats a run: its variables, the launcher, and the arguments.
fn repeat_command(record: &Record) -> String {
    let mut words = Vec::new();
    for setting in &record.settings {
        if setting.origin == "environment" {
            words.push(format!("{}={}", setting.name, shell(&setting.value)));
        }
    }
    for word in record.launcher.iter().chain(&record.command) {
        words.push(shell(word));
    }
    words.join(" ")
}

fn shell(word: &str) -> String {
    match shlex::try_quote(word) {
        Ok(quoted) => quoted.into_owned(),
        // Only a NUL cannot be quoted, and no argument has one.
        Err(_) => word.to_owned(),
    }
}

fn settings(runs: &[NamedRun]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for setting in runs.iter().flat_map(|run| &run.record.settings) {
        if !names.contains(&setting.name.as_str()) {
            names.push(&setting.name);
        }
    }

    let mut rows = Vec::new();
    for name in names {
        let mut row = vec![name.to_owned()];
        for run in runs {
            let mut settings = run.record.settings.iter();
            row.push(match settings.find(|setting| setting.name == name) {
                Some(setting) => format!("{} ({})", setting.value, setting.origin),
                None => String::new(),
            });
        }
        rows.push(row);
    }

    let mut head = vec![String::new()];
    head.extend((0..runs.len()).map(|run| short_run_name(runs, run)));
    folded("Settings", &table(&head, &rows, usize::MAX))
}

fn places(runs: &[NamedRun]) -> Markup {
    let mut rows = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for (pe, info) in run.record.job.pes.iter().enumerate() {
            let host = run.record.job.hosts.get(info.host as usize);
            rows.push(vec![
                short_run_name(runs, i),
                pe.to_string(),
                host.map_or(String::new(), |host| host.name.clone()),
                info.cpus.clone(),
            ]);
        }
    }

    let head = ["run", "PE", "host", "CPUs"].map(String::from);
    folded("Where the PEs ran", &table(&head, &rows, usize::MAX))
}

/// Returns content that is hidden until the reader opens it by its title.
pub fn folded(title: &str, content: &Markup) -> Markup {
    html! { details { summary { (title) } (content) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn commands_survive_a_shell() {
        let words = ["a", "b c", "", "it's", "$X;"].map(shell);
        assert_eq!(words, ["a", "'b c'", "''", "\"it's\"", "'$X;'"]);
    }

    #[test]
    fn a_run_can_be_done_again() {
        let text = repeat_command(&fixture::empty());
        assert_eq!(
            text,
            "SHMEM_TRANSPORT=ofi oshrun -n 16 shmem-perf -o 'a run.json'"
        );
    }

    #[test]
    fn doubts_come_first() {
        let mut record = fixture::empty();
        assert!(
            warnings(&[NamedRun {
                name: "a".into(),
                record: record.clone()
            }])
            .0
            .is_empty()
        );
        record.complete = false;
        record.warnings.push("The CPU was <busy>.".into());
        record.series = fixture::run(1, 1.0).series;
        let text = header(&[NamedRun {
            name: "a".into(),
            record,
        }])
        .into_string();
        let answer = text.find("possible here").expect("answers");
        assert!(answer < text.find("OpenSHMEM").expect("facts"), "{text}");
        assert!(
            text.contains("did not end normally") && text.contains("&lt;busy&gt;"),
            "{text}"
        );
        assert!(text.find("doubtful") < text.find("Rushmem"));
    }
}
