use super::*;
use crate::Format;

const BOTH: Asked = Asked { virtual_time: true, wall: true };
const VIRTUAL: Asked = Asked { virtual_time: true, wall: false };

fn number(x: f64) -> Option<Value> {
    Some(Value::Number(x))
}

fn figure(compare: Compare, measured: [Option<f64>; 2]) -> Figure {
    Figure {
        id: "iops".into(),
        unit: "IOPS".into(),
        published: number(1_000.0),
        expected: Value::Number(1_000.0),
        place: "text".into(),
        virtual_time: measured[0].map(Value::Number),
        wall: measured[1].map(Value::Number),
        compare,
        tolerance: Tolerance::Relative { virtual_time: 0.02, wall: 0.03 },
        basis: Basis::Cap,
        verdict: Verdict::NotRun,
        explained: None,
        explained_miss: false,
        class: None,
        note: None,
    }
}

fn judged(compare: Compare, measured: [Option<f64>; 2], asked: Asked) -> Figure {
    figure(compare, measured).judge(asked)
}

#[test]
fn a_figure_holds_within_its_tolerance_only() {
    let check = |compare, virtual_time: f64, wall: f64, expect| {
        let figure = judged(compare, [Some(virtual_time), Some(wall)], BOTH);
        assert_eq!(figure.verdict, expect);
    };
    check(Compare::Equal, 1_020.0, 970.0, Verdict::Holds);
    check(Compare::Equal, 1_021.0, 970.0, Verdict::MissesVirtual);
    check(Compare::Equal, 1_000.0, 1_031.0, Verdict::MissesWall);
    check(Compare::AtLeast, 5_000.0, 5_000.0, Verdict::Holds);
    check(Compare::AtLeast, 979.0, 969.0, Verdict::MissesBoth);
    check(Compare::AtMost, 1_021.0, 1.0, Verdict::MissesVirtual);
}

#[test]
fn shares_are_off_by_points_and_latencies_by_a_factor() {
    let check = |tolerance, expected: f64, got: f64, expect, difference: &str, allowed: &str| {
        let expected = Value::Number(expected);
        let (published, virtual_time) = (None, number(got));
        let figure = figure(Compare::Equal, [None, None]);
        let figure = Figure { tolerance, expected, published, virtual_time, ..figure };
        let figure = figure.judge(VIRTUAL);
        assert_eq!(figure.verdict, expect);
        let row = figure.row(&lab("a", vec![]));
        assert_eq!(
            (row[7].to_string().as_str(), row[10].to_string().as_str()),
            (difference, allowed)
        );
    };
    let points = Tolerance::Points { points: 15.0 };
    check(points, 21.0, 36.0, Verdict::Holds, "+15.0", "+/- 15");
    check(points, 21.0, 5.9, Verdict::MissesVirtual, "-15.1", "+/- 15");
    check(points, 0.0, 4.0, Verdict::Holds, "+4.0", "+/- 15");
    let factor = Tolerance::Factor { factor: 2.0 };
    check(factor, 132.0, 66.0, Verdict::Holds, "x 0.50", "x 2");
    check(factor, 132.0, 265.0, Verdict::MissesVirtual, "x 2.01", "x 2");
    check(factor, 132.0, 65.0, Verdict::MissesVirtual, "x 0.49", "x 2");
}

#[test]
fn names_are_equal_or_are_not() {
    let check = |got: &str, expect| {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let figure = figure(Compare::Equal, [None, None]);
        let expected = Value::Text("WRITELOG".into());
        let figure = Figure { expected, published: None, virtual_time: text(got), ..figure };
        let figure = figure.judge(VIRTUAL);
        let row = figure.row(&lab("a", vec![]));
        let shown = [4, 5, 7, 10].map(|at: usize| row[at].to_string());
        assert_eq!((figure.verdict, shown), (expect, ["WRITELOG", got, "", "-"].map(Into::into)));
    };
    check("WRITELOG", Verdict::Holds);
    check("PAGEIOLATCH", Verdict::MissesVirtual);
}

#[test]
fn a_clock_that_gives_no_number_is_told_from_one_that_cannot() {
    let check = |measured, asked, expect| {
        assert_eq!(judged(Compare::Equal, measured, asked).verdict, expect);
    };
    let (good, bad) = (Some(1_000.0), Some(1.0));
    check([good, None], BOTH, Verdict::NotMeasured);
    check([None, good], BOTH, Verdict::NotMeasured);
    check([None, None], BOTH, Verdict::NotMeasured);
    check([good, Some(f64::NAN)], BOTH, Verdict::NotMeasured);
    check([bad, None], BOTH, Verdict::MissesVirtual);
    check([good, None], VIRTUAL, Verdict::Holds);
    check([None, None], Asked { virtual_time: false, wall: false }, Verdict::NotRun);
}

fn lab(name: &str, figures: Vec<Figure>) -> LabReport {
    let (lab, title, article) = (name.to_owned(), "what it shows".into(), "003".into());
    LabReport { lab, title, article, figures, tries: 2, notes: vec!["wall: scaled".into()] }
}

#[test]
fn unmeasured_figures_do_not_hold() {
    let holds = |measured, asked| {
        LabReports(vec![lab("a", vec![judged(Compare::Equal, measured, asked)])]).hold()
    };
    assert!(holds([Some(1_000.0), None], VIRTUAL));
    assert!(!holds([Some(1_000.0), None], BOTH));
}

fn explained(compare: Compare, gives: f64, measured: [Option<f64>; 2], asked: Asked) -> Figure {
    let explained = Some(Explained { gives: Value::Number(gives), why: "no locks".into() });
    Figure { explained, ..figure(compare, measured) }.judge(asked)
}

/// An explanation pins the value: a miss that moves, to either side, is a new one.
#[test]
fn an_explanation_covers_what_it_knows_of_and_no_more() {
    let check = |compare, gives: f64, got: f64, expect: &str, note: &str| {
        let figure = explained(compare, gives, [Some(got), None], VIRTUAL);
        assert_eq!(figure.verdict_in_words(), expect);
        assert_eq!(figure.notes().collect::<Vec<_>>(), [format!("iops: {note}")]);
        assert_eq!(figure.passes(), !expect.ends_with("(virtual)"));
    };
    let (misses, covered) = ("MISSES (virtual)", "MISSES (virtual), explained");
    let (known, further) = (
        "explained miss: no locks",
        "not within 2 % (3 % in wall time) of the explained value 800: no locks",
    );
    check(Compare::Equal, 800.0, 800.0, covered, known);
    check(Compare::Equal, 800.0, 784.0, covered, known);
    check(Compare::Equal, 800.0, 816.0, covered, known);
    check(Compare::Equal, 800.0, 817.0, misses, further);
    check(Compare::Equal, 800.0, 900.0, misses, further);
    check(Compare::Equal, 800.0, 783.0, misses, further);
    check(Compare::Equal, 800.0, 1_100.0, misses, further);
    check(
        Compare::Equal,
        800.0,
        990.0,
        "holds",
        "it holds, so the explanation can be removed: no \
                                                  locks",
    );
    check(Compare::AtLeast, 800.0, 783.0, misses, further);
    check(Compare::AtMost, 1_200.0, 1_224.0, covered, known);
}

#[test]
fn an_explanation_covers_both_clocks_or_none() {
    let check = |wall, expect| {
        let figure = explained(Compare::Equal, 800.0, [Some(800.0), wall], BOTH);
        assert_eq!((figure.verdict, figure.explained_miss), expect);
    };
    check(Some(810.0), (Verdict::MissesBoth, true));
    check(Some(1_000.0), (Verdict::MissesVirtual, true));
    check(Some(700.0), (Verdict::MissesBoth, false));
    // It says nothing of what was not measured.
    check(None, (Verdict::MissesVirtual, false));
}

#[test]
fn explained_misses_are_counted() {
    let miss = || explained(Compare::Equal, 800.0, [Some(800.0), None], VIRTUAL);
    let good = judged(Compare::Equal, [Some(1_000.0), None], VIRTUAL);
    let check = |figures: Vec<Figure>, hold, expect: &str| {
        let reports = LabReports(vec![lab("a", figures)]);
        assert_eq!((reports.hold(), ByLab(&reports.0).summary().as_str()), (hold, expect));
    };
    check(vec![good.clone(), miss()], true, "1 of 2 figures hold, 1 explained miss");
    check(vec![miss(), good, miss()], true, "1 of 3 figures hold, 2 explained misses");
    let bad = judged(Compare::Equal, [Some(800.0), None], VIRTUAL);
    check(vec![bad, miss()], false, "0 of 2 figures hold, 1 explained miss");
}

fn two() -> LabReports {
    let figure = |compare, wall| judged(compare, [Some(1_010.0), wall], BOTH);
    let first = lab("a", vec![figure(Compare::AtLeast, Some(995.0))]);
    LabReports(vec![first, lab("b", vec![figure(Compare::Equal, None)])])
}

#[test]
fn csv_is_one_table_with_every_column() {
    let head = "lab,figure,published,compare,expected,virtual,wall,virtual_difference,\
                wall_difference,tolerance,unit,basis,verdict,tries\n";
    let a = "a,iops,1000,>=,1000,1010,995,0.01,-0.005,2 / 3 %,\
             IOPS,cap,holds,2\n";
    let b = "b,iops,1000,=,1000,1010,,0.01,,2 / 3 %,IOPS,cap,not measured,2\n";
    let reports = two();
    assert_eq!(reports.render(Format::Csv), format!("{head}{a}{b}"));
    let one = LabReports(reports.0[..1].to_vec());
    assert_eq!(one.render(Format::Csv), format!("{head}{a}"));
}

#[test]
fn people_read_a_table_for_each_lab() {
    let markdown = two().render(Format::Markdown);
    assert!(markdown.starts_with("**1 of 2 figures hold**\n\n**a: "), "{markdown}");
    let b = "**b: what it shows (article 003)**\n\n\
        | figure | published | expected | virtual | wall | difference | tolerance | unit | basis | verdict      |\n\
        |--------|-----------|----------|---------|------|------------|-----------|------|-------|--------------|\n\
        | iops   |     1,000 |    1,000 |   1,010 |    - |     +1.0 % |   2 / 3 % | IOPS | cap   | not measured |\n\
        \nwall: scaled\n";
    assert!(markdown.ends_with(b), "{markdown}");
    assert!(markdown.contains("| >= 1,000 |"), "{markdown}");
    let text = two().render(Format::Text);
    assert!(text.starts_with("1 of 2 figures hold\n\na: "), "{text}");
    let page = two().page().html("now");
    assert!(page.contains("<h1>1 of 2 figures hold</h1>\n<h2>a: "), "{page}");
    assert!(text.contains("+1.0 % / -0.5 %"), "{text}");
}

#[test]
fn json_is_a_list_of_labs() {
    let json: serde_json::Value = serde_json::from_str(&two().render(Format::Json)).expect("JSON");
    let figure = &json[1]["figures"][0];
    assert_eq!(json[1]["tries"], 2);
    assert_eq!(figure["verdict"], "not-measured");
    assert_eq!((&figure["published"], &figure["wall"]), (&1_000.0.into(), &().into()));
    assert_eq!(figure["tolerance"]["wall"], 0.03);
    for key in ["id", "virtual", "basis", "explained", "explained_miss"] {
        assert!(figure.get(key).is_some(), "{key}");
    }
}
