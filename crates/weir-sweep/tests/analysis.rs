//! Merges and sensitivities of results that a test makes up.

use weir_sweep::results::Results;
use weir_sweep::sensitivity::{Sensitivity, sensitivity};
use weir_sweep::{csv, merge};

/// Makes results of a function of two parameters, one row for each pair.
fn results(pairs: &[(f64, f64)], of: impl Fn(f64, f64) -> f64) -> Results {
    let mut text = String::from("sweep,points,point,seed,a,b,status,reason,iops\n");
    for (point, (a, b)) in pairs.iter().enumerate() {
        text += &format!("x,{},{point},1,{a},{b},ok,,{}\n", pairs.len(), of(*a, *b));
    }
    csv::read("made.csv", text.as_bytes()).expect("results")
}

fn grid() -> Vec<(f64, f64)> {
    let numbers = [0.0, 1.0, 2.0, 3.0];
    numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))).collect()
}

fn shares(found: &Sensitivity) -> Vec<(&str, f64)> {
    found.effects.iter().map(|own| (own.parameter.as_str(), own.share)).collect()
}

fn check(found: &Sensitivity, expect: &[(&str, f64)]) {
    let found = shares(found);
    let is_near = |((name, share), (other, expect)): (&(&str, f64), &(&str, f64))| {
        name == other && (share - expect).abs() < 1e-9
    };
    assert!(found.len() == expect.len() && found.iter().zip(expect).all(is_near), "{found:?}");
}

#[test]
fn the_shares_of_a_known_function_are_those_of_its_terms() {
    // The variances of a sum are those of its terms: 1 and 9 of 10.
    let sum = results(&grid(), |a, b| 100.0 + a + 3.0 * b);
    let found = sensitivity(&sum, "--of", "iops").expect("a metric");
    check(&found, &[("b", 0.9), ("a", 0.1)]);
    assert!(found.is_grid);
    let means: Vec<f64> = found.effects[0].groups.iter().map(|group| group.mean).collect();
    assert_eq!(means, [101.5, 104.5, 107.5, 110.5]);
    assert_eq!((found.lowest, found.highest), (100.0, 112.0));
    // A product of parameters with mean zero has no main effects.
    let product = results(&grid(), |a, b| (a - 1.5) * (b - 1.5));
    check(&sensitivity(&product, "--of", "iops").expect("a metric"), &[("a", 0.0), ("b", 0.0)]);
    let constant = results(&grid(), |_, _| 5.0);
    check(&sensitivity(&constant, "--of", "iops").expect("a metric"), &[("a", 0.0), ("b", 0.0)]);
}

#[test]
fn a_sample_is_grouped_and_its_chance_is_known() {
    // Every value occurs once; the second parameter is a permutation of the first.
    let pairs: Vec<(f64, f64)> =
        (0..200_u32).map(|n| (f64::from(n), f64::from(n * 77 % 200))).collect();
    let found = sensitivity(&results(&pairs, |a, _| 2.0 * a), "--of", "iops").expect("a metric");
    let [first, second] = &found.effects[..] else { panic!("two parameters") };
    assert!(!found.is_grid && first.parameter == "a" && first.groups.len() == 10, "{first:?}");
    // Ten groups of a line keep all but a hundredth of its variance.
    assert!((first.share - 0.99).abs() < 1e-3, "{first:?}");
    assert!(second.share < 0.1, "{second:?}");
    assert_eq!(second.by_chance.map(|share| (share * 199.0).round()), Some(9.0));
    assert_eq!(first.groups[0].to.as_deref(), Some("19"));
}

/// As many points as combinations, but not each of them once: the parameters cannot be told apart.
#[test]
fn a_sample_of_the_size_of_a_grid_is_none() {
    let pairs = [(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (2.0, 2.0)];
    let found = sensitivity(&results(&pairs, |a, _| a), "--of", "iops").expect("a metric");
    assert!(!found.is_grid && found.effects.iter().all(|own| own.by_chance.is_some()), "{found:?}");
}

#[test]
fn a_metric_without_numbers_is_an_error() {
    let made = results(&grid(), |a, _| a);
    let wrong = |name| sensitivity(&made, "--of", name).expect_err(name).to_string();
    assert!(
        wrong("a").starts_with("--of \"a\": this column is no metric with numbers"),
        "{}",
        wrong("a")
    );
    assert!(wrong("iop").ends_with("did you mean \"iops\"?"), "{}", wrong("iop"));
}

/// Divides results into shards, by the remainder of the point.
fn shards(whole: &Results, count: usize) -> Vec<(String, Results)> {
    let text = String::from_utf8(csv::write(whole)).expect("text");
    let mut lines = text.lines();
    let head = lines.next().expect("a header");
    let rows: Vec<&str> = lines.collect();
    let shard = |at: usize| {
        let own: Vec<&str> = rows.iter().skip(at).step_by(count).copied().collect();
        let text = format!("{head}\n{}\n", own.join("\n"));
        (format!("{at}.csv"), csv::read("a shard", text.as_bytes()).expect("results"))
    };
    (0..count).map(shard).collect()
}

#[test]
fn merged_shards_are_the_whole_in_any_order() {
    let whole = results(&grid(), |a, b| a / 3.0 + b * 1e9);
    let mut parts = shards(&whole, 3);
    parts.reverse();
    let merged = merge(parts).expect("a whole");
    assert_eq!(csv::write(&merged), csv::write(&whole));
    assert_eq!(merged, whole);
}

#[test]
fn shards_that_are_no_whole_are_refused() {
    let whole = results(&grid(), |a, b| a + b);
    let wrong = |parts| merge(parts).expect_err("no whole").to_string();
    let mut parts = shards(&whole, 3);
    let lost = parts.remove(1);
    assert_eq!(
        wrong(parts.clone()),
        "the shards cannot be merged: points 1, 4, 7, 10, 13 of 16 missing; add the shards that \
         have them"
    );
    parts.extend([lost.clone(), lost]);
    assert_eq!(
        wrong(parts),
        "the shards cannot be merged: there is twice: points 1, 4, 7, 10, 13 of both 1.csv and \
         1.csv; give each shard once"
    );
    let other = String::from_utf8(csv::write(&whole)).expect("text").replace("\nx,", "\ny,");
    let other = csv::read("y.csv", other.as_bytes()).expect("results");
    let both = vec![("x.csv".to_owned(), whole.clone()), ("y.csv".to_owned(), other)];
    assert!(wrong(both).contains("x.csv is of the sweep x, and y.csv of y"));
    let renamed = String::from_utf8(csv::write(&whole)).expect("text").replace(",a,b,", ",a,c,");
    let renamed = csv::read("c.csv", renamed.as_bytes()).expect("results");
    let both = vec![("x.csv".to_owned(), whole), ("c.csv".to_owned(), renamed)];
    assert!(wrong(both).contains("different columns"));
    assert!(merge(Vec::new()).is_err());
}

#[test]
fn files_that_are_no_results_are_refused() {
    let wrong = |text: &str| csv::read("x.csv", text.as_bytes()).expect_err("wrong").to_string();
    assert!(wrong("a,b\n1,2\n").contains("no results of weir sweep"));
    let head = "sweep,points,point,seed,a,status,reason,iops\n";
    assert!(wrong(head).contains("no rows"));
    assert!(wrong(&format!("{head}x,2,one,1,5,ok,,7\n")).contains("point = \"one\""));
    assert!(wrong(&format!("{head}x,2,0,1,5\n")).contains("no results of weir sweep in CSV"));
}
