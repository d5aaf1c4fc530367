//! Tests of whole pages, which an XML parser reads: they are well-formed and self-contained, and
//! contain the figures of the records.

use std::collections::HashSet;

use roxmltree::{Document, Node};

use super::figure::{Part, ReportSection};
use super::pictures;
use super::sections::sections;
use super::source::NamedRun;
use crate::fixture;
use crate::record::{Measure, PeInfo, Point, Record};
use crate::units;

/// Returns two runs that are difficult to show: with warnings, markup, long names and missing
/// values.
fn runs() -> Vec<NamedRun> {
    let mut before = fixture::run(1, 1.0);
    let word = "--operations=put,get,'all of them'";
    before.command.push(word.into());

    let mut after = fixture::run(2, 1.3);
    after.complete = false;
    after.warnings = vec![
        "The load of node-a01 was 3.2 before the run, with 64 CPUs; figures of <busy> machines & \
         others scatter."
            .into(),
        "SHMEM_CHECK is on, which slows every call down.".into(),
    ];
    after.settings[0].value = "ucx".into();
    after.library.name =
        "Another library of OpenSHMEM with quite a long name, built with debugging".into();

    let long = "after_the_change_with_a_file_name_that_is_longer_than_anybody_wants_to_read";
    vec![named("before-the-change", before), named(long, after)]
}

fn named(name: &str, record: Record) -> NamedRun {
    NamedRun {
        name: name.into(),
        record,
    }
}

fn page(runs: &[NamedRun]) -> String {
    super::page(runs, &sections(runs))
}

/// Parses the body of a page, or a picture, as XML and passes it to `check`.
fn parsed(text: &str, check: impl FnOnce(&Document)) {
    let body = text.split_once("</head>").map_or(text, |(_, body)| body);
    check(&Document::parse(body.trim_end().trim_end_matches("</html>")).expect("well-formed"));
}

fn all<'a>(document: &'a Document, tag: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document
        .descendants()
        .filter(move |node| node.has_tag_name(tag))
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let text = page(&runs());
    for address in ["http:", "https:", "url(", "@import", "src="] {
        assert_eq!(text.find(address), None, "{address}");
    }
    assert!(!text.contains("NaN") && !text.contains(">inf"));

    parsed(&text, |document| {
        let ids: Vec<&str> = document
            .descendants()
            .filter_map(|node| node.attribute("id"))
            .collect();
        let different: HashSet<&&str> = ids.iter().collect();
        assert_eq!(different.len(), ids.len(), "every id is there once");

        for link in all(document, "a").filter_map(|link| link.attribute("href")) {
            assert!(
                ids.contains(&link.trim_start_matches('#')),
                "{link} leads nowhere"
            );
        }
        let sections: Vec<&str> = all(document, "section")
            .filter_map(|section| section.attribute("id"))
            .collect();
        let expected = [
            "latency",
            "bandwidth",
            "rate",
            "overlap",
            "collectives",
            "events",
            "maps",
            "distributions",
        ];
        assert_eq!(sections, expected);

        let has_warning = all(document, "li")
            .flat_map(|item| item.descendants())
            .filter_map(|node| node.text())
            .any(|text| text.contains("<busy> machines & others"));
        assert!(has_warning);
    });
}

#[test]
fn the_pointer_finds_what_the_record_says() {
    let runs = runs();
    let text = page(&runs);
    parsed(&text, |document| {
        let maps: Vec<Node> = document
            .descendants()
            .filter(|node| node.attribute("data-values").is_some())
            .collect();
        let matrices: Vec<_> = runs.iter().flat_map(|run| &run.record.matrices).collect();
        assert_eq!(maps.len(), matrices.len());
        for (map, matrix) in maps.iter().zip(matrices) {
            let shown: Vec<&str> = map
                .attribute("data-values")
                .unwrap_or("")
                .split('|')
                .collect();
            let values = matrix.values.iter().flatten();
            let expected: Vec<String> = values
                .map(|v| v.map_or(String::new(), |v| units::figure(matrix.measure, v)))
                .collect();
            assert_eq!(shown, expected);
        }

        let tips: Vec<&str> = document
            .descendants()
            .filter_map(|node| node.attribute("data-tip"))
            .collect();
        let puts = |record: &Record| -> Vec<Point> {
            let mut series = record.series.iter();
            let put = series.find(|s| s.operation == "put" && s.measure == Measure::Latency);
            put.expect("puts").points.clone()
        };
        for (letter, run) in [("A", &runs[0]), ("B", &runs[1])] {
            for point in puts(&run.record) {
                let s = if point.nbytes == 1 { "" } else { "s" };
                let size = format!("{} byte{s} ", units::size(point.nbytes));
                let value = units::figure(Measure::Latency, point.summary.p50);
                let line = format!(" {letter} put: {value} (");
                assert!(
                    tips.iter()
                        .any(|tip| tip.starts_with(&size) && tip.contains(&line)),
                    "{size}{line}"
                );
            }
        }
    });
}

#[test]
fn every_figure_is_in_a_table() {
    let runs = vec![named("a", fixture::run(1, 1.0))];
    let series = runs[0].record.series.iter();
    let n_points: usize = series.map(|series| series.points.len()).sum();

    parsed(&page(&runs), |document| {
        let rows = all(document, "section").flat_map(|section| {
            section
                .descendants()
                .filter(|node| node.has_tag_name("tbody"))
        });
        let n_rows: usize = rows.map(|body| body.children().count()).sum();
        assert_eq!(n_rows, n_points);
    });
}

#[test]
fn runs_without_figures_have_a_page() {
    let empty = || named("nothing", fixture::empty());
    let text = page(&[empty(), empty()]);
    assert!(text.contains("Nothing was measured."));

    let mut hollow = fixture::run(1, 1.0);
    for series in &mut hollow.series {
        series.points.clear();
    }
    for matrix in &mut hollow.matrices {
        matrix.values.clear();
    }
    parsed(&page(&[named("hollow", hollow)]), |_| ());

    let mut floors = fixture::run(1, 1.0);
    floors.series.retain(|series| series.is_floor);
    parsed(&page(&[named("floors", floors)]), |document| {
        assert!(all(document, "figure").count() >= 2);
    });
}

#[test]
fn files_that_are_no_records_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let record = serde_json::to_string(&fixture::run(1, 1.0)).expect("a record");
    let empty = serde_json::to_string(&fixture::empty()).expect("a record");
    let of_later_format = record.replacen("\"format\":2", "\"format\":7", 1);
    let good = file("good.json", &record);
    let other = file("other.json", &empty);
    let newer = file("newer.json", &of_later_format);
    let torn = file("torn.json", &record[..record.len() / 2]);
    let text = file("text.json", "not a record");

    let html = dir.path().join("page.html").display().to_string();
    let report = |record: &str| super::run(&[record.into(), "-o".into(), html.clone()]);
    assert_eq!(report(&good), Ok(0));
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));

    for (name, says) in [
        (&newer, "of format 7"),
        (&torn, "no record"),
        (&text, "no record"),
        (&"absent.json".to_owned(), "cannot be read"),
    ] {
        let error = report(name).expect_err("no record");
        assert!(
            error.contains(name.as_str()) && error.contains(says),
            "{error}"
        );
        let error = crate::compare::run(&[good.clone(), name.clone()]).expect_err("no record");
        assert!(error.contains(name.as_str()), "{error}");
    }
    let refused = super::run(&[good.clone(), "-o".into(), dir.path().display().to_string()]);
    let error = refused.expect_err("a directory");
    assert!(error.contains("cannot be written"), "{error}");
    assert!(super::run(&[]).is_err());
    assert_eq!(super::run(&["--help".into()]), Ok(0));

    assert_eq!(crate::compare::run(&[good.clone(), good.clone()]), Ok(0));
    let error = crate::compare::run(&[good.clone(), other.clone()]).expect_err("nothing in common");
    assert!(
        error.contains(&good) && error.contains(&other) && error.contains("in common"),
        "{error}"
    );
    assert!(crate::compare::run(&[good.clone(), good, "--threshold=-3".into()]).is_err());
}

/// Writes pages of two runs, of 512 PEs and of 2, and charts, for people to look at:
/// `cargo test -p shmem-perf -- --ignored to_look_at`.
#[test]
#[ignore = "it is for eyes"]
fn a_page_to_look_at() {
    let dir = std::env::temp_dir();
    let write = |name: &str, runs: &[NamedRun]| {
        let path = dir.join(name);
        std::fs::write(&path, page(runs)).expect("written");
        println!("{}", path.display());
    };
    write("shmem-perf-two-runs.html", &runs());
    write("shmem-perf-large.html", &[named("large", large_run())]);
    write("shmem-perf-tiny.html", &[named("tiny", tiny_run())]);

    let dir = dir.join("shmem-perf-charts");
    std::fs::create_dir_all(&dir).expect("made");
    for picture in pictures(&sections(&runs())) {
        std::fs::write(dir.join(picture.file_name), picture.text).expect("written");
    }
}

/// Returns a run of 512 PEs, in whose matrices 32 PEs have the figures of one.
fn large_run() -> Record {
    const N_PES: usize = 512;
    let mut large = fixture::run(3, 1.0);
    large.job.pes.clear();
    for pe in 0..N_PES as u32 {
        large.job.pes.push(PeInfo {
            host: pe / 128,
            node: None,
            cpus: String::new(),
        });
    }

    for matrix in &mut large.matrices {
        let small = std::mem::take(&mut matrix.values);
        for from in 0..N_PES {
            let mut row = Vec::new();
            for to in 0..N_PES {
                row.push(if from == to {
                    None
                } else {
                    small[from / 32][to / 32].or(small[0][1])
                });
            }
            matrix.values.push(row);
        }
    }
    large
}

/// Returns a run of two PEs.
fn tiny_run() -> Record {
    let mut tiny = fixture::run(4, 1.0);
    tiny.job.pes.truncate(2);
    for matrix in &mut tiny.matrices {
        matrix.values.truncate(2);
        for row in &mut matrix.values {
            row.truncate(2);
        }
    }
    tiny
}

/// Checks that no text ends outside of its drawing, assuming the average width of letters.
fn nothing_is_clipped(document: &Document, title: &str) {
    for svg in all(document, "svg").filter(|svg| svg.attribute("role") == Some("img")) {
        let size = svg
            .attribute("viewBox")
            .and_then(|size| size.split(' ').nth(2)?.parse().ok());
        let width: f64 = size.expect("a width");
        let is_level = |node: &Node| node.attribute("transform").is_none();
        for text in svg
            .descendants()
            .filter(|node| node.has_tag_name("text") && is_level(node))
        {
            let words = text.text().unwrap_or_default();
            let length = 6.8 * words.chars().count() as f64;
            let x: f64 = text
                .attribute("x")
                .and_then(|x| x.parse().ok())
                .expect("a place");
            let from = match text.attribute("text-anchor") {
                Some("end") => x - length,
                Some("middle") => x - length / 2.0,
                _ => x,
            };
            assert!(from >= 0.0 && from + length <= width, "{title}: {words}");
        }
    }
}

#[test]
fn every_chart_is_a_picture_of_its_own() {
    let sections = sections(&runs());
    let pictures = pictures(&sections);
    let names: HashSet<&String> = pictures.iter().map(|one| &one.file_name).collect();
    assert!(
        pictures.len() > 8 && names.len() == pictures.len(),
        "{names:?}"
    );
    let parts = sections
        .iter()
        .flat_map(|section: &ReportSection| &section.body);
    for (figure, picture) in parts.flat_map(Part::figures).zip(&pictures) {
        let title = figure.title.clone();
        let n_entries = figure.legend.len();
        let text = &picture.text;
        for address in [
            "https:", "url(", "@import", "src=", "var(", "class=", "data-", "<style",
        ] {
            assert_eq!(text.find(address), None, "{address}");
        }
        parsed(text, |document| {
            nothing_is_clipped(document, &title);
            let mut texts = all(document, "text").filter_map(|text| text.text());
            assert_eq!(texts.next(), Some(title.as_str()));

            let is_swatch = |node: &Node| node.attribute("viewBox") == Some("0 0 32 14");
            let n_swatches = document.descendants().filter(is_swatch).count();
            assert_eq!(n_swatches, n_entries);

            let is_shape =
                |node: &Node| ["path", "rect", "circle", "text"].contains(&node.tag_name().name());
            for node in document.descendants().filter(is_shape) {
                let has = |name| node.attribute(name).is_some_and(|value| value != "none");
                assert!(
                    has("fill") || has("stroke"),
                    "{title}: {node:?} would be black"
                );
            }
            let size = document
                .root_element()
                .attribute("viewBox")
                .expect("a size");
            let numbers: Vec<f64> = size
                .split(' ')
                .map(|number| number.parse().expect("a number"))
                .collect();
            let [_, _, width, height] = numbers[..] else {
                panic!("{size}")
            };
            let position =
                |node: Node, name| node.attribute(name).and_then(|x| x.parse::<f64>().ok());
            for node in document.root_element().children() {
                assert!(position(node, "x").is_none_or(|x| x < width), "{title}");
                assert!(position(node, "y").is_none_or(|y| y < height), "{title}");
            }
        });
    }
}
