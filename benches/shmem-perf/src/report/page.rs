//! The whole page: one file that needs no other.

use super::header::header;
use super::markup::Element;
use super::section::{Part, Section};
use super::sections::sections;
use super::source::Source;
use super::style::DRAWINGS;

/// The report of some runs.
pub fn page(runs: &[Source]) -> String {
    let sections = sections(runs);
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let head = Element::new("head")
        .child(Element::new("meta").with("charset", "utf-8"))
        .child(
            Element::new("meta")
                .with("name", "viewport")
                .with("content", "width=device-width, initial-scale=1"),
        )
        .child(Element::new("meta").with("name", "color-scheme").with("content", "light dark"))
        .child(Element::new("title").text(format!("shmem-perf: {}", names.join(", "))))
        .child(Element::new("style").code(DRAWINGS).code(include_str!("page.css")));
    let link = |section: &Section| {
        Element::new("a").with("href", format!("#{}", section.id)).text(section.title)
    };
    let contents = Element::new("nav").children(sections.iter().map(link));
    let nothing = sections.is_empty().then(|| Element::new("p").text("Nothing was measured."));
    let parts = sections.into_iter().map(|section| {
        Element::new("section")
            .with("id", section.id)
            .child(Element::new("h2").text(section.title))
            .children(section.body.into_iter().map(Part::element))
    });
    let body = Element::new("body")
        .child(
            Element::new("main")
                .child(header(runs))
                .child(contents)
                .children(nothing)
                .children(parts),
        )
        .child(Element::new("div").with("id", "tip").with("hidden", ""))
        .child(Element::new("script").code(include_str!("page.js")));
    let html = Element::new("html").with("lang", "en").child(head).child(body);
    format!("<!DOCTYPE html>\n{html}\n")
}
