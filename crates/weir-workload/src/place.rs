//! The placement of a job's files on devices.
//!
//! A job file names folders and files; Weir has devices. A folder, or the folder of a file, stands
//! for the device with the folder's last name (`/mnt/nocache` is `nocache`). Each file in it gets
//! its own region, in order, as in an empty file system. A file with the name of a device
//! (`/dev/nocache`) is the whole device. A job without a name gets a file on the only device. A map
//! overrides these rules.

use crate::io::Region;
use crate::job::{Extent, JobFile, JobSpec, Target};
use crate::position::Position;
use crate::workload::Placed;
use std::collections::BTreeMap;
use weir_units::Bytes;

/// Files start at multiples of this.
const ALIGN: u64 = 1 << 20;

/// A device that jobs can be put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size: Bytes,
}

/// A job that cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// A folder or file that no device matches.
    #[error("{at}: job {job:?}: no volume or stripe is called like {path:?}{}; there are: {known}; or map it with --map {path}=NAME", weir_units::did_you_mean(.near))]
    NoDevice {
        /// The position of its section.
        at: Box<Position>,
        /// The job.
        job: String,
        /// The folder or file.
        path: String,
        /// The closest name.
        near: Option<String>,
        /// The known names.
        known: String,
    },
    /// A job without a name, with several devices.
    #[error(
        "{at}: job {job:?}: it names no directory and no filename, and there are several devices: {known}"
    )]
    Unnamed {
        /// The position of its section.
        at: Box<Position>,
        /// The job.
        job: String,
        /// The known names.
        known: String,
    },
    /// A file of unknown size.
    #[error("{at}: job {job:?}: give a size; a file in {device:?} needs one")]
    NoSize {
        /// The position of its section.
        at: Box<Position>,
        /// The job.
        job: String,
        /// The device.
        device: String,
    },
    /// More files than the device has room for.
    #[error(
        "{at}: job {job:?}: {device:?} has {size} and the files of the jobs need {needed}; lower size or numjobs"
    )]
    Full {
        /// The position of the section that did not fit.
        at: Box<Position>,
        /// The job.
        job: String,
        /// The device.
        device: String,
        /// Its size.
        size: Bytes,
        /// The required size with this job's files.
        needed: Bytes,
    },
}

/// Places every clone of every job. `map` has pairs of a folder or file, as in the job file, and a
/// device's name.
///
/// # Errors
///
/// [`PlaceError`] for the first job that cannot be placed.
pub fn place(
    file: &JobFile,
    devices: &[Device],
    map: &[(String, String)],
) -> Result<Vec<Placed>, PlaceError> {
    let mut placer = Placer { devices, map, used: BTreeMap::new(), files: BTreeMap::new() };
    let mut placed = Vec::new();
    for spec in &file.jobs {
        for clone in 0..spec.clones {
            let regions = placer.regions(spec, clone)?;
            placed.push(Placed { spec: spec.clone(), clone, regions });
        }
    }
    Ok(placed)
}

/// Returns position and name of a job for a message.
fn position_and_name(spec: &JobSpec) -> (Box<Position>, String) {
    (Box::new(spec.at.clone()), spec.name.clone())
}

struct Placer<'a> {
    devices: &'a [Device],
    map: &'a [(String, String)],
    /// First free byte of each device.
    used: BTreeMap<u32, u64>,
    /// Regions of known files, by path.
    files: BTreeMap<String, Region>,
}

/// The meaning of a path.
enum Resolved {
    /// The whole device.
    Device(u32),
    /// A file on it.
    FileOn(u32),
}

impl Placer<'_> {
    fn regions(&mut self, spec: &JobSpec, clone: u32) -> Result<Vec<Region>, PlaceError> {
        match &spec.target {
            Target::Unnamed => match self.devices {
                [_] => Ok(vec![self.file(spec, clone, 0, 1)?]),
                _ => {
                    let (at, job) = position_and_name(spec);
                    Err(PlaceError::Unnamed { at, job, known: self.known() })
                }
            },
            Target::Directory(folders) => {
                // fio assigns the clones to the folders in turn.
                let folder = &folders[clone as usize % folders.len()];
                match self.find(spec, folder)? {
                    Resolved::Device(device) | Resolved::FileOn(device) => {
                        Ok(vec![self.file(spec, clone, device, 1)?])
                    }
                }
            }
            Target::Files(paths) => {
                paths.iter().map(|path| self.named(spec, clone, path, paths.len())).collect()
            }
        }
    }

    /// Returns the region of a named file, which jobs with the same path share.
    fn named(
        &mut self,
        spec: &JobSpec,
        clone: u32,
        path: &str,
        files: usize,
    ) -> Result<Region, PlaceError> {
        match self.find(spec, path)? {
            Resolved::Device(device) => {
                let len = self.devices[device as usize].size;
                Ok(Region { device, base: Bytes::ZERO, len })
            }
            Resolved::FileOn(device) => {
                if let Some(region) = self.files.get(path) {
                    return Ok(*region);
                }
                let region = self.file(spec, clone, device, files)?;
                self.files.insert(path.to_owned(), region);
                Ok(region)
            }
        }
    }

    fn find(&self, spec: &JobSpec, path: &str) -> Result<Resolved, PlaceError> {
        let device = |name: &str| {
            let at = self.devices.iter().position(|d| d.name == name)?;
            u32::try_from(at).ok()
        };
        let trimmed = path.trim_end_matches('/');
        if let Some((_, name)) =
            self.map.iter().find(|(from, _)| from.trim_end_matches('/') == trimmed)
        {
            return device(name).map(Resolved::Device).ok_or_else(|| self.missing(spec, name));
        }
        let mut names = trimmed.rsplit('/');
        let last = names.next().unwrap_or_default();
        if let Some(device) = device(last) {
            return Ok(Resolved::Device(device));
        }
        match names.next().and_then(device) {
            Some(device) => Ok(Resolved::FileOn(device)),
            None => Err(self.missing(spec, path)),
        }
    }

    fn missing(&self, spec: &JobSpec, path: &str) -> PlaceError {
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let names = self.devices.iter().map(|device| device.name.as_str());
        let near = weir_units::nearest(last, names).map(str::to_owned);
        let ((at, job), path, known) = (position_and_name(spec), path.to_owned(), self.known());
        PlaceError::NoDevice { at, job, path, near, known }
    }

    fn known(&self) -> String {
        self.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Allocates the next region of a device for one of a job's files.
    fn file(
        &mut self,
        spec: &JobSpec,
        clone: u32,
        device: u32,
        files: usize,
    ) -> Result<Region, PlaceError> {
        let Device { name, size } = &self.devices[device as usize];
        let (at, job) = position_and_name(spec);
        let no_size =
            || PlaceError::NoSize { at: at.clone(), job: job.clone(), device: name.clone() };
        let whole = size.get();
        let extent = spec.size.ok_or_else(no_size)?;
        let per_file = match extent {
            Extent::Bytes(bytes) => bytes.get() / files as u64,
            percent @ Extent::Percent(_) => percent.resolve(whole) / files as u64,
        };
        let shift = spec.offset_increment.resolve(whole).saturating_mul(u64::from(clone));
        let len = per_file.saturating_add(spec.offset.resolve(whole)).saturating_add(shift);
        let used = self.used.entry(device).or_insert(0);
        let end = used.saturating_add(len);
        if end > whole {
            return Err(PlaceError::Full {
                at,
                job,
                device: name.clone(),
                size: *size,
                needed: Bytes::new(end),
            });
        }
        let base = Bytes::new(*used);
        *used = end.next_multiple_of(ALIGN);
        Ok(Region { device, base, len: Bytes::new(len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{self, Isolated};

    const NAMES: [&str; 2] = ["nocache", "readcache"];

    fn run(text: &str, map: &[(&str, &str)]) -> Result<Vec<(u32, u64, u64)>, String> {
        let file = fio::parse("job.fio", text, &Isolated).map_err(|e| e.to_string())?;
        let device = |name: &&str| Device { name: (*name).to_owned(), size: Bytes::gib(100) };
        let devices: Vec<Device> = NAMES.iter().map(device).collect();
        let map: Vec<(String, String)> =
            map.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let placed = place(&file, &devices, &map).map_err(|e| e.to_string())?;
        let region = |r: &Region| (r.device, r.base.get() >> 30, r.len.get() >> 30);
        Ok(placed.iter().flat_map(|p| p.regions.iter().map(region)).collect())
    }

    #[test]
    fn folders_are_devices_and_every_job_has_its_file() {
        let two = "[global]\nsize=30g\nrw=randwrite\n[a]\ndirectory=/mnt/nocache\n                   [b]\ndirectory=/mnt/nocache/\n[c]\ndirectory=/mnt/readcache\n";
        assert_eq!(run(two, &[]), Ok(vec![(0, 0, 30), (0, 30, 30), (1, 0, 30)]));
        let clones = "[a]\nsize=10g\nrw=read\nnumjobs=2\ndirectory=/mnt/data\n";
        assert_eq!(run(clones, &[("/mnt/data", "readcache")]), Ok(vec![(1, 0, 10), (1, 10, 10)]));
    }

    #[test]
    fn a_file_is_a_device_or_shared_by_its_name() {
        let raw = "[a]\nfilename=/dev/readcache\nrw=read\n";
        assert_eq!(run(raw, &[]), Ok(vec![(1, 0, 100)]));
        let shared = "[global]\nfilename=/mnt/nocache/f\nsize=5g\nrw=read\n[a]\n[b]\nnumjobs=2\n";
        assert_eq!(run(shared, &[]), Ok(vec![(0, 0, 5); 3]));
    }

    #[test]
    fn jobs_without_a_place_are_errors() {
        let check = |text: &str, expect: &str| assert_eq!(run(text, &[]), Err(expect.to_owned()));
        check(
            "[a]\nsize=1g\nrw=read\ndirectory=/mnt/nocahce\n",
            "job.fio:1: job \"a\": no volume or stripe is called like \"/mnt/nocahce\"; did you mean \"nocache\"?; there are: nocache, readcache; or map it with --map /mnt/nocahce=NAME",
        );
        check(
            "[a]\nsize=1g\nrw=read\n",
            "job.fio:1: job \"a\": it names no directory and no filename, and there are several devices: nocache, readcache",
        );
        check(
            "[a]\nrw=read\ndirectory=/mnt/nocache\n",
            "job.fio:1: job \"a\": give a size; a file in \"nocache\" needs one",
        );
        check(
            "[a]\nrw=read\nsize=60g\nnumjobs=2\ndirectory=/mnt/nocache\n",
            "job.fio:1: job \"a\": \"nocache\" has 100 GiB and the files of the jobs need 120 GiB; lower size or numjobs",
        );
    }
}
