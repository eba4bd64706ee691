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

/// How close where items may be cut: whether a thousandth of a bin is wanted more makes a whole one.
const SHARP: f64 = 1e-9;

/// A solution of the relaxation.
#[derive(Debug, Clone)]
pub(crate) struct Relaxed {
    /// By column: how much of it is taken.
    pub(crate) parts: Vec<f64>,
    /// By item of the whole problem: its price, rounded down. Zero for those left out.
    pub(crate) prices: Vec<u64>,
    /// By case: what one less of those that have to be would save, or one more of those that may.
    pub(crate) worths: Vec<u64>,
    /// By kind: how many bins there are, with empty ones where a case has too few.
    pub(crate) counts: Vec<f64>,
    /// What it costs, near enough.
    pub(crate) cost: u64,
}

/// How much there may be of bins, each counted by the weight of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counted {
    /// By kind.
    pub(crate) weights: Vec<u64>,
    pub(crate) count: u64,
    /// Whether there is at least so much, or at most.
    pub(crate) is_least: bool,
    /// What one is worth at most; for that price it may be more or less.
    pub(crate) most: u64,
}

impl Counted {
    /// Of its row, in which what is on the left is no more than what is on the right.
    fn sign(&self) -> f64 {
        if self.is_least { -1.0 } else { 1.0 }
    }
}

/// Solves the relaxation for `items`, of which each is in a column at least. `None` if the solver
/// comes to nothing.
pub(crate) fn relax(
    problem: &Problem<'_>,
    items: &[usize],
    columns: &[Bin],
    cases: &[Counted],
) -> Option<Relaxed> {
    let mut row = vec![usize::MAX; problem.items.len()];
    items.iter().enumerate().for_each(|(at, item)| row[*item] = at);
    // No item is worth more than a bin of its own.
    let dearest = columns.iter().map(|bin| bin.cost).max()?.max(1);
    let scale = float(dearest);
    let (rows, bins, count) = (items.len(), columns.len(), columns.len() + cases.len());
    // Each column: its items' rows, one that keeps it from being negative, and the cases'. Then for
    // each case one that says by how much it is missed.
    let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
    for (index, bin) in columns.iter().enumerate() {
        at.extend(bin.items.iter().map(|item| row[*item]).filter(|row| *row != usize::MAX));
        at.push(rows + index);
        values.resize(at.len(), -1.0);
        for (place, case) in cases.iter().enumerate().filter(|(_, case)| case.weights[bin.kind] > 0)
        {
            at.push(rows + count + place);
            values.push(case.sign() * float(case.weights[bin.kind]));
        }
        starts.push(at.len());
    }
    for place in 0..cases.len() {
        at.extend([rows + bins + place, rows + count + place]);
        values.extend([-1.0, -1.0]);
        starts.push(at.len());
    }
    let matrix = CscMatrix::new(rows + count + cases.len(), count, starts, at, values);
    let own = columns.iter().map(|bin| bin.cost).chain(cases.iter().map(|case| case.most));
    let costs: Vec<f64> = own.map(|cost| float(cost) / scale).collect();
    let mut least = vec![-1.0; rows];
    least.resize(rows + count, 0.0);
    least.extend(cases.iter().map(|case| case.sign() * float(case.count)));
    let (mut parts, multipliers) = solve(count, &matrix, &costs, &least, PRECISION)?;
    let cost = costs.iter().zip(&parts).map(|(cost, part)| cost * part.max(0.0)).sum::<f64>();
    let missed = parts.split_off(bins);
    let mut counts = vec![0.0_f64; problem.kinds.len()];
    for (bin, part) in columns.iter().zip(&parts) {
        counts[bin.kind] += part.max(0.0);
    }
    add_empty(problem, cases, &missed, &mut counts);
    let prices = prices(problem, items, &multipliers, scale, cases);
    let worths = multipliers.iter().skip(rows + count).zip(cases);
    let worths = worths.map(|(worth, case)| whole(worth * scale).min(case.most)).collect();
    Some(Relaxed { parts, prices, worths, counts, cost: whole(cost * scale) })
}

/// A solution of the relaxation in which items may be cut, too.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// As [`Relaxed::prices`].
    pub(crate) prices: Vec<u64>,
    /// As [`Relaxed::worths`].
    pub(crate) worths: Vec<u64>,
    /// How many bins there are of each kind.
    pub(crate) counts: Vec<f64>,
    /// What it costs, near enough.
    pub(crate) cost: u64,
}

/// Solves the relaxation in which items may be cut, too. `None` if the solver comes to nothing.
///
/// ```text
/// minimise   sum of cost(kind) x bins(kind) + sum of cost(item, kind) x part(item, kind)
/// subject to sum of takes(item, kind) x part(item, kind) <= room(kind) x bins(kind), by measure
///            sum of part(item, kind) over the kinds >= 1, for each item; all >= 0
///            sum of weight(kind) x bins(kind) <= or >= count, for each case
/// ```
pub(crate) fn cut(problem: &Problem<'_>, items: &[usize], cases: &[Counted]) -> Option<Cut> {
    let kinds = &problem.kinds;
    let measures = kinds.first()?.room.len();
    let most = kinds.iter().map(|kind| kind.cost).max()?.max(1);
    let scale = float(most);
    let rooms = items.len() + kinds.len() * measures;
    let rows = rooms + cases.len();
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
        for (place, case) in cases.iter().enumerate().filter(|(_, case)| case.weights[index] > 0) {
            at.push(rooms + place);
            values.push(case.sign() * float(case.weights[index]));
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
    for (place, case) in cases.iter().enumerate() {
        at.push(rooms + place);
        values.push(-1.0);
        close(&mut at, &mut values, case.most);
    }
    let count = costs.len();
    let matrix = CscMatrix::new(rows + count, count, starts, at, values);
    let mut least = vec![-1.0; items.len()];
    least.resize(rooms, 0.0);
    least.extend(cases.iter().map(|case| case.sign() * float(case.count)));
    least.resize(rows + count, 0.0);
    let (parts, multipliers) = solve(count, &matrix, &costs, &least, SHARP)?;
    let cost = costs.iter().zip(&parts).map(|(cost, part)| cost * part.max(0.0)).sum::<f64>();
    // Each kind's bins stand before the items in them.
    let mut next = 0;
    let counts = (0..kinds.len()).map(|index| {
        let own = parts[next].max(0.0);
        next += 1 + items.iter().filter(|item| problem.fit(index, **item).is_some()).count();
        own
    });
    let mut counts: Vec<f64> = counts.collect();
    add_empty(problem, cases, &parts[parts.len() - cases.len()..], &mut counts);
    let prices = prices(problem, items, &multipliers, scale, cases);
    let worths = multipliers.iter().skip(rooms).zip(cases);
    let worths = worths.map(|(worth, case)| whole(worth * scale).min(case.most)).collect();
    Some(Cut { prices, worths, counts, cost: whole(cost * scale) })
}

/// Where a case has to have more, empty bins of the kind that is cheapest by its weights are as dear.
fn add_empty(problem: &Problem<'_>, cases: &[Counted], missed: &[f64], counts: &mut [f64]) {
    for (case, missed) in cases.iter().zip(missed).filter(|(case, _)| case.is_least) {
        let own = (0..counts.len()).filter(|kind| case.weights[*kind] > 0);
        if let Some(kind) = own.min_by_key(|kind| problem.kinds[*kind].cost / case.weights[*kind]) {
            counts[kind] += missed.max(0.0) / float(case.weights[kind]);
        }
    }
}

/// What items are worth by their multipliers, whatever the solver says: each no more than a bin of its
/// own with all tolls, so that sums of prices are numbers.
fn prices(
    problem: &Problem<'_>,
    items: &[usize],
    multipliers: &[f64],
    scale: f64,
    cases: &[Counted],
) -> Vec<u64> {
    let tolls = cases.iter().filter(|case| !case.is_least).map(|case| {
        let heaviest = case.weights.iter().copied().max().unwrap_or(0);
        case.most.saturating_mul(heaviest)
    });
    let tolls = tolls.fold(0, u64::saturating_add);
    let mut prices = vec![0; problem.items.len()];
    for (item, price) in items.iter().zip(multipliers) {
        prices[*item] = whole(price * scale).min(problem.alone(*item).saturating_add(tolls));
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
