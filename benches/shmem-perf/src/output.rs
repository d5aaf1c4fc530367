//! The files that a run leaves: they are written as it goes on, so that what was measured is kept
//! whatever happens.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::csv::csv;
use crate::record::Record;

/// A file for a record, or for values.
pub struct RecordFile {
    path: PathBuf,
}

impl RecordFile {
    /// Writes there, JSON or, if the name ends so, CSV.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Writes all of it. A file that was there is replaced only by a whole one; a device is written
    /// into.
    pub fn write(&self, record: &Record) -> Result<(), String> {
        let text = match self.path.extension().is_some_and(|extension| extension == "csv") {
            true => csv(record),
            false => serde_json::to_string(record).expect("it has a form in JSON") + "\n",
        };
        let is_other = self.path.metadata().is_ok_and(|metadata| !metadata.is_file());
        let written = if is_other { self.written_into(&text) } else { self.replaced(&text) };
        written.map_err(|error| self.sentence(&error))
    }

    /// Begins the file with this text.
    pub fn begin(&self, text: &str) -> Result<(), String> {
        fs::write(&self.path, text).map_err(|error| self.sentence(&error))
    }

    /// Appends to it.
    pub fn append(&self, text: &str) -> Result<(), String> {
        let file = fs::OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| self.sentence(&error))
    }

    fn sentence(&self, error: &std::io::Error) -> String {
        format!("{} cannot be written: {error}", self.path.display())
    }

    fn written_into(&self, text: &str) -> std::io::Result<()> {
        fs::OpenOptions::new().write(true).open(&self.path)?.write_all(text.as_bytes())
    }

    fn replaced(&self, text: &str) -> std::io::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            // Half a file is of no use, and takes room that is missing.
            _ = fs::remove_file(&new);
        }
        written
    }
}
