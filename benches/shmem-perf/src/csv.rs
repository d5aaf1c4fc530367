//! A record as a table of comma-separated values: one line for each size of each series, and for
//! each pair of a matrix.

use crate::plan::Sweep;
use crate::record::{Measure, Record};
use crate::units;

/// The names of the columns.
const HEAD: &str = "measure,operation,is_floor,n_pes,pairs,team_size,contexts,threads,window,memory,target_computes,nbytes,n,mean,min,p50,p90,p99,\
                    p99.9,max,interval_low,interval_high,ended,pe_min,pe_mean,pe_max,from,to,unit\n";

/// The head of the file of all values.
pub const SAMPLES: &str = "measure,operation,is_floor,pairs,team_size,nbytes,batch,unit,value\n";

/// Returns the text of the file.
pub fn csv(record: &Record) -> String {
    let mut text = HEAD.to_owned();
    for series in &record.series {
        let shape = &series.shape;
        for point in &series.points {
            let s = &point.summary;
            let team_size = shape.team_size.map(|size| size.to_string()).unwrap_or_default();
            let (ended, unit) = (word(&s.ended), units::base(series.measure));
            let or_empty =
                |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let by_pe = |part: fn((f64, f64, f64)) -> f64| or_empty(point.by_pe.map(part));
            text += &format!(
                "{},{},{},{},{},{team_size},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{ended},{},{},{},,,{unit}\n",
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
                or_empty(s.p999),
                s.max,
                or_empty(s.interval.map(|(low, _)| low)),
                or_empty(s.interval.map(|(_, high)| high)),
                by_pe(|(least, ..)| least),
                by_pe(|(_, mean, _)| mean),
                by_pe(|(.., most)| most),
            );
        }
    }
    for matrix in &record.matrices {
        let rows = matrix.values.iter().enumerate();
        let cells = rows
            .flat_map(|(from, row)| row.iter().enumerate().map(move |(to, cell)| (from, to, cell)));
        for (from, to, value) in cells.filter_map(|(from, to, cell)| Some((from, to, (*cell)?))) {
            text += &format!(
                "{},{},false,{},,,,,,,,{},,,,{value},,,,,,,,,,,{from},{to},{}\n",
                name(matrix.measure),
                matrix.operation,
                matrix.values.len(),
                matrix.nbytes,
                units::base(matrix.measure),
            );
        }
    }
    text
}

/// Returns all values of a measurement, by batch.
pub fn samples(subject: &Sweep, nbytes: u64, batches: &[Vec<f64>]) -> String {
    let Sweep { name: operation, is_floor, shape, .. } = subject;
    let team_size = shape.team_size.map(|size| size.to_string()).unwrap_or_default();
    let (measure, pairs) = (name(subject.measure), &shape.pairs);
    let unit = units::base(subject.measure);
    let values = batches
        .iter()
        .enumerate()
        .flat_map(|(batch, values)| values.iter().map(move |value| (batch, value)));
    let line = |(batch, value)| {
        format!(
            "{measure},{operation},{is_floor},{pairs},{team_size},{nbytes},{batch},{unit},{value}\n"
        )
    };
    values.map(line).collect()
}

fn name(measure: Measure) -> String {
    word(&measure)
}

fn word(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("a word");
    text.trim_matches('"').to_owned()
}
