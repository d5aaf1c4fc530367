//! The man pages of section 3: one for each group of routines, and a link to it for each routine.
//!
//! Prototypes are made from the tables of the headers, descriptions from
//! crates/shmem-c/spec/manual.txt. A page in that file has these parts:
//! - `# NAME: SECTIONS`: the name of the page, the sections of the standard that it describes, and
//!   the routines or families of routines without a section, such as extensions;
//! - a line that summarizes the routines;
//! - paragraphs;
//! - lines that begin with `Returns:`, `Note:`, `Rust:`, `Fortran:` (of extensions only), and
//!   `Argument NAME:`, for an argument whose meaning differs from the common one.
//!
//! The last part of the file has the common meanings of the arguments. The example of a page is the
//! program crates/shmem-c/spec/examples/NAME.c.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use roff::{Inline, Roff, bold, italic, roman};

use spec::table::{CFunction, SpecTable};

const TEXT: &str = include_str!("../../../crates/shmem-c/spec/manual.txt");

/// A man page.
pub struct ManPage {
    /// The name, without the section.
    pub name: String,
    /// The names of the routines that it describes, without that of the page.
    pub routines: Vec<String>,
    /// The words of its first line.
    pub summary: String,
    /// The chapter of the standard that it describes, such as `9.6`, or that it extends.
    pub chapter: String,
    /// The text in the language of man pages.
    pub text: String,
}

/// A page of crates/shmem-c/spec/manual.txt.
struct Described<'a> {
    name: &'a str,
    sections: Vec<&'a str>,
    summary: &'a str,
    paragraphs: Vec<&'a str>,
}

impl Described<'_> {
    /// Returns the chapter of the first section that it describes, such as `9.6`.
    fn chapter(&self) -> Option<String> {
        let numbers: Vec<&str> = self.sections.first()?.split('.').take(2).collect();
        let is_section = numbers.iter().all(|part| part.parse::<u32>().is_ok());
        is_section.then(|| numbers.join("."))
    }

    /// Returns the texts of all lines that begin with a label.
    fn labeled(&self, label: &str) -> impl Iterator<Item = &str> {
        self.paragraphs
            .iter()
            .filter_map(move |line| line.strip_prefix(label))
            .map(str::trim)
    }
}

/// Returns all pages.
///
/// # Panics
/// If manual.txt does not describe an argument, or a page has no example.
pub fn pages() -> Vec<ManPage> {
    let table = SpecTable::read();
    let (described, arguments) = read();
    let mut chapter = String::new();
    described
        .iter()
        .map(|page| {
            // A page without a section, of an extension, follows those of its chapter.
            chapter = page.chapter().unwrap_or(std::mem::take(&mut chapter));
            ManPage {
                chapter: chapter.clone(),
                ..write(page, &described, &table, &arguments)
            }
        })
        .collect()
}

/// Returns the pages of manual.txt, and the common meanings of arguments by name.
fn read() -> (
    Vec<Described<'static>>,
    BTreeMap<&'static str, &'static str>,
) {
    let (pages, arguments) = TEXT
        .split_once("# arguments\n")
        .expect("the names of arguments");
    let pages = pages
        .split("# ")
        .filter(|page| !page.is_empty())
        .map(|page| {
            let mut lines = page.lines().filter(|line| !line.is_empty());
            let (name, sections) = lines
                .next()
                .and_then(|head| head.split_once(": "))
                .expect("a name and sections");
            let sections = sections.split_whitespace().collect();
            let summary = lines.next().expect("a summary");
            Described {
                name,
                sections,
                summary,
                paragraphs: lines.collect(),
            }
        });
    (
        pages.collect(),
        arguments
            .lines()
            .filter_map(|line| line.split_once(": "))
            .collect(),
    )
}

/// Returns the man page for a page of manual.txt.
fn write(
    page: &Described<'_>,
    all: &[Described<'_>],
    table: &SpecTable,
    arguments: &BTreeMap<&str, &str>,
) -> ManPage {
    let is_of_page = |function: &&CFunction| {
        let names = [&function.section, &function.symbol, &function.family];
        names
            .iter()
            .any(|name| page.sections.contains(&name.as_str()))
    };
    let of_page: Vec<&CFunction> = table.all().filter(is_of_page).collect();
    let mut roff = Roff::new();
    let title = [
        page.name.to_uppercase().as_str(),
        "3",
        "@DATE@",
        "Rushmem @VERSION@",
        "OpenSHMEM",
    ]
    .map(str::to_owned);
    roff.control("TH", title.iter().map(String::as_str));
    roff.control("nh", []).control("ad", ["l"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{} - {}", page.name, page.summary))]);
    roff.control("SH", ["SYNOPSIS"]).control("nf", []);
    let is_extension = page.name.starts_with("shmemx_");
    let header = if is_extension { "shmemx.h" } else { "shmem.h" };
    roff.text([bold(format!("#include <{header}>"))]);
    let (families, c11) = synopsis(&of_page);
    let fortran = match is_extension {
        true => page.labeled("Fortran:").map(str::to_owned).collect(),
        false => fortran(
            &of_page
                .iter()
                .copied()
                .filter(is_standard)
                .collect::<Vec<_>>(),
        ),
    };
    let rust = page.labeled("Rust:").map(str::to_owned).collect();
    for (language, forms) in [
        ("C11", c11),
        ("C", families),
        ("Fortran", fortran),
        ("Rust", rust),
    ] {
        if !forms.is_empty() {
            roff.control("PP", []).text([bold(language)]);
            forms.into_iter().for_each(|form| {
                roff.text([roman(form)]);
            });
        }
    }
    roff.control("fi", []);
    roff.control("SH", ["DESCRIPTION"]);
    let labels = ["Fortran:", "Rust:", "Returns:", "Note:", "Argument "];
    let plain = page
        .paragraphs
        .iter()
        .filter(|line| !labels.iter().any(|l| line.starts_with(l)));
    for (i, paragraph) in plain.enumerate() {
        if i > 0 {
            roff.control("PP", []);
        }
        roff.text(inline(paragraph));
    }
    for types in types(&of_page) {
        roff.control("PP", []).text(inline(&types));
    }
    let named = names(&of_page);
    if !named.is_empty() {
        roff.control("SH", ["ARGUMENTS"]);
    }
    for name in named {
        let here = page.labeled(&format!("Argument {name}:")).next();
        let meaning = here
            .or(arguments.get(name.as_str()).copied())
            .unwrap_or_else(|| panic!("no words for the argument {name}"));
        roff.control("TP", [])
            .text([italic(name)])
            .text([roman(meaning)]);
    }
    for (label, heading) in [("Returns:", "RETURN VALUE"), ("Note:", "NOTES")] {
        for text in page.labeled(label) {
            roff.control("SH", [heading]).text(inline(text));
        }
    }
    example(&mut roff, page.name);
    roff.control("SH", ["CONFORMING TO"]);
    roff.text([roman(conforms(page, &of_page))]);
    let old = deprecated(&of_page);
    if !old.is_empty() {
        roff.text([roman(format!("Deprecated there: {}.", old.join(", ")))]);
    }
    roff.control("SH", ["SEE ALSO"]);
    let near = all
        .iter()
        .filter(|other| other.name != page.name && other.chapter() == page.chapter());
    let near: Vec<String> = near.map(|other| format!("{}(3)", other.name)).collect();
    let others = ["oshcc(1)", "oshrun(1)", "rushmem(7)"].map(str::to_owned);
    roff.text([roman(
        near.into_iter()
            .chain(others)
            .collect::<Vec<_>>()
            .join(", "),
    )]);
    let generics = of_page.iter().map(|function| function.generic.clone());
    let mut routines: Vec<String> = of_page
        .iter()
        .map(|function| function.symbol.clone())
        .collect();
    routines.extend(generics.filter(|name| !name.is_empty()));
    routines.sort();
    routines.dedup();
    routines.retain(|name| name != page.name);
    ManPage {
        name: page.name.to_owned(),
        routines,
        summary: page.summary.to_owned(),
        chapter: String::new(),
        text: roff.to_roff(),
    }
}

/// Returns true for a routine of the standard, also of an old version of it.
fn is_standard(function: &&CFunction) -> bool {
    // The section of an extension names its vendor.
    !function.section.ends_with(':')
}

/// Returns where routines are specified.
fn conforms(page: &Described<'_>, of_page: &[&CFunction]) -> String {
    let sections = page.sections.iter().copied();
    let sections: Vec<&str> = sections
        .filter(|section| section.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let mut extensions: Vec<String> = Vec::new();
    for function in of_page.iter().filter(|function| !is_standard(function)) {
        let name = match of_page
            .iter()
            .any(|other| other.family == function.family && is_standard(other))
        {
            true => function.symbol.clone(),
            false => function.family.clone(),
        };
        if !extensions.contains(&name) {
            extensions.push(name);
        }
    }
    match of_page.first().map(|function| function.removed_in.as_str()) {
        Some(version) if !version.is_empty() => format!("OpenSHMEM before {version}."),
        _ if sections.is_empty() => "These routines are an extension.".to_owned(),
        _ if extensions.is_empty() => format!("OpenSHMEM 1.6: {}.", sections.join(", ")),
        _ => format!(
            "OpenSHMEM 1.6: {}. These are an extension, which shmemx.h declares: {}.",
            sections.join(", "),
            extensions.join(", ")
        ),
    }
}

/// Adds the example: its first comment as text, then the program.
fn example(roff: &mut Roff, name: &str) {
    let file = format!("../../crates/shmem-c/spec/examples/{name}.c");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file))
        .unwrap_or_else(|error| panic!("{file}: {error}"));
    let (about, program) = text
        .split_once(" */\n")
        .expect("a comment that says what it does");
    let about = about.trim_start_matches("/* ").replace("\n * ", " ");
    roff.control("SH", ["EXAMPLES"]).text([roman(about)]);
    roff.control("PP", []).control("nf", []);
    program.lines().for_each(|line| {
        roff.text([roman(line)]);
    });
    roff.control("fi", []);
}

/// Returns the names of the deprecated routines. A family all of whose routines are deprecated
/// appears as one name.
fn deprecated(functions: &[&CFunction]) -> Vec<String> {
    let is_old = |function: &CFunction| !function.deprecated_since.is_empty();
    let mut names: Vec<String> = Vec::new();
    for function in functions.iter().filter(|function| is_old(function)) {
        let is_family = functions
            .iter()
            .filter(|f| f.family == function.family)
            .all(|f| is_old(f));
        let is_generic = functions.iter().any(|f| f.generic == function.symbol);
        let name = if is_family {
            &function.family
        } else {
            &function.symbol
        };
        let name = if is_generic {
            format!("{name} of C")
        } else {
            name.clone()
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the prototypes of the families, with placeholders for the types, and those of C11.
fn synopsis(functions: &[&CFunction]) -> (Vec<String>, Vec<String>) {
    let (mut families, mut generics): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    for function in functions {
        let (returns, arguments) = &function.pattern;
        let space = if returns.ends_with('*') { "" } else { " " };
        let typed = |name: &str| format!("{returns}{space}{name}({arguments})");
        let context = |text: String| text.replace("shmem_ctx_t ctx, ", "[shmem_ctx_t ctx, ]");
        if !seen.contains(&function.family) {
            seen.push(function.family.clone());
            families.push(format!("{};", typed(&function.family)));
        }
        if !function.generic.is_empty() {
            let plain = context(typed(&function.generic));
            let without = plain.replace("[shmem_ctx_t ctx, ]", "");
            generics.retain(|known| *known != without);
            let is_known = generics
                .iter()
                .any(|known| known.replace("[shmem_ctx_t ctx, ]", "") == without);
            if !is_known {
                generics.push(plain);
            }
        }
    }
    generics.iter_mut().for_each(|generic| generic.push(';'));
    // Routines with a context follow those without.
    families.sort_by_key(|family| family.contains("_ctx_") && family.contains("ctx,"));
    (families, generics)
}

/// Returns the calls through the Fortran module: of the routines of C11, or of those of C that have
/// no C11 form.
fn fortran(functions: &[&CFunction]) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for function in functions
        .iter()
        .filter(|function| function.deprecated_since.is_empty())
    {
        let name = if function.generic.is_empty() {
            &function.family
        } else {
            &function.generic
        };
        let arguments = names(&[*function]);
        let is_other_form = function.takes_context() && !function.generic.is_empty();
        if name.contains('<') || is_other_form {
            continue;
        }
        let call = if function.returns == "void" {
            "call "
        } else {
            "result = "
        };
        let call = format!("{call}{name}({})", arguments.join(", "));
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    if calls.is_empty() {
        calls
    } else {
        [vec!["use shmem".to_owned()], calls].concat()
    }
}

/// Returns sentences that list the types for TYPENAME and SIZE in the names of the families.
fn types(functions: &[&CFunction]) -> Vec<String> {
    let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for placeholder in ["<TYPENAME>", "<SIZE>"] {
        for function in functions.iter().filter(|f| f.family.contains(placeholder)) {
            let list = lists.entry(function.family.clone()).or_default();
            if !list.contains(&function.type_name) {
                list.push(function.type_name.clone());
            }
        }
    }
    let mut by_list: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (family, list) in lists {
        by_list.entry(list).or_default().push(family);
    }
    let of = |families: &[String]| match families {
        [first, _, ..] => format!("`{first}` and others"),
        _ => families
            .iter()
            .map(|family| format!("`{family}`"))
            .collect(),
    };
    by_list
        .iter()
        .map(|(list, families)| format!("Types of {}: {}.", of(families), list.join(", ")))
        .collect()
}

/// Returns the names of the arguments, in their order.
fn names(functions: &[&CFunction]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for parameter in functions.iter().flat_map(|function| &function.parameters) {
        // The name of a pointer to a function is in parentheses.
        let declared = parameter.split(')').next().unwrap_or_default();
        let name = declared.rsplit([' ', '*']).next().unwrap_or_default();
        if !name.is_empty() && name != "..." && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns a paragraph in which words between backquotes are bold.
fn inline(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        .map(|(i, part)| if i % 2 == 1 { bold(part) } else { roman(part) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_routine_has_one_page() {
        let pages = pages();
        for function in SpecTable::read().all() {
            let describes = |page: &&ManPage| {
                page.name == function.symbol || page.routines.contains(&function.symbol)
            };
            assert_eq!(
                pages.iter().filter(describes).count(),
                1,
                "{}",
                function.symbol
            );
        }
    }

    #[test]
    fn a_page_has_the_prototypes_of_its_families() {
        let pages = pages();
        let put = pages
            .iter()
            .find(|page| page.name == "shmem_put")
            .expect("a page");
        for expected in [
            "void shmem_put([shmem_ctx_t ctx, ]TYPE *dest, const TYPE *source, size_t nelems, int pe);",
            "void shmem_<TYPENAME>_put(TYPE *dest, const TYPE *source, size_t nelems, int pe);",
            "call shmem_put(dest, source, nelems, pe)",
        ] {
            assert!(
                put.text.contains(&expected.replace('-', "\\-")),
                "{expected}\n{}",
                put.text
            );
        }
    }

    #[test]
    fn a_page_of_extensions_has_their_own_arguments() {
        let expected = "int shmemx_<TYPENAME>_collect_nb(shmem_team_t team, TYPE *dest, \
                        const TYPE *source, size_t nelems, shmemx_req_t *req);";
        let requests = page("shmemx_req_wait");
        assert!(requests.contains(expected), "{requests}");
        let iput = page("shmem_iput");
        let extension = "OpenSHMEM 1.6: 9.6.1.3, 9.6.1.4. These are an extension, which \
                         shmemx.h declares: shmemx_<TYPENAME>_ibput,";
        assert!(iput.contains(extension), "{iput}");
        let reduce = page("shmem_reduce");
        assert!(
            reduce.contains("declares: shmem_short_and_reduce, "),
            "{reduce}"
        );
        assert!(page("shmem_set_cache_inv").contains("OpenSHMEM before 1.5."));
    }

    fn page(name: &str) -> String {
        let pages = pages();
        let page = pages.iter().find(|page| page.name == name).expect("a page");
        page.text.replace("\\-", "-")
    }

    #[test]
    fn a_page_names_what_is_deprecated_and_nothing_else() {
        let wait = page("shmem_wait_until");
        let deprecated = "Deprecated there: shmem_<TYPENAME>_wait, shmem_short_wait_until, \
                          shmem_ushort_wait_until, shmem_wait, shmem_wait_until of C, \
                          shmem_short_test, shmem_ushort_test.";
        assert!(wait.contains(deprecated), "{wait}");
        assert!(!page("shmem_put").contains("Deprecated"));
    }

    #[test]
    fn an_argument_means_what_it_does_on_its_page() {
        let of = |name: &str, argument: &str| {
            let page = page(name);
            let after = page.split_once(&format!(".TP\n\\fI{argument}\\fR\n"));
            after
                .and_then(|(_, rest)| rest.lines().next())
                .expect("the argument")
                .to_owned()
        };
        assert_eq!(
            of("shmem_team_split_strided", "size"),
            "the number of PEs of the new team"
        );
        assert_eq!(of("shmem_malloc", "size"), "the number of bytes");
        assert_eq!(
            of("shmem_get", "dest"),
            "where the data are stored; need not be symmetric"
        );
        assert_eq!(
            of("shmem_put", "dest"),
            "the symmetric array or variable that is changed"
        );
    }

    #[test]
    fn a_page_has_a_program_that_says_what_it_does() {
        for page in pages() {
            let (_, example) = page.text.split_once(".SH EXAMPLES\n").expect("an example");
            let program = ["\n.nf\n#include <shmem.h>\n", "Prints on 4 PEs"];
            assert!(
                program.iter().all(|part| example.contains(part)),
                "{example}"
            );
        }
    }
}
