//! Unit tests of `table`.

use super::*;

fn around(median: f64) -> Spread {
    Spread { low: median * 0.9, median, high: median * 1.1 }
}

fn row(unit: Unit, aims: &[Aim]) -> SuiteRow {
    SuiteRow { name: "it", title: "it", unit, bare: Some("bare_it"), aims: aims.to_vec() }
}

#[test]
fn an_aim_below_one_is_not_met_by_being_equal() {
    let put = row(Unit::Time, &[Aim::OfTheirs(0.3)]);
    let theirs = around(10.0);
    assert_eq!(verdict(&put, &around(3.0), &theirs, None), "met");
    assert_eq!(verdict(&put, &around(10.0), &theirs, None), "missed");
}

#[test]
fn equal_is_enough_where_as_much_as_theirs_is_allowed() {
    let large = row(Unit::Time, &[Aim::OfTheirs(1.1)]);
    let theirs = around(10.0);
    assert_eq!(verdict(&large, &around(11.5), &theirs, None), "met");
    assert_eq!(verdict(&large, &around(13.0), &theirs, None), "missed");
}

#[test]
fn the_bare_loop_counts_where_the_aim_names_it() {
    let pingpong = row(Unit::Time, &[Aim::OfTheirs(1.1), Aim::OfBare(1.1)]);
    let ours = around(10.0);
    let theirs = around(20.0);
    assert_eq!(verdict(&pingpong, &ours, &theirs, Some(&around(10.0))), "met");
    assert_eq!(verdict(&pingpong, &ours, &theirs, Some(&around(5.0))), "missed");
    assert_eq!(aims(&pingpong), "<= 1.1 theirs, <= 1.1 bare");
}

#[test]
fn of_a_rate_more_is_better() {
    let rate = row(Unit::Rate("M/s"), &[Aim::OfTheirs(10.0)]);
    let theirs = around(0.2);
    assert_eq!(verdict(&rate, &around(2.1), &theirs, None), "met");
    assert_eq!(verdict(&rate, &around(1.9), &theirs, None), "missed");
    assert_eq!(verdict(&rate, &around(0.2), &theirs, None), "missed");
    assert_eq!(aims(&rate), ">= 10 theirs");
    let half = row(Unit::Rate("M/s"), &[Aim::OfTheirs(1.0)]);
    assert_eq!(verdict(&half, &around(0.19), &theirs, None), "met");
}

#[test]
fn a_percentage_is_judged_by_itself_and_never_divided() {
    let cost = row(Unit::Percent, &[Aim::Below(2.0)]);
    let theirs = around(0.1);
    assert_eq!(verdict(&cost, &around(1.9), &theirs, None), "met");
    assert_eq!(verdict(&cost, &around(2.0), &theirs, None), "missed");
    assert_eq!(aims(&cost), "< 2");
    assert_eq!(Unit::Percent.compared(&around(1.9), &theirs), "");
    assert_eq!(Unit::Percent.compared(&theirs, &theirs), "(equal)");
}

#[test]
fn a_row_without_an_aim_has_no_verdict() {
    let none = row(Unit::Time, &[]);
    assert_eq!(verdict(&none, &around(1.0), &around(2.0), None), "");
}

#[test]
fn a_spread_is_shown_in_a_unit_that_fits() {
    assert_eq!(Unit::Time.shown(&around(2.0)), "2.0 (1.8-2.2) ns");
    assert_eq!(Unit::Time.shown(&around(106.0)), "0.106 (0.095-0.117) us");
    assert_eq!(Unit::Time.shown(&around(20_000.0)), "20.0 (18.0-22.0) us");
    assert_eq!(Unit::Time.shown(&around(35e6)), "35.0 (31.5-38.5) ms");
    assert_eq!(Unit::Rate("M/s").shown(&around(0.17)), "0.170 (0.153-0.187) M/s");
    let noise = Spread { low: -0.25, median: 0.5, high: 1.5 };
    assert_eq!(Unit::Percent.shown(&noise), "0.500 (-0.250 to 1.5) %");
}

#[test]
fn a_row_that_one_did_not_measure_says_so() {
    let rows = [row(Unit::Time, &[Aim::OfTheirs(0.5)])];
    let ours = HashMap::from([("it", around(10.0)), ("bare_it", around(5.0))]);
    let both = of(&rows, "floor", &ours, &HashMap::from([("it", around(100.0))]));
    assert!(both.contains("| floor |") && both.ends_with("| <= 0.5 theirs | met |\n"), "{both}");
    assert!(of(&rows, "floor", &ours, &HashMap::new()).contains("| it | not measured |"));
}
