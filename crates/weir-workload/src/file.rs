//! Offsets of the I/O in one file: the range that a process uses in a region of a device, and its
//! position there.

use crate::block_map::{BlockMap, Exhausted, MOST_BLOCKS};
use crate::error::PlacementError;
use crate::io::Region;
use crate::job::{Distribution, JobSpec, Mix, Order, WRITE};
use crate::permutation::Permutation;
use crate::plan::Plan;
use crate::sampler::Sampler;
use weir_random::Rng;
use weir_units::Bytes;

/// One file of one process. All positions count from the start of its range.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) device: u32,
    /// The start of the range on the device.
    pub(crate) start: u64,
    /// The length of the range.
    pub(crate) span: u64,
    /// The range ends at the end of the region.
    to_the_end: bool,
    /// Random blocks to choose from, per direction.
    blocks: [u64; 3],
    /// The end of the last I/O, per direction.
    position: [u64; 3],
    /// Blocks that are not touched yet. Directions with the same block size share the first map.
    maps: [Permutation; 3],
    map_of: [usize; 3],
    /// Blocks that are not touched yet by any direction, if blocks differ in size.
    map: Option<Box<BlockMap>>,
    samplers: Option<Box<[Option<Sampler>; 3]>>,
}

impl File {
    /// Makes file `index` of `count` of clone `clone` of a job, in `region`.
    pub(crate) fn new(
        spec: &JobSpec,
        plan: &Plan,
        clone: u32,
        (index, count): (u64, u64),
        region: Region,
        rng: &mut Rng,
    ) -> Result<Self, PlacementError> {
        let len = region.len.get();
        let (offset, span) = spec.range(clone, (index, count), len);
        if offset.checked_add(span).is_none_or(|end| end > len) {
            let [offset, size, len] = [offset, span, len].map(Bytes::new);
            return Err(PlacementError::PastTheEnd { offset, size, len });
        }
        let used = spec.mix.uses();
        for (op, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            let block = block_and_step(plan, op);
            if span < block {
                let [block, span] = [block, span].map(Bytes::new);
                return Err(PlacementError::TooSmall { block, span });
            }
        }
        check_zones(spec, span)?;
        let blocks = std::array::from_fn(|op| {
            let room = span.checked_sub(block_and_step(plan, op));
            room.map_or(0, |room| room / plan.align[op] + 1)
        });
        let same = |a: usize, b: usize| plan.align[a] == plan.align[b] && blocks[a] == blocks[b];
        let map_of = std::array::from_fn(|op| (0..op).find(|first| same(*first, op)).unwrap_or(op));
        let samplers: [Option<Sampler>; 3] = std::array::from_fn(|op| {
            let usable = used[op] && plan.distribution != Distribution::Uniform;
            let new = |rng| Sampler::new(&plan.distribution, op, blocks[op], plan.align[op], rng);
            if usable { new(rng) } else { None }
        });
        Ok(Self {
            device: region.device,
            start: region.base.get() + offset,
            span,
            to_the_end: offset + span == len,
            blocks,
            position: [0; 3],
            maps: std::array::from_fn(|op| Permutation::new(blocks[op], rng)),
            map_of,
            map: None,
            samplers: samplers.iter().any(Option::is_some).then(|| Box::new(samplers)),
        })
    }

    /// Gives the file its random map, if the job has one, of the `left` blocks that the maps of
    /// the run may still have.
    pub(crate) fn add_map(
        &mut self,
        spec: &JobSpec,
        plan: &Plan,
        left: &mut u64,
    ) -> Result<(), PlacementError> {
        let Some(block) = plan.map_block else { return Ok(()) };
        let (blocks, most) = (self.span / u64::from(block), MOST_BLOCKS.min(*left));
        match BlockMap::new(blocks).filter(|_| blocks <= most) {
            Some(map) => {
                *left -= blocks;
                self.map = Some(Box::new(map));
                Ok(())
            }
            None if spec.soft_random_map => Ok(()),
            None => Err(PlacementError::LargeMap { block: Bytes::new(block.into()), blocks, most }),
        }
    }

    /// Returns offset and length of the next I/O of direction `op`, or the reason why there is
    /// none. With `jump`, a random process draws an offset; otherwise it continues sequentially.
    #[inline]
    pub(crate) fn next(
        &mut self,
        plan: &Plan,
        op: usize,
        jump: bool,
        rng: &mut Rng,
    ) -> Result<(u64, u32), Exhausted> {
        let sequential = match plan.order {
            Order::Sequential { gap } => {
                Some(self.sequential(plan, op, gap).ok_or(Exhausted::Done)?)
            }
            Order::Random { .. } if jump => None,
            Order::Random { .. } => self.sequential(plan, op, 0),
        };
        let offset = match sequential {
            Some(offset) => offset,
            // Sequential I/O neither reads nor changes the map, as in fio.
            None if jump && self.map.is_some() => return self.mapped(plan, op, rng),
            None => self.random(plan, op, rng)?,
        };
        let len = plan.sizes[op].draw(self.span - offset, rng);
        self.position[op] = offset + u64::from(len);
        Ok((offset, len))
    }

    /// Restarts at the beginning, with all blocks untouched.
    pub(crate) fn restart(&mut self, op: usize, rng: &mut Rng) {
        self.position[op] = 0;
        self.maps[self.map_of[op]].restart(rng);
        if let Some(map) = &mut self.map {
            map.restart();
        }
    }

    /// Draws a random I/O that ends before the next touched block.
    fn mapped(&mut self, plan: &Plan, op: usize, rng: &mut Rng) -> Result<(u64, u32), Exhausted> {
        let (unit, span, sizes) = (plan.align[op], self.span, &plan.sizes[op]);
        let map = self.map.as_mut().ok_or(Exhausted::Done)?;
        let mut drawn = 0;
        let (block, taken) = map.take(self.blocks[op], rng, |block, rng| {
            drawn = sizes.draw(span - block * unit, rng);
            u64::from(drawn).div_ceil(unit)
        })?;
        let len = u32::try_from(taken * unit).map_or(drawn, |free| free.min(drawn));
        let offset = block * unit;
        self.position[op] = offset + u64::from(len);
        Ok((offset, len))
    }

    fn sequential(&self, plan: &Plan, op: usize, gap: u64) -> Option<u64> {
        let fits = |at: u64| at.saturating_add(plan.sizes[op].min().into()) <= self.span;
        let position = self.position[op];
        let position = if position > 0 { position.saturating_add(gap) } else { position };
        match fits(position) {
            true => Some(position),
            // With holes, the end is reached before the size is done. fio then wraps at the end of
            // a file, and stops at the end of a range within a file.
            false if gap > 0 && self.to_the_end => Some(0),
            false => None,
        }
    }

    #[inline]
    fn random(&mut self, plan: &Plan, op: usize, rng: &mut Rng) -> Result<u64, Exhausted> {
        let block = if let Some(map) = &mut self.map {
            map.draw(self.blocks[op], rng)? as u64
        } else if plan.once {
            self.maps[self.map_of[op]].next().ok_or(Exhausted::Done)?
        } else {
            match self.samplers.as_ref().and_then(|samplers| samplers[op].as_ref()) {
                Some(sampler) => sampler.draw(rng),
                None => rng.below(self.blocks[op]),
            }
        };
        Ok(block * plan.align[op])
    }
}

/// Returns the smallest block, and the minimum length of the range: fio needs a whole step to the
/// next random offset.
fn block_and_step(plan: &Plan, op: usize) -> u64 {
    plan.align[op].max(plan.sizes[op].min().into())
}

fn check_zones(spec: &JobSpec, span: u64) -> Result<(), PlacementError> {
    let Distribution::Zoned(zones) = &spec.distribution else { return Ok(()) };
    for zones in zones.as_array() {
        let size =
            zones.iter().fold(0_u64, |sum, zone| sum.saturating_add(zone.size.resolve(span)));
        if size > span {
            let [size, len] = [size, span].map(Bytes::new);
            return Err(PlacementError::PastTheEnd { offset: Bytes::ZERO, size, len });
        }
    }
    Ok(())
}

/// Returns whether a mix counts an I/O of direction `op` towards its size. For a trimmed and
/// written block, only the write counts.
pub(crate) fn counts(mix: Mix, op: usize) -> bool {
    mix != Mix::TrimWrite || op == WRITE
}
