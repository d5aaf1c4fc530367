//! What kinds of operations there are: those of one kind are drawn together.
//!
//! This file must never know how anything is drawn.

use crate::record::{Measure, Series};
use crate::units;

/// What is drawn together: of one measure, routines of a kind.
pub fn kind_of(operation: &str) -> &'static str {
    let routine = operation.trim_end_matches("_nbi");
    match routine {
        _ if operation.ends_with("round trip") => "round trips",
        "p" | "g" | "put" | "get" => "puts and gets",
        "add" | "inc" | "set" | "swap" | "compare_swap" | "and" | "or" | "xor" | "fetch" => {
            "atomics"
        }
        _ if routine.starts_with("fetch_") => "atomics",
        _ if ["wait", "signal", "test"].iter().any(|start| routine.starts_with(start)) => {
            "waits and signals"
        }
        _ if ["iput", "iget", "ibput", "ibget", "put_", "get_"]
            .iter()
            .any(|start| routine.starts_with(start)) =>
        {
            "other transfers"
        }
        _ => "",
    }
}

/// Kinds in the order of their first series, each with its operations.
pub fn kinds(series: &[(usize, &Series)]) -> Vec<(&'static str, Vec<String>)> {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for (_, series) in series {
        let kind = kind_of(&series.operation);
        let at = kinds.iter().position(|(other, _)| *other == kind).unwrap_or_else(|| {
            kinds.push((kind, Vec::new()));
            kinds.len() - 1
        });
        if !kinds[at].1.contains(&series.operation) {
            kinds[at].1.push(series.operation.clone());
        }
    }
    kinds
}

/// The title of a chart.
pub fn titled(measure: Measure, kind: &str, more: &str) -> String {
    let name = units::name(measure);
    let of = if kind.is_empty() { String::new() } else { format!(" of {kind}") };
    format!("{name}{of}{more}")
}
