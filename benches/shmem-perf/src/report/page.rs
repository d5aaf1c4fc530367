//! The whole page: one file that needs no other.

use maud::{DOCTYPE, PreEscaped, html};

use super::drawing::printable;
use super::header::header;
use super::section::ReportSection;
use super::source::NamedRun;

/// The report of some runs.
pub fn page(runs: &[NamedRun], sections: &[ReportSection]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    printable(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "shmem-perf: " (names.join(", ")) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                main {
                    (header(runs))
                    nav { @for it in sections { a href={ "#" (it.id) } { (it.title) } } }
                    @if sections.is_empty() { p { "Nothing was measured." } }
                    @for section in sections {
                        section id=(section.id) {
                            h2 { (section.title) }
                            @for part in &section.body { (part.markup()) }
                        }
                    }
                }
                div #tip hidden="" {}
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    })
}
