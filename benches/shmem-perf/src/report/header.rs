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
                [a, b] => (answers_of_two(runs, [&a.record, &b.record])),
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
            items.push((name.clone(), warning));
        }
        for warning in &run.record.warnings {
            items.push((name.clone(), warning.as_str()));
        }
    }

    html! {
        @if !items.is_empty() {
            div .warnings role="alert" {
                strong { "These figures are doubtful" }
                ul { @for (name, warning) in items { li { b { (name) } (warning) } } }
            }
        }
    }
}

/// Returns a table of the times of the operations of a run and of their floors, and the likely
/// reasons for the difference.
fn answers(runs: &[NamedRun], run: usize) -> Markup {
    let record = &runs[run].record;
    let rows: Vec<Vec<String>> = answer::answers(record)
        .into_iter()
        .map(|(row, _)| row.to_vec())
        .collect();
    let title = match runs.len() {
        1 => "What it takes, and what is possible here".into(),
        _ => format!(
            "What it takes, and what is possible: {}",
            short_run_name(runs, run)
        ),
    };
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
fn answers_of_two(runs: &[NamedRun], records: [&Record; 2]) -> Markup {
    let rows: Vec<Vec<String>> = answer::answers_of_two(records)
        .into_iter()
        .map(|row| row.to_vec())
        .collect();
    html! {
        @if !rows.is_empty() {
            div .answers {
                h3 { "What it takes, and what is possible" }
                (table(&answer::HEAD_OF_TWO.map(String::from), &rows, 1))
                p .note { "A/B is a ratio of times: above 1, A takes longer." }
                @for (i, record) in records.into_iter().enumerate() {
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

/// Returns a table with a column for each run: the command to repeat it, the library, the hosts,
/// the clock, and so on.
fn facts(runs: &[NamedRun]) -> Markup {
    let clock = |record: &Record| {
        let clock = &record.clock;
        format!(
            "{}, {:.1} ns to read (subtracted), resolution {:.1} ns",
            clock.name, clock.overhead_ns, clock.resolution_ns
        )
    };
    let data = |record: &Record| {
        if record.validated {
            "checked (--validate)".to_owned()
        } else {
            "not checked".to_owned()
        }
    };

    type Fact = fn(&Record) -> String;
    let facts: [(&str, Fact); 11] = [
        ("library", |record| record.library.name.clone()),
        ("OpenSHMEM", |record| record.library.standard.clone()),
        ("transport", |record| record.library.path()),
        ("found below", |record| record.library.below.join("; ")),
        ("floors", |record| record.floors.join("; ")),
        ("date", |record| {
            record.date.replace('T', " ").replace('Z', " UTC")
        }),
        ("PEs", |record| record.job.pes.len().to_string()),
        ("hosts", |record| hosts(&record.job)),
        ("clock", clock),
        ("shmem-perf", |record| record.tool.clone()),
        ("data", data),
    ];
    let rows = facts.map(|(name, fact)| {
        let facts: Vec<String> = runs.iter().map(|run| fact(&run.record)).collect();
        (name, facts)
    });
    // A record of an older version lacks some.
    let is_known = |facts: &[String]| facts.iter().any(|fact| !fact.is_empty());

    let as_job = |record: &Record| match (record.launcher.is_empty(), record.job.pes.len()) {
        (false, _) => String::new(),
        (true, 1) => " as a job of 1 PE".into(),
        (true, n) => format!(" as a job of {n} PEs"),
    };
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
                    @for run in runs { td { code { (repeat_command(&run.record)) } (as_job(&run.record)) } }
                }
                @for (name, facts) in rows.iter().filter(|(_, facts)| is_known(facts)) {
                    tr { th scope="row" { (name) } @for fact in facts { td { (fact) } } }
                }
            }
        }
    }
}

/// Returns the command line that repeats a run: its variables, the launcher, and the arguments.
fn repeat_command(record: &Record) -> String {
    let set = record
        .settings
        .iter()
        .filter(|setting| setting.origin == "environment")
        .map(|setting| format!("{}={}", setting.name, shell(&setting.value)));
    let words = record
        .launcher
        .iter()
        .chain(&record.command)
        .map(|word| shell(word));
    set.chain(words).collect::<Vec<_>>().join(" ")
}

fn shell(word: &str) -> String {
    // Only a NUL cannot be quoted, and no argument has one.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), String::from)
}

fn settings(runs: &[NamedRun]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for setting in runs.iter().flat_map(|run| &run.record.settings) {
        if !names.contains(&setting.name.as_str()) {
            names.push(&setting.name);
        }
    }

    let value = |run: &NamedRun, name: &str| {
        let setting = run
            .record
            .settings
            .iter()
            .find(|setting| setting.name == name);
        match setting {
            Some(setting) => format!("{} ({})", setting.value, setting.origin),
            None => String::new(),
        }
    };
    let mut rows = Vec::new();
    for name in names {
        let mut row = vec![name.to_owned()];
        row.extend(runs.iter().map(|run| value(run, name)));
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
            let host = host.map_or(String::new(), |host| host.name.clone());
            rows.push(vec![
                short_run_name(runs, i),
                pe.to_string(),
                host,
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
