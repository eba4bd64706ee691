//! `weir mount`.

use super::kept;
use super::waiting::{self, Waiting};
use super::web::Web;
use crate::cli::MountArgs;
use crate::error::CliError;
use crate::input::{edition_of, read_layout, say_notes};
use crate::output;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_mount::served::{Dir, Served};
use weir_mount::{DirId, Mount, MountError, Options as MountOptions, Top};
use weir_server::{Exported, Handle, Options, Server};

/// The folder of the files within the data directory.
const FILES: &str = "files";
/// Maximum delay of the kernel's notice that a file is closed.
const SOON: Duration = Duration::from_millis(500);
/// Maximum time that files can stay open after the end is requested.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &MountArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let layout = read_layout(&args.layout, catalog)?;
    check_layout(args, &layout)?;
    Mount::check_dir(&args.dir)?;
    say_notes(&layout);
    let web = Web::bind(&args.web, Some(&args.control.control))?;
    let waiting = Waiting::begin()?;
    let temporary = match &args.data {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|source| CliError::System {
            context: "making a folder for the files",
            source,
        })?),
    };
    let data = args.data.as_deref().or(temporary.as_ref().map(tempfile::TempDir::path));
    let data = data.unwrap_or(Path::new("."));
    let edition = edition_of(&layout, catalog)?;
    let options = Options {
        data: Some(data.to_owned()),
        control: Some(args.control.control.clone()),
        notices: waiting.notices(),
        holder: Some(format!("weir mount at {}", args.dir.display())),
        no_exports: true,
        may_be_empty: true,
        ..Options::default()
    };
    let mut declared = kept::declared(&layout);
    let notes = notes_of(&layout);
    let without_effect = without_effect(&layout);
    // A file of an instance determines the size of its volume.
    declared.retain(|volume| {
        layout.hosts.iter().all(|host| {
            host.instance.is_none() || host.volumes.iter().all(|own| own.name != volume.name())
        })
    });
    let server = Server::start(layout, edition, &options)?;
    notes.into_iter().for_each(output::talk);
    without_effect.iter().for_each(|note| output::talk(note));
    let overrides = kept::overrides(&server.status(), &args.layout, &declared);
    overrides.iter().for_each(|line| output::talk(line));
    for refused in server.refused() {
        output::talk(&format!("weir: not mounted: {refused}"));
    }
    let (tops, dirs) = dirs_of(args, &server.handle(), data)?;
    let names: Vec<String> =
        tops.iter().map(|top| top.name.to_string_lossy().into_owned()).collect();
    for left in left_out(&data.join(FILES), &names) {
        output::talk(&format!(
            "{}: its files are not mounted, since neither the layout nor --database names it",
            left.display()
        ));
    }
    let limits = Arc::new(Served::new(server.handle(), dirs));
    let served = Arc::downgrade(&limits);
    server.handle().tell_used(move |volume| served.upgrade()?.used(volume));
    let mounted = Mount::new(tops, limits, MountOptions::default()).spawn(&args.dir)?;
    let mounted = Arc::new(mounted);
    for name in &names {
        output::print_text(&format!("{}\n", args.dir.join(name).display()))?;
    }
    if args.data.is_none() {
        output::talk("the files are lost at exit; --data DIR keeps them");
    }
    let web = web.serve(&server.handle())?;
    output::talk(&format!("ready; control socket {}", args.control.control.display()));
    let (own, ending) = (Arc::clone(&mounted), waiting.ending());
    thread::spawn(move || ending(own.wait()));
    let mut ended = waiting.wait()?.unwrap_or(Ok(()));
    if !mounted.has_ended() {
        output::talk(
            "unmounting: completing the requests in flight; press Ctrl-C again to stop at once",
        );
        ended = mounted.unmount(SOON);
        if let (Err(MountError::InUse { .. }), open @ 1..) = (&ended, mounted.open_files()) {
            let patience = PATIENCE.as_secs();
            output::talk(&format!("open files: {open}; they remain usable for {patience} s"));
            ended = mounted.unmount(PATIENCE);
        }
    }
    drop((mounted, web));
    waiting::stop(server)?;
    Ok(ended.map(|()| 0)?)
}

/// Returns a note for each volume with checksums, which cover the bytes of volumes and not files.
fn without_effect(layout: &Layout) -> Vec<String> {
    let volumes = layout.hosts.iter().flat_map(|host| &host.volumes);
    let note = |own: &weir_layout::Volume| {
        format!("volume {:?}: checksums = true has no effect on the files of a mount", own.name)
    };
    volumes.filter(|own| own.has_checksums()).map(note).collect()
}

/// Returns notes on parts of the layout that a mount does not use.
fn notes_of(layout: &Layout) -> Vec<&'static str> {
    let clients =
        "the layout's clients are for weir serve; users of a mount need the modes of its files";
    let blobs = "the layout's [blob] is for weir serve; a mount serves no blobs";
    let notes = [(!layout.access.is_open(), clients), (layout.blob.is_some(), blobs)];
    notes.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note).collect()
}

/// Reports wrong arguments before anything is created.
fn check_layout(args: &MountArgs, layout: &Layout) -> Result<(), CliError> {
    let mut volumes = layout.hosts.iter().flat_map(|host| &host.volumes);
    if let Some((volume, backend)) = volumes.find_map(|own| Some((own, own.backend.as_ref()?))) {
        return Err(CliError::Refused(format!(
            "{}: volume {:?}: a mount keeps its files in a folder, and not on the backend {backend}; \
             use weir serve, or remove backend from the layout",
            args.layout.display(),
            volume.name
        )));
    }
    let instances = layout.hosts.iter().filter(|host| host.instance.is_some()).count();
    check_databases(args, instances)?;
    if let Some(data) = args.data.as_deref().filter(|data| is_within(data, &args.dir)) {
        return Err(CliError::Refused(format!(
            "--data {}: is inside the mount point {}; choose another folder",
            data.display(),
            args.dir.display()
        )));
    }
    // Checked before the data directory is created. An existing one can have volumes that were
    // created on a running server.
    let is_new = args.data.as_deref().is_none_or(|data| !data.exists());
    let has_none = layout.hosts.iter().all(|host| host.exports.is_empty());
    if is_new && has_none && args.databases.is_empty() {
        return Err(nothing_to_mount());
    }
    Ok(())
}

/// Returns whether a path leads into a directory; its last components need not exist.
fn is_within(path: &Path, dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let there = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let here = Path::new(".").canonicalize();
    let found = there.into_iter().find_map(|path| path.canonicalize().ok()).or(here.ok());
    found.is_some_and(|found| found.starts_with(dir))
}

fn nothing_to_mount() -> CliError {
    CliError::Refused(
        "there is nothing to mount: the layout has no volume, stripe or file, and no --database is \
         given"
            .to_owned(),
    )
}

/// Finds the instance of a database that is not in the layout.
fn check_databases(args: &MountArgs, instances: usize) -> Result<(), CliError> {
    match args.databases.first() {
        Some(database) if instances != 1 => Err(CliError::Refused(format!(
            "--database {database}: the layout has {instances} managed instances; it needs one"
        ))),
        _ => Ok(()),
    }
}

/// Lists the folders of files that belong to no top directory.
fn left_out(files: &Path, names: &[String]) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(files).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| names.iter().all(|name| *path != files.join(name));
    let mut left: Vec<_> = folders.map(|folder| folder.path()).filter(is_left).collect();
    left.sort();
    left
}

/// Lists the top directories with their backing folders and kinds.
fn dirs_of(
    args: &MountArgs,
    server: &Handle,
    data: &Path,
) -> Result<(Vec<Top>, Vec<Dir>), CliError> {
    let exports = server.exports();
    let mut dirs: BTreeMap<String, Dir> = BTreeMap::new();
    let taken = |name: &str| {
        CliError::Refused(format!("two top directories would be called {name:?}; rename one"))
    };
    let instances = server.instances();
    for export in exports {
        let Exported { name, host, is_file, .. } = &export;
        if !is_file {
            if dirs.insert(name.clone(), Dir::Volume(export.clone())).is_some() {
                return Err(taken(name));
            }
            continue;
        }
        let database = export.database.clone().unwrap_or_else(|| "tempdb".to_owned());
        let empty =
            Dir::Database { host: host.clone(), name: database.clone(), declared: Vec::new() };
        match dirs.entry(database.clone()).or_insert(empty) {
            Dir::Database { host: own, declared, .. } if own == host => declared.push(export),
            _ => return Err(taken(&database)),
        }
    }
    check_databases(args, instances.len())?;
    for (database, host) in args.databases.iter().zip(instances.iter().cycle()) {
        let dir =
            Dir::Database { host: host.clone(), name: database.clone(), declared: Vec::new() };
        if !matches!(dirs.entry(database.clone()).or_insert(dir), Dir::Database { .. }) {
            return Err(taken(database));
        }
    }
    if dirs.is_empty() {
        return Err(nothing_to_mount());
    }
    let (mut tops, mut kinds) = (Vec::new(), Vec::new());
    let files = data.join(FILES);
    for (id, (name, dir)) in (0..).zip(dirs) {
        let backing = files.join(&name);
        std::fs::create_dir_all(&backing).map_err(|source| CliError::Folder {
            context: format!("making {}", backing.display()),
            source,
        })?;
        tops.push(Top { name: name.into(), backing, id: DirId(id) });
        kinds.push(dir);
    }
    // After a loss of power, the folders must exist whenever a synced file does.
    for folder in [&files, data] {
        let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        let context = format!("syncing {}", folder.display());
        synced.map_err(|source| CliError::Folder { context, source })?;
    }
    Ok((tops, kinds))
}
