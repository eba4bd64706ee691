//! What is packed into what.

/// A kind of bin, of which there are as many as one pays for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// What an empty one costs.
    pub cost: u64,
    /// What it has room for, in every measure.
    pub room: Vec<u64>,
}

/// An item in a bin of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// What it costs there, beside the bin.
    pub cost: u64,
    /// What it takes, in every measure.
    pub takes: Vec<u64>,
}

/// An item: what it is in a bin of each kind; `None` where it cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// By kind.
    pub fits: Vec<Option<Fit>>,
}

/// Items and kinds of bins.
pub struct Problem<'a> {
    /// The kinds.
    pub kinds: Vec<Kind>,
    /// The items.
    pub items: Vec<Item>,
    /// What a bin of a kind with some items really costs: what it costs empty and its items, or
    /// more (where sums are rounded up). Never less, or there is no bound.
    pub bill: &'a dyn Fn(usize, &[usize]) -> u64,
}

impl std::fmt::Debug for Problem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kinds, items, bill: _ } = self;
        f.debug_struct("Problem")
            .field("kinds", kinds)
            .field("items", items)
            .finish_non_exhaustive()
    }
}

/// A bin with its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    /// Its kind, by place.
    pub kind: usize,
    /// Its items, by place, ascending.
    pub items: Vec<usize>,
    /// What it costs with them.
    pub cost: u64,
}

/// How hard to look. Nothing here is a time: one problem has one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// What the answer may cost above the bound, in millionths of it, and it is good enough.
    pub gap: u64,
    /// An answer of many items that costs no more than so much above the bound, in millionths of
    /// it, is good enough where more takes long.
    pub long: u64,
    /// Rounds of column generation.
    pub rounds: usize,
    /// How often some bins are packed anew.
    pub tries: usize,
    /// The most nodes of the search for one bin; where it ends early the bound is weaker.
    pub nodes: u64,
    /// So many items are split in every way instead, 12 at most.
    pub split: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { gap: 2_000, long: 8_000, rounds: 60, tries: 100, nodes: 200_000, split: 12 }
    }
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Mixes of kinds are filled.
    Filling,
    /// Bins are looked for that are worth having, and what they prove.
    Relaxing,
    /// The bound is made sharper by whole numbers of bins.
    Bounding,
    /// Whole bins are taken of the relaxation.
    Rounding,
    /// A few bins are packed anew.
    Anew,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How many bins are known that may be worth having.
    pub columns: usize,
    /// What the best packing costs so far.
    pub cost: u64,
    /// No packing costs less, as far as that is proven.
    pub bound: u64,
}

impl Progress {
    /// As [`Packing::gap`], of what there is so far.
    #[must_use]
    pub fn gap(&self) -> u64 {
        gap(self.cost, self.bound)
    }
}

/// All items in bins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// The bins, the dearest first.
    pub bins: Vec<Bin>,
    /// What they cost.
    pub cost: u64,
    /// No packing costs less.
    pub bound: u64,
}

impl Packing {
    /// What the packing costs above the bound at most, in millionths of what it costs, rounded up.
    #[must_use]
    pub fn gap(&self) -> u64 {
        gap(self.cost, self.bound)
    }
}

fn gap(cost: u64, bound: u64) -> u64 {
    let above = u128::from(cost.saturating_sub(bound)) * 1_000_000;
    u64::try_from(above.div_ceil(u128::from(cost.max(1)))).unwrap_or(u64::MAX)
}

/// Why nothing can be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Items that fit no bin of any kind.
    #[error("{} items fit no bin", .items.len())]
    NoBin {
        /// By place.
        items: Vec<usize>,
    },
    /// Numbers so large that sums of them overflow.
    #[error("what the items cost, each in a bin of its own, adds up to more than 2^56")]
    TooLarge,
}

/// What bins cost together, as far as numbers go.
pub(crate) fn cost(bins: &[Bin]) -> u64 {
    bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.cost))
}

/// Parts of a room are counted in so many.
pub(crate) const WHOLE: u64 = 1 << 20;

/// A part of a room, in parts of [`WHOLE`]: so many times the room at most that sums of parts are
/// numbers still.
pub(crate) fn part(takes: u64, room: u64) -> u64 {
    let part = u128::from(takes) * u128::from(WHOLE) / u128::from(room.max(1));
    u64::try_from(part).unwrap_or(u64::MAX).min(WHOLE << 20)
}

impl Problem<'_> {
    /// An item in a bin of a kind.
    pub(crate) fn fit(&self, kind: usize, item: usize) -> Option<&Fit> {
        self.items[item].fits[kind].as_ref()
    }

    /// Whether an item has room beside what is used.
    pub(crate) fn has_room(&self, kind: usize, item: usize, used: &[u64]) -> bool {
        let Some(fit) = self.fit(kind, item) else { return false };
        let room = self.kinds[kind].room.iter().zip(used);
        room.zip(&fit.takes)
            .all(|((room, used), takes)| used.checked_add(*takes).is_some_and(|used| used <= *room))
    }

    /// Adds what an item takes.
    pub(crate) fn add(&self, kind: usize, item: usize, used: &mut [u64]) {
        if let Some(fit) = self.fit(kind, item) {
            used.iter_mut().zip(&fit.takes).for_each(|(used, takes)| *used += takes);
        }
    }

    /// Whether items fit a bin together.
    pub(crate) fn fits(&self, kind: usize, items: &[usize]) -> bool {
        let mut used = vec![0; self.kinds[kind].room.len()];
        items.iter().all(|item| {
            let fits = self.has_room(kind, *item, &used);
            if fits {
                self.add(kind, *item, &mut used);
            }
            fits
        })
    }

    /// A bin of a kind with items that fit it.
    pub(crate) fn bin(&self, kind: usize, mut items: Vec<usize>) -> Bin {
        items.sort_unstable();
        let cost = (self.bill)(kind, &items);
        debug_assert!(cost >= self.least(kind, &items), "a bill below what bin and items cost");
        Bin { kind, items, cost }
    }

    /// What bin and items cost where nothing is rounded.
    fn least(&self, kind: usize, items: &[usize]) -> u64 {
        let costs = items.iter().filter_map(|item| Some(self.fit(kind, *item)?.cost));
        self.kinds[kind].cost.saturating_add(costs.fold(0, u64::saturating_add))
    }

    /// What an item is worth at most: it can be in a bin of its own for that.
    pub(crate) fn alone(&self, item: usize) -> u64 {
        let kinds = self.kinds.iter().zip(&self.items[item].fits);
        let costs =
            kinds.filter_map(|(kind, fit)| Some(kind.cost.saturating_add(fit.as_ref()?.cost)));
        costs.min().unwrap_or(0)
    }

    /// The items as they can be in a packing that costs no more than `most`: not in bins in which
    /// they have no room, nor where one bin alone costs more.
    pub(crate) fn possible(&self, most: u64) -> Vec<Item> {
        let fit = |(kind, fit): (&Kind, &Option<Fit>)| {
            let own = fit.as_ref()?;
            let has_room = own.takes.iter().zip(&kind.room).all(|(takes, room)| takes <= room);
            (has_room && kind.cost.saturating_add(own.cost) <= most).then(|| own.clone())
        };
        let item =
            |item: &Item| Item { fits: self.kinds.iter().zip(&item.fits).map(fit).collect() };
        self.items.iter().map(item).collect()
    }

    /// The cheapest bin that some items fit together.
    pub(crate) fn cheapest(&self, items: &[usize]) -> Option<Bin> {
        let kinds = (0..self.kinds.len()).filter(|kind| self.fits(*kind, items));
        kinds.map(|kind| self.bin(kind, items.to_vec())).min_by_key(|bin| bin.cost)
    }
}
