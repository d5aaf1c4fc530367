//! The files of a run. They are written during the run, so that results are kept if it is
//! interrupted. A record is JSON, or a table of comma-separated values: one line for each size of
//! each series, and for each pair of a matrix.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::plan::Sweep;
use crate::record::{Measure, Record};
use crate::units;

/// A file for a record, or for single values.
pub struct RecordFile {
    path: PathBuf,
}

impl RecordFile {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Writes a record: CSV if the name ends in `.csv`, otherwise JSON. Replaces an existing file
    /// atomically; writes into a device or a pipe.
    pub fn write(&self, record: &Record) -> Result<(), String> {
        let text = match self
            .path
            .extension()
            .is_some_and(|extension| extension == "csv")
        {
            true => csv(record),
            false => serde_json::to_string(record).expect("it has a form in JSON") + "\n",
        };
        let is_other = self
            .path
            .metadata()
            .is_ok_and(|metadata| !metadata.is_file());
        let written = if is_other {
            let file = fs::OpenOptions::new().write(true).open(&self.path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        } else {
            self.replace(&text)
        };
        written.map_err(|error| self.sentence(&error))
    }

    /// Creates or truncates the file, and writes `text`.
    pub fn begin(&self, text: &str) -> Result<(), String> {
        fs::write(&self.path, text).map_err(|error| self.sentence(&error))
    }

    /// Appends `text` to the file, which must exist.
    pub fn append(&self, text: &str) -> Result<(), String> {
        let file = fs::OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| self.sentence(&error))
    }

    fn sentence(&self, error: &std::io::Error) -> String {
        format!("{} cannot be written: {error}", self.path.display())
    }

    /// Writes a new file and renames it to the path.
    fn replace(&self, text: &str) -> std::io::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            // The new file may be incomplete, and the disk may be full.
            _ = fs::remove_file(&new);
        }
        written
    }
}

/// The head of a record as CSV.
const HEAD: &str = "measure,operation,is_floor,n_pes,pairs,team_size,contexts,threads,window,memory,target_computes,nbytes,n,mean,min,p50,p90,p99,\
                    p99.9,max,interval_low,interval_high,ended,pe_min,pe_mean,pe_max,from,to,unit\n";

/// The head of a file of single values.
pub const SAMPLES: &str = "measure,operation,is_floor,pairs,team_size,nbytes,batch,unit,value\n";

/// Returns a record as comma-separated values.
fn csv(record: &Record) -> String {
    let mut text = HEAD.to_owned();
    for series in &record.series {
        let shape = &series.shape;
        for point in &series.points {
            let s = &point.summary;
            let team_size = shape
                .team_size
                .map(|size| size.to_string())
                .unwrap_or_default();
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
        let cells = rows.flat_map(|(from, row)| {
            row.iter()
                .enumerate()
                .map(move |(to, cell)| (from, to, cell))
        });
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

/// Returns the lines of the single values of one size, with the index of their batch.
pub fn samples(subject: &Sweep, nbytes: u64, batches: &[Vec<f64>]) -> String {
    let Sweep {
        name: operation,
        is_floor,
        shape,
        ..
    } = subject;
    let team_size = shape
        .team_size
        .map(|size| size.to_string())
        .unwrap_or_default();
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
