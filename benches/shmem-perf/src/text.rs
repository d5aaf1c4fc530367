//! What a person reads: the head of a run, and a table for each group of the plan.
//!
//! This file must never know how anything was measured.

use crate::plan::Group;
use crate::record::{Matrix, Measure, Point, Record, Series};
use crate::units::{figure, size};

/// What was measured, where, and what makes it doubtful.
pub fn head(record: &Record, pairs: &[(u32, u32)], shares_memory: bool) -> String {
    let job = &record.job;
    let many = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "shmem-perf {}: {} (OpenSHMEM {}), {} on {}\n",
        record.tool,
        record.library.name,
        record.library.standard,
        many(job.pes.len(), "PE"),
        many(job.hosts.len(), "host"),
    );
    for host in &job.hosts {
        text += &format!(
            "host {}: {}, {}, Linux {}\n",
            host.name,
            host.cpu,
            many(host.n_cpus as usize, "CPU"),
            host.kernel
        );
    }
    text += &match pairs {
        [(from, to)] if from == to => {
            "There is 1 PE, which measures with itself: use oshrun -n 2 to measure between two.\n"
                .to_owned()
        }
        [(from, to)] => format!(
            "PE {from} measures with PE {to}, {}.\n",
            if shares_memory {
                "with whom it shares memory"
            } else {
                "with whom it shares no memory"
            }
        ),
        pairs => format!("{} pairs of PEs measure at once: {}\n", pairs.len(), listed(pairs)),
    };
    for setting in &record.settings {
        text += &format!("setting {}={} ({})\n", setting.name, setting.value, setting.origin);
    }
    text += &format!(
        "Times are by {}; reading it takes {:.0} ns, which are subtracted; what is shorter than 20 readings is timed in groups.\n",
        record.clock.name, record.clock.overhead_ns
    );
    for warning in &record.warnings {
        text += &format!("warning: {warning}\n");
    }
    text
}

/// What the floors of networks go over.
pub fn paths(paths: &[String]) -> String {
    paths.iter().map(|path| format!("floor: {path}\n")).collect()
}

fn listed(pairs: &[(u32, u32)]) -> String {
    let mut words: Vec<String> =
        pairs.iter().take(8).map(|(from, to)| format!("{from}-{to}")).collect();
    if pairs.len() > 8 {
        words.push("...".into());
    }
    words.join(" ")
}

/// A group that was measured.
pub fn table(group: &Group, series: &[Series]) -> String {
    let rows = if group.is_by_size { by_size(series) } else { by_operation(series) };
    format!("\n{}\n{}", group.title, aligned(&rows))
}

/// A row for each operation, with all percentiles.
fn by_operation(series: &[Series]) -> Vec<Vec<String>> {
    let head = ["", "bytes", "median", "+-", "90 %", "99 %", "99.9 %", "max"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for series in series {
        for point in &series.points {
            let s = &point.summary;
            let show = |value: f64| figure(series.measure, value);
            let half = (s.interval.1 - s.interval.0) / 2.0 / s.p50.abs().max(f64::MIN_POSITIVE);
            let nbytes = if point.nbytes == 0 { String::new() } else { size(point.nbytes) };
            let mut row = vec![name(series), nbytes, show(s.p50), format!("{:.0} %", half * 100.0)];
            // Large rates are good, so that these percentiles are about the best cases.
            if matches!(series.measure, Measure::Latency | Measure::Collective) {
                row.extend([s.p90, s.p99, s.p999, s.max].map(show));
            }
            rows.push(row);
        }
    }
    let longest = rows[1..].iter().map(Vec::len).max().unwrap_or(0);
    rows[0].truncate(longest);
    rows
}

/// A row for each size, with a column for each operation.
fn by_size(series: &[Series]) -> Vec<Vec<String>> {
    let mut sizes: Vec<u64> =
        series.iter().flat_map(|s| s.points.iter().map(|point| point.nbytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let head = std::iter::once("bytes".to_owned()).chain(series.iter().map(name));
    let mut rows = vec![head.collect::<Vec<_>>()];
    for nbytes in sizes {
        let cell = |series: &Series| {
            let point = series.points.iter().find(|point| point.nbytes == nbytes);
            point.map_or(String::new(), |point| cell(series.measure, point))
        };
        rows.push(std::iter::once(size(nbytes)).chain(series.iter().map(cell)).collect());
    }
    rows
}

fn cell(measure: Measure, point: &Point) -> String {
    let s = &point.summary;
    match measure {
        Measure::Latency | Measure::Collective => {
            format!("{} ({})", figure(measure, s.p50), figure(measure, s.p99))
        }
        _ => figure(measure, s.p50),
    }
}

fn name(series: &Series) -> String {
    let floor = if series.is_floor { "floor: " } else { "" };
    let team = series.shape.team_size.filter(|&size| size != series.shape.n_pes);
    let team = team.map_or(String::new(), |size| format!(" of {size}"));
    format!("{floor}{}{team}", series.operation)
}

/// The first column begins at the left, all others end at the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line += &match column {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A matrix; of many PEs, what stands out.
pub fn matrix(matrix: &Matrix) -> String {
    const WIDEST: usize = 12;
    let title = format!(
        "\n{} of {} between PEs, {} bytes",
        crate::units::name(matrix.measure),
        matrix.operation,
        size(matrix.nbytes)
    );
    let n = matrix.values.len();
    let show = |value: f64| figure(matrix.measure, value);
    let rows = matrix.values.iter().enumerate();
    let cells = rows.flat_map(|(from, row)| {
        row.iter().enumerate().filter_map(move |(to, value)| Some((value.as_ref()?, from, to)))
    });
    let mut cells: Vec<(f64, usize, usize)> =
        cells.map(|(&value, from, to)| (value, from, to)).collect();
    cells.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(least), Some(most)) = (cells.first(), cells.last()) else {
        return format!("{title}: the time was up before the first.\n");
    };
    let summary = format!(
        "  least {} (PE {} to PE {}), median {}, most {} (PE {} to PE {}){}\n",
        show(least.0),
        least.1,
        least.2,
        show(cells[cells.len() / 2].0),
        show(most.0),
        most.1,
        most.2,
        if cells.len() < n * (n - 1) { "; not all were measured: the time was up" } else { "" },
    );
    if n > WIDEST {
        return format!("{title}\n{summary}");
    }
    let head = std::iter::once("from \\ to".to_owned()).chain((0..n).map(|to| to.to_string()));
    let mut rows = vec![head.collect::<Vec<_>>()];
    for (from, row) in matrix.values.iter().enumerate() {
        let cell = |value: &Option<f64>| value.map_or("-".to_owned(), show);
        rows.push(std::iter::once(from.to_string()).chain(row.iter().map(cell)).collect());
    }
    format!("{title}\n{}{summary}", aligned(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["", "bytes"], ["put", "8"], ["get_nbi", "64"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows), "           bytes\n  put          8\n  get_nbi     64\n");
    }

    #[test]
    fn of_many_pes_the_extremes_are_shown() {
        let mut values = vec![vec![Some(100.0); 20]; 20];
        (0..20).for_each(|pe| values[pe][pe] = None);
        values[3][7] = Some(900.0);
        let found =
            Matrix { measure: Measure::Latency, operation: "get".into(), nbytes: 8, values };
        let text = matrix(&found);
        assert!(text.contains("most 900 ns (PE 3 to PE 7)"), "{text}");
        assert!(text.lines().count() < 5, "{text}");
    }
}
