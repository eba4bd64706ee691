//! Charts over time: lines or stacked areas, with limits.
//!
//! Rows of charts are drawn as one SVG without external fonts or files.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Debug;

/// A chart over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// Title with the unit.
    pub title: String,
    /// Lines in drawing order.
    pub lines: Vec<Line>,
    /// Set for stacked areas.
    pub is_stacked: bool,
    /// A limit. It is not drawn if it is far above the data.
    pub limit: Option<f64>,
    /// The limit while burst credits last, drawn likewise.
    pub burst: Option<f64>,
}

/// A line over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// Name.
    pub name: String,
    /// Seconds and value; `None` is a gap.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A failure of the plotting library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("drawing failed: {0}")]
pub struct DrawError(String);

/// Colours that are distinct on white, also with colour blindness (Okabe and Ito 2008).
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(120, 120, 120),
];
const LIMIT: RGBColor = RGBColor(200, 30, 30);
/// Size of a row and of text, in pixels.
const ROW: (u32, u32) = (1200, 230);
const TEXT: i32 = 13;
/// Space above a chart for title and legend, and at its left for the scale.
const ABOVE: i32 = 40;
const LEFT: i32 = 58;
/// Limits above this multiple of the data are not drawn.
const FAR: f64 = 10.0;

/// Returns rows of charts as one SVG.
///
/// # Errors
///
/// [`DrawError`] if a chart cannot be drawn.
pub fn svg(rows: &[Vec<Chart>]) -> Result<String, DrawError> {
    let mut svg = String::new();
    let height = ROW.1 * u32::try_from(rows.len().max(1)).unwrap_or(1);
    {
        let root = SVGBackend::with_string(&mut svg, (ROW.0, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        for (area, charts) in root.split_evenly((rows.len().max(1), 1)).iter().zip(rows) {
            for (area, chart) in area.split_evenly((1, charts.len().max(1))).iter().zip(charts) {
                chart.draw(area)?;
            }
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

pub(crate) fn failed(error: impl Debug) -> DrawError {
    DrawError(format!("{error:?}"))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Chart {
    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let stacks = self.stacks();
        let values = || stacks.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y);
        let largest = values().fold(0.0, f64::max);
        let is_near = |limit: &f64| *limit <= largest * FAR;
        let limits = [self.limit.filter(is_near), self.burst.filter(is_near)];
        let top =
            limits.into_iter().flatten().fold(largest.max(f64::MIN_POSITIVE), f64::max) * 1.08;
        let seconds = stacks.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
        let end = seconds.fold(0.0, f64::max).max(1e-9);
        let (unit, per) = unit_of(end);
        let (above, area) = area.split_vertically(ABOVE);
        self.head(&above, limits)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .x_label_area_size(22)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..end / per, 0.0..top)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(8)
            .y_labels(5)
            .label_style(("sans-serif", TEXT - 1))
            .x_label_formatter(&|x| format!("{} {unit}", short(*x)))
            .y_label_formatter(&|y| short(*y))
            .draw()
            .map_err(failed)?;
        // The highest first, so that each covers what is above the one below.
        for (at, line) in stacks.iter().enumerate().rev() {
            let colour = COLOURS[at % COLOURS.len()];
            for points in parts(&line.points, per) {
                let drawn = if self.is_stacked {
                    chart.draw_series(AreaSeries::new(points, 0.0, colour.filled()))
                } else {
                    chart.draw_series(LineSeries::new(points, colour.stroke_width(1)))
                };
                drawn.map_err(failed)?;
            }
        }
        for limit in limits.into_iter().flatten() {
            let ends = [(0.0, limit), (end / per, limit)];
            let line = DashedLineSeries::new(ends, 6, 4, LIMIT.stroke_width(1));
            chart.draw_series(line).map_err(failed)?;
        }
        Ok(())
    }

    /// Draws the title with the limits, and a legend unless there is one plain line.
    fn head(&self, area: &Area<'_>, shown: [Option<f64>; 2]) -> Result<(), DrawError> {
        let all = [("limit", self.limit, shown[0]), ("burst limit", self.burst, shown[1])];
        let words = all.into_iter().filter_map(|(name, limit, shown)| {
            let hidden = if shown.is_none() { ", not shown" } else { "" };
            Some(format!("{name} {}{hidden}", short(limit?)))
        });
        let words: Vec<String> = words.collect();
        let title = match words.is_empty() {
            true => self.title.clone(),
            false => format!("{} ({})", self.title, words.join("; ")),
        };
        let write = |text: &str, at: (i32, i32), size: i32| {
            let text = Text::new(text.to_owned(), at, ("sans-serif", size));
            area.draw(&text).map_err(failed)
        };
        write(&title, (LEFT, 6), TEXT + 2)?;
        let mut left = LEFT;
        let has_legend = self.is_stacked || self.lines.len() > 1;
        for (line, colour) in self.lines.iter().zip(COLOURS).filter(|_| has_legend) {
            let square = Rectangle::new([(left, 27), (left + 10, 37)], colour.filled());
            area.draw(&square).map_err(failed)?;
            write(&line.name, (left + 14, 26), TEXT - 2)?;
            // The width of letters is estimated, since no font is available.
            left += 24 + i32::try_from(line.name.chars().count()).unwrap_or(0) * 7;
        }
        Ok(())
    }

    /// Returns the lines, stacked if the chart is.
    fn stacks(&self) -> Vec<Line> {
        let mut lines = self.lines.clone();
        if self.is_stacked {
            for at in 1..lines.len() {
                let (below, above) = lines.split_at_mut(at);
                let pairs = above[0].points.iter_mut().zip(&below[at - 1].points);
                for ((_, y), (_, base)) in pairs {
                    *y = match (*y, *base) {
                        (Some(y), Some(base)) => Some(y + base),
                        (y, base) => y.or(base),
                    };
                }
            }
        }
        lines
    }
}

/// Splits a line at its gaps. Times are in units of `per` seconds.
fn parts(points: &[(f64, Option<f64>)], per: f64) -> Vec<Vec<(f64, f64)>> {
    let parts = points.split(|(_, y)| y.is_none()).filter(|part| !part.is_empty());
    parts.map(|part| part.iter().filter_map(|(x, y)| Some((*x / per, (*y)?))).collect()).collect()
}

/// Returns a number in about four characters.
pub(crate) fn short(n: f64) -> String {
    match n {
        n if n >= 9_999_500.0 => format!("{:.0}M", n / 1e6),
        n if n >= 999_950.0 => format!("{:.1}M", n / 1e6),
        n if n >= 9_999.5 => format!("{:.0}k", n / 1e3),
        n if n >= 99.95 => format!("{n:.0}"),
        n if n >= 1.0 => trimmed(format!("{n:.1}")),
        n if n > 0.0 => trimmed(format!("{n:.3}")),
        _ => "0".to_owned(),
    }
}

fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the unit of a time axis and its length in seconds.
fn unit_of(end: f64) -> (&'static str, f64) {
    match end {
        end if end > 2.0 * 3_600.0 => ("h", 3_600.0),
        end if end > 120.0 => ("min", 60.0),
        _ => ("s", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;

    fn line(name: &str, values: &[Option<f64>]) -> Line {
        let points = values.iter().enumerate();
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let points = points.map(|(x, y)| (x as f64, *y)).collect();
        Line { name: name.to_owned(), points }
    }

    fn chart() -> Chart {
        let values = [Some(1.0), Some(3.0), None, Some(2.0), Some(2.5)];
        let lines = vec![line("a & b", &values), line("c", &[Some(1.0); 5])];
        let (title, limit) = ("IOPS of <d>".to_owned(), Some(4.0));
        Chart { title, lines, limit, ..Chart::default() }
    }

    #[test]
    fn a_picture_has_its_lines_gaps_limits_and_names() {
        let svg = svg(&[vec![chart(), chart()], vec![chart()]]).expect("a picture");
        assert!(svg.starts_with("<svg width=\"1200\" height=\"460\""), "{}", &svg[..80]);
        assert_eq!(svg.matches("IOPS of &lt;d&gt;").count(), 3);
        assert_eq!(svg.matches("a &amp; b").count(), 3);
        // Two parts of the line with a gap, one of the other.
        assert_eq!(svg.matches("stroke=\"#0072B2\"").count(), 3 * 2);
        assert_eq!(svg.matches("stroke=\"#E69F00\"").count(), 3);
        assert!(svg.contains("stroke=\"#C81E1E\""), "a limit");
        assert_eq!(svg, super::svg(&[vec![chart(), chart()], vec![chart()]]).expect("again"));
    }

    #[test]
    fn a_limit_far_beyond_is_said_and_not_drawn() {
        let far = Chart { limit: Some(5_000.0), ..chart() };
        let svg = svg(&[vec![far]]).expect("a picture");
        assert!(svg.contains("(limit 5000, not shown)") && !svg.contains("#C81E1E"), "{svg}");
    }

    #[test]
    fn a_burst_limit_is_drawn_beside_the_sustained_one() {
        let bursting = Chart { burst: Some(9.0), ..chart() };
        let svg = svg(&[vec![bursting]]).expect("a picture");
        assert!(svg.contains("(limit 4; burst limit 9)"), "{svg}");
        let one = super::svg(&[vec![chart()]]).expect("a picture");
        let dashes = |svg: &str| svg.matches("#C81E1E").count();
        assert!(dashes(&svg) > dashes(&one), "{svg}");
    }

    #[test]
    fn areas_are_stacked() {
        let stacked = Chart { is_stacked: true, ..chart() };
        let top: Vec<_> = stacked.stacks()[1].points.iter().map(|(_, y)| *y).collect();
        assert_eq!(top, [Some(2.0), Some(4.0), Some(1.0), Some(3.0), Some(3.5)]);
        assert!(svg(&[vec![stacked]]).expect("a picture").contains("<polygon"));
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        assert!(svg(&[]).is_ok() && svg(&[vec![Chart::default()]]).is_ok());
        let page = Page::new("a run").charts("Charts", &[]).expect("a page").html("now");
        assert!(!page.contains("<svg") && !page.contains("Charts"), "{page}");
        let drawn = Page::new("a run").charts("Charts", &[vec![chart()]]).expect("a page");
        assert!(drawn.html("now").contains("<h2>Charts</h2>\n<svg"), "{page}");
    }

    #[test]
    fn numbers_are_short() {
        let check = |n: f64, expect: &str| assert_eq!(short(n), expect);
        check(0.0, "0");
        check(0.25, "0.25");
        check(7.5, "7.5");
        check(5_000.0, "5000");
        check(50_000.0, "50k");
        check(2_500_000.0, "2.5M");
        let units = [90.0, 600.0, 86_400.0].map(|end| unit_of(end).0);
        assert_eq!(units, ["s", "min", "h"]);
    }
}
