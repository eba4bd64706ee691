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
//! | `observed` | from what was observed of a role to what it needs |
//! | [`demand`] | what a load asks of a cap, by cache mode and stripe |
//! | [`filesystem`] | the room that a file system takes from its disks |
//! | [`keep`] | what is there already and stays |
//! | [`cost`] | prices of what a layout is made of, and their order |
//! | [`rank`] | which of two layouts is taken: the cheapest, or fewer disks for a price close to it |
//! | [`disks`] | the kinds of disks, and how many of each carry a load |
//! | [`machine`] | machines with disks |
//! | [`pooled`] | machines whose disks share their limits |
//! | [`instance`] | managed instances |
//! | [`fleet`] | many databases onto instances |
//! | [`service`] | services with one store for all files: RDS, Azure Database for PostgreSQL |
//! | [`answer`] | [`Answer`], [`Plan`]: what is found |
//! | [`verify`] | [`verify()`](verify::verify): a need simulated on a layout |
//! | [`backup`] | the cheapest disks that a backup fits within its window |
//! | [`planner`] | [`plan`] and [`within`]: the families beside each other; what is next, what gives |

#![forbid(unsafe_code)]

pub mod answer;
pub mod backup;
pub mod cost;
pub mod demand;
pub mod disks;
mod error;
pub mod filesystem;
pub mod fleet;
pub mod instance;
pub mod keep;
pub mod machine;
pub mod need;
mod observed;
pub mod planner;
pub mod pooled;
pub mod rank;
pub mod service;
pub mod verify;

pub use answer::{Answer, CapUnit, CapUse, Cheaper, Line, PassedOver, Plan, Relaxation};
pub use error::PlanError;
pub use fleet::{FleetOutcome, FleetPlan, FleetQuestion, plan_fleet, plan_fleet_watched};
pub use need::{Member, Need, RoleNeed, Wishes};
pub use planner::{Outcome, Question, left_out, plan, within};
