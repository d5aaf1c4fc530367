//! What programs read: the version, the settings and the transports, as JSON.
//!
//! `shmem-perf` keeps it with what it has measured.

use rushmem_runtime::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_runtime::settings::{self, Settings};
use rushmem_transport::Setting;
use rushmem_transport::setting::environment;
use serde_json::json;

/// All of it. Transports are left out where a setting has a value that it may not have.
pub fn everything(all: impl Iterator<Item = &'static Setting>) -> String {
    let now: Vec<_> = all
        .filter_map(|row| settings::now(row).map(|(value, origin)| (row.name, value, origin)))
        .map(|(name, value, origin)| {
            json!({ "name": name, "value": value, "origin": origin.to_string() })
        })
        .collect();
    let read = Settings::read(environment);
    let found = read.map(|read| rushmem_runtime::setup::transports(&read, rushmem_providers::ALL));
    let transports: Vec<_> = found
        .into_iter()
        .flatten()
        .map(|(name, found)| match found {
            Ok(found) => json!({ "name": name, "found": found.found.to_string() }),
            Err(why) => json!({ "name": name, "missing": why.to_string() }),
        })
        .collect();
    let report = json!({
        "name": SHMEM_VENDOR_STRING,
        "standard": format!("{SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}"),
        "settings": now,
        "transports": transports,
    });
    format!("{report:#}\n")
}
