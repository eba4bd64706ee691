//! `weir record --device /dev/X`: the requests of a Linux block device, from the kernel's block
//! events.
//!
//! The events go through a tracing instance of this process, so other users of tracing are not
//! disturbed. It is removed when the recording ends, however it ends; one that a killed process
//! left is removed by the next recording.

use super::copy::Copied;
use super::file::part_of;
use crate::cli::RecordArgs;
use crate::commands::traces::select;
use crate::error::CliError;
use crate::output;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::time::Timespec;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_import::{Input, Options, Requests, kind_named};
use weir_trace::{ReadTrace, Request, TraceError};
use weir_units::{Instant, Span};
use weir_wall::{Clock, calendar};

/// Places where tracefs is mounted.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The events of a request.
const EVENTS: [&str; 2] = ["block_rq_issue", "block_rq_complete"];
/// Prefix of the names of instances; the process follows.
const PREFIX: &str = "weir-";
/// KiB of the kernel's buffer, for each processor.
const BUFFER_KIB: &str = "8192";
/// Nanoseconds until a signal, or the end of the time, is noticed.
const NOTICE: i64 = 100_000_000;

/// A block device.
struct Device {
    path: PathBuf,
    major: u32,
    minor: u32,
}

pub(super) fn run(args: &RecordArgs) -> Result<u8, CliError> {
    if let Some(option) = args.part.given_without_devices() {
        return Err(CliError::Refused(format!(
            "{option} is for traces; record the requests, then select a part of the trace"
        )));
    }
    let devices: Vec<Device> =
        args.part.devices.iter().map(|name| device(name)).collect::<Result<_, _>>()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // A second signal does not end the process: the instance must be removed.
        flag::register(signal, Arc::clone(&stop))
            .map_err(|source| CliError::System { context: "catching signals", source })?;
    }
    let part = part_of(&args.out)?;
    let instance = Instance::create(&root()?)?;
    let pipe = instance.start(&devices, args.duration, stop)?;
    output::talk("weir: recording; Ctrl-C ends it");
    let start = i64::try_from(calendar()).ok();
    let kind = kind_named("ftrace-block");
    let names: Vec<String> = devices.iter().map(|own| own.path.display().to_string()).collect();
    let source = format!("block events of the Linux kernel: {}", names.join(", "));
    let input = Input {
        name: source.clone(),
        bytes: Box::new(BufReader::with_capacity(1 << 16, pipe)),
        kind,
    };
    let opened = Requests::open(vec![input], &Options::default());
    let requests = opened.map_err(|(name, source)| CliError::Import { name, source })?;
    let Some(requests) = requests.into_iter().next() else { return Ok(0) };
    let named = Named::new(requests, &devices);
    let mut copy = Copied::begin(select(named, &crate::cli::PartArgs::default()), part, &args.out)?;
    if copy.is_empty() {
        return Err(CliError::Refused(format!(
            "no request came to {}, so there is nothing to record",
            names.join(", ")
        )));
    }
    copy.open(start, &source, concat!("weir ", env!("CARGO_PKG_VERSION")), args)?;
    if let Err(error) = copy.all() {
        // A recording cannot be repeated.
        if copy.keep_written()? {
            let out = args.out.display();
            output::talk(&format!(
                "weir: {out} has the requests that were written before the error"
            ));
        }
        return Err(error);
    }
    let lost = copy.trace().requests.lost();
    copy.finish(source, (lost, false), args)
}

/// Returns the block device of a path.
fn device(name: &str) -> Result<Device, CliError> {
    let refused = |why: &str| CliError::Refused(format!("--device {name}: {why}"));
    let path = PathBuf::from(name);
    if !path.is_absolute() {
        return Err(refused(
            "give a trace to select from, or the path of a block device, for example /dev/sda",
        ));
    }
    let meta =
        fs::metadata(&path).map_err(|source| CliError::Read { path: path.clone(), source })?;
    if !meta.file_type().is_block_device() {
        return Err(refused("it is not a block device; give one, for example /dev/sda"));
    }
    let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    if Path::new(&format!("/sys/dev/block/{major}:{minor}/partition")).exists() {
        return Err(refused("it is a partition, and the kernel traces whole disks; give the disk"));
    }
    Ok(Device { path, major, minor })
}

/// Returns the folder of tracefs.
fn root() -> Result<PathBuf, CliError> {
    let is_there = |root: &&str| Path::new(root).join("instances").exists();
    match MOUNTED.iter().find(|root| is_there(root)) {
        Some(root) => Ok(PathBuf::from(root)),
        None => Err(CliError::Refused(
            "recording a block device needs tracefs, which is not mounted here or not visible to \
             this user; as root: mount -t tracefs tracefs /sys/kernel/tracing. Or record with \
             blktrace, and convert its files with weir record"
                .to_owned(),
        )),
    }
}

/// A tracing instance, which is removed at the end.
struct Instance {
    folder: PathBuf,
}

impl Instance {
    fn create(root: &Path) -> Result<Self, CliError> {
        let instances = root.join("instances");
        remove_left(&instances);
        let folder = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => CliError::Refused(format!(
                "recording a block device needs root, to make {}: {source}",
                folder.display()
            )),
            _ => CliError::write(&folder, source),
        })?;
        Ok(Self { folder })
    }

    /// Writes a setting, which must exist.
    fn set(&self, name: &str, value: &str) -> Result<(), CliError> {
        let path = self.folder.join(name);
        let written = OpenOptions::new().write(true).open(&path);
        let written = written.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|source| CliError::write(&path, source))
    }

    /// Switches the events of devices on, and returns their text.
    fn start(
        self,
        devices: &[Device],
        duration: Option<Span>,
        stop: Arc<AtomicBool>,
    ) -> Result<Pipe, CliError> {
        self.set("buffer_size_kb", BUFFER_KIB)?;
        self.set("trace_clock", "mono")?;
        // The kernel's own numbers of devices: 20 bits for the minor.
        let one = |own: &Device| {
            format!("dev == {}", (u64::from(own.major) << 20) | u64::from(own.minor))
        };
        let filter = devices.iter().map(one).collect::<Vec<_>>().join(" || ");
        for event in EVENTS {
            self.set(&format!("events/block/{event}/filter"), &filter)?;
        }
        let path = self.folder.join("trace_pipe");
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let pipe = opened.map_err(|source| CliError::Read { path, source })?;
        for event in EVENTS {
            self.set(&format!("events/block/{event}/enable"), "1")?;
        }
        let clock = Clock::start();
        let end = duration.map(|length| Instant::ZERO + length);
        Ok(Pipe { pipe: Some(pipe), instance: self, clock, end, stop, has_stopped: false })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Removing it switches its events off. What fails here has gone already.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes the instances of processes that are gone.
fn remove_left(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let process = process.filter(|process| process.bytes().all(|b| b.is_ascii_digit()));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The text of the events. It ends after a signal or the time of the recording.
struct Pipe {
    /// Closed before the instance is removed, which is busy until then.
    pipe: Option<File>,
    instance: Instance,
    clock: Clock,
    end: Option<Instant>,
    stop: Arc<AtomicBool>,
    has_stopped: bool,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        loop {
            let is_over = self.end.is_some_and(|end| self.clock.now() >= end);
            if !self.has_stopped && (is_over || self.stop.load(Ordering::Relaxed)) {
                self.has_stopped = true;
                // Events that the kernel holds by now are still read.
                self.instance.set("tracing_on", "0").map_err(io::Error::other)?;
            }
            match pipe.read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.has_stopped => {
                    let timeout = Timespec { tv_sec: 0, tv_nsec: NOTICE };
                    let mut polled = [PollFd::new(pipe, PollFlags::IN)];
                    match poll(&mut polled, Some(&timeout)) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.pipe = None;
    }
}

/// A trace of kernel events, whose devices have the names that the user gave.
struct Named {
    requests: Requests,
    /// Names by the kernel's numbers.
    names: BTreeMap<String, String>,
    devices: Vec<String>,
}

impl Named {
    fn new(requests: Requests, devices: &[Device]) -> Self {
        let name =
            |own: &Device| (format!("{},{}", own.major, own.minor), own.path.display().to_string());
        Self { requests, names: devices.iter().map(name).collect(), devices: Vec::new() }
    }
}

impl ReadTrace for Named {
    fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
        let request = self.requests.next_request()?;
        let new = self.requests.devices().iter().skip(self.devices.len());
        let name = |own: &String| self.names.get(own).unwrap_or(own).clone();
        let new: Vec<String> = new.map(name).collect();
        self.devices.extend(new);
        Ok(request)
    }

    fn devices(&self) -> &[String] {
        &self.devices
    }

    fn notes(&self) -> Vec<String> {
        self.requests.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_processes_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}", std::process::id());
        // No process has this number: it is beyond the largest that Linux gives.
        let all = [own.as_str(), "weir-99999999", "weir-x", "other"];
        all.iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        remove_left(folder.path());
        let left: Vec<bool> = all.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn other_files_are_no_devices() {
        let said = |name: &str| device(name).err().map(|error| error.to_string());
        let check = |name: &str, expect: &str| {
            let said = said(name).unwrap_or_default();
            assert!(said.contains(expect), "{name}: {said}");
        };
        check("/dev/null", "it is not a block device");
        check("web/0", "give a trace to select from");
        check("/dev/no-such-disk", "cannot read /dev/no-such-disk");
    }
}
