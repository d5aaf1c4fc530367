//! A part of the page under a heading of its own, and the pieces of which it consists.
//!
//! This file must never know which sections there are.

use super::figure::Figure;
use super::markup::Element;

/// A part of the page.
pub struct Section {
    /// What links to it.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its charts and tables.
    pub body: Vec<Part>,
}

/// A piece of a section.
pub enum Part {
    /// Words or a table.
    Text(Element),
    /// Figures beside each other.
    Figures(Vec<Figure>),
    /// The same of small ones.
    SmallFigures(Vec<Figure>),
}

impl Part {
    /// It as a part of the page.
    pub fn element(self) -> Element {
        let (classes, figures) = match self {
            Part::Text(text) => return text,
            Part::Figures(figures) => ("charts", figures),
            Part::SmallFigures(figures) => ("charts small", figures),
        };
        Element::new("div").class(classes).children(figures.into_iter().map(Figure::part))
    }

    /// The figures in it.
    pub fn figures(self) -> Vec<Figure> {
        match self {
            Part::Text(_) => Vec::new(),
            Part::Figures(figures) | Part::SmallFigures(figures) => figures,
        }
    }
}
