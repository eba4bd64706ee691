//! Scatter plots: a point for each pair of values, and a line through means.

use crate::chart::{COLOURS, DrawError, failed, short};
use plotters::coord::Shift;
use plotters::prelude::*;

/// A scatter plot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scatter {
    /// Name of the horizontal axis, with its unit.
    pub x: String,
    /// Name of the vertical axis, with its unit.
    pub y: String,
    /// Names of the places 0, 1, 2.. on the horizontal axis; none if it has numbers.
    pub names: Vec<String>,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// Points of a line.
    pub line: Vec<(f64, f64)>,
}

/// Size of a plot and of text, in pixels.
const SIZE: (u32, u32) = (1200, 420);
const TEXT: i32 = 13;
/// Letters of a name that fit below the axis.
const LETTERS: usize = 24;
/// Names below the axis, at most.
const MOST_NAMES: usize = 40;
/// The ratio of ends from which an axis is logarithmic.
const WIDE: f64 = 50.0;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Returns plots below each other as one SVG.
pub(crate) fn svg(plots: &[Scatter]) -> Result<String, DrawError> {
    let count = plots.len().max(1);
    let mut svg = String::new();
    {
        let height = SIZE.1 * u32::try_from(count).unwrap_or(1);
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        for (area, plot) in root.split_evenly((count, 1)).iter().zip(plots) {
            plot.draw(area)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

impl Scatter {
    fn all(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.points.iter().chain(&self.line).copied();
        all.filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    /// Returns whether the horizontal axis is logarithmic: numbers above zero of several magnitudes.
    fn is_log(&self) -> bool {
        let (low, high) = ends(self.all().map(|(x, _)| x));
        self.names.is_empty() && low > 0.0 && high / low >= WIDE
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        if self.all().next().is_none() {
            return Ok(());
        }
        let is_log = self.is_log();
        // A logarithm of its own keeps one kind of axis for all plots.
        let place = |x: f64| if is_log { x.log10() } else { x };
        let (low, high) = ends(self.all().map(|(x, _)| place(x)));
        let margin = if self.names.is_empty() { (high - low).max(1e-9) * 0.03 } else { 0.5 };
        let (bottom, top) = ends(self.all().map(|(_, y)| y));
        let (bottom, top) = (bottom.min(0.0), top.max(f64::MIN_POSITIVE) * 1.05);
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(42)
            .y_label_area_size(72)
            .build_cartesian_2d(low - margin..high + margin, bottom..top)
            .map_err(failed)?;
        let label = |x: &f64| self.label(if is_log { 10_f64.powf(*x) } else { *x });
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(if self.names.is_empty() { 10 } else { self.names.len().min(MOST_NAMES) })
            .y_labels(8)
            .label_style(("sans-serif", TEXT - 1))
            .axis_desc_style(("sans-serif", TEXT))
            .x_desc(self.x.as_str())
            .y_desc(self.y.as_str())
            .x_label_formatter(&label)
            .y_label_formatter(&|y| short(*y))
            .draw()
            .map_err(failed)?;
        let finite = |all: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let all = all.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
            all.map(|(x, y)| (place(*x), *y)).collect()
        };
        let line = LineSeries::new(finite(&self.line), COLOURS[1].stroke_width(2));
        chart.draw_series(line).map_err(failed)?;
        let dots = finite(&self.points).into_iter();
        let dots = dots.map(|point| Circle::new(point, 3, COLOURS[0].mix(0.6).filled()));
        chart.draw_series(dots).map_err(failed)?;
        Ok(())
    }

    /// Returns the text below a place of the horizontal axis; nothing between two names.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place from 0 on, and there are few names"
    )]
    fn label(&self, x: f64) -> String {
        if self.names.is_empty() {
            return if x < 0.0 { format!("-{}", short(-x)) } else { short(x) };
        }
        let place = x.round();
        let name =
            self.names.get(place as usize).filter(|_| (x - place).abs() < 0.01 && place >= 0.0);
        match name.map(|name| (name, name.char_indices().nth(LETTERS))) {
            Some((name, Some((end, _)))) => format!("{}…", &name[..end]),
            Some((name, None)) => name.clone(),
            None => String::new(),
        }
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> Scatter {
        let (x, y) = ("depth".to_owned(), "IOPS".to_owned());
        Scatter { x, y, points: points.to_vec(), ..Scatter::default() }
    }

    /// Returns the horizontal places of the points.
    fn places(svg: &str) -> Vec<i32> {
        let circles = svg.lines().filter(|line| line.starts_with("<circle"));
        let place = |line: &str| line.split("cx=\"").nth(1)?.split('"').next()?.parse().ok();
        circles.map(|line| place(line).expect("a place")).collect()
    }

    #[test]
    fn points_are_where_their_values_are() {
        let even = places(&svg(&[plot(&[(1.0, 5.0), (2.0, 6.0), (3.0, 7.0)])]).expect("a picture"));
        assert_eq!(even.len(), 3);
        assert!(((even[1] - even[0]) - (even[2] - even[1])).abs() <= 1, "{even:?}");
        let wide = [(1.0, 5.0), (10.0, 6.0), (100.0, 7.0)];
        let even = places(&svg(&[plot(&wide)]).expect("a picture"));
        assert!(((even[1] - even[0]) - (even[2] - even[1])).abs() <= 1, "logarithmic: {even:?}");
    }

    #[test]
    fn names_are_below_their_places_and_escaped() {
        let names = ["<P10>", "P20"].map(str::to_owned).to_vec();
        let named = Scatter { names, ..plot(&[(0.0, 1.0), (1.0, 2.0)]) };
        let svg = svg(&[named]).expect("a picture");
        assert!(
            svg.contains("&lt;P10&gt;") && svg.contains("P20") && !svg.contains("<P10>"),
            "{svg}"
        );
    }

    #[test]
    fn strange_values_are_drawn_as_nothing() {
        let strange = plot(&[(f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, 3.0)]);
        assert_eq!(places(&svg(&[strange]).expect("a picture")).len(), 1);
        assert!(svg(&[plot(&[]), plot(&[(0.0, 0.0)])]).is_ok() && svg(&[]).is_ok());
    }
}
