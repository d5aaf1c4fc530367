//! Assembles the HTML report.

use maud::html;

use super::header::header;
use super::section::ReportSection;
use super::source::NamedRun;

/// Returns the report of some runs.
pub fn page(runs: &[NamedRun], sections: &[ReportSection]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = format!("shmem-perf: {}", names.join(", "));
    charts::page(
        &title,
        &html! {
            (header(runs))
            nav { @for it in sections { a href={ "#" (it.id) } { (it.title) } } }
            @if sections.is_empty() { p { "Nothing was measured." } }
            @for section in sections {
                section id=(section.id) {
                    h2 { (section.title) }
                    @for part in &section.body { (part.markup()) }
                }
            }
        },
    )
}
