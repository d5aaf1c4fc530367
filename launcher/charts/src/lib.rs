//! Pages of HTML with drawings in SVG, which need no network: what the reports of shmem-perf and of
//! shmem-info have in common.
//!
//! Drawings have the colors of the light form; the style sheet of the page replaces these in the
//! dark. They are not made by a library such as plotters: what takes lines here is the choice of
//! ticks, the text under the pointer, and the places of labels, which such a library leaves to its
//! caller; dashed lines would be a path for each dash.
#![forbid(unsafe_code)]

pub mod drawing;
pub mod palette;

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Returns a page: one file that needs no other.
pub fn page(title: &str, body: &Markup) -> String {
    drawing::printable(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                main { (body) }
                div #tip hidden="" {}
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    })
}
