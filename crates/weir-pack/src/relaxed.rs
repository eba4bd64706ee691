//! The linear relaxation: bins by halves and quarters, and what an item is worth in it.
//!
//! ```text
//! minimise   sum of cost(bin) x part(bin)
//! subject to sum of part(bin) over the bins with an item >= 1, for each item; part >= 0
//! ```
//!
//! The multiplier of an item's row is its price: what the relaxation would save without it.

use crate::problem::{Bin, Problem};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus,
};

/// How close to its optimum a relaxation is solved.
const PRECISION: f64 = 1e-5;

/// A solution of the relaxation.
#[derive(Debug)]
pub(crate) struct Relaxed {
    /// By column: how much of it is taken.
    pub(crate) parts: Vec<f64>,
    /// By item of the whole problem: its price, rounded down. Zero for those left out.
    pub(crate) prices: Vec<u64>,
}

/// How many bins of a kind there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) kind: usize,
    pub(crate) count: u64,
    /// Whether there are at least so many, or at most.
    pub(crate) is_least: bool,
}

/// Solves the relaxation for `items`, of which each is in a column at least. `None` if the solver
/// comes to nothing.
pub(crate) fn relax(problem: &Problem<'_>, items: &[usize], columns: &[Bin]) -> Option<Relaxed> {
    relax_counted(problem, items, columns, None).map(|(relaxed, _)| relaxed)
}

/// What a relaxation with so many bins of a kind would save with one less of those that have to be, or
/// one more of those that may. `None` if the solver comes to nothing.
pub(crate) fn worth(
    problem: &Problem<'_>,
    items: &[usize],
    columns: &[Bin],
    counted: Counted,
) -> Option<u64> {
    relax_counted(problem, items, columns, Some(counted)).map(|(_, worth)| worth)
}

fn relax_counted(
    problem: &Problem<'_>,
    items: &[usize],
    columns: &[Bin],
    counted: Option<Counted>,
) -> Option<(Relaxed, u64)> {
    let mut row = vec![usize::MAX; problem.items.len()];
    items.iter().enumerate().for_each(|(at, item)| row[*item] = at);
    // No item is worth more than a bin of its own.
    let dearest = columns.iter().map(|bin| bin.cost).max()?.max(1);
    let scale = float(dearest);
    let (rows, count) = (items.len(), columns.len());
    // Each column: its items' rows, one that keeps it from being negative, and the number's.
    let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
    let sign = counted.map_or(0.0, |counted| if counted.is_least { -1.0 } else { 1.0 });
    for (index, bin) in columns.iter().enumerate() {
        at.extend(bin.items.iter().map(|item| row[*item]).filter(|row| *row != usize::MAX));
        at.push(rows + index);
        values.resize(at.len(), -1.0);
        if counted.is_some_and(|counted| counted.kind == bin.kind) {
            at.push(rows + count);
            values.push(sign);
        }
        starts.push(at.len());
    }
    let all = rows + count + usize::from(counted.is_some());
    let matrix = CscMatrix::new(all, count, starts, at, values);
    let costs: Vec<f64> = columns.iter().map(|bin| float(bin.cost) / scale).collect();
    let mut least = vec![-1.0; rows];
    least.resize(rows + count, 0.0);
    least.extend(counted.map(|counted| sign * float(counted.count)));
    let (parts, multipliers) = solve(count, &matrix, &costs, &least)?;
    let mut prices = vec![0; problem.items.len()];
    for (item, price) in items.iter().zip(&multipliers) {
        prices[*item] = whole(price * scale).min(dearest);
    }
    let worth = multipliers.get(rows + count).map_or(0, |worth| whole(worth * scale));
    Some((Relaxed { parts, prices }, worth))
}

/// Prices to begin with: those of the relaxation in which items may be cut, too. `None` if the
/// solver comes to nothing.
///
/// ```text
/// minimise   sum of cost(kind) x bins(kind) + sum of cost(item, kind) x part(item, kind)
/// subject to sum of takes(item, kind) x part(item, kind) <= room(kind) x bins(kind), by measure
///            sum of part(item, kind) over the kinds >= 1, for each item; all >= 0
/// ```
pub(crate) fn cut(problem: &Problem<'_>, items: &[usize]) -> Option<Vec<u64>> {
    let kinds = &problem.kinds;
    let measures = kinds.first()?.room.len();
    let fits = items.iter().flat_map(|item| problem.items[*item].fits.iter().flatten());
    let most = kinds.iter().map(|kind| kind.cost).max()?.max(1);
    let dearest = most.saturating_add(fits.map(|fit| fit.cost).max()?);
    let scale = float(most);
    let rows = items.len() + kinds.len() * measures;
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
        close(&mut at, &mut values, kind.cost);
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
    let count = costs.len();
    let matrix = CscMatrix::new(rows + count, count, starts, at, values);
    let mut most = vec![-1.0; items.len()];
    most.resize(rows + count, 0.0);
    let (_, multipliers) = solve(count, &matrix, &costs, &most)?;
    let mut prices = vec![0; problem.items.len()];
    for (item, price) in items.iter().zip(&multipliers) {
        prices[*item] = whole(price * scale).min(dearest);
    }
    Some(prices)
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
    let (_, multipliers) = solve(count, &matrix, &costs, &most)?;
    let unit = |(multiplier, room): (&f64, &u64)| {
        whole(multiplier * scale / float((*room).max(1)) * 4_294_967_296.0)
    };
    Some(multipliers.iter().take(rows).zip(room).map(unit).collect())
}

/// Minimises `costs x` where `matrix x <= most`.
fn solve(
    count: usize,
    matrix: &CscMatrix<f64>,
    costs: &[f64],
    most: &[f64],
) -> Option<(Vec<f64>, Vec<f64>)> {
    let none = CscMatrix::<f64>::zeros((count, count));
    // Prices change from round to round by far more than this.
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .max_threads(1)
        .tol_gap_rel(PRECISION)
        .tol_gap_abs(PRECISION)
        .tol_feas(PRECISION)
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
