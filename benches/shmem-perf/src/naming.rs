//! Names for several series that are shown together: each is the operation and those parts of its
//! shape that are not equal for all.

use crate::record::{Series, Shape};

/// The names of several series, and the parts of the shape that all of them share.
#[derive(Debug, PartialEq)]
pub struct Names {
    /// The parts that all shapes have in common, such as `16 PEs, one pair`.
    pub common: String,
    /// A name for each series, such as `put` or `put, static`.
    pub names: Vec<String>,
}

pub fn names(series: &[&Series]) -> Names {
    let shapes: Vec<Vec<String>> = series.iter().map(|series| words(&series.shape)).collect();
    let n_words = shapes.first().map_or(0, Vec::len);
    let is_common = |word: usize| shapes.iter().all(|shape| shape[word] == shapes[0][word]);
    let (common, distinct): (Vec<usize>, Vec<usize>) = (0..n_words).partition(|&w| is_common(w));

    let join = |shape: &[String], words: &[usize]| {
        let words = words
            .iter()
            .map(|&word| shape[word].as_str())
            .filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(", ")
    };
    let mut names = Vec::new();
    for (series, shape) in series.iter().zip(&shapes) {
        let distinct = join(shape, &distinct);
        names.push(if distinct.is_empty() {
            series.operation.clone()
        } else {
            format!("{}, {distinct}", series.operation)
        });
    }
    let common = match shapes.first() {
        Some(shape) => join(shape, &common),
        None => String::new(),
    };
    Names { common, names }
}

/// Returns the parts of a shape in words. Some are empty if they have their default, such as one
/// thread. The result has the same length for every shape.
fn words(shape: &Shape) -> Vec<String> {
    let many = |n: u32, what: &str| match n {
        0 | 1 => String::new(),
        n => format!("{n} {what}"),
    };
    let pairs = match shape.pairs.as_str() {
        "" => String::new(),
        "one" => "one pair".into(),
        "neighbors" => "pairs of neighbors".into(),
        pairs => format!("{pairs} pairs"),
    };

    vec![
        match shape.n_pes {
            0 => String::new(),
            1 => "1 PE".into(),
            n => format!("{n} PEs"),
        },
        pairs,
        shape
            .team_size
            .map_or(String::new(), |n| format!("team of {n}")),
        match shape.contexts {
            1 => "1 context".into(),
            n => many(n, "contexts"),
        },
        many(shape.threads, "threads"),
        match shape.window {
            0 | 1 => String::new(),
            window => format!("window {window}"),
        },
        shape.memory.clone(),
        if shape.target_computes {
            "the target computes".into()
        } else {
            String::new()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Measure;

    fn series(operation: &str, threads: u32, memory: &str) -> Series {
        let shape = Shape {
            n_pes: 2,
            pairs: "one".into(),
            threads,
            memory: memory.into(),
            ..Shape::default()
        };
        let operation = operation.into();
        Series {
            measure: Measure::Latency,
            operation,
            is_floor: false,
            shape,
            points: Vec::new(),
        }
    }

    #[test]
    fn names_say_what_differs_and_no_more() {
        let all = [
            series("put", 1, "heap"),
            series("put", 4, "heap"),
            series("get", 1, "heap"),
        ];
        let found = names(&all.each_ref());
        assert_eq!(found.common, "2 PEs, one pair, heap");
        assert_eq!(found.names, ["put", "put, 4 threads", "get"]);
        assert_eq!(
            names(&[]),
            Names {
                common: String::new(),
                names: Vec::new()
            }
        );
    }
}
