//! Makes HTML pages with drawings in SVG, which load nothing from a network, for the reports of
//! shmem-perf and of shmem-info.
//!
//! Drawings have the colors of the light form; the style sheet of the page replaces these in dark
//! mode. A library such as plotters would not shorten this code: it leaves ticks, text under the
//! pointer and the positions of labels to its caller, and draws a path for each dash of a line.
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
