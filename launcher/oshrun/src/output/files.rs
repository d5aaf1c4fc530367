//! The files of `--output-files`, two for each PE.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::writer::OutputSink;
use crate::report::failure::{StartFailure, reason};

/// The files of some PEs, open and empty.
#[derive(Debug)]
pub struct Files {
    first: u32,
    files: Vec<[Arc<OutputSink>; 2]>,
}

impl Files {
    /// Creates the directory, if it does not exist, and the files of these PEs.
    pub fn create(dir: &Path, pes: Range<u32>) -> Result<Files, StartFailure> {
        std::fs::create_dir_all(dir).map_err(|error| cannot("directory", dir, &error))?;
        let file = |pe, stream| {
            let path = dir.join(format!("{pe}.{stream}"));
            let file = File::create(&path).map_err(|error| cannot("file", &path, &error))?;
            Ok(Arc::new(OutputSink::new(format!("the file {}", path.display()), file)))
        };
        let first = pes.start;
        let files: Result<_, StartFailure> =
            pes.map(|pe| Ok([file(pe, "out")?, file(pe, "err")?])).collect();
        Ok(Files { first, files: files? })
    }

    /// Returns the files of a PE.
    pub fn of(&self, pe: u32) -> [Arc<OutputSink>; 2] {
        self.files[(pe - self.first) as usize].clone()
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> StartFailure {
    let (path, reason) = (path.display(), reason(error));
    // Cause: a directory of `--output-files` cannot be written to.
    StartFailure::general(format!(
        "cannot create the {what} {path} for output: {reason}; give --output-files a directory in which you may create files"
    ))
}
