//! Vector bin packing with bins of several kinds: a cheap packing and a proven lower bound.
//!
//! The problem is a set-covering integer program. Its columns are bins with their items, and each
//! item must be covered once. The steps are:
//!
//! 1. **Column generation** solves the linear relaxation. An interior-point solver
//!    ([Clarabel](https://clarabel.org)) returns a dual price per item, and a branch-and-bound
//!    knapsack search (the pricing problem) finds columns of negative reduced cost. If there are
//!    none, the sum of the dual prices is a lower bound.
//! 2. **Benders cuts** strengthen that bound. The numbers of bins per kind are the variables of a
//!    small integer program, which branch and bound solves. A relaxation limited to these numbers
//!    either accepts them or returns a cut.
//! 3. **Primal heuristics** find packings: mixes of kinds with slack, filled by local search;
//!    diving, which rounds the relaxation; and repacking a few bins at a time.
//!
//! The solver works in floating point, but the bounds do not depend on its precision. Dual prices
//! are rounded to whole units, and the knapsack search compares integers. A search that reaches its
//! node limit returns an upper bound for the unexplored nodes. [`Packing::bound`] is therefore
//! always valid.
//!
//! | module | holds |
//! |---|---|
//! | `problem` | [`Problem`], [`Packing`] |
//! | `relaxed` | the linear programs and their dual prices |
//! | `pricing` | the pricing problem: the bin of highest value at given dual prices |
//! | `columns` | column generation and its lower bounds |
//! | `cut` | cuts: valid inequalities over the numbers of bins per kind |
//! | `counts` | the integer program over the cuts, solved by branch and bound |
//! | `benders` | Benders cuts from relaxations with limited numbers of bins |
//! | `exact` | optimal packings of up to 12 items |
//! | `mix` | repacking of a few bins into another mix of kinds |
//! | `refill` | packing of all items into another mix of kinds |
//! | `lcg` | a deterministic random number generator |
//! | `pack` | [`solve`], [`solve_watched`]: the phases and the diving heuristic |

#![forbid(unsafe_code)]

mod benders;
mod columns;
mod counts;
mod cut;
mod exact;
mod lcg;
mod mix;
mod pack;
mod pricing;
mod problem;
mod refill;
mod relaxed;
#[cfg(test)]
mod testing;

pub use pack::{solve, solve_watched};
pub use problem::{Bin, Effort, Fit, Item, Kind, PackError, Packing, Phase, Problem, Progress};
