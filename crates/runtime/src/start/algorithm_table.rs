//! The table by which the algorithms of collectives are chosen: the algorithms that settings force,
//! then the rows of a file, then the built-in rows. Digests of the first two show whether they are
//! the same on all PEs.

use rushmem_collectives::choice::{ChoiceFacts, RowOrigin, Table};
use rushmem_pe::digest::digest_of_bytes;
use rushmem_pe::settings::Settings;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum size of a file of rows in bytes, far more than `shmem-perf tune` writes.
const MAX_FILE: u64 = 1 << 20;

/// Builds the table from the settings.
///
/// # Errors
/// If the file cannot be read, or has an invalid row.
pub(super) fn table(settings: &Settings) -> Result<Table, String> {
    let mut table = Table::default();
    settings.force(&mut table);

    if let Some(file) = &settings.coll_tuning {
        let text = read(file).map_err(|error| {
            format!(
                "SHMEM_COLL_TUNING: {file} cannot be read: {error}; every PE reads it, so each host needs a copy at that place"
            )
        })?;
        table
            .read(&text)
            .map_err(|mistake| format!("SHMEM_COLL_TUNING: {file}, {mistake}"))?;
    }

    table.complete();
    Ok(table)
}

/// Returns the text of a regular file. Another kind of file may block forever or have no end.
fn read(file: &str) -> io::Result<String> {
    let file = File::options()
        .read(true)
        // Opening a FIFO without this flag waits for a writer.
        .custom_flags(libc::O_NONBLOCK)
        .open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }

    // One byte more than allowed is read, to see whether the file is larger.
    let mut text = String::new();
    let nbytes = file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if nbytes as u64 > MAX_FILE {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_FILE} bytes"
        )));
    }
    Ok(text)
}

/// Returns a digest of the algorithms that settings force.
pub(super) fn digest_of_forced(table: &Table) -> u64 {
    digest_of_rows(table, |origin| origin == RowOrigin::Forced)
}

/// Returns a digest of the rows of the file.
pub(super) fn digest_of_tuned(table: &Table) -> u64 {
    digest_of_rows(table, |origin| matches!(origin, RowOrigin::File(_)))
}

fn digest_of_rows(table: &Table, is_included: impl Fn(RowOrigin) -> bool) -> u64 {
    let rows = table.rows().filter(|&(_, origin)| is_included(origin));
    digest_of_bytes(rows.flat_map(|(row, _)| (row + "\n").into_bytes()))
}

/// Logs the algorithms that the table chooses for collectives of all PEs.
pub(super) fn show(table: &Table, facts: &ChoiceFacts) {
    if rushmem_system::log::is_on(rushmem_system::log::Level::DEBUG) {
        for (operation, rows) in table.described(facts) {
            rushmem_system::log::debug!("{operation} of all PEs: {rows}");
        }
    }
}
