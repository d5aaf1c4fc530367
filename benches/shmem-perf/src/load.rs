//! Reads the record of a file, and says in a sentence why a file is none.

use std::path::Path;

use serde::Deserialize;

use crate::record::{FORMAT, Record};

/// The beginning of a record in every format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Returns the record in a file.
pub fn load(path: &Path) -> Result<Record, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{name} cannot be read: {error}."))?;
    match serde_json::from_str::<Head>(&text) {
        Err(error) => return Err(format!("{name} is no record of shmem-perf: {error}.")),
        Ok(Head { format }) if format != FORMAT => {
            return Err(format!(
                "{name} is a record of format {format}, but this shmem-perf reads format {FORMAT}."
            ));
        }
        Ok(_) => {}
    }
    serde_json::from_str(&text)
        .map_err(|error| format!("{name} is no record of shmem-perf: {error}."))
}
