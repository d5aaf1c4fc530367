//! The lists of faults: their format, and how a fault is put into a file.

use anyhow::{Context, Result, bail};

/// A fault of one line.
#[derive(Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The part that it breaks in brackets, and what goes wrong.
    pub title: String,
    /// The path of the file from the top of the repository.
    pub file: String,
    /// The line, and in front of it those that tell it from its like, all without indentation.
    right: Vec<String>,
    wrong: String,
    pub finder: Finder,
}

/// A test that must fail if a fault is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finder {
    /// True if the test runs programs of the installed prefix, which must then have the fault, too.
    pub needs_prefix: bool,
    /// The arguments of `cargo test`.
    pub arguments: Vec<String>,
}

/// Returns the faults of a list.
///
/// # Errors
/// When the list does not have the form that it describes itself.
pub fn parse(list: &str) -> Result<Vec<Mutant>> {
    let mut lines = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();

    let mut mutants = Vec::new();
    let mut finder = None;
    while let Some(title) = lines.next() {
        if let Some(next) = Finder::parse(title) {
            finder = Some(next);
            continue;
        }

        let incomplete = || format!("`{title}` is incomplete in the list of faults");
        let file = lines.next().with_context(incomplete)?.to_owned();
        let mut right = Vec::new();
        while let Some(before) = lines.next_if(|line| line.starts_with("  ")) {
            right.push(before.trim_start().to_owned());
        }

        let mut next = |prefix: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(prefix));
            line.map(str::to_owned).with_context(incomplete)
        };
        right.push(next("- ")?);
        mutants.push(Mutant {
            title: title.to_owned(),
            file,
            right,
            wrong: next("+ ")?,
            finder: finder.clone().with_context(incomplete)?,
        });
    }
    Ok(mutants)
}

impl Finder {
    /// Returns the finder that a line such as `test -p rushmem-heap --lib` names; `None` for other
    /// lines.
    fn parse(line: &str) -> Option<Finder> {
        let (kind, arguments) = line.split_once(' ')?;
        Some(Finder {
            needs_prefix: match kind {
                "test" => false,
                "job" => true,
                _ => return None,
            },
            arguments: arguments.split(' ').map(str::to_owned).collect(),
        })
    }
}

impl Mutant {
    /// Returns a source with the fault.
    ///
    /// # Errors
    /// When the line does not stand exactly once in the source.
    pub fn apply(&self, source: &str) -> Result<String> {
        let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
        let mut places = Vec::new();
        for (first, window) in lines.windows(self.right.len()).enumerate() {
            if window == self.right {
                places.push(first + self.right.len() - 1);
            }
        }

        let [place] = places[..] else {
            bail!(
                "{}: the line `{}` stands {} times in {}; write the fault anew",
                self.title,
                self.right.join(" "),
                places.len(),
                self.file
            );
        };

        let mut faulty = String::new();
        for (i, line) in source.lines().enumerate() {
            faulty += if i == place { &self.wrong } else { line };
            faulty.push('\n');
        }
        Ok(faulty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "# Two faults\n\ntest -p a --lib\n[a] One is two.\na.rs\n- one();\n+ two();\n";

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
    fn lines_before_it_tell_a_line_from_its_like() {
        let list = LIST.replace("- one", "  if b {\n- one");
        let mutants = parse(&list).expect("a list");
        let faulty = mutants[0].apply("if a {\n    one();\n}\nif b {\n    one();\n}\n");
        assert_eq!(
            faulty.expect("the lines stand once"),
            "if a {\n    one();\n}\nif b {\ntwo();\n}\n"
        );
    }

    #[test]
    fn each_fault_is_found_by_the_test_that_was_named_last() {
        let job = "job -p b --test jobs death::\n";
        let list = format!("{LIST}{job}[b] It lives.\nb.rs\n- die();\n+ live();\n");
        let mutants = parse(&list).expect("a list");
        assert!(!mutants[0].finder.needs_prefix);
        assert_eq!(mutants[0].finder.arguments, ["-p", "a", "--lib"]);
        assert!(mutants[1].finder.needs_prefix);
        assert_eq!(mutants[1].finder.arguments[4], "death::");
    }

    #[test]
    fn a_list_that_ends_early_is_refused() {
        for list in [
            "test -p a\n[a] One is two.\na.rs\n- one();\n",
            "[a] One is two.\na.rs\n- one();\n+ two();\n",
        ] {
            assert!(parse(list).is_err(), "{list}");
        }
    }
}
