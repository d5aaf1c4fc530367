//! The files of a run. They are written during the run, so that results are kept if it is
//! interrupted. A record is JSON, or a table of comma-separated values: one line for each size of
//! each series, and for each pair of a matrix.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::plan::Sweep;
use crate::record::{Point, Record, Series};
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
        let is_csv = self
            .path
            .extension()
            .is_some_and(|extension| extension == "csv");
        let text = if is_csv {
            csv(record)
        } else {
            // A float that JSON lacks, such as infinity, becomes null.
            serde_json::to_string(record).expect("it has a form in JSON") + "\n"
        };

        // A device or a pipe must not be replaced by a file.
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
        for point in &series.points {
            text += &point_line(series, point);
        }
    }
    for matrix in &record.matrices {
        for (from, row) in matrix.values.iter().enumerate() {
            for (to, value) in row.iter().enumerate() {
                let Some(value) = value else { continue };
                text += &format!(
                    "{},{},false,{},,,,,,,,{},,,,{value},,,,,,,,,,,{from},{to},{}\n",
                    word(&matrix.measure),
                    matrix.operation,
                    matrix.values.len(),
                    matrix.nbytes,
                    units::base(matrix.measure),
                );
            }
        }
    }
    text
}

/// Returns the line of a point: a column for each name of [`HEAD`].
fn point_line(series: &Series, point: &Point) -> String {
    let shape = &series.shape;
    let summary = &point.summary;
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let columns = [
        word(&series.measure),
        series.operation.clone(),
        series.is_floor.to_string(),
        shape.n_pes.to_string(),
        shape.pairs.clone(),
        shape
            .team_size
            .map_or(String::new(), |size| size.to_string()),
        shape.contexts.to_string(),
        shape.threads.to_string(),
        shape.window.to_string(),
        shape.memory.clone(),
        shape.target_computes.to_string(),
        point.nbytes.to_string(),
        summary.n.to_string(),
        summary.mean.to_string(),
        summary.min.to_string(),
        summary.p50.to_string(),
        summary.p90.to_string(),
        summary.p99.to_string(),
        number(summary.p999),
        summary.max.to_string(),
        number(summary.interval.map(|interval| interval.low)),
        number(summary.interval.map(|interval| interval.high)),
        word(&summary.ended),
        number(point.by_pe.map(|members| members.min)),
        number(point.by_pe.map(|members| members.mean)),
        number(point.by_pe.map(|members| members.max)),
        // The PEs of a pair, which only matrices have.
        String::new(),
        String::new(),
        units::base(series.measure).to_owned(),
    ];
    columns.join(",") + "\n"
}

/// Returns the lines of the single values of one size, with the index of their batch.
pub fn samples(subject: &Sweep, nbytes: u64, batches: &[Vec<f64>]) -> String {
    let team_size = subject.shape.team_size;
    let operation = format!(
        "{},{},{},{},{}",
        word(&subject.measure),
        subject.name,
        subject.is_floor,
        subject.shape.pairs,
        team_size.map_or(String::new(), |size| size.to_string())
    );
    let unit = units::base(subject.measure);

    let mut text = String::new();
    for (batch, values) in batches.iter().enumerate() {
        for value in values {
            text += &format!("{operation},{nbytes},{batch},{unit},{value}\n");
        }
    }
    text
}

/// Returns the word that a value is in JSON.
fn word(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("a word");
    text.trim_matches('"').to_owned()
}
