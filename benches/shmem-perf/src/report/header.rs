//! What a report begins with: what makes the figures doubtful, what was measured where, and how to do it again.

use super::markup::Element;
use super::source::{Source, called, called_shortly};
use super::style::swatch;
use super::table::table;
use crate::answer;
use crate::record::{Job, Record};

/// Hosts that are named; of more the number is told.
const MOST_HOSTS: usize = 8;

/// The head of the page.
pub fn header(runs: &[Source]) -> Element {
    let title = Element::new("h1").text("shmem-perf report");
    Element::new("header")
        .child(title)
        .children(warnings(runs))
        .children(answers(runs))
        .child(facts(runs))
        .child(settings(runs))
        .child(places(runs))
}

fn warnings(runs: &[Source]) -> Option<Element> {
    let incomplete = "The run did not come to its end; what it had measured before is shown.";
    let mut items = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let ended = (!run.record.complete).then_some(incomplete);
        let all = ended.into_iter().chain(run.record.warnings.iter().map(String::as_str));
        for warning in all {
            let whose = if runs.len() > 1 {
                format!("{}: ", called_shortly(runs, i))
            } else {
                String::new()
            };
            let whose = Element::new("b").text(whose);
            items.push(Element::new("li").child(whose).text(warning));
        }
    }
    let list = |items: Vec<Element>| {
        Element::new("div")
            .class("warnings")
            .with("role", "alert")
            .child(Element::new("strong").text("These figures are doubtful"))
            .child(Element::new("ul").children(items))
    };
    (!items.is_empty()).then(|| list(items))
}

/// What each run says of three questions: how long it takes, what is possible, and why there is a gap.
fn answers(runs: &[Source]) -> Vec<Element> {
    let of = |(i, run): (usize, &Source)| {
        let rows: Vec<Vec<String>> =
            answer::answers(&run.record).into_iter().map(|(row, _)| row.to_vec()).collect();
        let title = match runs.len() {
            1 => "What it takes, and what is possible here".into(),
            _ => format!("What it takes, and what is possible: {}", called_shortly(runs, i)),
        };
        let reasons = answer::reasons(&run.record);
        let reasons = reasons.iter().map(|reason| Element::new("li").text(reason));
        (!rows.is_empty()).then(|| {
            Element::new("div")
                .class("answers")
                .child(Element::new("h3").text(title))
                .child(table(&answer::HEAD.map(String::from), &rows, 1))
                .child(Element::new("p").class("note").text("Likely reasons"))
                .child(Element::new("ul").class("found").children(reasons))
        })
    };
    runs.iter().enumerate().filter_map(of).collect()
}

/// A column for each run.
fn facts(runs: &[Source]) -> Element {
    type Fact = fn(&Record) -> String;
    let facts: [(&str, Fact); 11] = [
        ("library", |record| record.library.name.clone()),
        ("OpenSHMEM", |record| record.library.standard.clone()),
        ("transport", |record| record.library.path()),
        ("found below", |record| record.library.below.join("; ")),
        ("floors", |record| record.floors.join("; ")),
        ("date", |record| record.date.replace('T', " ").replace('Z', " UTC")),
        ("PEs", |record| record.job.pes.len().to_string()),
        ("hosts", |record| hosts(&record.job)),
        ("clock", |record| {
            let clock = &record.clock;
            format!(
                "{}, {:.1} ns to read (subtracted), resolution {:.1} ns",
                clock.name, clock.overhead_ns, clock.resolution_ns
            )
        }),
        ("shmem-perf", |record| record.tool.clone()),
        ("data", |record| {
            if record.validated { "checked (--validate)" } else { "not checked" }.into()
        }),
    ];
    let names = (0..runs.len()).map(|run| {
        let th = Element::new("th").with("scope", "col");
        match runs.len() {
            1 => th.text(called(runs, run)),
            _ => th.child(swatch("ink", Some(run))).text(called(runs, run)),
        }
    });
    let head = Element::new("tr").child(Element::new("th")).children(names);
    let row = |name: &str, cells: Vec<Element>| {
        let name = Element::new("th").with("scope", "row").text(name);
        Element::new("tr").child(name).children(cells)
    };
    let told = facts.into_iter().filter_map(|(name, fact)| {
        let facts: Vec<String> = runs.iter().map(|run| fact(&run.record)).collect();
        let is_known = facts.iter().any(|fact| !fact.is_empty());
        let cells = facts.iter().map(|fact| Element::new("td").text(fact));
        is_known.then(|| row(name, cells.collect()))
    });
    let command = |run: &Source| {
        let record = &run.record;
        let code = Element::new("code").text(again(record));
        let job = match (record.launcher.is_empty(), record.job.pes.len()) {
            (false, _) => String::new(),
            (true, 1) => " as a job of 1 PE".into(),
            (true, n) => format!(" as a job of {n} PEs"),
        };
        Element::new("td").child(code).text(job)
    };
    let commands = runs.iter().map(command).collect();
    let body = Element::new("table").class("facts").child(head).children(told);
    let body = body.child(row("to do it again", commands));
    Element::new("div").class("wide").child(body)
}

/// The command with its launcher, and with the variables that were set.
fn again(record: &Record) -> String {
    let set = record.settings.iter().filter(|setting| setting.origin == "environment");
    let set = set
        .map(|setting| format!("{}={}", setting.name, shell(std::slice::from_ref(&setting.value))));
    let words = [&record.launcher[..], &record.command].concat();
    set.chain([shell(&words)]).collect::<Vec<_>>().join(" ")
}

/// Hosts, those of one kind together.
fn hosts(job: &Job) -> String {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for host in &job.hosts {
        let parts = match host.numa_nodes.len() {
            0 | 1 => String::new(),
            n => format!(" in {n} NUMA nodes"),
        };
        let nics = match host.nics.as_slice() {
            [] => String::new(),
            nics => format!(", NICs {}", nics.join(", ")),
        };
        let kind =
            format!("{}, {} CPUs{parts}{nics}, Linux {}", host.cpu, host.n_cpus, host.kernel);
        match kinds.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, names)) => names.push(&host.name),
            None => kinds.push((kind, vec![&host.name])),
        }
    }
    let told = |(kind, names): (String, Vec<&str>)| {
        let more = match names.len().saturating_sub(MOST_HOSTS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = names.iter().take(MOST_HOSTS).copied().collect::<Vec<_>>().join(", ");
        format!("{shown}{more} ({kind})")
    };
    kinds.into_iter().map(told).collect::<Vec<_>>().join("; ")
}

fn settings(runs: &[Source]) -> Element {
    let mut names: Vec<&str> = Vec::new();
    for setting in runs.iter().flat_map(|run| &run.record.settings) {
        if !names.contains(&setting.name.as_str()) {
            names.push(&setting.name);
        }
    }
    let value = |run: &Source, name: &str| {
        let setting = run.record.settings.iter().find(|setting| setting.name == name);
        setting.map_or(String::new(), |setting| format!("{} ({})", setting.value, setting.origin))
    };
    let row = |name: &&str| {
        std::iter::once((*name).to_owned()).chain(runs.iter().map(|run| value(run, name))).collect()
    };
    let head =
        std::iter::once(String::new()).chain((0..runs.len()).map(|run| called_shortly(runs, run)));
    folded(
        "Settings",
        table(&head.collect::<Vec<_>>(), &names.iter().map(row).collect::<Vec<_>>(), 99),
    )
}

fn places(runs: &[Source]) -> Element {
    let mut rows = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for (pe, info) in run.record.job.pes.iter().enumerate() {
            let host = run.record.job.hosts.get(info.host as usize);
            let host = host.map_or(String::new(), |host| host.name.clone());
            rows.push(vec![called_shortly(runs, i), pe.to_string(), host, info.cpus.clone()]);
        }
    }
    folded("Where the PEs ran", table(&["run", "PE", "host", "CPUs"].map(String::from), &rows, 99))
}

/// What is there when somebody wants it.
pub fn folded(title: &str, content: Element) -> Element {
    let title = Element::new("summary").text(title);
    Element::new("details").child(title).child(content)
}

/// Words as a shell takes them.
fn shell(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn commands_survive_a_shell() {
        let words = ["a", "b c", "", "it's", "$X;"].map(String::from);
        assert_eq!(shell(&words), "a 'b c' '' 'it'\\''s' '$X;'");
    }

    #[test]
    fn a_run_can_be_done_again() {
        let text = again(&fixture::empty());
        assert_eq!(text, "SHMEM_TRANSPORT=ofi oshrun -n 16 shmem-perf -o 'a run.json'");
    }

    #[test]
    fn doubts_are_told_first() {
        let mut record = fixture::empty();
        assert!(warnings(&[Source { name: "a".into(), record: record.clone() }]).is_none());
        record.complete = false;
        record.warnings.push("The CPU was <busy>.".into());
        record.series = fixture::run(1, 1.0).series;
        let text = header(&[Source { name: "a".into(), record }]).to_string();
        let answer = text.find("possible here").expect("answers");
        assert!(answer < text.find("OpenSHMEM").expect("facts"), "{text}");
        assert!(
            text.contains("did not come to its end") && text.contains("&lt;busy&gt;"),
            "{text}"
        );
        assert!(text.find("doubtful") < text.find("Rushmem"));
    }
}
