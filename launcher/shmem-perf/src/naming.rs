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

/// Names series by the parts of their shapes in which they differ.
pub fn names(series: &[&Series]) -> Names {
    let shapes: Vec<Words> = series.iter().map(|series| words(&series.shape)).collect();
    let Some(first) = shapes.first() else {
        return Names {
            common: String::new(),
            names: Vec::new(),
        };
    };

    // Each word is in one of both, and empty in the other one.
    let mut common = Words::default();
    let mut distinct = shapes.clone();
    for (i, word) in first.iter().enumerate() {
        if shapes.iter().all(|shape| shape[i] == *word) {
            common[i] = word.clone();
            for shape in &mut distinct {
                shape[i].clear();
            }
        }
    }

    let mut names = Vec::new();
    for (series, distinct) in series.iter().zip(&distinct) {
        let distinct = joined(distinct);
        names.push(if distinct.is_empty() {
            series.operation.clone()
        } else {
            format!("{}, {distinct}", series.operation)
        });
    }
    Names {
        common: joined(&common),
        names,
    }
}

fn joined(words: &Words) -> String {
    let words = words.iter().map(String::as_str);
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

/// The parts of a shape in words. Some are empty if they have their default, such as one thread.
type Words = [String; 8];

fn words(shape: &Shape) -> Words {
    [
        match shape.n_pes {
            0 => String::new(),
            1 => "1 PE".into(),
            n => format!("{n} PEs"),
        },
        match shape.pairs.as_str() {
            "" => String::new(),
            "one" => "one pair".into(),
            "neighbors" => "pairs of neighbors".into(),
            pairs => format!("{pairs} pairs"),
        },
        match shape.team_size {
            None => String::new(),
            Some(n) => format!("team of {n}"),
        },
        match shape.contexts {
            0 => String::new(),
            1 => "1 context".into(),
            n => format!("{n} contexts"),
        },
        match shape.threads {
            0 | 1 => String::new(),
            n => format!("{n} threads"),
        },
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
        Series {
            measure: Measure::Latency,
            operation: operation.into(),
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
