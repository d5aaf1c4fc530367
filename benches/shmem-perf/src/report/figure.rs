//! A drawing with its title and legend: a part of the page, or a picture of its own that documents show.
//!
//! This file must never know what is drawn.

use super::concrete::concrete;
use super::drawing::Drawing;
use super::markup::{Element, px};
use super::style::swatch;

/// Where the title of a picture stands, and the note below it.
const TITLE: f64 = 22.0;
const NOTE: f64 = 40.0;
/// The margin of a picture.
const MARGIN: f64 = 12.0;
/// The height of a line of its legend.
const LEGEND_LINE: f64 = 22.0;
/// A swatch with its distances, and about how wide a letter is.
const SWATCH: f64 = 56.0;
const LETTER: f64 = 6.8;

/// What a colour or a kind of line means.
pub struct Entry {
    /// The classes of the line.
    pub classes: String,
    /// The run whose kind of line it is, if it stands for one.
    pub run: Option<usize>,
    /// What it means.
    pub text: String,
}

/// A drawing and what is said of it.
pub struct Figure {
    /// What is drawn.
    pub title: String,
    /// What holds for all of it.
    pub note: String,
    /// The drawing.
    pub drawing: Drawing,
    /// What its colours and lines mean.
    pub legend: Vec<Entry>,
    /// Sentences about what was found in it; `None` where nothing is looked for.
    pub found: Option<Vec<String>>,
}

impl Figure {
    /// One in which nothing is looked for.
    pub fn new(title: &str, note: &str, drawing: Drawing, legend: Vec<Entry>) -> Self {
        Self { title: title.to_owned(), note: note.to_owned(), drawing, legend, found: None }
    }

    /// A part of the page.
    pub fn part(self) -> Element {
        let caption = Element::new("figcaption")
            .child(Element::new("h3").text(&self.title))
            .child(Element::new("p").class("note").text(&self.note));
        let svg = self.drawing.svg().with("aria-label", &self.title);
        let figure = Element::new("figure").child(caption).child(svg);
        let entry = |Entry { classes, run, text }: Entry| {
            Element::new("span").child(swatch(&classes, run)).text(text)
        };
        let figure = match self.legend.is_empty() {
            true => figure,
            false => figure.child(
                Element::new("div").class("legend").children(self.legend.into_iter().map(entry)),
            ),
        };
        match self.found.as_deref() {
            None => figure,
            Some([]) => figure
                .child(Element::new("p").class("note").text("No node, PE or pair stands out.")),
            Some(sentences) => {
                let items = sentences.iter().map(|sentence| Element::new("li").text(sentence));
                figure.child(Element::new("ul").class("found").children(items))
            }
        }
    }

    /// A picture of its own, as the text of a file that needs no style sheet.
    pub fn picture(self) -> String {
        let width = self.drawing.width + 2.0 * MARGIN;
        let text = |y: f64, class: &str, text: &str| {
            let text = Element::new("text").class(class).text(text);
            text.with("x", px(MARGIN)).with("y", px(y))
        };
        let top = if self.note.is_empty() { TITLE + MARGIN } else { NOTE + MARGIN };
        let mut below = top + self.drawing.height + MARGIN;
        let mut parts = vec![text(TITLE, "title", &self.title)];
        parts.extend((!self.note.is_empty()).then(|| text(NOTE, "tick", &self.note)));
        let (inner_width, inner_height) = (self.drawing.width, self.drawing.height);
        parts.push(
            self.drawing
                .svg()
                .with("x", px(MARGIN))
                .with("y", px(top))
                .with("width", px(inner_width))
                .with("height", px(inner_height)),
        );
        let mut at = MARGIN;
        let has_legend = !self.legend.is_empty();
        for Entry { classes, run, text } in self.legend {
            let room = SWATCH + LETTER * text.chars().count() as f64;
            if at > MARGIN && at + room > width {
                (at, below) = (MARGIN, below + LEGEND_LINE);
            }
            parts.push(swatch(&classes, run).with("x", px(at)).with("y", px(below)));
            let text = Element::new("text").text(text);
            parts.push(text.with("x", px(at + 38.0)).with("y", px(below + 11.0)));
            at += room;
        }
        let height = if has_legend { below + LEGEND_LINE } else { below };
        let size = format!("0 0 {} {}", px(width), px(height));
        let back = Element::new("rect").class("card").with("width", "100%").with("height", "100%");
        let picture = Element::new("svg")
            .with("xmlns", "http://www.w3.org/2000/svg")
            .with("viewBox", size)
            .with("width", px(width))
            .with("height", px(height))
            .child(Element::new("title").text(&self.title))
            .child(back)
            .children(parts);
        concrete(&format!("{picture}\n"))
    }
}

/// Names of files for these figures: their titles without what files are not called, and numbers where titles are the same.
pub fn file_names(figures: &[Figure]) -> Vec<String> {
    let letter = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let mut names: Vec<String> = Vec::new();
    for Figure { title, .. } in figures {
        let spaced: String = title.chars().map(letter).collect();
        let name = spaced.split_whitespace().collect::<Vec<_>>().join("-");
        let numbered = (2..).map(|number| format!("{name}-{number}.svg"));
        let mut candidates = std::iter::once(format!("{name}.svg")).chain(numbered);
        names.extend(candidates.find(|candidate| !names.contains(candidate)));
    }
    names
}
