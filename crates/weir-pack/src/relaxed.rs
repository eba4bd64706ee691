//! The linear relaxation over columns, and its dual prices.
//!
//! ```text
//! minimise   sum of cost(bin) x value(bin)
//! subject to sum of value(bin) over the bins with an item >= 1, for each item; value >= 0
//! ```
//!
//! The dual price of an item is the multiplier of its row: the saving of the relaxation without it.

use crate::cut::Cut;
use crate::problem::{Bin, Kind, Problem};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus,
};

/// Precision of the relaxation over columns.
const PRECISION: f64 = 1e-5;

/// Precision if items may be split. It decides whether a shortage of a thousandth of a bin is seen.
const HIGH_PRECISION: f64 = 1e-9;

/// A solution of the relaxation over columns.
#[derive(Debug, Clone)]
pub(crate) struct Relaxed {
    /// By column: its value in the solution.
    pub(crate) values: Vec<f64>,
    /// By item of the whole problem: its dual price, rounded down. Zero for items left out.
    pub(crate) prices: Vec<u64>,
    /// By kind with a limit: the dual price of that limit.
    pub(crate) limit_prices: Vec<u64>,
    /// The objective, to the solver's precision.
    pub(crate) cost: u64,
}

/// Limits of the number of bins per kind. Bins within the limits are free; each further one costs a
/// penalty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    /// By kind.
    pub(crate) counts: Vec<u64>,
    /// By kind.
    pub(crate) penalties: Vec<u64>,
}

/// Solves the relaxation over `columns`, which must contain each of `items`. `None` if the solver
/// fails.
pub(crate) fn relax(
    problem: &Problem<'_>,
    items: &[usize],
    columns: &[Bin],
    limits: Option<&Limits>,
) -> Option<Relaxed> {
    let mut row = vec![usize::MAX; problem.items.len()];
    items.iter().enumerate().for_each(|(at, item)| row[*item] = at);
    // No dual price exceeds the cost of a bin with that item alone.
    let dearest = columns.iter().map(|bin| bin.cost).max()?.max(1);
    let scale = to_float(dearest);
    let penalties = limits.map_or(&[][..], |limits| &limits.penalties);
    let (rows, bins, count) = (items.len(), columns.len(), columns.len() + penalties.len());
    // A column has the rows of its items, its nonnegativity row, and the limit of its kind. A slack
    // column per kind counts the bins beyond the limit.
    let (mut starts, mut at, mut coefficients) = (vec![0], Vec::new(), Vec::new());
    for (index, bin) in columns.iter().enumerate() {
        at.extend(bin.items.iter().map(|item| row[*item]).filter(|row| *row != usize::MAX));
        at.push(rows + index);
        coefficients.resize(at.len(), -1.0);
        if limits.is_some() {
            at.push(rows + count + bin.kind);
            coefficients.push(1.0);
        }
        starts.push(at.len());
    }
    for place in 0..penalties.len() {
        at.extend([rows + bins + place, rows + count + place]);
        coefficients.extend([-1.0, -1.0]);
        starts.push(at.len());
    }
    let matrix = CscMatrix::new(rows + count + penalties.len(), count, starts, at, coefficients);
    let column_costs = columns.iter().map(|bin| match limits {
        Some(_) => bin.cost.saturating_sub(problem.kinds[bin.kind].cost),
        None => bin.cost,
    });
    let costs: Vec<f64> =
        column_costs.chain(penalties.iter().copied()).map(|cost| to_float(cost) / scale).collect();
    let mut least = vec![-1.0; rows];
    least.resize(rows + count, 0.0);
    least.extend(limits.iter().flat_map(|limits| &limits.counts).map(|count| to_float(*count)));
    let (mut values, multipliers) = solve(count, &matrix, &costs, &least, PRECISION)?;
    let cost = costs.iter().zip(&values).map(|(cost, value)| cost * value.max(0.0)).sum::<f64>();
    values.truncate(bins);
    let prices = prices(problem, items, &multipliers, scale, limits);
    let limit_prices = limit_prices(multipliers.get(rows + count..), scale, limits);
    Some(Relaxed { values, prices, limit_prices, cost: to_units(cost * scale) })
}

/// Returns the dual prices of the relaxation in which items may be split, as in
/// [`Relaxed::prices`]. `None` if the solver fails.
///
/// ```text
/// minimise   sum of cost(kind) x bins(kind) + sum of cost(item, kind) x part(item, kind)
/// subject to sum of demand(item, kind) x part(item, kind) <= capacity(kind) x bins(kind),
///            for each kind and dimension
///            sum of part(item, kind) over the kinds >= 1, for each item; all >= 0
///
/// with limits: bins(kind) <= limit(kind), and each further bin costs its penalty
/// ```
pub(crate) fn relax_splittable(
    problem: &Problem<'_>,
    items: &[usize],
    limits: Option<&Limits>,
) -> Option<Vec<u64>> {
    let kinds = &problem.kinds;
    let dimensions = kinds.first()?.capacity.len();
    let most = kinds.iter().map(|kind| kind.cost).max()?.max(1);
    let scale = to_float(most);
    let capacity_rows = items.len() + kinds.len() * dimensions;
    let penalties = limits.map_or(&[][..], |limits| &limits.penalties);
    let rows = capacity_rows + penalties.len();
    let (mut starts, mut at, mut coefficients, mut costs) =
        (vec![0], Vec::new(), Vec::new(), Vec::new());
    let mut end_column = |at: &mut Vec<usize>, coefficients: &mut Vec<f64>, cost: u64| {
        at.push(rows + costs.len());
        coefficients.push(-1.0);
        starts.push(at.len());
        costs.push(to_float(cost) / scale);
    };
    for (index, kind) in kinds.iter().enumerate() {
        for dimension in 0..dimensions {
            at.push(items.len() + index * dimensions + dimension);
            coefficients.push(-1.0);
        }
        if limits.is_some() {
            at.push(capacity_rows + index);
            coefficients.push(1.0);
        }
        end_column(&mut at, &mut coefficients, if limits.is_some() { 0 } else { kind.cost });
        for (row, item) in items.iter().enumerate() {
            let Some(fit) = problem.fit(index, *item) else { continue };
            at.push(row);
            coefficients.push(-1.0);
            for (dimension, (demand, capacity)) in fit.demand.iter().zip(&kind.capacity).enumerate()
            {
                if *demand > 0 {
                    at.push(items.len() + index * dimensions + dimension);
                    coefficients.push(to_float(*demand) / to_float((*capacity).max(1)));
                }
            }
            end_column(&mut at, &mut coefficients, fit.cost);
        }
    }
    for (place, penalty) in penalties.iter().enumerate() {
        at.push(capacity_rows + place);
        coefficients.push(-1.0);
        end_column(&mut at, &mut coefficients, *penalty);
    }
    let count = costs.len();
    let matrix = CscMatrix::new(rows + count, count, starts, at, coefficients);
    let mut least = vec![-1.0; items.len()];
    least.resize(capacity_rows, 0.0);
    least.extend(limits.iter().flat_map(|limits| &limits.counts).map(|count| to_float(*count)));
    least.resize(rows + count, 0.0);
    let (_, multipliers) = solve(count, &matrix, &costs, &least, HIGH_PRECISION)?;
    Some(prices(problem, items, &multipliers, scale, limits))
}

/// Returns the dual prices of the limits, each at most its penalty.
fn limit_prices(multipliers: Option<&[f64]>, scale: f64, limits: Option<&Limits>) -> Vec<u64> {
    let penalties = limits.iter().flat_map(|limits| &limits.penalties);
    let pairs = multipliers.unwrap_or_default().iter().zip(penalties);
    pairs.map(|(multiplier, penalty)| to_units(multiplier * scale).min(*penalty)).collect()
}

/// Returns the items' dual prices. Whatever the solver returns, they are limited to the cost of the
/// item alone and a penalty, so that sums do not overflow.
fn prices(
    problem: &Problem<'_>,
    items: &[usize],
    multipliers: &[f64],
    scale: f64,
    limits: Option<&Limits>,
) -> Vec<u64> {
    let penalty = limits.iter().flat_map(|limits| &limits.penalties).max().copied().unwrap_or(0);
    let mut prices = vec![0; problem.items.len()];
    for (item, price) in items.iter().zip(multipliers) {
        prices[*item] =
            to_units(price * scale).min(problem.cost_alone(*item).saturating_add(penalty));
    }
    prices
}

/// Returns the dual prices of the capacities in the knapsack's linear relaxation, in 2^-32 units of
/// profit per unit of capacity. `None` if the solver fails.
pub(crate) fn capacity_prices(capacity: &[u64], items: &[(u64, &[u64])]) -> Option<Vec<u64>> {
    let (rows, count) = (capacity.len(), items.len());
    let scale = to_float(items.iter().map(|(profit, _)| *profit).max()?.max(1));
    let (mut starts, mut at, mut coefficients) = (vec![0], Vec::new(), Vec::new());
    for (index, (_, demand)) in items.iter().enumerate() {
        for (row, (demand, capacity)) in demand.iter().zip(capacity).enumerate() {
            if *demand > 0 {
                at.push(row);
                coefficients.push(to_float(*demand) / to_float((*capacity).max(1)));
            }
        }
        at.extend([rows + index, rows + count + index]);
        coefficients.extend([1.0, -1.0]);
        starts.push(at.len());
    }
    let matrix = CscMatrix::new(rows + 2 * count, count, starts, at, coefficients);
    let costs: Vec<f64> = items.iter().map(|(profit, _)| -to_float(*profit) / scale).collect();
    let mut most = vec![1.0; rows + count];
    most.resize(rows + 2 * count, 0.0);
    let (_, multipliers) = solve(count, &matrix, &costs, &most, PRECISION)?;
    Some(
        multipliers
            .iter()
            .take(rows)
            .zip(capacity)
            .map(|(multiplier, capacity): (&f64, &u64)| {
                to_units(multiplier * scale / to_float((*capacity).max(1)) * 4_294_967_296.0)
            })
            .collect(),
    )
}

/// Returns the multipliers of the cuts for the surrogate constraint with the highest bound; none if
/// the solver fails.
///
/// ```text
/// minimise   sum of cost(kind) x bins(kind) + item costs
/// subject to sum of weight(kind) x bins(kind) [+ item costs] >= rhs, for each cut;
///            item costs >= base
/// ```
pub(crate) fn multipliers(kinds: &[Kind], cuts: &[Cut], base: u64) -> Vec<f64> {
    let scale = to_float(kinds.iter().map(|kind| kind.cost).max().unwrap_or(0).max(1));
    let largest = |cut: &Cut| to_float(cut.weights.iter().copied().max().unwrap_or(0).max(1));
    let (mut starts, mut at, mut coefficients) = (vec![0], Vec::new(), Vec::new());
    for index in 0..=kinds.len() {
        for (place, cut) in cuts.iter().enumerate() {
            let weight = match cut.weights.get(index) {
                Some(weight) => to_float(*weight),
                None if cut.has_costs => scale,
                None => 0.0,
            };
            if weight > 0.0 {
                at.push(place);
                coefficients.push(-weight / largest(cut));
            }
        }
        at.push(cuts.len() + index);
        coefficients.push(-1.0);
        starts.push(at.len());
    }
    let count = kinds.len() + 1;
    let matrix = CscMatrix::new(cuts.len() + count, count, starts, at, coefficients);
    let costs = kinds.iter().map(|kind| to_float(kind.cost) / scale).chain([1.0]);
    let costs: Vec<f64> = costs.collect();
    let mut most: Vec<f64> = cuts.iter().map(|cut| -to_float(cut.rhs) / largest(cut)).collect();
    most.resize(cuts.len() + kinds.len(), 0.0);
    most.push(-to_float(base) / scale);
    let Some((_, multipliers)) = solve(count, &matrix, &costs, &most, HIGH_PRECISION) else {
        return Vec::new();
    };
    let pairs = multipliers.iter().zip(cuts);
    pairs.map(|(multiplier, cut)| multiplier * scale / largest(cut)).collect()
}

/// Minimises `costs x` subject to `matrix x <= most`.
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
    // An imprecise solution is enough, because no bound depends on it.
    let is_solved = matches!(
        solver.solution.status,
        SolverStatus::Solved | SolverStatus::AlmostSolved | SolverStatus::InsufficientProgress
    );
    let all = solver.solution.x.iter().chain(&solver.solution.z);
    let is_finite = all.clone().all(|value| value.is_finite());
    (is_solved && is_finite).then(|| (solver.solution.x.clone(), solver.solution.z.clone()))
}

#[expect(clippy::cast_precision_loss, reason = "for the solver, which is not exact either")]
fn to_float(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded on both sides before"
)]
fn to_units(value: f64) -> u64 {
    value.clamp(0.0, 4e18) as u64
}
