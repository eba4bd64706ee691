//! The plot of published against predicted figures.

use crate::chart::{COLOURS, DrawError, failed};
use crate::number::float;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Size of the picture, the height of its heading, and the size of text, in pixels.
const SIZE: (u32, u32) = (1200, 560);
const ABOVE: i32 = 30;
const TEXT: i32 = 14;
/// Deviations beyond this are drawn at the edge.
const WIDEST: f64 = 60.0;
/// Deviations that are marked by lines, in percent, and how dark the lines are.
const MARKED: [(f64, f64); 5] =
    [(-25.0, 0.25), (-5.0, 0.25), (0.0, 0.6), (5.0, 0.25), (25.0, 0.25)];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A figure to draw.
pub(super) struct Dot<'a> {
    pub(super) class: &'a str,
    pub(super) published: f64,
    pub(super) predicted: f64,
    pub(super) is_fitted: bool,
}

/// A figure as a point, with the index of its class.
struct Point {
    published: f64,
    predicted: f64,
    class: usize,
    is_fitted: bool,
}

impl Point {
    fn deviation(&self) -> f64 {
        (100.0 * (self.predicted / self.published - 1.0)).clamp(-WIDEST, WIDEST)
    }
}

/// Draws figures: published against predicted at the left, deviations at the right.
pub(super) fn svg<'a>(dots: impl Iterator<Item = Dot<'a>>) -> Result<String, DrawError> {
    let mut classes: Vec<&str> = Vec::new();
    let mut points = Vec::new();
    for Dot { class, published, predicted, is_fitted } in dots {
        let at = classes.iter().position(|own| *own == class).unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        points.push(Point { published, predicted, class: at, is_fitted });
    }
    points.sort_by(|a, b| {
        (a.class, a.deviation())
            .partial_cmp(&(b.class, b.deviation()))
            .unwrap_or(a.class.cmp(&b.class))
    });
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let (above, below) = root.split_vertically(ABOVE);
        legend(&above, &classes)?;
        if !points.is_empty() {
            let (left, right) = below.split_horizontally(SIZE.0 / 2);
            both(&left, &points)?;
            deviations(&right, &points)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

fn style(point: &Point) -> ShapeStyle {
    let colour = COLOURS[point.class % COLOURS.len()];
    // Fitted figures are rings.
    if point.is_fitted { colour.stroke_width(2) } else { colour.filled() }
}

fn legend(area: &Area<'_>, classes: &[&str]) -> Result<(), DrawError> {
    let font = ("sans-serif", TEXT).into_font();
    let mut x = 60;
    for (at, class) in classes.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        area.draw(&Circle::new((x, 16), 4, colour.filled())).map_err(failed)?;
        area.draw(&Text::new((*class).to_owned(), (x + 10, 9), font.clone())).map_err(failed)?;
        x += 40 + 8 * i32::try_from(class.len()).unwrap_or(0);
    }
    let words = "rings: fitted to this figure".to_owned();
    area.draw(&Text::new(words, (x + 10, 9), font)).map_err(failed)
}

/// Draws published figures against predicted ones, both on logarithmic scales.
fn both(area: &Area<'_>, points: &[Point]) -> Result<(), DrawError> {
    let all = || points.iter().flat_map(|point| [point.published, point.predicted]);
    let low = all().fold(f64::INFINITY, f64::min) / 1.5;
    let high = all().fold(0.0, f64::max) * 1.5;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d((low..high).log_scale(), (low..high).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", TEXT - 2))
        .x_desc("published")
        .y_desc("predicted")
        .draw()
        .map_err(failed)?;
    let line = [(low, low), (high, high)];
    chart.draw_series(LineSeries::new(line, BLACK.mix(0.4))).map_err(failed)?;
    let drawn = points.iter().map(|own| Circle::new((own.published, own.predicted), 4, style(own)));
    chart.draw_series(drawn).map_err(failed)?;
    Ok(())
}

/// Draws the deviation of each figure in percent.
fn deviations(area: &Area<'_>, points: &[Point]) -> Result<(), DrawError> {
    let end = float(points.len() as u64);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..end, -WIDEST..WIDEST)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_x_axis()
        .label_style(("sans-serif", TEXT - 2))
        .y_desc("deviation of the prediction, %")
        .draw()
        .map_err(failed)?;
    for (marked, darkness) in MARKED {
        let line = [(0.0, marked), (end, marked)];
        chart.draw_series(LineSeries::new(line, BLACK.mix(darkness))).map_err(failed)?;
    }
    let drawn = (0_u64..)
        .zip(points)
        .map(|(at, own)| Circle::new((float(at) + 0.5, own.deviation()), 4, style(own)));
    chart.draw_series(drawn).map_err(failed)?;
    Ok(())
}
