//! The text that a run prints: its head, a table for each group of the plan, matrices, and answers.

use std::collections::BTreeSet;

use crate::answer;
use crate::machine::hosts;
use crate::operation::is_invalid;
use crate::plan::Group;
use crate::print::{aligned, paragraph};
use crate::record::{Ended, Interval, Matrix, Measure, MemberTimes, Pair, Point, Record, Series};
use crate::statistics::{self, FEWEST_OF_P99};
use crate::units::{figure, size};

/// Returns the first lines: the library, the hosts, the transport, the pairs, the settings that are
/// not defaults, and the warnings.
pub fn head(record: &Record, pairs: &[Pair], shares_memory: bool) -> String {
    let job = &record.job;
    let mut text = format!(
        "shmem-perf {}: {} (OpenSHMEM {}), {} on {}\n",
        record.tool,
        record.library.name,
        record.library.standard,
        counted(job.pes.len(), "PE"),
        counted(job.hosts.len(), "host"),
    );
    text += &paragraph("on ", &hosts(job));
    text += &paragraph("transport: ", &record.library.path());

    text += &match pairs {
        [Pair { from, to }] if from == to => {
            "There is 1 PE, which measures with itself: use oshrun -n 2 to measure between two.\n"
                .to_owned()
        }
        [Pair { from, to }] => {
            let memory = if shares_memory { "memory" } else { "no memory" };
            format!("PE {from} measures with PE {to}, which shares {memory} with it.\n")
        }
        pairs => format!(
            "{} pairs of PEs measure at once: {}\n",
            pairs.len(),
            listed(pairs)
        ),
    };

    for setting in &record.settings {
        if setting.origin != "default" {
            text += &format!(
                "setting {}={} ({})\n",
                setting.name, setting.value, setting.origin
            );
        }
    }
    for warning in &record.warnings {
        text += &paragraph("warning: ", warning);
    }
    text
}

fn counted(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Returns the sentences on the paths of the floors of networks.
pub fn paths(paths: &[String]) -> String {
    paths
        .iter()
        .map(|path| paragraph("floor: ", path))
        .collect()
}

fn listed(pairs: &[Pair]) -> String {
    /// What fits into a line of a terminal.
    const MOST: usize = 8;
    let mut words = Vec::new();
    for Pair { from, to } in pairs.iter().take(MOST) {
        words.push(format!("{from}-{to}"));
    }
    if pairs.len() > MOST {
        words.push("...".into());
    }
    words.join(" ")
}

/// Returns the table of a measured group. `series` are those of the group, `all` are those of the
/// run so far.
pub fn table(group: &Group, series: &[Series], all: &[Series]) -> String {
    let mut text = format!("\n{}\n", group.title);
    if group.is_by_size {
        let mut rows = by_size(series, |series, point| cell(all, series, point));
        rows.push(numbers_of_values(series));
        text += &aligned("  ", &rows, 1);

        let has_members = series
            .iter()
            .any(|series| series.points.iter().any(|point| point.by_pe.is_some()));
        if has_members {
            let rows = by_size(series, |series, point| {
                members(series.measure, point).join(", ")
            });
            text += "Each PE's mean: minimum, mean, maximum\n";
            text += &aligned("  ", &rows, 1);
        }
    } else {
        text += &aligned("  ", &by_operation(series, all), 1);
    }

    if text.contains(LATE) {
        text +=
            &format!("  {LATE} the time limit (--time) came before the median was known to 2 %\n");
    }
    if text.contains(INVALID) {
        text += &format!("  {INVALID} invalid as a floor: above what it should bound\n");
    }
    text
}

/// The sign after a figure whose measurement the time limit cut short.
const LATE: char = '*';
/// The sign after a floor that takes longer than what it should bound.
const INVALID: char = '!';

fn median(all: &[Series], series: &Series, point: &Point) -> String {
    let mut text = figure(series.measure, point.summary.p50);
    if point.summary.ended == Ended::TimeUp {
        text.push(LATE);
    }
    if is_invalid(all, series, point) {
        text.push(INVALID);
    }
    text
}

/// Returns a head and a row for each operation and size. Only tables of latencies or collectives
/// have percentiles.
fn by_operation(series: &[Series], all: &[Series]) -> Vec<Vec<String>> {
    let measures = |measure| series.iter().any(|series| series.measure == measure);
    // The percentiles of rates are left out: large rates are good, so they would show the best
    // cases.
    let has_tail = measures(Measure::Latency) || measures(Measure::Collective);

    let mut head = vec!["", "bytes", "median", "+-"];
    if has_tail {
        head.extend(["90 %", "99 %", "99.9 %", "max"]);
    }
    head.push("n");
    if measures(Measure::Collective) {
        head.extend(["PE min", "PE mean", "PE max"]);
    }

    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for one in series {
        for point in &one.points {
            let s = &point.summary;
            // The half width of the interval, as a part of the median.
            let half = match s.interval {
                Some(Interval { low, high }) => {
                    // A median of 0 would give NaN.
                    let half = (high - low) / 2.0 / s.p50.abs().max(f64::MIN_POSITIVE);
                    format!("{:.0} %", half * 100.0)
                }
                None => "-".into(),
            };
            let nbytes = if point.nbytes == 0 {
                String::new()
            } else {
                size(point.nbytes)
            };

            let mut row = vec![name(one), nbytes, median(all, one, point), half];
            if has_tail {
                let p99 = if s.n >= FEWEST_OF_P99 {
                    Some(s.p99)
                } else {
                    None
                };
                for value in [Some(s.p90), p99, s.p999, Some(s.max)] {
                    row.push(value.map_or("-".into(), |value| figure(one.measure, value)));
                }
            }
            row.push(s.n.to_string());
            row.extend(members(one.measure, point));
            rows.push(row);
        }
    }
    rows
}

/// Returns the minimum, the mean and the maximum of the times of a collective's members; nothing
/// for another operation.
fn members(measure: Measure, point: &Point) -> Vec<String> {
    match point.by_pe {
        Some(MemberTimes { min, mean, max }) => [min, mean, max]
            .map(|value| figure(measure, value))
            .to_vec(),
        None => Vec::new(),
    }
}

/// Returns the rows of a table: the names of its columns, one for each operation, and below them a
/// row for each size.
fn by_size(series: &[Series], cell: impl Fn(&Series, &Point) -> String) -> Vec<Vec<String>> {
    let sizes: BTreeSet<u64> = series
        .iter()
        .flat_map(|series| series.points.iter().map(|point| point.nbytes))
        .collect();

    let mut head = vec!["bytes".to_owned()];
    head.extend(series.iter().map(name));
    let mut rows = vec![head];
    for nbytes in sizes {
        let mut row = vec![size(nbytes)];
        for one in series {
            let point = one.points.iter().find(|point| point.nbytes == nbytes);
            row.push(point.map_or(String::new(), |point| cell(one, point)));
        }
        rows.push(row);
    }
    rows
}

/// Returns the row of the numbers of values at all sizes of each operation.
fn numbers_of_values(series: &[Series]) -> Vec<String> {
    let mut row = vec!["n".to_owned()];
    for one in series {
        let numbers = one.points.iter().map(|point| point.summary.n);
        let least = numbers.clone().min().unwrap_or_default();
        let most = numbers.max().unwrap_or_default();
        row.push(if least < most {
            format!("{least} to {most}")
        } else {
            least.to_string()
        });
    }
    row
}

fn cell(all: &[Series], series: &Series, point: &Point) -> String {
    let s = &point.summary;
    match series.measure {
        Measure::Latency | Measure::Collective if s.n >= FEWEST_OF_P99 => {
            format!(
                "{} ({})",
                median(all, series, point),
                figure(series.measure, s.p99)
            )
        }
        _ => median(all, series, point),
    }
}

/// Returns the answers to three questions: how long operations take, what is possible on this
/// machine, and why there is a gap. Empty if neither a latency nor a bandwidth was measured.
pub fn answers(record: &Record) -> String {
    let mut rows = vec![answer::HEAD.map(str::to_owned).to_vec()];
    for answer in answer::answers(record) {
        rows.push(answer.row().to_vec());
    }
    if rows.len() < 2 {
        return String::new();
    }

    let reasons: String = answer::reasons(record)
        .into_iter()
        .map(|reason| paragraph("  - ", &reason))
        .collect();
    let checked = if record.validated {
        "The data of each measurement of the library was checked.\n"
    } else {
        ""
    };
    let clock = format!(
        "Times are by {}; reading it takes {:.0} ns, which are subtracted; what is shorter than \
         20 readings is timed in groups.",
        record.clock.name, record.clock.overhead_ns
    );
    format!(
        "\nWhat it takes, and what is possible here\n{}Likely reasons\n{reasons}{checked}{}",
        aligned("  ", &rows, 1),
        paragraph("", &clock)
    )
}

fn name(series: &Series) -> String {
    let floor = if series.is_floor { "floor: " } else { "" };
    let team = match series.shape.team_size {
        Some(size) if size != series.shape.n_pes => format!(" of {size}"),
        _ => String::new(),
    };
    format!("{floor}{}{team}", series.operation)
}

/// Returns a matrix as a table with a line for its minimum, median and maximum. For many PEs it is
/// only that line.
pub fn matrix(matrix: &Matrix) -> String {
    /// The maximum number of PEs whose table is as wide as a wide terminal.
    const WIDEST: usize = 12;

    let title = format!(
        "\n{} of {} between PEs, {} bytes",
        crate::units::name(matrix.measure),
        matrix.operation,
        size(matrix.nbytes)
    );
    let Some(extremes) = extremes(matrix) else {
        return format!("{title}: the time was up before the first.\n");
    };

    let n = matrix.values.len();
    if n > WIDEST {
        return format!("{title}\n{extremes}");
    }

    let mut head = vec!["from \\ to".to_owned()];
    head.extend((0..n).map(|to| to.to_string()));
    let mut rows = vec![head];
    for (from, values) in matrix.values.iter().enumerate() {
        let mut row = vec![from.to_string()];
        for value in values {
            row.push(match value {
                Some(value) => figure(matrix.measure, *value),
                None => "-".to_owned(),
            });
        }
        rows.push(row);
    }
    format!("{title}\n{}{extremes}", aligned("  ", &rows, 1))
}

/// Returns the line of the minimum, the median and the maximum of a matrix; `None` if it has no
/// value.
fn extremes(matrix: &Matrix) -> Option<String> {
    /// The value between two PEs.
    struct Cell {
        value: f64,
        from: usize,
        to: usize,
    }

    let mut cells = Vec::new();
    for (from, row) in matrix.values.iter().enumerate() {
        for (to, value) in row.iter().enumerate() {
            if let Some(value) = *value {
                cells.push(Cell { value, from, to });
            }
        }
    }
    cells.sort_by(|a, b| a.value.total_cmp(&b.value));
    let least = cells.first()?;
    let most = cells.last()?;

    let n = matrix.values.len();
    let missing = if cells.len() < n * (n - 1) {
        "; not all were measured: the time was up"
    } else {
        ""
    };
    let values: Vec<f64> = cells.iter().map(|cell| cell.value).collect();
    let show = |value: f64| figure(matrix.measure, value);
    Some(format!(
        "  minimum {} (PE {} to PE {}), median {}, maximum {} (PE {} to PE {}){missing}\n",
        show(least.value),
        least.from,
        least.to,
        show(statistics::median(&values)),
        show(most.value),
        most.from,
        most.to,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn figures_say_how_many_they_are_and_what_they_are_worth() {
        let record = fixture::run(1, 1.0);
        let series = |operation: &str, is_floor, values: Vec<f64>| {
            let put = record
                .series
                .iter()
                .find(|series| series.operation == "put")
                .expect("puts")
                .clone();
            let points = vec![fixture::point(8, values)];
            Series {
                operation: operation.into(),
                is_floor,
                points,
                ..put
            }
        };

        let mut all = vec![
            series("p", false, vec![10.0; 3]),
            series("store", true, vec![20.0; 1000]),
        ];
        all[0].points[0].summary.ended = Ended::TimeUp;

        let group = |is_by_size| Group {
            title: "Latency".into(),
            is_by_size,
            subjects: Vec::new(),
        };

        let text = table(&group(false), &all, &all);

        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            rows[3],
            "p 8 10.0 ns* - 10.0 ns - - 10.0 ns 3"
                .split(' ')
                .collect::<Vec<_>>()
        );

        let floor = "floor: store 8 20.0 ns! 0 % 20.0 ns 20.0 ns 20.0 ns 20.0 ns 1000";
        assert_eq!(rows[4], floor.split(' ').collect::<Vec<_>>());
        assert!(
            text.contains("* the time limit") && text.contains("! invalid"),
            "{text}"
        );

        let text = table(&group(true), &all, &all);
        assert!(
            text.lines()
                .any(|line| line.split_whitespace().eq(["n", "3", "1000"])),
            "{text}"
        );
    }

    #[test]
    fn the_head_is_short_and_names_what_is_not_the_default() {
        let record = fixture::empty();
        let text = head(&record, &record.pairs, false);
        assert!(
            text.contains("setting SHMEM_TRANSPORT=ofi") && !text.contains("512M"),
            "{text}"
        );
        assert!(text.lines().count() < 8, "{text}");
        let answers = answers(&fixture::run(1, 1.0));
        assert!(
            answers.lines().all(|line| line.chars().count() <= 80),
            "{answers}"
        );
    }

    #[test]
    fn of_many_pes_the_extremes_are_shown() {
        let mut values = vec![vec![Some(100.0); 20]; 20];
        for (pe, row) in values.iter_mut().enumerate() {
            row[pe] = None;
        }
        values[3][7] = Some(900.0);
        let found = Matrix {
            measure: Measure::Latency,
            operation: "get".into(),
            nbytes: 8,
            values,
        };
        let text = matrix(&found);
        assert!(text.contains("maximum 900 ns (PE 3 to PE 7)"), "{text}");
        assert!(text.lines().count() < 5, "{text}");
    }
}
