//! The points of a sweep: a grid, or a Latin hypercube sample.
//!
//! The values at a point follow from its number, the parameters and the seed.

use crate::error::SweepError;
use crate::file::{MOST_POINTS, SweepFile};
use crate::value::{Kind, Range, Value};
use std::fmt;
use std::str::FromStr;
use weir_random::Rng;

/// A parameter's name with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The name.
    pub name: String,
    /// The values.
    pub points: Points,
}

/// The values of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// A list.
    List(Vec<Value>),
    /// All numbers of a range; samples only.
    Continuous(Range),
}

impl Axis {
    /// Returns the kind of the values.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.points {
            Points::List(values) => Kind::common_to(values),
            Points::Continuous(range) => Kind::common_to(&[range.at(0.0)]),
        }
    }

    /// Returns the values to check before a sweep: all of a list, and the ends of a range.
    pub(crate) fn samples(&self) -> Vec<Value> {
        match &self.points {
            Points::List(values) => values.clone(),
            Points::Continuous(range) => vec![range.at(0.0), range.at(1.0)],
        }
    }
}

/// The points of a sweep.
#[derive(Debug, Clone)]
pub struct Design {
    axes: Vec<Axis>,
    count: u64,
    /// For a sample: the seed, and for each parameter the stratum of each point.
    sample: Option<(u64, Vec<Vec<u32>>)>,
}

impl Design {
    /// Makes the design of a sweep file, which is `name` in messages.
    pub(crate) fn new(name: &str, file: &SweepFile) -> Result<Self, SweepError> {
        let axes = file.parameters.iter().map(|keys| {
            keys.axis(file.sample.is_some()).map_err(|reason| SweepError::Parameter {
                file: name.to_owned(),
                parameter: keys.name.clone(),
                reason,
            })
        });
        let axes = axes.collect::<Result<Vec<_>, _>>()?;
        match file.sample {
            Some(count) => Ok(Self::sample(axes, count, file.seed)),
            None => Self::grid(axes).map_err(|reason| SweepError::File {
                file: name.to_owned(),
                at: None,
                reason,
            }),
        }
    }

    /// Makes all combinations. The last parameter varies fastest.
    ///
    /// # Errors
    ///
    /// A message if there are more than [`MOST_POINTS`].
    pub fn grid(axes: Vec<Axis>) -> Result<Self, String> {
        let lengths = axes.iter().map(|axis| match &axis.points {
            Points::List(values) => values.len() as u64,
            Points::Continuous(_) => u64::MAX,
        });
        let count = lengths.fold(1, u64::saturating_mul);
        if count > MOST_POINTS {
            return Err(format!(
                "the grid has {count} points, and at most {MOST_POINTS} are possible; give fewer \
                 values, or draw some of the points with sample = N"
            ));
        }
        Ok(Self { axes, count, sample: None })
    }

    /// Makes a Latin hypercube sample: each parameter's values are divided into as many equal parts
    /// as there are points, and each part has one point.
    #[must_use]
    pub fn sample(axes: Vec<Axis>, count: u64, seed: u64) -> Self {
        let strata = (0..axes.len() as u64).map(|axis| {
            let mut strata: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
            let mut rng = Rng::new(&[seed, axis]);
            for at in (1..strata.len()).rev() {
                strata.swap(at, rng.index(at + 1));
            }
            strata
        });
        let strata = strata.collect();
        Self { axes, count, sample: Some((seed, strata)) }
    }

    /// Returns the number of points.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the parameters.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the value of each parameter at a point below [`count`](Self::count).
    #[must_use]
    pub fn values(&self, point: u64) -> Vec<Value> {
        match &self.sample {
            Some((seed, strata)) => self.sampled(point, *seed, strata),
            None => self.combination(point),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the length of a list")]
    fn combination(&self, point: u64) -> Vec<Value> {
        let mut rest = point;
        let mut values: Vec<Value> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            match &axis.points {
                Points::List(list) => {
                    let count = list.len() as u64;
                    values.push(list[(rest % count) as usize].clone());
                    rest /= count;
                }
                // A grid has none.
                Points::Continuous(range) => values.push(range.at(0.0)),
            }
        }
        values.reverse();
        values
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "both numbers are at most a million"
    )]
    fn sampled(&self, point: u64, seed: u64, strata: &[Vec<u32>]) -> Vec<Value> {
        let draw = |(at, axis): (usize, &Axis)| {
            let stratum = strata[at].get(point as usize).copied().unwrap_or(0);
            let within = Rng::new(&[seed, at as u64, point]).unit();
            let share = (f64::from(stratum) + within) / self.count as f64;
            match &axis.points {
                Points::Continuous(range) => range.at(share),
                // By the stratum alone: the number of points of two values differs by one at most.
                Points::List(list) => {
                    let place = u64::from(stratum) * list.len() as u64 / self.count;
                    list[(place as usize).min(list.len() - 1)].clone()
                }
            }
        };
        self.axes.iter().enumerate().map(draw).collect()
    }
}

/// A share of the points: every `of`-th point, from the `number`-th on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: u64,
    of: u64,
}

impl Shard {
    /// All points.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Returns whether it has all points.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Returns its points, in order.
    #[must_use]
    pub fn points(self, count: u64) -> Vec<u64> {
        let step = usize::try_from(self.of).unwrap_or(usize::MAX);
        (self.number - 1..count).step_by(step).collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n <= MOST_POINTS);
        let parts = text.split_once('/').and_then(|(n, of)| Some((number(n)?, number(of)?)));
        match parts {
            Some((number, of)) if 1 <= number && number <= of => Ok(Self { number, of }),
            _ => Err("expected i/n with i from 1 to n, for example 2/8".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Scale;
    use std::collections::BTreeSet;

    fn list(name: &str, values: &[i64]) -> Axis {
        let points = Points::List(values.iter().copied().map(Value::Whole).collect());
        Axis { name: name.to_owned(), points }
    }

    fn numbers(design: &Design, point: u64) -> Vec<f64> {
        design.values(point).iter().filter_map(Value::number).collect()
    }

    #[test]
    fn the_last_parameter_of_a_grid_varies_fastest() {
        let grid = Design::grid(vec![list("a", &[1, 2]), list("b", &[10, 20, 30])]).expect("small");
        let all: Vec<Vec<f64>> = (0..grid.count()).map(|point| numbers(&grid, point)).collect();
        let pairs = [[1, 10], [1, 20], [1, 30], [2, 10], [2, 20], [2, 30]];
        assert_eq!(all, pairs.map(|pair| pair.map(f64::from).to_vec()));
    }

    #[test]
    fn a_grid_that_is_too_large_says_how_large() {
        let thousand: Vec<i64> = (0..1_001).collect();
        let axes = || vec![list("a", &thousand), list("b", &thousand[..1_000])];
        let error = Design::grid(axes()).expect_err("a million and a thousand");
        assert!(error.starts_with("the grid has 1001000 points"), "{error}");
        let many = vec![list("x", &[1, 2, 3]); 100];
        assert!(Design::grid(many).is_err(), "no overflow");
    }

    #[test]
    fn a_sample_covers_a_list_evenly() {
        for seed in 0..50 {
            let design = Design::sample(vec![list("a", &[1, 2, 3])], 4, seed);
            let mut values: Vec<f64> = (0..4).flat_map(|point| numbers(&design, point)).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            assert_eq!(values, [1.0, 2.0, 3.0], "seed {seed}");
        }
    }

    #[test]
    fn a_sample_is_seeded_and_has_one_point_in_each_stratum() {
        let range = Range { from: 0.0, to: 1.0, scale: Scale::Linear, is_whole: false, unit: None };
        let axis = || Axis { name: "x".to_owned(), points: Points::Continuous(range.clone()) };
        let axes = || vec![axis(), axis(), list("z", &[1, 2, 3, 4])];
        let of = |seed| {
            let design = Design::sample(axes(), 40, seed);
            (0..40).map(|point| numbers(&design, point)).collect::<Vec<_>>()
        };
        let points = of(7);
        assert_eq!(points, of(7));
        assert_ne!(points, of(8));
        for axis in 0..2 {
            let strata: BTreeSet<u64> = points
                .iter()
                .map(|point| weir_report::number::whole((point[axis] * 40.0).floor()))
                .collect();
            assert_eq!(strata, (0..40).collect());
        }
        let count = |z: f64| points.iter().filter(|point| (point[2] - z).abs() < 0.5).count();
        assert_eq!([1.0, 2.0, 3.0, 4.0].map(count), [10; 4], "a list is covered evenly");
        // The parameters are not drawn together.
        assert!(points.iter().any(|point| (point[0] - point[1]).abs() > 0.2));
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        let shard = |text: &str| text.parse::<Shard>().expect("a shard");
        let all: Vec<Vec<u64>> = ["1/3", "2/3", "3/3"].map(|text| shard(text).points(8)).to_vec();
        assert_eq!(all, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
        assert_eq!(Shard::WHOLE.points(3), [0, 1, 2]);
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", "1/2/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
