//! The step `docs`: builds the documentation of all crates, and checks that each public method of
//! the Rust interface has an example. The pages are searched, not the sources, since they have what
//! a user sees: also methods that macros make, and none that are hidden.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use task_support::process;

use crate::runner::{StepOutcome, TestSession};

/// The directory with the pages of the Rust interface, in the build directory.
const PAGES: &str = "doc/shmem";

/// What a page has for each example.
const EXAMPLE: &str = "rust-example-rendered";

/// What the page of a function has.
const DECLARATION: &str = "item-decl";

/// A number of methods that the interface has in any case. Fewer are found if another rustdoc
/// writes other pages.
const MIN_METHODS: usize = 200;

pub fn step(session: &TestSession) -> Result<StepOutcome> {
    let mut cargo = session.workspace.cargo();
    cargo.args(["doc", "--workspace", "--no-deps"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))?;

    let mut methods = Vec::new();
    find(&session.workspace.target.join(PAGES), &mut methods)?;
    if methods.len() < MIN_METHODS {
        bail!(
            "{PAGES} has {} methods where at least {MIN_METHODS} were expected",
            methods.len()
        );
    }

    methods.retain(|method| !method.has_example);
    for method in &methods {
        println!("{}: it has no example in its documentation", method.name);
    }
    match methods.len() {
        0 => Ok(StepOutcome::Passed),
        n => bail!("{n} public methods of the Rust interface have no example"),
    }
}

/// A public method or function.
struct Method {
    /// The page, and for a method its name.
    name: String,
    has_example: bool,
}

/// Adds the methods and functions that the pages of a directory describe.
fn find(dir: &Path, methods: &mut Vec<Method>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, methods)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let page = path.file_stem().unwrap_or_default().to_string_lossy();
            methods.extend(methods_of(&page, &fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Returns the methods that a page describes, or the function whose page it is.
fn methods_of(page: &str, html: &str) -> Vec<Method> {
    if page.starts_with("fn.") {
        // A page in a private module only leads to the one of the item that is exported.
        if !html.contains(DECLARATION) {
            return Vec::new();
        }
        return vec![Method {
            name: page.to_owned(),
            has_example: html.contains(EXAMPLE),
        }];
    }

    let mut methods = Vec::new();
    for section in html.split("<section id=\"").skip(1) {
        // Methods of traits have a second class.
        let Some((id, described)) = section.split_once("\" class=\"method\">") else {
            continue;
        };
        if let Some(name) = id.strip_prefix("method.") {
            methods.push(Method {
                name: format!("{page}: {name}"),
                has_example: described.contains(EXAMPLE),
            });
        }
    }
    methods
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of those without an example.
    fn without(page: &str, html: &str) -> Vec<String> {
        let mut methods = methods_of(page, html);
        methods.retain(|method| !method.has_example);
        methods.into_iter().map(|method| method.name).collect()
    }

    #[test]
    fn methods_without_an_example_are_found() {
        let html = r#"<pre class="rust rust-example-rendered">of the structure</pre>
            <section id="method.put" class="method"><h4>put</h4></section>
            <section id="method.get" class="method"><h4>get</h4></section>
            <div class="docblock"><pre class="rust rust-example-rendered"></pre></div>
            <section id="method.quiet" class="method"><h4>quiet</h4></section>
            <section id="method.clone" class="method trait-impl"><h4>clone</h4></section>"#;
        assert_eq!(
            without("struct.Peer", html),
            ["struct.Peer: put", "struct.Peer: quiet"]
        );
        assert_eq!(methods_of("struct.Peer", html).len(), 3);
    }

    #[test]
    fn a_function_has_a_page_of_its_own() {
        let declared = r#"<pre class="rust item-decl">pub fn init()</pre>"#;
        assert_eq!(without("fn.init", declared), ["fn.init"]);
        let example = r#"<pre class="rust rust-example-rendered"></pre>"#;
        assert!(without("fn.init", &[declared, example].concat()).is_empty());
        assert!(methods_of("fn.init", "<p>Redirecting</p>").is_empty());
    }
}
