//! A record as a table of comma-separated values: one line for each size of each series, and for each pair of a matrix.

use crate::record::{Measure, Record};

/// The names of the columns.
const HEAD: &str = "measure,operation,is_floor,n_pes,pairs,team_size,contexts,threads,window,memory,target_computes,nbytes,n,mean,min,p50,p90,p99,\
                    p99.9,max,interval_low,interval_high,ended,from,to\n";

/// The text of the file.
pub fn csv(record: &Record) -> String {
    let mut text = HEAD.to_owned();
    for series in &record.series {
        let shape = &series.shape;
        for point in &series.points {
            let s = &point.summary;
            let team_size = shape.team_size.map(|size| size.to_string()).unwrap_or_default();
            let ended = word(&s.ended);
            text += &format!(
                "{},{},{},{},{},{team_size},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{ended},,\n",
                name(series.measure),
                series.operation,
                series.is_floor,
                shape.n_pes,
                shape.pairs,
                shape.contexts,
                shape.threads,
                shape.window,
                shape.memory,
                shape.target_computes,
                point.nbytes,
                s.n,
                s.mean,
                s.min,
                s.p50,
                s.p90,
                s.p99,
                s.p999,
                s.max,
                s.interval.0,
                s.interval.1,
            );
        }
    }
    for matrix in &record.matrices {
        let rows = matrix.values.iter().enumerate();
        let cells = rows
            .flat_map(|(from, row)| row.iter().enumerate().map(move |(to, cell)| (from, to, cell)));
        for (from, to, value) in cells.filter_map(|(from, to, cell)| Some((from, to, (*cell)?))) {
            text += &format!(
                "{},{},false,{},,,,,,,,{},,,,{value},,,,,,,,{from},{to}\n",
                name(matrix.measure),
                matrix.operation,
                matrix.values.len(),
                matrix.nbytes,
            );
        }
    }
    text
}

fn name(measure: Measure) -> String {
    word(&measure)
}

/// A word as JSON has it.
fn word(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("a word");
    text.trim_matches('"').to_owned()
}
