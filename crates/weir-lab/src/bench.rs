//! fio jobs on either clock.
//!
//! In virtual time they run as printed. In wall time they run shorter and on smaller
//! files, on volumes that are served for the run.

use crate::error::LabError;
use crate::file::{Lab, RunKeys, WARM_UP};
use crate::options::{Clocks, Driver, Options, WALL_RAMP, wall_runtime, wall_size};
use std::str::FromStr;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_proto::Uri;
use weir_report::run::RunReport;
use weir_runner::{RunOptions, RunnerError};
use weir_server::{Address, Server};
use weir_sim::devices;
use weir_units::Bytes;
use weir_workload::job::Extent;
use weir_workload::{Isolated, JobFile, Placed, fio, place};

/// Block size of a warm-up.
const WARM_UP_BLOCK: u64 = 1 << 20;

/// A run of fio jobs.
pub(crate) struct Bench<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) keys: &'a RunKeys,
    pub(crate) jobs: JobFile,
    pub(crate) layout: Layout,
    pub(crate) catalog: &'a Catalog,
    pub(crate) options: &'a Options,
}

impl Bench<'_> {
    /// Returns the jobs of a wall run. Larger files get the maximum size, and jobs without a stated
    /// amount of I/O repeat them until the runtime is over: the articles' files are larger than the
    /// I/O of their runtime.
    fn wall_jobs(&self) -> Result<JobFile, LabError> {
        let runtime = wall_runtime(self.lab, self.options);
        let mut jobs = self.jobs.clone().scale(None, Some(runtime));
        let placed = place(&jobs, &devices(&self.layout), &[])?;
        let first_clones = placed.iter().filter(|placed| placed.clone == 0);
        for (job, placed) in jobs.jobs.iter_mut().zip(first_clones) {
            let (size, files) = (wall_size(self.lab, self.options), placed.regions.len() as u64);
            let ranges = (0..)
                .zip(&placed.regions)
                .map(|(file, r)| job.range(0, (file, files), r.len.get()));
            let own: u64 = ranges.map(|(_, span)| span).sum();
            if own > size.get() {
                let least = Bytes::new(u64::from(job.max_block()) * files);
                if size < least {
                    let lab = self.lab.name.clone();
                    return Err(LabError::TooSmall { lab, size, least });
                }
                job.size = Some(Extent::Bytes(size));
                job.time_based |= job.io_size.is_none();
            }
            // A run with a time series is measured from its start.
            if self.keys.every.is_none() {
                job.ramp_time = WALL_RAMP;
            }
        }
        Ok(jobs)
    }

    /// Checks the options against this run.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        match self.options.clocks {
            Clocks::Virtual => Ok(()),
            Clocks::Wall | Clocks::Both => self.wall_jobs().map(drop),
        }
    }

    /// Returns a job that reads every file on `export` once, sequentially.
    fn warm_up(&self, export: &str, placed: &[Placed]) -> Result<Option<JobFile>, LabError> {
        let devices = devices(&self.layout);
        let mut text = String::new();
        let regions = placed.iter().flat_map(|p| &p.regions);
        for region in regions.filter(|r| devices[r.device as usize].name == export) {
            let (base, len) = (region.base.get(), region.len.get());
            let rest = len % WARM_UP_BLOCK;
            let parts = [(base, len - rest, WARM_UP_BLOCK), (base + len - rest, rest, rest)];
            for (offset, size, block) in parts.into_iter().filter(|(_, size, _)| *size > 0) {
                text += &format!(
                    "[{WARM_UP}]\nfilename=/dev/{export}\noffset={offset}\nsize={size}\nbs={block}\n\
                     rw=read\niodepth=32\nioengine=libaio\ndirect=1\n"
                );
            }
        }
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(fio::parse("warm-up", &text, &Isolated)?))
    }

    pub(crate) fn virtually(&self) -> Result<RunReport, LabError> {
        let devices = devices(&self.layout);
        let mut jobs = self.jobs.clone().scale(None, self.lab.file.runtime);
        if let Some(export) = &self.keys.warm_up
            && let Some(warm) = self.warm_up(export, &place(&jobs, &devices, &[])?)?
        {
            jobs = warm.then(jobs);
        }
        let placed = place(&jobs, &devices, &[])?;
        let options = weir_sim::Options {
            seed: self.options.seed,
            every: self.keys.every,
            ..weir_sim::Options::default()
        };
        Ok(weir_sim::simulate(&self.layout, placed, &options)?)
    }

    pub(crate) fn really(&self) -> Result<RunReport, LabError> {
        let folder = tempfile::tempdir().map_err(LabError::Temp)?;
        let edition = match &self.layout.edition {
            Some(name) => self.catalog.edition(name).ok(),
            None => None,
        };
        let socket = Address::Unix(folder.path().join("nbd"));
        let serving = weir_server::Options { listen: vec![socket], ..Default::default() };
        let server = Server::start(self.layout.clone(), edition, &serving)?;
        let report = self.drive(&server);
        server.stop()?;
        report
    }

    fn drive(&self, server: &Server) -> Result<RunReport, LabError> {
        let devices = devices(&self.layout);
        let uris = server.uris();
        let uri = |name: &String| uris.get(name).and_then(|uris| uris.first());
        let uris: Vec<Uri> = devices
            .iter()
            .filter_map(|device| uri(&device.name))
            .filter_map(|text| Uri::from_str(text).ok())
            .collect();
        let placed = place(&self.wall_jobs()?, &devices, &[])?;
        let (seed, stop) = (self.options.seed, Some(self.options.stop.as_ref()));
        if let Some(export) = &self.keys.warm_up
            && let Some(warm) = self.warm_up(export, &placed)?
        {
            let placed = place(&warm, &devices, &[])?;
            let options = RunOptions { uris: &uris, seed, record_windows: None, stop };
            weir_runner::run(placed, &options).map_err(ended)?;
        }
        let windows = self.keys.every;
        let options = RunOptions { uris: &uris, seed, record_windows: windows, stop };
        Ok(match self.options.driver {
            Driver::Weir => weir_runner::run(placed, &options).map_err(ended)?,
            Driver::Fio => {
                weir_runner::run_with_fio(placed, &options, "fio".as_ref()).map_err(ended)?
            }
        })
    }
}

fn ended(error: RunnerError) -> LabError {
    match error {
        RunnerError::Interrupted(_) => LabError::Interrupted,
        other => LabError::Runner(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Span;

    const LAYOUT: &str = "[[volume]]\nname = \"large\"\nsize = \"1 TiB\"\nunlimited = true\n\
                          [[volume]]\nname = \"small\"\nsize = \"32 MiB\"\nunlimited = true\n";

    /// Returns the jobs in wall time with this `--size`.
    fn scaled(options: &Options, jobs: &str) -> Result<Vec<weir_workload::JobSpec>, LabError> {
        let jobs = format!("[j]\nrw=randread\nbs=4k\n{}\n", jobs.replace(' ', "\n"));
        let file = format!(
            "title = \"\"\narticle = \"\"\nruntime = \"1s\"\nfigure = []\n\
             [[run]]\nid = \"r\"\njobs_text = {jobs:?}\n"
        );
        let lab = Lab { name: "l".into(), file: toml::from_str(&file).expect("a lab") };
        let catalog = Catalog::builtin();
        let layout = Layout::parse("layout", LAYOUT, &catalog).expect("a layout");
        let (keys, jobs) = (&lab.file.run[0], fio::parse("jobs", &jobs, &Isolated)?);
        let bench = Bench { lab: &lab, keys, jobs, layout, catalog: &catalog, options };
        Ok(bench.wall_jobs()?.jobs)
    }

    fn options(size: Bytes) -> Options {
        Options { size, ..Options::default() }
    }

    #[test]
    fn only_larger_files_are_scaled() {
        let check = |jobs: &str, size: Option<Extent>, time_based: bool| {
            let scaled = scaled(&options(Bytes::mib(64)), jobs).expect(jobs).remove(0);
            assert_eq!((scaled.size, scaled.time_based), (size, time_based), "{jobs}");
        };
        let mib = |n| Some(Extent::Bytes(Bytes::mib(n)));
        check("directory=/mnt/large size=1g", mib(64), true);
        check("directory=/mnt/large size=64m", mib(64), false);
        check("directory=/mnt/large size=1m", mib(1), false);
        check("directory=/mnt/large size=1m time_based", mib(1), true);
        check("filename=/dev/large", mib(64), true);
        check("filename=/dev/large offset=50%", mib(64), true);
        check("filename=/dev/large size=1%", mib(64), true);
        check("filename=/dev/small", None, false);
        check("filename=/dev/small size=50%", Some(Extent::Percent(50)), false);
        check("filename=/mnt/large/a:/mnt/large/b size=96m", mib(64), true);
    }

    #[test]
    fn the_amount_and_the_start_stay_as_the_job_says() {
        let check = |jobs: &str| scaled(&options(Bytes::mib(64)), jobs).expect(jobs).remove(0);
        let job = check("directory=/mnt/large size=1g offset=2g io_size=3g");
        assert_eq!(job.size, Some(Extent::Bytes(Bytes::mib(64))));
        assert_eq!(job.offset, Extent::Bytes(Bytes::gib(2)));
        assert_eq!(job.io_size, Some(Extent::Bytes(Bytes::gib(3))));
        // fio repeats the range until io_size is reached, and then ends.
        assert!(!job.time_based);
        assert_eq!((job.runtime, job.ramp_time), (Some(Span::from_secs(6)), WALL_RAMP));
    }

    #[test]
    fn a_file_keeps_a_block() {
        let check = |size, jobs: &str, expect: &str| {
            let error = scaled(&options(size), jobs).expect_err(jobs);
            assert!(error.is_usage());
            assert_eq!(error.to_string(), expect);
        };
        check(
            Bytes::new(1),
            "directory=/mnt/large size=1g",
            "--size 1 B: lab \"l\" has blocks of 4 KiB; give at least that",
        );
        check(
            Bytes::kib(1023),
            "filename=/dev/large bs=1m",
            "--size 1023 KiB: lab \"l\" has blocks of 1 MiB; give at least that",
        );
        assert!(scaled(&options(Bytes::mib(1)), "filename=/dev/large bs=1m").is_ok());
        assert!(scaled(&options(Bytes::gib(1 << 16)), "filename=/dev/large bs=1m").is_ok());
    }

    #[test]
    fn a_warm_up_reads_all_of_every_file() {
        let lab = crate::find("ds14-benchmark").expect("a lab");
        let catalog = Catalog::builtin();
        let layout = Layout::parse("layout", LAYOUT, &catalog).expect("a layout");
        let options = Options::default();
        let jobs = "[j]\nrw=read\nbs=4k\nsize=2600k\ndirectory=/mnt/large\nnumjobs=2\n";
        let jobs = fio::parse("jobs", jobs, &Isolated).expect("jobs");
        let placed = place(&jobs, &devices(&layout), &[]).expect("a place");
        let keys = &lab.file.run[0];
        let bench = Bench { lab: &lab, keys, jobs, layout, catalog: &catalog, options: &options };
        let warm = bench.warm_up("large", &placed).expect("a warm-up").expect("files to warm");
        let parts = warm.jobs.iter().map(|job| (job.offset, job.size, job.max_block()));
        let kib = |offset, size, block: u32| {
            let extent = |n| Extent::Bytes(Bytes::kib(n));
            (extent(offset), Some(extent(size)), block << 10)
        };
        let expect =
            [kib(0, 2048, 1024), kib(2048, 552, 552), kib(3072, 2048, 1024), kib(5120, 552, 552)];
        assert_eq!(parts.collect::<Vec<_>>(), expect);
        assert!(bench.warm_up("small", &placed).expect("no files").is_none());
    }
}
