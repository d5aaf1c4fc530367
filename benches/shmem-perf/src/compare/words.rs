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
    runs: (&[Record], &[Record]),
    found: &Comparison,
    threshold: f64,
    lists_equal: bool,
) -> String {
    let mut text = String::new();
    for sentence in doubts(runs.0, runs.1) {
        text += &paragraph("note: ", &sentence);
    }
    let series: Vec<&Series> = found.compared.iter().map(|one| one.series).collect();
    let names = names(&series);
    if !names.common.is_empty() {
        text += &paragraph("note: ", &format!("all with {}.", names.common));
    }
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for verdict in [
        Change::Slower,
        Change::Faster,
        Change::TooFew,
        Change::Equal,
    ] {
        if verdict < Change::Equal || lists_equal {
            let all = found.compared.iter().zip(&names.names);
            rows.extend(
                all.filter(|(one, _)| one.verdict == verdict)
                    .map(|(one, name)| row(one, name)),
            );
        }
    }
    if rows.len() > 1 {
        let _ = writeln!(text, "{}", aligned("", &rows, 3));
    }
    let alone = [(&found.alone.0, "before"), (&found.alone.1, "after")];
    for (alone, when) in alone.into_iter().filter(|(alone, _)| !alone.is_empty()) {
        text += &paragraph(&format!("only {when}: "), &listed(alone, lists_equal));
    }
    let count = |verdict| {
        let mut n = [0, 0];
        let judged = found.compared.iter().filter(|one| one.verdict == verdict);
        judged.for_each(|one| n[usize::from(one.series.is_floor)] += 1);
        n
    };
    let [slower, faster, equal, few] = [
        Change::Slower,
        Change::Faster,
        Change::Equal,
        Change::TooFew,
    ]
    .map(count);
    let _ = write!(
        text,
        "{} slower, {} faster, {} equal",
        slower[0], faster[0], equal[0]
    );
    if few[0] > 0 {
        let _ = write!(text, ", {} of too few values to say", few[0]);
    }
    let _ = match slower[1] + faster[1] + equal[1] + few[1] {
        0 => writeln!(text, "."),
        floors => writeln!(text, ", beside {floors} floors."),
    };
    if slower[1] + faster[1] > 0 {
        let floors = format!(
            "Of the floors {} are slower and {} are faster: it was not the same machine, or it was not as idle.",
            slower[1], faster[1]
        );
        text += &paragraph("", &floors);
    }
    let test = format!(
        "two-sided Mann-Whitney on {} at {:.0} %, corrected for {} comparisons (Benjamini-Hochberg); \
         medians that differ by {threshold} % or less are equal. A ratio is of times: above 1 is slower.",
        match found.basis {
            Basis::Batches => "the medians of batches".into(),
            Basis::Runs => format!("the medians of {} and {} runs", runs.0.len(), runs.1.len()),
        },
        LEVEL * 100.0,
        found.compared.len()
    );
    text += &paragraph("Test: ", &test);
    text += &paragraph("", &reach(runs.0.len().min(runs.1.len()), found, threshold));
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
    let [one, other] = [before, after].map(transports);
    if one != other {
        doubts.push(format!(
            "the runs before went over {one}, those after over {other}."
        ));
    }
    let hosts = |run: &Record| {
        run.job
            .hosts
            .iter()
            .map(|host| host.name.clone())
            .collect::<Vec<_>>()
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
        for (run, at) in runs.iter().zip(1..) {
            let which = match runs.len() {
                1 => format!("the run {when}"),
                _ => format!("run {at} {when}"),
            };
            doubts.extend(
                run.warnings
                    .iter()
                    .map(|warning| format!("of {which}: {warning}")),
            );
        }
    }
    doubts
}

/// Returns the transports of some runs in words, each once.
fn transports(runs: &[Record]) -> String {
    let transport = |run: &Record| {
        run.library
            .transport
            .clone()
            .unwrap_or_else(|| "what is unknown".into())
    };
    runs.iter()
        .map(transport)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
        .join(" or ")
}

/// The maximum number of operations that are listed by name; the others are counted.
const LISTED: usize = 10;

/// Returns what one side has in words: all operations, or the first ones and the number of others.
fn listed(alone: &[Alone], lists_all: bool) -> String {
    let series: Vec<&Series> = alone.iter().map(|one| one.series).collect();
    let names = names(&series);
    let mut all: Vec<String> = alone
        .iter()
        .zip(&names.names)
        .map(|(one, name)| {
            let measure = units::name(one.series.measure).to_lowercase();
            match one.sizes.as_slice() {
                [] => format!("{name} ({measure})"),
                sizes => format!("{name} ({measure} of {} bytes)", in_words(sizes)),
            }
        })
        .collect();
    all.dedup();
    let more = all
        .len()
        .saturating_sub(if lists_all { all.len() } else { LISTED });
    all.truncate(all.len() - more);
    if more > 0 {
        all.push(format!("{more} more (--all)"));
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
    let (measure, floor) = (
        one.series.measure,
        if one.series.is_floor { " (floor)" } else { "" },
    );
    vec![
        verdict.into(),
        units::name(measure).to_lowercase(),
        format!("{name}{floor}"),
        units::size(one.nbytes),
        units::figure(measure, one.medians.0),
        units::figure(measure, one.medians.1),
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
        let (mut before, after) = ([fixture::run(1, 1.0)], [fixture::run(2, 1.0)]);
        before[0].library.transport = Some("shared memory".into());
        let alone = before[0].series.clone().into_iter().map(|series| {
            let operation = format!("{}_of_before", series.operation);
            Series {
                operation,
                ..series
            }
        });
        before[0].series.extend(alone.collect::<Vec<_>>());
        let found = judge(&before, &after, 0.5).expect("they can be compared");
        let text = words((&before, &after), &found, 50.0, false);
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
        let (before, mut after) = ([fixture::run(1, 1.0)], [fixture::run(2, 1.0)]);
        let curve = &mut after[0].series[0];
        let (measure, operation) = (curve.measure, curve.operation.clone());
        let lost = curve.points.pop().expect("a size");
        let found = judge(&before, &after, 0.5).expect("they can be compared");
        let text = words((&before, &after), &found, 50.0, false);
        let says = format!(
            "only before: {operation} ({} of {} bytes)\n",
            units::name(measure).to_lowercase(),
            units::size(lost.nbytes)
        );
        assert!(text.contains(&says), "{says}{text}");
    }
}
