//! Prints the version, the settings and the transports as JSON, for programs.
//!
//! `shmem-perf` keeps it with what it has measured.

use rushmem_runtime::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_runtime::settings::{self, Settings};
use rushmem_runtime::setup::on_this_machine;
use rushmem_transport::setting::environment;
use rushmem_transport::{Provider, Setting};
use serde_json::{Value, json};

/// Returns all of it. Transports are left out where a setting has a value that it may not have.
pub fn everything(all: impl Iterator<Item = &'static Setting>) -> String {
    let now: Vec<_> = all
        .filter_map(|row| settings::now(row).map(|(value, origin)| (row.name, value, origin)))
        .map(|(name, value, origin)| {
            json!({ "name": name, "value": value, "origin": origin.to_string() })
        })
        .collect();
    let read = Settings::read(environment);
    let found = |settings: &Settings| -> Vec<Value> {
        let of = |provider: &Provider| match on_this_machine(settings, provider) {
            Ok(found) => json!({ "name": provider.name, "found": found.found.to_string() }),
            Err(why) => json!({ "name": provider.name, "missing": why.to_string() }),
        };
        rushmem_providers::ALL.iter().map(of).collect()
    };
    let transports = read.as_ref().map(found).unwrap_or_default();
    let report = json!({
        "name": SHMEM_VENDOR_STRING,
        "standard": format!("{SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}"),
        "settings": now,
        "transports": transports,
    });
    format!("{report:#}\n")
}
