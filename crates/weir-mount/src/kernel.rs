//! Mounting and unmounting: by system calls as root, or through `fusermount3` as another user.

use crate::error::MountError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::OsStr;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The set-uid program that mounts for users.
const HELPER: &str = "fusermount3";
/// File system type of Weir's mounts in `/proc`.
const KIND: &str = "fuse.weir";

/// The parameters of a mount.
pub(crate) struct MountRequest<'a> {
    pub(crate) dir: &'a Path,
    /// Name of the file system in lists of mounts, if root mounts it.
    pub(crate) source: &'a OsStr,
    /// True if other users may use it.
    pub(crate) allow_other: bool,
}

/// Returns the resolved mount directory. A dead mount of Weir is removed first. The directory must
/// be empty except for the entries in `but`.
pub(crate) fn prepare(dir: &Path, but: &[&OsStr]) -> Result<PathBuf, MountError> {
    let absent = |source| MountError::NoDirectory { dir: dir.to_owned(), source };
    // The path of a dead mount cannot be resolved, but that of its parent can.
    let absolute = std::path::absolute(dir).map_err(absent)?;
    let resolved = match (absolute.canonicalize(), absolute.parent(), absolute.file_name()) {
        (Err(error), Some(parent), Some(name)) if is_dead(&error) => {
            parent.canonicalize().map_err(absent)?.join(name)
        }
        (resolved, ..) => resolved.map_err(absent)?,
    };
    // Dead mounts may be stacked.
    while let Err(source) = std::fs::metadata(&resolved) {
        match mounted_at(&resolved) {
            Some(dead) if is_dead(&source) && dead.kind == KIND => detach(&resolved)?,
            Some(dead) if is_dead(&source) => {
                return Err(MountError::DeadMount { dir: dir.to_owned(), kind: dead.kind });
            }
            _ => return Err(absent(source)),
        }
    }
    if mounted_at(&resolved).is_some_and(|mounted| mounted.kind == KIND) {
        return Err(MountError::Mounted { dir: dir.to_owned() });
    }
    for found in std::fs::read_dir(&resolved).map_err(absent)? {
        let found = found.map_err(absent)?.file_name();
        if !but.contains(&&*found) {
            let found = found.to_string_lossy().into_owned();
            return Err(MountError::NotEmpty { dir: dir.to_owned(), found });
        }
    }
    Ok(resolved)
}

/// Returns whether an error shows that the serving process has ended or the connection was aborted.
fn is_dead(error: &io::Error) -> bool {
    [Errno::NOTCONN, Errno::CONNABORTED]
        .map(Errno::raw_os_error)
        .map(Some)
        .contains(&error.raw_os_error())
}

/// A mount in the kernel's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// File system type.
    kind: String,
    /// Device number, which is unique among mounts in use.
    device: Vec<u8>,
}

/// Returns the uppermost mount at a resolved path.
pub(crate) fn mounted_at(dir: &Path) -> Option<Listed> {
    let all = std::fs::read("/proc/self/mountinfo").ok()?;
    let at = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = fields.nth(2)?.to_vec();
        let place = unescape(fields.nth(1)?);
        // Optional fields end at a dash; the type follows.
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let kind = String::from_utf8_lossy(kind).into_owned();
        (place == dir).then_some(Listed { kind, device })
    };
    all.split(|byte| *byte == b'\n').rev().find_map(at)
}

/// Decodes a path of the kernel's list, in which blanks are octal escapes.
fn unescape(listed: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(listed.len());
    let mut rest = listed;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(octal) if byte == b'\\' => {
                path.push(octal);
                rest = &after[3..];
            }
            _ => {
                path.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

/// Mounts and returns the FUSE descriptor.
pub(crate) fn mount(wanted: &MountRequest<'_>) -> Result<OwnedFd, MountError> {
    if rustix::process::geteuid().is_root() { mount_as_root(wanted) } else { mount_as_user(wanted) }
}

fn mount_as_root(wanted: &MountRequest<'_>) -> Result<OwnedFd, MountError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let fuse = rustix::fs::open("/dev/fuse", flags, Mode::empty())
        .map_err(|errno| MountError::NoFuse { source: errno.into() })?;
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let mut data = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        fuse.as_raw_fd(),
        user.as_raw(),
        group.as_raw()
    );
    if wanted.allow_other {
        data.push_str(",allow_other");
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let data = std::ffi::CString::new(data).map_err(|error| MountError::io("mount", error))?;
    match rustix::mount::mount(wanted.source, wanted.dir, KIND, flags, data.as_c_str()) {
        Ok(()) => Ok(fuse),
        // Root in a namespace without the right to mount.
        Err(Errno::PERM) => mount_as_user(wanted),
        Err(errno) => Err(MountError::io("the system refused to mount", errno)),
    }
}

/// Runs `fusermount3`, which sends the FUSE descriptor over a socket pair.
fn mount_as_user(wanted: &MountRequest<'_>) -> Result<OwnedFd, MountError> {
    let failed = |source: io::Error| MountError::io("cannot talk to fusermount3", source);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut options = String::from("rw,nosuid,nodev,default_permissions,fsname=weir,subtype=weir");
    if wanted.allow_other {
        options.push_str(",allow_other");
    }
    let mut command = Command::new(HELPER);
    command.arg("-o").arg(options).arg("--").arg(wanted.dir);
    command.env("_FUSE_COMMFD", "0").stdin(OwnedFd::from(theirs));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|source| MountError::NoHelper { source })?;
    drop(command);
    let fuse = received(&ours);
    let output = child.wait_with_output().map_err(failed)?;
    match fuse.map_err(|errno| failed(errno.into()))? {
        Some(fuse) if output.status.success() => Ok(fuse),
        _ => Err(helper_said(&output.stderr)),
    }
}

/// Receives a descriptor from a socket; `None` at its end.
fn received(socket: &UnixStream) -> Result<Option<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.next().and_then(|mut descriptors| descriptors.next()))
}

fn helper_said(stderr: &[u8]) -> MountError {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim().trim_start_matches("fusermount3: ");
    let said = if said.is_empty() { "it failed without a message" } else { said };
    MountError::Helper { said: said.to_owned() }
}

/// Unmounts. Returns `false` if files are open.
pub(crate) fn unmount(dir: &Path) -> Result<bool, MountError> {
    match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(true),
        Err(Errno::BUSY) => Ok(false),
        Err(Errno::PERM) => Ok(helper_unmounts(dir, "-u")?.is_ok()),
        Err(errno) => Err(MountError::io("the system refused to unmount", errno)),
    }
}

/// Detaches the mount from its directory. Open files remain usable.
pub(crate) fn detach(dir: &Path) -> Result<(), MountError> {
    match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(Errno::PERM) => helper_unmounts(dir, "-uz")?,
        Err(errno) => Err(MountError::io("the system refused to unmount", errno)),
    }
}

/// Returns the result of `fusermount3`, or the error that prevented its start.
fn helper_unmounts(dir: &Path, how: &str) -> Result<Result<(), MountError>, MountError> {
    let output = Command::new(HELPER).arg(how).arg("--").arg(dir).stdin(Stdio::null()).output();
    let output = output.map_err(|source| MountError::NoHelper { source })?;
    Ok(if output.status.success() { Ok(()) } else { Err(helper_said(&output.stderr)) })
}

/// Returns whether other file systems can be mounted on the mount's root. For users they cannot,
/// because `fusermount3` has no access to it.
pub(crate) fn can_stack() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether the paths are equal or one contains the other.
pub(crate) fn nested(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the problem with a directory name, if there is one.
pub(crate) fn name_problem(name: &OsStr) -> Option<&'static str> {
    match name.as_bytes() {
        b"" => Some("is empty"),
        b"." | b".." => Some("has a meaning of its own"),
        name if name.len() > 255 => Some("is longer than 255 bytes"),
        name if name.contains(&b'/') || name.contains(&0) => Some("has a '/' or a zero in it"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_list_paths_are_decoded() {
        let check = |listed: &str, path: &str| {
            assert_eq!(unescape(listed.as_bytes()), PathBuf::from(path));
        };
        check("/a", "/a");
        check("/with\\040blank", "/with blank");
        check("/back\\134slash\\0", "/back\\slash\\0");
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(mounted_at(Path::new("/")).is_some());
        assert_eq!(mounted_at(Path::new("/no/such/place")), None);
    }

    #[test]
    fn names() {
        let check = |name: &str, fine: bool| {
            assert_eq!(name_problem(name.as_ref()).is_none(), fine, "{name:?}");
        };
        check("vol", true);
        check(".hidden", true);
        check("", false);
        check("..", false);
        check("a/b", false);
        check(&"x".repeat(256), false);
    }
}
