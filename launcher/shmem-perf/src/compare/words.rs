//! The text of a comparison: differences between the conditions of the runs, the figures that
//! differ, the series that were not compared, and the test.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::judge::{Alone, Basis, Change, Compared, Comparison, LEVEL, runs_to_find_one_of};
use crate::naming::names;
use crate::print::{aligned, paragraph};
use crate::record::{Record, Series};
use crate::units;

/// Returns the whole text.
pub fn words(
    before: &[Record],
    after: &[Record],
    found: &Comparison,
    threshold: f64,
    lists_equal: bool,
) -> String {
    let mut text = String::new();
    for sentence in doubts(before, after) {
        text += &paragraph("note: ", &sentence);
    }
    text += &differences(found, lists_equal);
    for (alone, when) in [
        (&found.alone_before, "before"),
        (&found.alone_after, "after"),
    ] {
        if !alone.is_empty() {
            text += &paragraph(&format!("only {when}: "), &listed(alone, lists_equal));
        }
    }
    text += &counts(found);

    let tested = match found.basis {
        Basis::Batches => "the medians of batches".into(),
        Basis::Runs => format!("the medians of {} and {} runs", before.len(), after.len()),
    };
    let test = format!(
        "two-sided Mann-Whitney on {tested} at {:.0} %, corrected for {} comparisons (Benjamini-Hochberg); \
         medians that differ by {threshold} % or less are equal. A ratio is of times: above 1 is slower.",
        LEVEL * 100.0,
        found.compared.len()
    );
    text += &paragraph("Test: ", &test);
    let n_runs = before.len().min(after.len());
    text += &paragraph("", &reach(n_runs, found, threshold));

    text
}

/// Returns a table of the figures that differ, with the others after them if they are wanted too.
fn differences(found: &Comparison, lists_equal: bool) -> String {
    let mut text = String::new();
    let series: Vec<&Series> = found.compared.iter().map(|one| one.series).collect();
    let names = names(&series);
    if !names.common.is_empty() {
        text += &paragraph("note: ", &format!("all with {}.", names.common));
    }

    let mut verdicts = vec![Change::Slower, Change::Faster];
    if lists_equal {
        verdicts.extend([Change::TooFew, Change::Equal]);
    }
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for verdict in verdicts {
        for (one, name) in found.compared.iter().zip(&names.names) {
            if one.verdict == verdict {
                rows.push(row(one, name));
            }
        }
    }
    // A head without rows says nothing.
    if rows.len() > 1 {
        let _ = writeln!(text, "{}", aligned("", &rows, 3));
    }

    text
}

/// The number of figures with each verdict.
#[derive(Default)]
struct Counts {
    slower: usize,
    faster: usize,
    equal: usize,
    too_few: usize,
}

impl Counts {
    fn add(&mut self, verdict: Change) {
        match verdict {
            Change::Slower => self.slower += 1,
            Change::Faster => self.faster += 1,
            Change::Equal => self.equal += 1,
            Change::TooFew => self.too_few += 1,
        }
    }
}

/// Returns a line with the numbers of verdicts on the library's figures, and, if floors differ, a
/// sentence about those.
fn counts(found: &Comparison) -> String {
    let mut of_library = Counts::default();
    let mut of_floors = Counts::default();
    let mut n_floors = 0;
    for one in &found.compared {
        if one.series.is_floor {
            of_floors.add(one.verdict);
            n_floors += 1;
        } else {
            of_library.add(one.verdict);
        }
    }

    let mut text = format!(
        "{} slower, {} faster, {} equal",
        of_library.slower, of_library.faster, of_library.equal
    );
    if of_library.too_few > 0 {
        let _ = write!(text, ", {} of too few values to say", of_library.too_few);
    }
    if n_floors > 0 {
        let _ = write!(text, ", beside {n_floors} floors");
    }
    text += ".\n";

    if of_floors.slower + of_floors.faster > 0 {
        let floors = format!(
            "Of the floors {} are slower and {} are faster: it was not the same machine, or it was not as idle.",
            of_floors.slower, of_floors.faster
        );
        text += &paragraph("", &floors);
    }
    text
}

/// Says what this number of runs can show.
fn reach(n_runs: usize, found: &Comparison, threshold: f64) -> String {
    let needed = runs_to_find_one_of(found.compared.len());
    match found.basis {
        Basis::Batches => format!(
            "One run of each side does not show how runs differ; {threshold} % are allowed for that. \
             {needed} runs of each side with --with show it."
        ),
        Basis::Runs if n_runs < needed => format!(
            "So few runs find only a difference that many figures share: {needed} runs of each side find one in a single figure."
        ),
        Basis::Runs => {
            format!("{n_runs} runs of each side find a difference in a single figure.")
        }
    }
}

/// Returns the differences between the conditions of the runs, and the runs' own warnings, in
/// sentences.
fn doubts(before: &[Record], after: &[Record]) -> Vec<String> {
    let mut doubts = Vec::new();
    let all: Vec<&Record> = before.iter().chain(after).collect();

    let transports_before = transports(before);
    let transports_after = transports(after);
    // First, since other transports explain most differences.
    if transports_before != transports_after {
        doubts.push(format!(
            "the runs before went over {transports_before}, those after over {transports_after}."
        ));
    }

    let hosts = |run: &Record| -> Vec<String> {
        run.job.hosts.iter().map(|host| host.name.clone()).collect()
    };
    if all.iter().any(|run| hosts(run) != hosts(all[0])) {
        doubts.push("the runs were on different hosts.".into());
    }

    // Nodes are not compared, because older records lack them.
    let places = |run: &Record| -> Vec<(u32, String)> {
        run.job
            .pes
            .iter()
            .map(|pe| (pe.host, pe.cpus.clone()))
            .collect()
    };
    if all.iter().any(|run| places(run) != places(all[0])) {
        doubts.push("the runs had different PEs, or bound them to other CPUs.".into());
    }

    for (runs, when) in [(before, "before"), (after, "after")] {
        for (run, number) in runs.iter().zip(1..) {
            let which = if runs.len() == 1 {
                format!("the run {when}")
            } else {
                format!("run {number} {when}")
            };
            for warning in &run.warnings {
                doubts.push(format!("of {which}: {warning}"));
            }
        }
    }

    doubts
}

/// Returns the transports of some runs in words, each once.
fn transports(runs: &[Record]) -> String {
    let mut all = BTreeSet::new();
    for run in runs {
        let transport = run.library.transport.as_deref();
        all.insert(transport.unwrap_or("what is unknown"));
    }
    Vec::from_iter(all).join(" or ")
}

/// The maximum number of operations that are listed by name; the others are counted.
const LISTED: usize = 10;

/// Returns what one side has in words: all operations, or the first ones and the number of others.
fn listed(alone: &[Alone], lists_all: bool) -> String {
    let series: Vec<&Series> = alone.iter().map(|one| one.series).collect();
    let names = names(&series);
    let mut all = Vec::new();
    for (one, name) in alone.iter().zip(&names.names) {
        let measure = units::name(one.series.measure).to_lowercase();
        all.push(if one.sizes.is_empty() {
            format!("{name} ({measure})")
        } else {
            format!("{name} ({measure} of {} bytes)", in_words(&one.sizes))
        });
    }
    // Series that differ in what the names leave out have the same words.
    all.dedup();

    if !lists_all && all.len() > LISTED {
        let n_more = all.len() - LISTED;
        all.truncate(LISTED);
        all.push(format!("{n_more} more (--all)"));
    }
    all.join("; ")
}

/// Returns sizes in words, such as `8, 1 Ki`.
fn in_words(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(|nbytes| units::size(*nbytes)).collect();
    sizes.join(", ")
}

const HEAD: [&str; 8] = [
    "",
    "measure",
    "operation",
    "bytes",
    "before",
    "after",
    "ratio",
    "p",
];

fn row(one: &Compared, name: &str) -> Vec<String> {
    let verdict = match one.verdict {
        Change::Slower => "slower",
        Change::Faster => "faster",
        Change::Equal => "equal",
        Change::TooFew => "too few values",
    };
    let measure = one.series.measure;
    let floor = if one.series.is_floor { " (floor)" } else { "" };

    vec![
        verdict.into(),
        units::name(measure).to_lowercase(),
        format!("{name}{floor}"),
        units::size(one.nbytes),
        units::figure(measure, one.median_before),
        units::figure(measure, one.median_after),
        units::ratio(one.ratio),
        format!("{:.1e}", one.p),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::judge::judge;
    use super::*;
    use crate::fixture;

    #[test]
    fn the_first_line_says_that_the_transports_differ_and_no_line_is_long() {
        let mut before = [fixture::run(1, 1.0)];
        let after = [fixture::run(2, 1.0)];
        before[0].library.transport = Some("shared memory".into());
        for mut series in before[0].series.clone() {
            series.operation += "_of_before";
            before[0].series.push(series);
        }

        let found = judge(&before, &after, 0.5).expect("they can be compared");
        let text = words(&before, &after, &found, 50.0, false);
        let first = "note: the runs before went over shared memory, those after over ofi";
        assert!(
            text.starts_with(first) && text.contains(" more\n"),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }

    #[test]
    fn sizes_that_one_side_lacks_are_named() {
        let before = [fixture::run(1, 1.0)];
        let mut after = [fixture::run(2, 1.0)];
        let lost = after[0].series[0].points.pop().expect("a size");

        let found = judge(&before, &after, 0.5).expect("they can be compared");
        let text = words(&before, &after, &found, 50.0, false);
        let series = &before[0].series[0];
        let says = format!(
            "only before: {} ({} of {} bytes)\n",
            series.operation,
            units::name(series.measure).to_lowercase(),
            units::size(lost.nbytes)
        );
        assert!(text.contains(&says), "{says}{text}");
    }
}
