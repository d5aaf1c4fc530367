//! The files of a run. They are written during the run, so that results are kept if it is
//! interrupted. A record is JSON, or a table of comma-separated values: one line for each size of
//! each series, and for each pair of a matrix.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::plan::Sweep;
use crate::record::{Interval, Matrix, MemberTimes, Point, Record, Series};
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

/// The columns of a record as CSV.
const COLUMNS: [&str; 29] = [
    "measure",
    "operation",
    "is_floor",
    "n_pes",
    "pairs",
    "team_size",
    "contexts",
    "threads",
    "window",
    "memory",
    "target_computes",
    "nbytes",
    "n",
    "mean",
    "min",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "interval_low",
    "interval_high",
    "ended",
    "pe_min",
    "pe_mean",
    "pe_max",
    "from",
    "to",
    "unit",
];

/// The head of a file of single values.
pub const SAMPLES: &str = "measure,operation,is_floor,pairs,team_size,nbytes,batch,unit,value\n";

/// Returns a record as comma-separated values.
fn csv(record: &Record) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for series in &record.series {
        for point in &series.points {
            text += &point_line(series, point);
        }
    }
    for matrix in &record.matrices {
        for (from, row) in matrix.values.iter().enumerate() {
            for (to, value) in row.iter().enumerate() {
                if let Some(value) = *value {
                    text += &pair_line(matrix, from, to, value);
                }
            }
        }
    }
    text
}

/// Returns the line of a size of a series.
fn point_line(series: &Series, point: &Point) -> String {
    let shape = &series.shape;
    let summary = &point.summary;
    let mut cells = vec![
        Cell::new("measure", word(&series.measure)),
        Cell::new("operation", &series.operation),
        Cell::new("is_floor", series.is_floor),
        Cell::new("n_pes", shape.n_pes),
        Cell::new("pairs", &shape.pairs),
        Cell::new("contexts", shape.contexts),
        Cell::new("threads", shape.threads),
        Cell::new("window", shape.window),
        Cell::new("memory", &shape.memory),
        Cell::new("target_computes", shape.target_computes),
        Cell::new("nbytes", point.nbytes),
        Cell::new("n", summary.n),
        Cell::new("mean", summary.mean),
        Cell::new("min", summary.min),
        Cell::new("p50", summary.p50),
        Cell::new("p90", summary.p90),
        Cell::new("p99", summary.p99),
        Cell::new("max", summary.max),
        Cell::new("ended", word(&summary.ended)),
        Cell::new("unit", units::base(series.measure)),
    ];

    if let Some(team_size) = shape.team_size {
        cells.push(Cell::new("team_size", team_size));
    }
    if let Some(p999) = summary.p999 {
        cells.push(Cell::new("p99.9", p999));
    }
    if let Some(Interval { low, high }) = summary.interval {
        cells.push(Cell::new("interval_low", low));
        cells.push(Cell::new("interval_high", high));
    }
    if let Some(MemberTimes { min, mean, max }) = point.by_pe {
        cells.push(Cell::new("pe_min", min));
        cells.push(Cell::new("pe_mean", mean));
        cells.push(Cell::new("pe_max", max));
    }
    line(&cells)
}

/// Returns the line of the figure of a matrix between two PEs.
fn pair_line(matrix: &Matrix, from: usize, to: usize, value: f64) -> String {
    line(&[
        Cell::new("measure", word(&matrix.measure)),
        Cell::new("operation", &matrix.operation),
        Cell::new("is_floor", false),
        Cell::new("n_pes", matrix.values.len()),
        Cell::new("nbytes", matrix.nbytes),
        Cell::new("p50", value),
        Cell::new("from", from),
        Cell::new("to", to),
        Cell::new("unit", units::base(matrix.measure)),
    ])
}

/// The text of a line in the column of this name.
struct Cell {
    column: &'static str,
    text: String,
}

impl Cell {
    fn new(column: &'static str, value: impl ToString) -> Self {
        Self {
            column,
            text: value.to_string(),
        }
    }
}

/// Returns a line of [`COLUMNS`]. Columns without a cell are empty.
fn line(cells: &[Cell]) -> String {
    debug_assert!(
        cells.iter().all(|cell| COLUMNS.contains(&cell.column)),
        "a cell of a column that does not exist"
    );

    let mut texts = Vec::new();
    for column in COLUMNS {
        let cell = cells.iter().find(|cell| cell.column == column);
        texts.push(cell.map_or("", |cell| &cell.text));
    }
    texts.join(",") + "\n"
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
