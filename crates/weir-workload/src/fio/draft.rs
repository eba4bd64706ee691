//! A job while its options are read.
//!
//! Some options have a meaning only together (`bs`, `bsrange` and `bssplit`; `rate` and
//! `rate_iops`; `directory` and `filename`), and jobs may override single values of `[global]`
//! sections. Options are therefore collected here, and [`Draft::finish`] turns them into a
//! [`JobSpec`].

use super::lines::Section;
use crate::error::FioError;
use crate::job::{
    Blocks, Distribution, Engine, Extent, Generator, JobSpec, Mix, Order, PerOp, Rate, RateProcess,
    Submit, Target, Think, ThinkCount,
};
use crate::position::Position;
use std::collections::BTreeMap;
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// The options of a section, or fio's defaults.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) places: BTreeMap<&'static str, Position>,
    pub(super) kb_base: u64,
    pub(super) name: Option<String>,
    pub(super) mix: Mix,
    pub(super) order: Order,
    pub(super) read_percent: u8,
    pub(super) bs: PerOp<u32>,
    pub(super) bsrange: PerOp<Option<(u32, u32)>>,
    pub(super) bssplit: PerOp<Option<Vec<(u32, u8)>>>,
    pub(super) align: PerOp<Option<u32>>,
    pub(super) percent_random: PerOp<u8>,
    pub(super) distribution: Distribution,
    pub(super) norandommap: bool,
    pub(super) softrandommap: bool,
    pub(super) generator: Generator,
    pub(super) depth: u32,
    pub(super) engine: Engine,
    pub(super) direct: bool,
    pub(super) clones: u32,
    pub(super) size: Option<Extent>,
    pub(super) io_size: Option<Extent>,
    pub(super) offset: Extent,
    pub(super) offset_increment: Extent,
    pub(super) runtime: Option<Span>,
    pub(super) time_based: bool,
    pub(super) ramp_time: Span,
    pub(super) start_delay: Span,
    pub(super) loops: u32,
    pub(super) number_ios: u64,
    pub(super) rate: PerOp<u64>,
    pub(super) rate_iops: PerOp<u64>,
    pub(super) rate_process: RateProcess,
    pub(super) submit: Submit,
    pub(super) think_time: Span,
    pub(super) think_blocks: u32,
    pub(super) think_count: ThinkCount,
    pub(super) seed: Option<u64>,
    pub(super) rand_repeat: bool,
    pub(super) data_sync: bool,
    pub(super) fsync: u32,
    pub(super) fdatasync: u32,
    pub(super) end_fsync: bool,
    pub(super) fsync_on_close: bool,
    pub(super) directory: Vec<String>,
    pub(super) filename: Vec<String>,
    pub(super) group_reporting: bool,
    pub(super) new_group: bool,
    pub(super) stonewall: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            kb_base: 1024,
            name: None,
            mix: Mix::Read,
            order: Order::Sequential { gap: 0 },
            read_percent: 50,
            bs: PerOp::all(4096),
            bsrange: PerOp::default(),
            bssplit: PerOp::default(),
            align: PerOp::default(),
            percent_random: PerOp::all(100),
            distribution: Distribution::Uniform,
            norandommap: false,
            softrandommap: false,
            generator: Generator::Tausworthe,
            depth: 1,
            engine: Engine { name: "psync", queued: false },
            direct: false,
            clones: 1,
            size: None,
            io_size: None,
            offset: Extent::ZERO,
            offset_increment: Extent::ZERO,
            runtime: None,
            time_based: false,
            ramp_time: Span::ZERO,
            start_delay: Span::ZERO,
            loops: 1,
            number_ios: 0,
            rate: PerOp::default(),
            rate_iops: PerOp::default(),
            rate_process: RateProcess::Linear,
            submit: Submit::Inline,
            think_time: Span::ZERO,
            think_blocks: 1,
            think_count: ThinkCount::Completed,
            seed: None,
            rand_repeat: true,
            data_sync: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            directory: Vec::new(),
            filename: Vec::new(),
            group_reporting: false,
            new_group: false,
            stonewall: false,
        }
    }
}

impl Draft {
    /// Returns the job that these options describe, after `previous` in its file.
    pub(super) fn finish(
        &self,
        section: &Section,
        previous: Option<&JobSpec>,
    ) -> Result<JobSpec, FioError> {
        let name = self.name.clone().unwrap_or_else(|| section.name.clone());
        let random_map = !self.norandommap
            && self.distribution == Distribution::Uniform
            && !self.has_own_alignment();
        let (group, wave) = previous.map_or((0, 0), |previous| {
            let new_group = self.new_group || self.stonewall;
            (previous.group + u32::from(new_group), previous.wave + u32::from(self.stonewall))
        });
        let job = JobSpec {
            at: section.at.clone(),
            mix: self.mix,
            order: self.order,
            read_percent: self.read_percent,
            blocks: self.blocks(),
            align: self.align.map(|a| a.map(|a| Bytes::new(a.into()))),
            percent_random: self.percent_random,
            distribution: self.distribution.clone(),
            random_map,
            soft_random_map: self.softrandommap,
            generator: self.generator,
            depth: self.depth,
            engine: self.engine,
            direct: self.direct,
            clones: self.clones,
            size: self.size,
            io_size: self.io_size,
            offset: self.offset,
            offset_increment: self.offset_increment,
            runtime: self.runtime,
            time_based: self.time_based,
            ramp_time: self.ramp_time,
            start_delay: self.start_delay,
            loops: self.loops,
            number_ios: (self.number_ios > 0).then_some(self.number_ios),
            rate: self.rates(&name, section)?,
            rate_process: self.rate_process,
            submit: self.submit,
            think: self.think(),
            seed: self.seed,
            rand_repeat: self.rand_repeat && self.seed.is_none(),
            data_sync: self.data_sync,
            fsync: self.fsync,
            fdatasync: self.fdatasync,
            end_fsync: self.end_fsync || self.fsync_on_close,
            target: self.target(),
            group_reporting: self.group_reporting,
            group,
            wave,
            name,
        };
        self.check_size(&job, section)?;
        self.check_lfsr(&job, section)?;
        Ok(job)
    }

    /// Returns the blocks. `bssplit` overrides `bsrange`, and that overrides `bs`, in any order and
    /// also from a `[global]` section, as in fio.
    fn blocks(&self) -> PerOp<Blocks> {
        let block = |bs: u32, range: Option<(u32, u32)>, split: &Option<Vec<(u32, u8)>>| match (
            split, range,
        ) {
            (Some(sizes), _) => match sizes.as_slice() {
                [(size, _)] => Blocks::Fixed(*size),
                sizes => Blocks::Split(sizes.to_vec()),
            },
            (None, Some((min, max))) if min == max => Blocks::Fixed(min),
            (None, Some((min, max))) => Blocks::Range { min, max },
            (None, None) => Blocks::Fixed(bs),
        };
        PerOp {
            read: block(self.bs.read, self.bsrange.read, &self.bssplit.read),
            write: block(self.bs.write, self.bsrange.write, &self.bssplit.write),
            trim: block(self.bs.trim, self.bsrange.trim, &self.bssplit.trim),
        }
    }

    fn rates(&self, job: &str, section: &Section) -> Result<PerOp<Option<Rate>>, FioError> {
        let bytes = self.rate.map(|n| BytesPerSec::new(n).map(Rate::Bytes));
        let iops = self.rate_iops.map(|n| Iops::new(n).map(Rate::Iops));
        let none = PerOp::default();
        if bytes != none && iops != none {
            let why = "rate and rate_iops exclude each other; keep one";
            return Err(self.conflict(job, section, &["rate", "rate_iops"], why));
        }
        Ok(if bytes == none { iops } else { bytes })
    }

    fn think(&self) -> Option<Think> {
        (self.think_time > Span::ZERO).then_some(Think {
            time: self.think_time,
            blocks: self.think_blocks,
            count: self.think_count,
        })
    }

    fn target(&self) -> Target {
        match (self.directory.as_slice(), self.filename.as_slice()) {
            ([], []) => Target::Unnamed,
            (directories, []) => Target::Directory(directories.to_vec()),
            ([], files) => Target::Files(files.to_vec()),
            ([directory, ..], files) => {
                Target::Files(files.iter().map(|file| format!("{directory}/{file}")).collect())
            }
        }
    }

    fn check_size(&self, job: &JobSpec, section: &Section) -> Result<(), FioError> {
        match job.size {
            Some(Extent::Bytes(size)) if size.get() < job.min_block().into() => {
                let why = "size is smaller than the smallest block";
                Err(self.conflict(&job.name, section, &["size", "bs", "bsrange", "bssplit"], why))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the alignment is not the smallest block. fio then has no random map.
    fn has_own_alignment(&self) -> bool {
        let blocks = self.blocks();
        let mut pairs = self.align.as_array().into_iter().zip(blocks.as_array());
        pairs.any(|(align, blocks)| align.is_some_and(|align| align != blocks.min()))
    }

    /// Rejects options with which fio's `lfsr` leaves the file: it counts in the smallest block of
    /// all directions, so the job ends after a few I/Os.
    fn check_lfsr(&self, job: &JobSpec, section: &Section) -> Result<(), FioError> {
        if job.generator != Generator::Lfsr || !matches!(job.order, Order::Random { .. }) {
            return Ok(());
        }
        let (options, why): (&[&str], _) = match job.distribution {
            Distribution::Zoned(_) => (
                &["random_generator", "random_distribution"],
                "random_generator=lfsr does not keep to zones; leave one of them out",
            ),
            Distribution::Uniform if self.has_own_alignment() => (
                &["random_generator", "ba"],
                "random_generator=lfsr does not go with an alignment (ba) of its own; leave one of them out",
            ),
            Distribution::Uniform if !job.smallest_blocks_agree() => (
                &["random_generator", "bs", "bsrange", "bssplit"],
                "random_generator=lfsr needs the same smallest block for reads, writes and trims",
            ),
            _ => return Ok(()),
        };
        Err(self.conflict(&job.name, section, options, why))
    }

    /// Returns a conflict at the last of `options` that was set.
    fn conflict(
        &self,
        job: &str,
        section: &Section,
        options: &[&str],
        why: &'static str,
    ) -> FioError {
        let place =
            options.iter().filter_map(|option| self.places.get(option)).max_by_key(|at| at.line);
        let at = place.unwrap_or(&section.at).clone();
        FioError::Conflict { at, job: job.to_owned(), why }
    }
}
