//! The linear relaxation: bins by halves and quarters, and what an item is worth in it.
//!
//! ```text
//! minimise   sum of cost(bin) x part(bin)
//! subject to sum of part(bin) over the bins with an item >= 1, for each item; part >= 0
//! ```
//!
//! The multiplier of an item's row is its price: what the relaxation would save without it.

use crate::counts::Row;
use crate::problem::{Bin, Kind, Problem};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus,
};

/// How close to its optimum a relaxation is solved.
const PRECISION: f64 = 1e-5;

/// How close where items may be cut: whether a thousandth of a bin is wanted more makes a whole one.
const SHARP: f64 = 1e-9;

/// A solution of the relaxation.
#[derive(Debug, Clone)]
pub(crate) struct Relaxed {
    /// By column: how much of it is taken.
    pub(crate) parts: Vec<f64>,
    /// By item of the whole problem: its price, rounded down. Zero for those left out.
    pub(crate) prices: Vec<u64>,
    /// By limited kind: what one more would save.
    pub(crate) worths: Vec<u64>,
    /// What it costs, near enough.
    pub(crate) cost: u64,
}

/// How many bins there are of each kind, whatever they cost; each more costs a toll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    /// By kind.
    pub(crate) counts: Vec<u64>,
    /// By kind.
    pub(crate) tolls: Vec<u64>,
}

/// Solves the relaxation for `items`, of which each is in a column at least. `None` if the solver
/// comes to nothing.
pub(crate) fn relax(
    problem: &Problem<'_>,
    items: &[usize],
    columns: &[Bin],
    limits: Option<&Limits>,
) -> Option<Relaxed> {
    let mut row = vec![usize::MAX; problem.items.len()];
    items.iter().enumerate().for_each(|(at, item)| row[*item] = at);
    // No item is worth more than a bin of its own.
    let dearest = columns.iter().map(|bin| bin.cost).max()?.max(1);
    let scale = float(dearest);
    let own = |bin: &Bin| match limits {
        Some(_) => bin.cost.saturating_sub(problem.kinds[bin.kind].cost),
        None => bin.cost,
    };
    let tolls = limits.map_or(&[][..], |limits| &limits.tolls);
    let (rows, bins, count) = (items.len(), columns.len(), columns.len() + tolls.len());
    // Each column: its items' rows, one that keeps it from being negative, and its kind's. Then for
    // each kind one that says how many there are beyond its limit.
    let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
    for (index, bin) in columns.iter().enumerate() {
        at.extend(bin.items.iter().map(|item| row[*item]).filter(|row| *row != usize::MAX));
        at.push(rows + index);
        values.resize(at.len(), -1.0);
        if limits.is_some() {
            at.push(rows + count + bin.kind);
            values.push(1.0);
        }
        starts.push(at.len());
    }
    for place in 0..tolls.len() {
        at.extend([rows + bins + place, rows + count + place]);
        values.extend([-1.0, -1.0]);
        starts.push(at.len());
    }
    let matrix = CscMatrix::new(rows + count + tolls.len(), count, starts, at, values);
    let own = columns.iter().map(own).chain(tolls.iter().copied());
    let costs: Vec<f64> = own.map(|cost| float(cost) / scale).collect();
    let mut least = vec![-1.0; rows];
    least.resize(rows + count, 0.0);
    least.extend(limits.iter().flat_map(|limits| &limits.counts).map(|count| float(*count)));
    let (mut parts, multipliers) = solve(count, &matrix, &costs, &least, PRECISION)?;
    let cost = costs.iter().zip(&parts).map(|(cost, part)| cost * part.max(0.0)).sum::<f64>();
    parts.truncate(bins);
    let prices = prices(problem, items, &multipliers, scale, limits);
    let worths = worths(multipliers.get(rows + count..), scale, limits);
    Some(Relaxed { parts, prices, worths, cost: whole(cost * scale) })
}

/// The prices of the relaxation in which items may be cut, too, as [`Relaxed::prices`]. `None` if the
/// solver comes to nothing.
///
/// ```text
/// minimise   sum of cost(kind) x bins(kind) + sum of cost(item, kind) x part(item, kind)
/// subject to sum of takes(item, kind) x part(item, kind) <= room(kind) x bins(kind), by measure
///            sum of part(item, kind) over the kinds >= 1, for each item; all >= 0
///
/// within limits: bins(kind) <= limit(kind), and cost(kind) is a toll for each more
/// ```
pub(crate) fn cut(
    problem: &Problem<'_>,
    items: &[usize],
    limits: Option<&Limits>,
) -> Option<Vec<u64>> {
    let kinds = &problem.kinds;
    let measures = kinds.first()?.room.len();
    let most = kinds.iter().map(|kind| kind.cost).max()?.max(1);
    let scale = float(most);
    let rooms = items.len() + kinds.len() * measures;
    let tolls = limits.map_or(&[][..], |limits| &limits.tolls);
    let rows = rooms + tolls.len();
    let (mut starts, mut at, mut values, mut costs) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    let mut close = |at: &mut Vec<usize>, values: &mut Vec<f64>, cost: u64| {
        at.push(rows + costs.len());
        values.push(-1.0);
        starts.push(at.len());
        costs.push(float(cost) / scale);
    };
    for (index, kind) in kinds.iter().enumerate() {
        for measure in 0..measures {
            at.push(items.len() + index * measures + measure);
            values.push(-1.0);
        }
        if limits.is_some() {
            at.push(rooms + index);
            values.push(1.0);
        }
        close(&mut at, &mut values, if limits.is_some() { 0 } else { kind.cost });
        for (row, item) in items.iter().enumerate() {
            let Some(fit) = problem.fit(index, *item) else { continue };
            at.push(row);
            values.push(-1.0);
            for (measure, (takes, room)) in fit.takes.iter().zip(&kind.room).enumerate() {
                if *takes > 0 {
                    at.push(items.len() + index * measures + measure);
                    values.push(float(*takes) / float((*room).max(1)));
                }
            }
            close(&mut at, &mut values, fit.cost);
        }
    }
    for (place, toll) in tolls.iter().enumerate() {
        at.push(rooms + place);
        values.push(-1.0);
        close(&mut at, &mut values, *toll);
    }
    let count = costs.len();
    let matrix = CscMatrix::new(rows + count, count, starts, at, values);
    let mut least = vec![-1.0; items.len()];
    least.resize(rooms, 0.0);
    least.extend(limits.iter().flat_map(|limits| &limits.counts).map(|count| float(*count)));
    least.resize(rows + count, 0.0);
    let (_, multipliers) = solve(count, &matrix, &costs, &least, SHARP)?;
    Some(prices(problem, items, &multipliers, scale, limits))
}

/// What one more of each limited kind would save by the multipliers: a toll at most.
fn worths(multipliers: Option<&[f64]>, scale: f64, limits: Option<&Limits>) -> Vec<u64> {
    let tolls = limits.iter().flat_map(|limits| &limits.tolls);
    let pairs = multipliers.unwrap_or_default().iter().zip(tolls);
    pairs.map(|(worth, toll)| whole(worth * scale).min(*toll)).collect()
}

/// What items are worth by their multipliers, whatever the solver says: each no more than a bin of its
/// own with a toll, so that sums of prices are numbers.
fn prices(
    problem: &Problem<'_>,
    items: &[usize],
    multipliers: &[f64],
    scale: f64,
    limits: Option<&Limits>,
) -> Vec<u64> {
    let toll = limits.iter().flat_map(|limits| &limits.tolls).max().copied().unwrap_or(0);
    let mut prices = vec![0; problem.items.len()];
    for (item, price) in items.iter().zip(multipliers) {
        prices[*item] = whole(price * scale).min(problem.alone(*item).saturating_add(toll));
    }
    prices
}

/// What a bin is worth at most if items may be cut: the multipliers of its rooms, each what a
/// unit of it is worth, in 2^-32 of a unit of profit.
pub(crate) fn rooms(room: &[u64], items: &[(u64, &[u64])]) -> Option<Vec<u64>> {
    let (rows, count) = (room.len(), items.len());
    let scale = float(items.iter().map(|(profit, _)| *profit).max()?.max(1));
    let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
    for (index, (_, takes)) in items.iter().enumerate() {
        for (row, (takes, room)) in takes.iter().zip(room).enumerate() {
            if *takes > 0 {
                at.push(row);
                values.push(float(*takes) / float((*room).max(1)));
            }
        }
        at.extend([rows + index, rows + count + index]);
        values.extend([1.0, -1.0]);
        starts.push(at.len());
    }
    let matrix = CscMatrix::new(rows + 2 * count, count, starts, at, values);
    let costs: Vec<f64> = items.iter().map(|(profit, _)| -float(*profit) / scale).collect();
    let mut most = vec![1.0; rows + count];
    most.resize(rows + 2 * count, 0.0);
    let (_, multipliers) = solve(count, &matrix, &costs, &most, PRECISION)?;
    let unit = |(multiplier, room): (&f64, &u64)| {
        whole(multiplier * scale / float((*room).max(1)) * 4_294_967_296.0)
    };
    Some(multipliers.iter().take(rows).zip(room).map(unit).collect())
}

/// How many times each row is worth taking, so that one row says most of what numbers of bins cost;
/// none if the solver comes to nothing.
///
/// ```text
/// minimise   sum of cost(kind) x bins(kind) + costs
/// subject to sum of weight(kind) x bins(kind) [+ costs] >= least, for each row; costs >= base
/// ```
pub(crate) fn multipliers(kinds: &[Kind], rows: &[Row], base: u64) -> Vec<f64> {
    let scale = float(kinds.iter().map(|kind| kind.cost).max().unwrap_or(0).max(1));
    let largest = |row: &Row| float(row.weights.iter().copied().max().unwrap_or(0).max(1));
    let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
    for index in 0..=kinds.len() {
        for (place, row) in rows.iter().enumerate() {
            let weight = match row.weights.get(index) {
                Some(weight) => float(*weight),
                None if row.has_costs => scale,
                None => 0.0,
            };
            if weight > 0.0 {
                at.push(place);
                values.push(-weight / largest(row));
            }
        }
        at.push(rows.len() + index);
        values.push(-1.0);
        starts.push(at.len());
    }
    let count = kinds.len() + 1;
    let matrix = CscMatrix::new(rows.len() + count, count, starts, at, values);
    let costs = kinds.iter().map(|kind| float(kind.cost) / scale).chain([1.0]);
    let costs: Vec<f64> = costs.collect();
    let mut most: Vec<f64> = rows.iter().map(|row| -float(row.least) / largest(row)).collect();
    most.resize(rows.len() + kinds.len(), 0.0);
    most.push(-float(base) / scale);
    let Some((_, multipliers)) = solve(count, &matrix, &costs, &most, SHARP) else {
        return Vec::new();
    };
    let pairs = multipliers.iter().zip(rows);
    pairs.map(|(multiplier, row)| multiplier * scale / largest(row)).collect()
}

/// Minimises `costs x` where `matrix x <= most`.
fn solve(
    count: usize,
    matrix: &CscMatrix<f64>,
    costs: &[f64],
    most: &[f64],
    precision: f64,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let none = CscMatrix::<f64>::zeros((count, count));
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .max_threads(1)
        .tol_gap_rel(precision)
        .tol_gap_abs(precision)
        .tol_feas(precision)
        .build()
        .ok()?;
    let cones = [NonnegativeConeT(most.len())];
    let mut solver = DefaultSolver::new(&none, costs, matrix, most, &cones, settings).ok()?;
    solver.solve();
    // Less than exact does: nothing that is proven rests on it.
    let is_solved = matches!(
        solver.solution.status,
        SolverStatus::Solved | SolverStatus::AlmostSolved | SolverStatus::InsufficientProgress
    );
    let all = solver.solution.x.iter().chain(&solver.solution.z);
    let is_finite = all.clone().all(|value| value.is_finite());
    (is_solved && is_finite).then(|| (solver.solution.x.clone(), solver.solution.z.clone()))
}

#[expect(clippy::cast_precision_loss, reason = "for the solver, which is not exact either")]
fn float(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded on both sides before"
)]
fn whole(value: f64) -> u64 {
    value.clamp(0.0, 4e18) as u64
}
