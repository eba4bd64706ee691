//! From a need to the cheapest layout that meets it.
//!
//! A [`Need`] says what each role (data, log, tempdb, backup) asks for; [`Wishes`] say what may be
//! used for it. [`plan`] tries everything that an edition offers and returns the cheapest layout
//! that lets the need through, with its price, the use of every cap, what is cheaper and why that
//! fails, and what more would cost; or says what cannot be met and what would have to give.
//!
//! The search leaves nothing out that could be cheaper: of each kind of disk the fewest that carry
//! a load, of each machine every way to share or not to share disks, of each instance every size
//! of its files. A load is compared with a limit as an engine counts it, in whole operations and
//! bytes, so a plan holds when it is simulated.
//!
//! | module | holds |
//! |---|---|
//! | [`need`] | [`Need`], [`Wishes`], and the file that they are written in |
//! | [`measure`] | [`Measure`]: from an observation of a system to its need |
//! | [`share`] | shares of a whole, in millionths |
//! | [`demand`] | load at each limit, by cache mode and stripe |
//! | [`filesystem`] | the overhead of file systems |
//! | [`keep`] | the layout in use that a plan extends |
//! | [`cost`] | prices of a layout's parts, and their order |
//! | `rank` | the order of layouts: the cheapest, or fewer disks for nearly the same price |
//! | `disks` | the kinds of disks, and how many of each carry a load |
//! | `family` | the trait of a family of layouts, and how to add one |
//! | `machine` | machines with disks |
//! | `pooled` | machines whose disks share their limits |
//! | `instance` | managed instances |
//! | `service` | services with one store for all files: RDS, Azure Database for PostgreSQL |
//! | [`fleet`] | many databases onto instances |
//! | `planner` | [`plan`] and [`within`]: all families, the next better layout, relaxations |
//! | [`answer`] | [`Answer`], [`Plan`] |
//! | [`verify`] | [`verify()`](verify::verify): a need simulated on a layout |
//! | [`promise`] | the latencies that disks promise to requests that do not wait |
//! | [`proof`] | [`prove()`](proof::prove): a plan simulated, with extra capacity if that is needed |
//! | [`report`] | answers as the report types of `weir-report` |
//! | [`compare`] | one need on several clouds |
//! | [`backup`] | the cheapest disks on which a backup fits its window |

#![forbid(unsafe_code)]

pub mod answer;
pub mod backup;
pub mod compare;
pub mod cost;
pub mod demand;
mod disks;
mod error;
mod family;
pub mod filesystem;
pub mod fleet;
mod instance;
pub mod keep;
mod machine;
pub mod measure;
pub mod need;
mod planner;
mod pooled;
pub mod promise;
pub mod proof;
mod rank;
pub mod report;
mod service;
pub mod share;
pub mod verify;

/// The edition of a plan that names none: offers of the present.
pub const DEFAULT_EDITION: &str = "azure-now";

pub use answer::{
    Answer, CapUnit, CapUse, Cheaper, Line, PassedOver, Plan, Reason, Relaxation, Unpriced,
};
pub use error::PlanError;
pub use fleet::{FleetOutcome, FleetPlan, FleetQuestion, plan_fleet, plan_fleet_watched};
pub use measure::Measure;
pub use need::{Member, Need, RoleNeed, Wishes};
pub use planner::{Outcome, Question, fastest, left_out, plan, plan_alone, within};
