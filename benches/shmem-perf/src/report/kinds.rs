//! Which kinds of operations some series have, and what their charts are called.

use crate::operation::kind_of;
use crate::record::{Measure, Series};
use crate::units;

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

/// Returns the title of a chart.
pub fn titled(measure: Measure, kind: &str, more: &str) -> String {
    let name = units::name(measure);
    let of = if kind.is_empty() { String::new() } else { format!(" of {kind}") };
    format!("{name}{of}{more}")
}
