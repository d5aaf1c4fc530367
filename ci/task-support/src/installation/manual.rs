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

use spec::table::{CFunction, Pattern, SpecTable};

const TEXT: &str = include_str!("../../../../crates/shmem-c/spec/manual.txt");

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

/// The labels of lines that are no paragraphs of the description.
const LABELS: [&str; 5] = ["Fortran:", "Rust:", "Returns:", "Note:", "Argument "];

/// The optional first parameter of the routines that take a context.
const CONTEXT: &str = "[shmem_ctx_t ctx, ]";

/// Returns all pages.
///
/// # Panics
/// If manual.txt does not describe an argument, or a page has no example.
pub fn pages() -> Vec<ManPage> {
    let table = SpecTable::read();
    let manual = Manual::read();

    let mut pages = Vec::new();
    let mut chapter = String::new();
    for described in &manual.pages {
        // A page without a section, of an extension, follows those of its chapter.
        if let Some(own) = described.chapter() {
            chapter = own;
        }
        let functions = described.functions(&table);
        pages.push(ManPage {
            name: described.name.to_owned(),
            routines: other_routines(described, &functions),
            summary: described.summary.to_owned(),
            chapter: chapter.clone(),
            text: text(described, &functions, &manual),
        });
    }
    pages
}

/// The contents of crates/shmem-c/spec/manual.txt.
struct Manual {
    pages: Vec<DescribedPage>,
    /// The common meanings of arguments, by name.
    arguments: BTreeMap<&'static str, &'static str>,
}

impl Manual {
    fn read() -> Manual {
        let (pages, arguments) = TEXT
            .split_once("# arguments\n")
            .expect("the names of arguments");
        let pages = pages.split("# ").filter(|page| !page.is_empty());
        let arguments = arguments.lines().filter_map(|line| line.split_once(": "));
        Manual {
            pages: pages.map(DescribedPage::parse).collect(),
            arguments: arguments.collect(),
        }
    }
}

/// A page of crates/shmem-c/spec/manual.txt.
struct DescribedPage {
    name: &'static str,
    /// The sections of the standard, and the routines and families without a section.
    sections: Vec<&'static str>,
    summary: &'static str,
    /// The paragraphs of the description, and the lines with labels.
    lines: Vec<&'static str>,
}

impl DescribedPage {
    fn parse(page: &'static str) -> DescribedPage {
        let mut lines = page.lines().filter(|line| !line.is_empty());
        let head = lines.next().expect("a head");
        let (name, sections) = head.split_once(": ").expect("a name and sections");
        let summary = lines.next().expect("a summary");
        DescribedPage {
            name,
            sections: sections.split_whitespace().collect(),
            summary,
            lines: lines.collect(),
        }
    }

    /// Returns the chapter of the first section that it describes, such as `9.6`; `None` if it
    /// describes an extension.
    fn chapter(&self) -> Option<String> {
        let numbers: Vec<&str> = self.sections.first()?.split('.').take(2).collect();
        let is_section = numbers.iter().all(|part| part.parse::<u32>().is_ok());
        if is_section {
            Some(numbers.join("."))
        } else {
            None
        }
    }

    fn is_of_extensions(&self) -> bool {
        self.name.starts_with("shmemx_")
    }

    /// Returns the functions that the page describes, in the order of the tables.
    fn functions<'t>(&self, table: &'t SpecTable) -> Vec<&'t CFunction> {
        let mut functions = Vec::new();
        for function in table.all() {
            let names = [&function.section, &function.symbol, &function.family];
            if names
                .iter()
                .any(|name| self.sections.contains(&name.as_str()))
            {
                functions.push(function);
            }
        }
        functions
    }

    /// Returns the paragraphs of the description.
    fn paragraphs(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().copied();
        lines.filter(|line| !LABELS.iter().any(|label| line.starts_with(label)))
    }

    /// Returns the texts of all lines that begin with a label.
    fn labeled(&self, label: &str) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .filter_map(move |line| line.strip_prefix(label))
            .map(str::trim)
    }
}

/// Returns the names of the routines and of the forms of C11, without that of the page.
fn other_routines(page: &DescribedPage, functions: &[&CFunction]) -> Vec<String> {
    let mut names = Vec::new();
    for function in functions {
        names.push(function.symbol.clone());
        names.push(function.generic.clone());
    }
    names.retain(|name| !name.is_empty() && name != page.name);
    names.sort();
    names.dedup();
    names
}

/// Returns the text of the man page in the language of man pages.
fn text(page: &DescribedPage, functions: &[&CFunction], manual: &Manual) -> String {
    let mut roff = Roff::new();
    let title = page.name.to_uppercase();
    let head = [&title, "3", "@DATE@", "Rushmem @VERSION@", "OpenSHMEM"];
    roff.control("TH", head);
    // No hyphens, and no justified lines, which would break names and prototypes.
    roff.control("nh", []).control("ad", ["l"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{} - {}", page.name, page.summary))]);

    write_synopsis(&mut roff, page, functions);
    write_description(&mut roff, page, functions);
    write_arguments(&mut roff, page, functions, manual);
    for (label, heading) in [("Returns:", "RETURN VALUE"), ("Note:", "NOTES")] {
        for line in page.labeled(label) {
            roff.control("SH", [heading]).text(inline(line));
        }
    }
    write_example(&mut roff, page.name);

    roff.control("SH", ["CONFORMING TO"]);
    roff.text([roman(specified(page, functions))]);
    let old = deprecated(functions);
    if !old.is_empty() {
        roff.text([roman(format!("Deprecated there: {}.", old.join(", ")))]);
    }

    write_see_also(&mut roff, page, manual);
    roff.to_roff()
}

/// Writes the forms in each language.
fn write_synopsis(roff: &mut Roff, page: &DescribedPage, functions: &[&CFunction]) {
    let header = if page.is_of_extensions() {
        "shmemx.h"
    } else {
        "shmem.h"
    };
    roff.control("SH", ["SYNOPSIS"]).control("nf", []);
    roff.text([bold(format!("#include <{header}>"))]);

    let fortran = if page.is_of_extensions() {
        page.labeled("Fortran:").map(str::to_owned).collect()
    } else {
        fortran_calls(functions)
    };
    let rust = page.labeled("Rust:").map(str::to_owned).collect();
    let forms = [
        ("C11", generic_prototypes(functions)),
        ("C", family_prototypes(functions)),
        ("Fortran", fortran),
        ("Rust", rust),
    ];
    for (language, forms) in forms {
        if forms.is_empty() {
            continue;
        }
        roff.control("PP", []).text([bold(language)]);
        for form in forms {
            roff.text([roman(form)]);
        }
    }
    roff.control("fi", []);
}

fn write_description(roff: &mut Roff, page: &DescribedPage, functions: &[&CFunction]) {
    roff.control("SH", ["DESCRIPTION"]);
    for (i, paragraph) in page.paragraphs().enumerate() {
        if i > 0 {
            roff.control("PP", []);
        }
        roff.text(inline(paragraph));
    }
    for sentence in types(functions) {
        roff.control("PP", []).text(inline(&sentence));
    }
}

/// Writes the meaning of each argument: the one on the page, if it has one, or else the common one.
fn write_arguments(
    roff: &mut Roff,
    page: &DescribedPage,
    functions: &[&CFunction],
    manual: &Manual,
) {
    let names = argument_names(functions);
    if names.is_empty() {
        return;
    }

    roff.control("SH", ["ARGUMENTS"]);
    for name in names {
        let own = page.labeled(&format!("Argument {name}:")).next();
        let Some(meaning) = own.or(manual.arguments.get(&*name).copied()) else {
            panic!("no words for the argument {name}");
        };
        roff.control("TP", []);
        roff.text([italic(name)]).text([roman(meaning)]);
    }
}

/// Writes the example: its first comment as text, then the program.
fn write_example(roff: &mut Roff, name: &str) {
    let file = format!("../../crates/shmem-c/spec/examples/{name}.c");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file))
        .unwrap_or_else(|error| panic!("{file}: {error}"));
    let (about, program) = text
        .split_once(" */\n")
        .expect("a comment that says what it does");

    let about = about.trim_start_matches("/* ").replace("\n * ", " ");
    roff.control("SH", ["EXAMPLES"]).text([roman(about)]);
    roff.control("PP", []).control("nf", []);
    for line in program.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

/// Writes links to the other pages of the chapter, and to those that describe all of Rushmem.
fn write_see_also(roff: &mut Roff, page: &DescribedPage, manual: &Manual) {
    let mut links = Vec::new();
    for other in &manual.pages {
        if other.name != page.name && other.chapter() == page.chapter() {
            links.push(format!("{}(3)", other.name));
        }
    }
    links.extend(["oshcc(1)", "oshrun(1)", "rushmem(7)"].map(str::to_owned));
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(links.join(", "))]);
}

/// Returns true for a routine of the standard, also of an old version of it.
fn is_standard(function: &CFunction) -> bool {
    // The section of an extension names its vendor.
    !function.section.ends_with(':')
}

/// Returns the sentences that say where the routines are specified.
fn specified(page: &DescribedPage, functions: &[&CFunction]) -> String {
    if let Some(first) = functions.first()
        && !first.removed_in.is_empty()
    {
        return format!("OpenSHMEM before {}.", first.removed_in);
    }

    let mut sections = page.sections.clone();
    sections.retain(|section| section.starts_with(|c: char| c.is_ascii_digit()));
    if sections.is_empty() {
        return "These routines are an extension.".to_owned();
    }

    let standard = format!("OpenSHMEM 1.6: {}.", sections.join(", "));
    let extensions = extensions_among(functions);
    if extensions.is_empty() {
        return standard;
    }
    format!(
        "{standard} These are an extension, which shmemx.h declares: {}.",
        extensions.join(", ")
    )
}

/// Returns the names of the extensions. A family of which no routine is in the standard appears as
/// one name.
fn extensions_among(functions: &[&CFunction]) -> Vec<String> {
    let mut names = Vec::new();
    for function in functions.iter().filter(|function| !is_standard(function)) {
        let is_family_extended = functions
            .iter()
            .any(|other| other.family == function.family && is_standard(other));
        let name = if is_family_extended {
            &function.symbol
        } else {
            &function.family
        };
        push_if_new(&mut names, name.clone());
    }
    names
}

/// Returns the names of the deprecated routines. A family all of whose routines are deprecated
/// appears as one name.
fn deprecated(functions: &[&CFunction]) -> Vec<String> {
    let mut names = Vec::new();
    for function in functions.iter().filter(|function| is_deprecated(function)) {
        let is_family_deprecated = functions
            .iter()
            .filter(|other| other.family == function.family)
            .all(|other| is_deprecated(other));
        let mut name = if is_family_deprecated {
            function.family.clone()
        } else {
            function.symbol.clone()
        };
        // The form of C11 with the same name is not deprecated.
        if functions.iter().any(|f| f.generic == function.symbol) {
            name += " of C";
        }
        push_if_new(&mut names, name);
    }
    names
}

fn is_deprecated(function: &CFunction) -> bool {
    !function.deprecated_since.is_empty()
}

/// Returns the prototype of a function of the pattern of `function`, without the semicolon.
fn prototype(function: &CFunction, name: &str) -> String {
    let Pattern { returns, args } = &function.pattern;
    let space = if returns.ends_with('*') { "" } else { " " };
    format!("{returns}{space}{name}({args})")
}

/// Returns the prototypes of the families, with placeholders for the types.
fn family_prototypes(functions: &[&CFunction]) -> Vec<String> {
    let mut families: Vec<&str> = Vec::new();
    let mut prototypes = Vec::new();
    for function in functions {
        if !families.contains(&&*function.family) {
            families.push(&function.family);
            let mut of_family = functions.iter().filter(|of| of.family == function.family);
            let is_old = of_family.all(|function| is_deprecated(function));
            prototypes.push((prototype(function, &function.family) + ";", is_old));
        }
    }
    // Routines with a context follow those without, and deprecated ones come last.
    prototypes.sort_by_key(|(text, is_old)| {
        let has_context = text.contains("_ctx_") && text.contains("ctx,");
        (*is_old, has_context)
    });
    prototypes.into_iter().map(|(text, _)| text).collect()
}

/// Returns the prototypes of the forms of C11. One that exists with and without a context appears
/// once.
fn generic_prototypes(functions: &[&CFunction]) -> Vec<String> {
    let mut prototypes: Vec<String> = Vec::new();
    for function in functions.iter().filter(|f| !f.generic.is_empty()) {
        let text = prototype(function, &function.generic).replace("shmem_ctx_t ctx, ", CONTEXT);
        let without = text.replace(CONTEXT, "");
        prototypes.retain(|known| *known != without);
        let is_known = prototypes
            .iter()
            .any(|known| known.replace(CONTEXT, "") == without);
        if !is_known {
            prototypes.push(text);
        }
    }
    for text in &mut prototypes {
        text.push(';');
    }
    prototypes
}

/// Returns the calls through the Fortran module: of the routines of C11, or of those of C that have
/// no C11 form. The module has no deprecated routines, and no extensions.
fn fortran_calls(functions: &[&CFunction]) -> Vec<String> {
    let mut calls = Vec::new();
    for function in functions {
        if !is_standard(function) || is_deprecated(function) {
            continue;
        }

        let is_generic = !function.generic.is_empty();
        // The form of C11 with a context has the name of the one without.
        if is_generic && function.takes_context() {
            continue;
        }
        let name = if is_generic {
            &function.generic
        } else {
            &function.family
        };
        // A family of several types without a form of C11 has no one name in Fortran.
        if name.contains('<') {
            continue;
        }

        let statement = if function.returns == "void" {
            "call "
        } else {
            "result = "
        };
        let arguments = argument_names(&[*function]).join(", ");
        push_if_new(&mut calls, format!("{statement}{name}({arguments})"));
    }

    if !calls.is_empty() {
        calls.insert(0, "use shmem".to_owned());
    }
    calls
}

/// Returns sentences that list the types for TYPENAME and SIZE in the names of the families.
fn types(functions: &[&CFunction]) -> Vec<String> {
    let mut types_by_family: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for function in functions {
        let family = &function.family;
        if family.contains("<TYPENAME>") || family.contains("<SIZE>") {
            let types = types_by_family.entry(family).or_default();
            push_if_new(types, &*function.type_name);
        }
    }

    // Families with the same types share a sentence.
    let mut families_by_types: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for (family, types) in types_by_family {
        families_by_types.entry(types).or_default().push(family);
    }

    let mut sentences = Vec::new();
    for (types, families) in families_by_types {
        let others = if families.len() > 1 {
            " and others"
        } else {
            ""
        };
        let types = types.join(", ");
        sentences.push(format!("Types of `{}`{others}: {types}.", families[0]));
    }
    sentences
}

/// Returns the names of the arguments, in their order.
fn argument_names(functions: &[&CFunction]) -> Vec<String> {
    let mut names = Vec::new();
    for parameter in functions.iter().flat_map(|function| &function.parameters) {
        // The name of a pointer to a function is in parentheses.
        let declared = parameter.split(')').next().unwrap_or_default();
        let name = declared.rsplit([' ', '*']).next().unwrap_or_default();
        if !name.is_empty() && name != "..." {
            push_if_new(&mut names, name.to_owned());
        }
    }
    names
}

fn push_if_new<T: PartialEq>(list: &mut Vec<T>, element: T) {
    if !list.contains(&element) {
        list.push(element);
    }
}

/// Returns a paragraph in which words between backquotes are bold.
fn inline(text: &str) -> Vec<Inline> {
    let mut parts = Vec::new();
    // Every second part is between two backquotes.
    for (i, part) in text.split('`').enumerate() {
        parts.push(if i % 2 == 1 { bold(part) } else { roman(part) });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of a page, without the backslashes before hyphens.
    fn page(name: &str) -> String {
        let pages = pages();
        let page = pages.iter().find(|page| page.name == name).expect("a page");
        page.text.replace("\\-", "-")
    }

    #[test]
    fn every_routine_has_one_page() {
        let pages = pages();
        for function in SpecTable::read().all() {
            let symbol = &function.symbol;
            let describes =
                |page: &&ManPage| page.name == *symbol || page.routines.contains(symbol);
            assert_eq!(pages.iter().filter(describes).count(), 1, "{symbol}");
        }
    }

    #[test]
    fn a_page_has_the_prototypes_of_its_families() {
        let put = page("shmem_put");
        for expected in [
            "void shmem_put([shmem_ctx_t ctx, ]TYPE *dest, const TYPE *source, size_t nelems, int pe);",
            "void shmem_<TYPENAME>_put(TYPE *dest, const TYPE *source, size_t nelems, int pe);",
            "call shmem_put(dest, source, nelems, pe)",
        ] {
            assert!(put.contains(expected), "{expected}\n{put}");
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
        let extension = "declares: shmem_short_and_reduce, ";
        assert!(reduce.contains(extension), "{reduce}");
        assert!(page("shmem_set_cache_inv").contains("OpenSHMEM before 1.5."));
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
    fn deprecated_names_come_last() {
        let page = page("shmem_malloc");
        let (before, after) = page.split_once("void *shmem_malloc(").expect("the routine");
        assert!(!before.contains("shmalloc("), "{before}");
        assert!(after.contains("shmalloc("), "{after}");
    }

    /// Returns the meaning of an argument on a page.
    fn meaning(name: &str, argument: &str) -> String {
        let page = page(name);
        let heading = format!(".TP\n\\fI{argument}\\fR\n");
        let (_, after) = page.split_once(&heading).expect("the argument");
        after.lines().next().expect("its meaning").to_owned()
    }

    #[test]
    fn an_argument_means_what_it_does_on_its_page() {
        let of_team = meaning("shmem_team_split_strided", "size");
        assert_eq!(of_team, "the number of PEs of the new team");
        let of_memory = meaning("shmem_malloc", "size");
        assert_eq!(of_memory, "the number of bytes");

        let of_get = meaning("shmem_get", "dest");
        assert_eq!(of_get, "where the data are stored; need not be symmetric");
        let of_put = meaning("shmem_put", "dest");
        assert_eq!(of_put, "the symmetric array or variable that is changed");
    }

    #[test]
    fn a_page_has_a_program_that_says_what_it_does() {
        for page in pages() {
            let (_, example) = page.text.split_once(".SH EXAMPLES\n").expect("an example");
            for part in ["\n.nf\n#include <shmem.h>\n", "Prints on 4 PEs"] {
                assert!(example.contains(part), "{example}");
            }
        }
    }
}
