//! Items into the cheapest bins of several kinds, each with several limits, and how far from the
//! cheapest the answer can be at most.
//!
//! The problem is an integer program whose variables are whole bins: each way to fill a bin is a
//! column, of which every item wants one. Its linear relaxation is solved by column generation:
//! an interior-point solver ([Clarabel](https://clarabel.org)) prices the items, and a knapsack
//! search finds the bins that are worth more than they cost. When there are none, no packing can
//! cost less than the prices of all items together. Packings come from mixes of kinds that leave
//! room and are filled by exchange, from rounding the relaxation, and from packing a few bins anew,
//! over and over. How many bins of each kind there have to be is an integer program of its own (Benders'
//! decomposition), which has most of the bound and knows what mix costs least.
//!
//! What the solver says is floating point; what is proven is not. Prices are rounded to whole
//! units, the search for bins compares whole numbers, and where it gives up it says how much it
//! may have missed. So [`Packing::bound`] holds whatever the solver's precision is.
//!
//! | module | holds |
//! |---|---|
//! | `problem` | [`Problem`], [`Packing`] |
//! | `relaxed` | the linear program, and the prices that it gives |
//! | `bin` | the bin that is worth most at given prices |
//! | `columns` | column generation, and the bound |
//! | `counts` | how many bins of each kind there have to be: an integer program |
//! | `benders` | whether items fit so many bins, and what it takes if not |
//! | `exact` | a few items, in every way |
//! | `mix` | a few bins anew, as another mix of kinds |
//! | `refill` | all items anew, into another mix of kinds |
//! | `draws` | numbers that look drawn |
//! | `pack` | [`solve`], [`solve_watched`]: whole bins |

#![forbid(unsafe_code)]

mod benders;
mod bin;
mod columns;
mod counts;
mod draws;
mod exact;
mod mix;
mod pack;
mod problem;
mod refill;
mod relaxed;

pub use pack::{solve, solve_watched};
pub use problem::{Bin, Effort, Fit, Item, Kind, PackError, Packing, Phase, Problem, Progress};
