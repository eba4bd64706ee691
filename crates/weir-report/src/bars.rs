//! Bar charts: a value per row, with its target or limit as a line across the bar.

use crate::chart::{COLOURS, DrawError, failed};
use plotters::coord::Shift;
use plotters::prelude::*;

/// A bar chart. All bars share one scale, which includes zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bars {
    /// Title with the unit.
    pub title: String,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bar {
    /// The label at its left.
    pub label: String,
    /// The value.
    pub value: f64,
    /// The value as text, at the right.
    pub shown: String,
    /// A target or a limit.
    pub mark: Option<f64>,
    /// The ends of an interval around the value.
    pub range: Option<(f64, f64)>,
    /// Set for a bar in the colour of warnings.
    pub is_bad: bool,
}

/// Width of a chart, and of its labels, bars and values, in pixels.
const WIDTH: u32 = 1200;
const LABELS: i32 = 420;
const BARS: i32 = 560;
/// Heights of the title, of a row and of its bar.
const ABOVE: i32 = 30;
const ROW: i32 = 22;
const BAR: i32 = 14;
const TEXT: i32 = 13;
/// Letters of a label that fit.
const LETTERS: usize = 60;
/// Bars of a chart; more cannot be read.
const MOST: usize = 40;
const MARK: RGBColor = RGBColor(200, 30, 30);
const GOOD: RGBColor = COLOURS[0];
const BAD: RGBColor = COLOURS[5];
const LINE: RGBColor = RGBColor(60, 60, 60);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Returns charts below each other as one SVG.
pub(crate) fn svg(charts: &[Bars]) -> Result<String, DrawError> {
    let heights: Vec<u32> = charts.iter().map(Bars::height).collect();
    let mut svg = String::new();
    {
        let size = (WIDTH, heights.iter().sum::<u32>().max(1));
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut rest = root.clone();
        for (chart, height) in charts.iter().zip(heights) {
            let (own, below) = rest.split_vertically(height);
            chart.draw(&own)?;
            rest = below;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

impl Bars {
    fn height(&self) -> u32 {
        let rows = i32::try_from(self.bars.len().min(MOST)).unwrap_or(0);
        (ABOVE + rows * ROW + ROW / 2).unsigned_abs()
    }

    /// Returns the ends of the scale.
    fn ends(&self) -> (f64, f64) {
        let values = self.bars.iter().flat_map(|bar| {
            let (low, high) = bar.range.unwrap_or((bar.value, bar.value));
            [bar.value, low, high, bar.mark.unwrap_or(0.0)]
        });
        let finite = values.filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low < high { (low, high) } else { (0.0, 1.0) }
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let (low, high) = self.ends();
        let place = |value: f64| {
            let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
            #[expect(clippy::cast_possible_truncation, reason = "at most the width of a chart")]
            let offset = (share * f64::from(BARS)).round() as i32;
            LABELS + offset
        };
        let write = |text: &str, at: (i32, i32), size: i32| {
            let text = Text::new(text.to_owned(), at, ("sans-serif", size));
            area.draw(&text).map_err(failed)
        };
        let line = |from: (i32, i32), to: (i32, i32), style: ShapeStyle| {
            area.draw(&PathElement::new(vec![from, to], style)).map_err(failed)
        };
        let hidden = self.bars.len().saturating_sub(MOST);
        let title = match hidden {
            0 => self.title.clone(),
            more => format!("{} ({more} more in the table)", self.title),
        };
        write(&title, (0, 6), TEXT + 2)?;
        for (at, bar) in (0..).zip(self.bars.iter().take(MOST)) {
            let top = ABOVE + at * ROW;
            let middle = top + BAR / 2;
            write(&shortened(&bar.label), (0, top), TEXT)?;
            if bar.value.is_finite() {
                let colour = if bar.is_bad { BAD } else { GOOD };
                let corners = [(place(0.0), top), (place(bar.value), top + BAR)];
                area.draw(&Rectangle::new(corners, colour.filled())).map_err(failed)?;
            }
            if let Some((low, high)) = bar.range {
                line((place(low), middle), (place(high), middle), LINE.stroke_width(2))?;
            }
            if let Some(mark) = bar.mark {
                let at = place(mark);
                line((at, top - 3), (at, top + BAR + 3), MARK.stroke_width(2))?;
            }
            write(&bar.shown, (LABELS + BARS + 12, top), TEXT)?;
        }
        // Without bars there is no scale.
        if !self.bars.is_empty() {
            let (zero, end) =
                (place(0.0), ABOVE + i32::try_from(self.bars.len().min(MOST)).unwrap_or(0) * ROW);
            line((zero, ABOVE - 4), (zero, end), LINE.stroke_width(1))?;
        }
        Ok(())
    }
}

fn shortened(label: &str) -> String {
    match label.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64) -> Bar {
        Bar { label: label.to_owned(), value, shown: value.to_string(), ..Bar::default() }
    }

    /// Returns the left and right ends of the filled rectangles of a colour.
    fn ends(svg: &str, colour: &str) -> Vec<(i32, i32)> {
        let number = |line: &str, name: &str| {
            let rest = line.split_once(&format!("{name}=\"")).expect(name).1;
            rest.split('"').next().and_then(|n| n.parse().ok()).expect("a number")
        };
        let rects = svg.lines().filter(|line| line.starts_with("<rect") && line.contains(colour));
        let ends = rects.map(|line| (number(line, "x"), number(line, " width")));
        ends.map(|(left, width): (i32, i32)| (left, left + width)).collect()
    }

    #[test]
    fn bars_have_one_scale_and_marks_are_on_it() {
        let bars = vec![bar("<a>", 5.0), Bar { mark: Some(10.0), is_bad: true, ..bar("b", 2.5) }];
        let svg = svg(&[Bars { title: "IOPS".to_owned(), bars }]).expect("a picture");
        assert_eq!(ends(&svg, "#0072B2"), [(LABELS, LABELS + BARS / 2)]);
        assert_eq!(ends(&svg, "#D55E00"), [(LABELS, LABELS + BARS / 4)]);
        assert!(svg.contains(&format!("points=\"{0},49 {0},69 \"", LABELS + BARS)), "{svg}");
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"), "{svg}");
    }

    #[test]
    fn losses_go_to_the_left_of_zero() {
        let bars = vec![bar("less", -1.0), Bar { range: Some((0.5, 3.0)), ..bar("more", 1.0) }];
        let svg = svg(&[Bars { title: String::new(), bars }]).expect("a picture");
        let zero = LABELS + BARS / 4;
        assert_eq!(ends(&svg, "#0072B2"), [(LABELS, zero), (zero, LABELS + BARS / 2)]);
    }

    #[test]
    fn strange_values_are_drawn_as_nothing() {
        let chart = |bars| Bars { title: "x".to_owned(), bars };
        let all = [f64::NAN, f64::INFINITY, 0.0].map(|value| bar("x", value)).to_vec();
        let many = chart(vec![bar("many", 1.0); MOST + 3]);
        let svg = svg(&[chart(Vec::new()), chart(all), many]).expect("a picture");
        assert!(svg.contains("(3 more in the table)"), "{svg}");
        assert!(!svg.contains("NaN,") && !svg.contains("inf,"), "{svg}");
        let long = shortened(&"é".repeat(LETTERS + 1));
        assert_eq!(long.chars().count(), LETTERS + 1, "{long}");
    }
}
