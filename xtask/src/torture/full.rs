//! Volumes over NBD on a disk that runs full.
//!
//! The data folder is on a file system in memory with less space than the volumes have. Clients write
//! until they are told that the disk is full. Then the server is killed, or there is space again and it has
//! to go on.

use super::nbd::check;
use super::oracle::BLOCK;
use super::server::{Served, lost, system as failed, wait_until};
use super::system::{End, System};
use super::{Campaign, ROUNDS, Tally, load};
use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::process::geteuid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use weir_random::Rng;

/// Space for metadata, which comes on top of that of the volumes.
const SPARE: u64 = 8 << 20;
/// Refused changes after which the disk counts as full.
const REFUSED: u64 = 20;
/// Answers without an error after which a server with new space counts as sound.
const SOUND: u64 = 200;

/// Returns what this machine lacks.
pub(super) fn lacks() -> Option<&'static str> {
    (!geteuid().is_root()).then_some("it mounts a small file system, which needs root")
}

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let system = System::prepare(rng, campaign.folder)?;
    let bytes: u64 = system.exports.iter().map(|own| own.blocks as u64 * BLOCK).sum();
    let disk = Disk::mount(&campaign.folder.join("disk"), bytes + SPARE)?;
    let lived = live_on(&disk, &system, rng, campaign, tally);
    if lived.is_err() {
        // The disk goes with its mount.
        disk.save(&campaign.folder.join("disk-at-the-end"));
    }
    lived.map(|()| system.words())
}

fn live_on(
    disk: &Disk,
    system: &System,
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<(), XtaskError> {
    let mut known = system.unwritten();
    let serve = || Served::start_with(campaign, &ARGS);
    for _ in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let mut served = serve()?;
        let loads = load::start(&served, system, &known, rng)?;
        let (changes, more) = (rng.below(500), rng.below(300));
        wait_until("the clients get no answers", || Ok(sound(&loads)?.answers() >= changes))?;
        wait_until("the disk does not run full", || {
            // Clients also trim.
            disk.fill()?;
            Ok(sound(&loads)?.full() >= REFUSED + more)
        })?;
        let end = if rng.chance(60) { End::Kill } else { End::Stop };
        if end == End::Stop || rng.flip() {
            disk.make_room()?;
            go_on(&served, system, &loads)?;
        }
        match end {
            End::Stop => loads.hurry(),
            End::Kill | End::Crash => served.kill()?,
        }
        known = loads.take(tally);
        if end == End::Stop {
            served.stop()?;
        }
        tally.ended(end);
        // A server also starts on a disk that is still full.
        let served = serve()?;
        check(&served, system, &mut known, end, tally)?;
        disk.make_room()?;
        served.stop()?;
    }
    Ok(())
}

const ARGS: [&str; 6] = ["serve", "layout.toml", "--nbd", "unix:nbd", "--data", "disk/data"];

/// Refuses errors that are not about the space.
fn sound(loads: &load::Loads) -> Result<&load::Loads, XtaskError> {
    if let Some(errno) = loads.odd() {
        return Err(lost(&format!(
            "a client got {errno} instead of ENOSPC from a server whose disk is full"
        )));
    }
    if loads.failed() > 0 {
        return Err(lost("a client got EIO instead of ENOSPC from a server whose disk is full"));
    }
    if loads.has_ended() {
        return Err(lost("a client was disconnected"));
    }
    Ok(loads)
}

/// Waits until a server with new space works as ever.
fn go_on(served: &Served, system: &System, loads: &load::Loads) -> Result<(), XtaskError> {
    for export in &system.exports {
        let mut client = served.open(&export.name)?;
        // A write-back that was refused is tried again later.
        wait_until("no flush succeeds with new space", || {
            sound(loads)?;
            Ok(client.flush().is_ok())
        })?;
    }
    let (mut full, mut from) = (loads.full(), loads.answers());
    wait_until("changes are refused with new space", || {
        let now = sound(loads)?.full();
        if now > full {
            (full, from) = (now, loads.answers());
        }
        Ok(loads.answers() >= from + SOUND)
    })
}

/// A mounted file system, unmounted if it is dropped.
struct Disk {
    dir: PathBuf,
}

impl Disk {
    fn mount(dir: &Path, bytes: u64) -> Result<Self, XtaskError> {
        fs::create_dir(dir).map_err(XtaskError::file("creating", dir))?;
        let options = format!("size={bytes},mode=700");
        let mut mount = in_own_group("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "weir-torture"]).arg(dir);
        let output = mount.output().map_err(failed("running mount"))?;
        if output.status.success() {
            return Ok(Self { dir: dir.to_owned() });
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(lost(&format!("mounting {}: {}", dir.display(), said.trim())))
    }

    fn ballast(&self) -> PathBuf {
        self.dir.join("ballast")
    }

    /// Takes all space that is left.
    fn fill(&self) -> Result<(), XtaskError> {
        let path = self.ballast();
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(XtaskError::file("creating", &path))?;
        let system = failed("filling the disk");
        let mut len = file.metadata().map_err(&system)?.len();
        loop {
            let about = statvfs(&self.dir).map_err(|errno| system(errno.into()))?;
            let free = about.f_bavail * about.f_frsize;
            if free == 0 {
                return Ok(());
            }
            // The server may take some of it meanwhile.
            match fallocate(&file, FallocateFlags::empty(), len, free) {
                Ok(()) => len += free,
                Err(rustix::io::Errno::NOSPC) => {}
                Err(errno) => return Err(system(errno.into())),
            }
        }
    }

    fn make_room(&self) -> Result<(), XtaskError> {
        let path = self.ballast();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(XtaskError::file("removing", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Copies the content, as far as that is possible.
    fn save(&self, to: &Path) {
        let _ = self.make_room();
        let _ = in_own_group("cp").args(["-a", "--sparse=always"]).arg(&self.dir).arg(to).output();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A server that is still there keeps it until it ends.
        let _ = in_own_group("umount").arg("-l").arg(&self.dir).output();
    }
}
