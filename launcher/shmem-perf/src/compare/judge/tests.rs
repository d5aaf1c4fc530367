//! Comparisons of runs whose distributions are known, from fixed seeds.

use fastrand::Rng;

use super::*;
use crate::fixture;
use crate::record::{Measure, Shape};

/// Returns a run of 60 series of 5 sizes. All values are from one distribution; those of series `i`
/// are multiplied by `factor(i)`.
fn run(seed: u64, factor: impl Fn(usize) -> f64) -> Record {
    let rng = &mut Rng::with_seed(seed);
    let mut series = Vec::new();
    for i in 0..60 {
        let operation = format!("routine{i}");
        let shape = fixture::pair("one", 2);
        let medians = (0..5).map(|size| (8 << size, 1000.0 * factor(i)));
        series.push(fixture::series(
            rng,
            Measure::Latency,
            &operation,
            shape,
            medians,
        ));
    }
    Record {
        series,
        ..fixture::empty()
    }
}

/// Compares one run with one other.
fn judged<'a>(before: &'a Record, after: &'a Record, threshold: f64) -> Comparison<'a> {
    judge(
        std::slice::from_ref(before),
        std::slice::from_ref(after),
        threshold,
    )
    .expect("one and one")
}

fn count(found: &Comparison, verdict: Change) -> usize {
    found
        .compared
        .iter()
        .filter(|one| one.verdict == verdict)
        .count()
}

#[test]
fn equal_distributions_raise_few_alarms() {
    // There is no threshold, so only the statistical test prevents false alarms. One in twenty
    // comparisons of 300 figures may raise one; 2 of 10 are allowed here.
    let mut alarms = 0;
    for seed in 0..10 {
        let before = run(2 * seed, |_| 1.0);
        let after = run(2 * seed + 1, |_| 1.0);
        let found = judged(&before, &after, 0.0);
        assert_eq!(found.compared.len(), 300);
        if count(&found, Change::Equal) < 300 {
            alarms += 1;
        }
    }
    assert!(
        alarms <= 2,
        "{alarms} of 10 comparisons of the same found something"
    );

    let found = judged(&run(1, |_| 1.0), &run(2, |_| 1.0), 0.05).is_slower();
    assert!(!found, "noise of a percent is below the threshold");
}

#[test]
fn a_shift_of_a_fifth_is_found_and_nothing_else() {
    let before = run(1, |_| 1.0);
    let after = run(2, |i| if i == 7 { 1.2 } else { 1.0 });
    let found = judged(&before, &after, 0.05);
    assert!(found.is_slower());
    assert_eq!(count(&found, Change::Slower), 5);
    for one in &found.compared {
        if one.verdict == Change::Slower {
            assert_eq!(one.series.operation, "routine7");
            assert!((one.ratio - 1.2).abs() < 0.03, "{}", one.ratio);
        }
    }

    let back = judged(&after, &before, 0.05);
    assert!(!back.is_slower());
    assert_eq!(count(&back, Change::Faster), 5);
    assert!(
        !judged(&before, &after, 0.3).is_slower(),
        "it is below this threshold"
    );
}

#[test]
fn the_order_of_series_and_points_does_not_matter() {
    let before = run(1, |_| 1.0);
    let after = run(2, |i| if i % 9 == 0 { 1.2 } else { 1.0 });
    let mut turned = after.clone();
    turned.series.reverse();
    for series in &mut turned.series {
        series.points.reverse();
    }

    let verdicts = |after: &Record| -> Vec<_> {
        let found = judged(&before, after, 0.05);
        found
            .compared
            .iter()
            .map(|one| (one.verdict, one.p.to_bits(), one.ratio.to_bits()))
            .collect()
    };
    assert_eq!(verdicts(&after), verdicts(&turned));
}

#[test]
fn what_one_run_lacks_is_named_and_not_compared() {
    let before = run(1, |_| 1.0);
    let mut after = run(2, |_| 1.0);
    after.series.remove(3);
    after.series[0].points.remove(0);
    after.series[1].shape = Shape {
        threads: 4,
        ..after.series[1].shape.clone()
    };
    let found = judged(&before, &after, 0.05);
    assert_eq!(found.compared.len(), 300 - 5 - 1 - 5);
    let names = |alone: &[Alone]| -> Vec<(String, Vec<u64>)> {
        alone
            .iter()
            .map(|one| (one.series.operation.clone(), one.sizes.clone()))
            .collect()
    };
    let whole = |name: &str| (name.to_owned(), Vec::new());
    let first_size = ("routine0".to_owned(), vec![8]);
    assert_eq!(
        names(&found.alone_before),
        [first_size.clone(), whole("routine1"), whole("routine3")]
    );
    assert_eq!(names(&found.alone_after), [whole("routine1")]);
    let back = judged(&after, &before, 0.05);
    assert!(names(&back.alone_after).contains(&first_size));
}

#[test]
fn rates_and_overlap_are_slower_when_they_fall() {
    let rng = &mut Rng::with_seed(3);
    for (measure, high, low) in [
        (Measure::Bandwidth, 1e10, 8e9),
        (Measure::Overlap, 90.0, 60.0),
    ] {
        let mut record = |value| {
            let shape = fixture::pair("one", 2);
            let series = fixture::series(rng, measure, "put", shape, [(8, value)]);
            Record {
                series: vec![series],
                ..fixture::empty()
            }
        };
        let good = record(high);
        let bad = record(low);
        assert!(judged(&good, &bad, 0.05).is_slower(), "{measure:?}");
        assert!(!judged(&bad, &good, 0.05).is_slower(), "{measure:?}");
    }
}

#[test]
fn floors_decide_nothing() {
    let floors = |seed, factor| {
        let mut run = run(seed, |_| factor);
        for series in &mut run.series {
            series.is_floor = true;
        }
        run
    };
    let before = floors(1, 1.0);
    let after = floors(2, 1.5);
    let found = judged(&before, &after, 0.05);
    assert_eq!(count(&found, Change::Slower), 300);
    assert!(!found.is_slower());
}

#[test]
fn few_batches_and_figures_of_zero_have_an_answer() {
    let record = |values: Vec<f64>, n_batches: usize| {
        let mut run = fixture::empty();
        let rng = &mut Rng::with_seed(1);
        let mut series = fixture::series(rng, Measure::Latency, "put", Shape::default(), []);
        let mut point = fixture::point(8, values);
        point.summary.batches.truncate(n_batches);
        series.points = vec![point];
        run.series = vec![series];
        run
    };
    let verdict = |before: &Record, after: &Record| judged(before, after, 0.05).compared[0].verdict;
    let two_of_ten = record(vec![10.0; 20], 2);
    let two_of_twenty = record(vec![20.0; 20], 2);
    assert_eq!(verdict(&two_of_ten, &two_of_twenty), Change::TooFew);

    let ten = record(vec![10.0; 20], 20);
    let zero = record(vec![0.0; 20], 20);
    assert_eq!(verdict(&record(Vec::new(), 0), &ten), Change::TooFew);
    assert_eq!(verdict(&zero, &zero), Change::Equal);
    assert_eq!(verdict(&zero, &ten), Change::Slower);
    assert_eq!(verdict(&ten, &zero), Change::Faster);
    assert_eq!(verdict(&ten, &ten), Change::Equal);
}

/// Returns runs whose figures differ between runs by a factor of up to 1 + `spread`, although the
/// batches of a run agree, as with another placement of pages or another load.
fn scattered(
    seeds: std::ops::Range<u64>,
    spread: f64,
    factor: impl Fn(usize) -> f64,
) -> Vec<Record> {
    let mut runs = Vec::new();
    for seed in seeds {
        let rng = &mut Rng::with_seed(1000 + seed);
        let shifts: Vec<f64> = (0..60).map(|_| 1.0 + spread * rng.f64()).collect();
        runs.push(run(seed, |i| shifts[i] * factor(i)));
    }
    runs
}

#[test]
fn what_differs_between_runs_of_the_same_is_noise_to_several() {
    let before = scattered(0..8, 0.5, |_| 1.0);
    let after = scattered(8..16, 0.5, |_| 1.0);
    // The batches of one run do not show how runs differ.
    assert!(judged(&before[0], &after[0], 0.05).is_slower());
    let found = judge(&before, &after, 0.05).expect("they are enough");
    assert_eq!(found.basis, Basis::Runs);
    assert_eq!(found.compared.len(), 300);
    assert_eq!(count(&found, Change::Equal), 300);
}

#[test]
fn several_runs_find_a_figure_that_is_slower() {
    let slow = |i| if i == 7 { 1.4 } else { 1.0 };
    let before = scattered(0..8, 0.1, |_| 1.0);
    let after = scattered(8..16, 0.1, slow);
    let found = judge(&before, &after, 0.05).expect("they are enough");
    assert!(found.is_slower());
    let mut slower = found.compared;
    slower.retain(|one| one.verdict == Change::Slower);
    let slower: Vec<&str> = slower
        .iter()
        .map(|one| one.series.operation.as_str())
        .collect();
    assert_eq!(slower, ["routine7"; 5]);

    // Four runs of each side find a difference only if all figures have it.
    let found = judge(&before[..4], &after[..4], 0.05).expect("they are enough");
    assert!(!found.is_slower());
    let all_slow = scattered(8..12, 0.1, |_| 1.4);
    let found = judge(&before[..4], &all_slow, 0.05).expect("they are enough");
    assert_eq!(count(&found, Change::Slower), 300);
}

#[test]
fn too_few_runs_are_refused() {
    let runs = |n: usize| vec![run(1, |_| 1.0); n];
    for (a, b, is_enough) in [
        (1, 1, true),
        (1, 2, false),
        (3, 3, false),
        (3, 5, true),
        (4, 4, true),
    ] {
        assert_eq!(
            judge(&runs(a), &runs(b), 0.05).is_ok(),
            is_enough,
            "{a} and {b}"
        );
    }
    assert_eq!([1, 100].map(runs_to_find_one_of), [4, 8]);
}

#[test]
fn a_figure_that_few_runs_have_is_not_judged() {
    let mut before = scattered(0..4, 0.0, |_| 1.0);
    let after = scattered(4..8, 0.0, |_| 2.0);
    before[0].series.remove(0);
    let found = judge(&before, &after, 0.05).expect("they are enough");
    assert_eq!(found.compared.len(), 300);
    assert_eq!(count(&found, Change::TooFew), 5);
    assert_eq!(count(&found, Change::Slower), 295);
}
