//! The table of counterparts in docs/rust-reference.md has every routine of C: those of the
//! standard and of the extensions, as the tables in `crates/shmem-c/spec` list them.

use std::collections::BTreeSet;
use std::fs;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The operators of reductions, which have one row.
const OPERATORS: [&str; 7] = ["and", "or", "xor", "max", "min", "sum", "prod"];
/// The ends of the names of reductions.
const REDUCTIONS: [&str; 7] = [
    "_reduce",
    "_reduce_nb",
    "_reduce_to",
    "_reduce_to_nb",
    "_reduce_scatter",
    "_reduce_scatter_nb",
    "_to_all",
];
/// The ends of the names of scans. Those of sums alone are routines of the standard, too.
const SCANS: [&str; 4] = ["_inscan", "_inscan_nb", "_exscan", "_exscan_nb"];

fn read(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).expect("a file of the repository")
}

/// Returns the name by which the table has a family of routines: without `ctx`, since a context has
/// the same operations.
fn in_table(family: &str) -> String {
    let name = family
        .replace("<TYPENAME>", "TYPE")
        .replace("<SIZE>", "SIZE");
    let without_context = name.replacen("_ctx_TYPE", "_TYPE", 1);
    for operator in OPERATORS {
        let scans = if operator == "sum" { &[][..] } else { &SCANS };
        for suffix in REDUCTIONS.iter().chain(scans) {
            let start = without_context.strip_suffix(&format!("_{operator}{suffix}"));
            if let Some(start) = start.filter(|start| start.ends_with("TYPE")) {
                return format!("{start}_OP{suffix}");
            }
        }
    }
    without_context
}

/// Returns the families of a table of routines.
fn families(table: &str) -> BTreeSet<String> {
    read(table)
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .map(in_table)
        .collect()
}

/// Returns the names in the first columns of the tables of a section.
fn listed() -> BTreeSet<String> {
    let page = read("docs/rust-reference.md");
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with("C routines"));
    section
        .expect("the page has this section")
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|column| column.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_routine_of_c_has_a_row() {
    let listed = listed();
    let all: BTreeSet<String> = ["families-1.6.csv", "shmemx.csv"]
        .into_iter()
        .flat_map(|table| families(&format!("crates/shmem-c/spec/{table}")))
        .collect();
    assert!(all.len() > 150, "{} families", all.len());
    // The row of a routine has its forms for contexts, too.
    let has_row =
        |name: &String| listed.contains(name) || listed.contains(&name.replacen("_ctx_", "_", 1));
    let missing: Vec<&String> = all.iter().filter(|name| !has_row(name)).collect();
    assert!(missing.is_empty(), "no row of {missing:?}");

    let unknown: Vec<&String> = listed
        .iter()
        .filter(|name| name.starts_with("shmem") && !all.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "no such routines: {unknown:?}");
}
