//! The list of faults: its format, and how a fault is put into a file.

use anyhow::{Context, Result, bail};

/// A fault of one line.
#[derive(Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The part of the engine in brackets, and what goes wrong.
    pub title: String,
    /// The name of the file in the directory of the engine.
    pub file: String,
    /// The line without its indentation.
    right: String,
    wrong: String,
}

/// Returns the faults of a list.
///
/// # Errors
/// When an entry has another form than a heading, a file, a line with `-` and a line with `+`.
pub fn parse(list: &str) -> Result<Vec<Mutant>> {
    let mut lines = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));

    let mut mutants = Vec::new();
    while let Some(title) = lines.next() {
        let mut next = |prefix: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(prefix));
            line.map(str::to_owned)
                .with_context(|| format!("`{title}` is incomplete in the list of faults"))
        };
        mutants.push(Mutant {
            title: title.to_owned(),
            file: next("")?,
            right: next("- ")?,
            wrong: next("+ ")?,
        });
    }
    Ok(mutants)
}

impl Mutant {
    /// Returns a source with the fault.
    ///
    /// # Errors
    /// When the line does not stand exactly once in the source.
    pub fn apply(&self, source: &str) -> Result<String> {
        let n = source
            .lines()
            .filter(|line| line.trim_start() == self.right)
            .count();
        if n != 1 {
            bail!(
                "{}: the line `{}` stands {n} times in {}; write the fault anew",
                self.title,
                self.right,
                self.file
            );
        }

        let mut faulty = String::new();
        for line in source.lines() {
            if line.trim_start() == self.right {
                faulty += &self.wrong;
            } else {
                faulty += line;
            }
            faulty.push('\n');
        }
        Ok(faulty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Two faults\n\n[a] One is two.\na.rs\n- one();\n+ two();\n";

    #[test]
    fn a_fault_replaces_its_line_alone() {
        let mutants = parse(LIST).expect("a list");
        assert_eq!(mutants.len(), 1);

        let faulty = mutants[0].apply("fn f() {\n    one();\n    one(); three();\n}\n");
        assert_eq!(
            faulty.expect("the line stands once"),
            "fn f() {\ntwo();\n    one(); three();\n}\n"
        );
    }

    #[test]
    fn a_line_that_is_not_there_once_is_refused() {
        let mutants = parse(LIST).expect("a list");
        for source in ["zero();\n", "one();\none();\n"] {
            let error = mutants[0].apply(source).unwrap_err().to_string();
            assert!(error.contains("write the fault anew"), "{error}");
        }
    }

    #[test]
    fn a_list_that_ends_early_is_refused() {
        assert!(parse("[a] One is two.\na.rs\n- one();\n").is_err());
    }
}
