//! `weir serve`.

use super::kept;
use super::waiting::{self, Waiting};
use super::web::Web;
use crate::cli::ServeArgs;
use crate::error::CliError;
use crate::input::{edition_of, read_layout, say_notes};
use crate::output;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;
use weir_blob::Endpoint;
use weir_catalog::{Catalog, Edition};
use weir_layout::{Blob, Layout};
use weir_report::status::VolumeStatus;
use weir_server::{Address, Options, Server, Tls};

pub(crate) fn run(args: &ServeArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let layout = read_layout(&args.layout, catalog)?;
    say_notes(&layout);
    if let Some(file) = args.data.as_ref().filter(|path| path.exists() && !path.is_dir()) {
        return Err(CliError::Refused(format!(
            "--data {}: is a file; give a folder, or a path where one can be created",
            file.display()
        )));
    }
    check_checksums(args, &layout)?;
    check_addresses(args)?;
    let web = Web::bind(&args.web, Some(&args.control.control))?;
    // A server never ends by itself.
    let waiting = Waiting::<Infallible>::begin()?;
    let edition = edition_of(&layout, catalog)?;
    let blob = blob_of(args, &layout, edition)?;
    let tls = tls_of(args, &layout)?;
    check_access(args, &layout)?;
    let options = Options {
        may_be_empty: blob.is_some(),
        data: args.data.clone(),
        listen: args.nbd.clone(),
        tls,
        control: Some(args.control.control.clone()),
        notices: waiting.notices(),
        write_logs: write_logs_of(args)?,
        waiting: args.wait.waiting(),
        ..Options::default()
    };
    let declared = kept::declared(&layout);
    let data = args.data.as_deref();
    let unnamed = data.map(|data| kept::unnamed(data, &args.layout, &declared));
    let is_open = layout.access.is_open();
    let server = Server::start(layout, edition, &options)?;
    // Only the server knows where passed sockets listen.
    if args.tls_certificates.is_none() && args.nbd.contains(&Address::Systemd) {
        server
            .addresses()
            .filter(|own| !args.nbd.contains(own))
            .for_each(|own| warn_if_remote(own, is_open));
    }
    unnamed.unwrap_or_default().iter().for_each(|line| output::talk(line));
    let overrides = kept::overrides(&server.status(), &args.layout, &declared);
    overrides.iter().for_each(|line| output::talk(line));
    let blob = blob.map(|blob| Endpoint::start(server.handle(), &blob)).transpose()?;
    let web = web.serve(&server.handle())?;
    introduce(args, &server, blob.as_ref())?;
    waiting.wait()?;
    output::talk("stopping: completing the requests in flight; press Ctrl-C again to stop at once");
    drop(web);
    // The blob service's clients are served by the server.
    let blobs = blob.map_or(Ok(()), Endpoint::stop);
    waiting::stop(server)?;
    blobs?;
    Ok(0)
}

/// Refuses checksums of volumes in memory, where they would protect nothing.
fn check_checksums(args: &ServeArgs, layout: &Layout) -> Result<(), CliError> {
    let mut volumes = layout.hosts.iter().flat_map(|host| &host.volumes);
    match volumes.find(|own| own.has_checksums()) {
        Some(own) if args.data.is_none() => Err(CliError::Refused(format!(
            "volume {:?} has checksums = true, but without --data its bytes are only in memory; add --data DIR, \
             or remove checksums",
            own.name
        ))),
        _ => Ok(()),
    }
}

/// Reads the certificates, and warns of addresses that others can reach without them.
fn tls_of(args: &ServeArgs, layout: &Layout) -> Result<Option<Tls>, CliError> {
    if let Some(folder) = &args.tls_certificates {
        if args.nbd.iter().all(|own| matches!(own, Address::Unix(_))) {
            return Err(CliError::Refused(
                "--tls-certificates: only clients over TCP use TLS; add --nbd tcp:HOST:PORT"
                    .to_owned(),
            ));
        }
        return Ok(Some(Tls::from_folder(folder, args.tls_verify_peer)?));
    }
    args.nbd.iter().for_each(|own| warn_if_remote(own, layout.access.is_open()));
    Ok(None)
}

/// Warns of an address that other machines reach, where nothing is encrypted.
fn warn_if_remote(address: &Address, is_open: bool) {
    if address.is_remote() {
        let who = match is_open {
            true => {
                "other machines can read and write all volumes there, without a login and in plain text"
            }
            false => "data is in plain text there, and a client is known by its address alone",
        };
        output::talk(&format!(
            "{address}: {who}; --tls-certificates DIR --tls-verify-peer admits only clients with a \
             certificate"
        ));
    }
}

/// Refuses an address that is given twice: the second would find the first in use.
fn check_addresses(args: &ServeArgs) -> Result<(), CliError> {
    let mut all: Vec<String> = args.nbd.iter().map(ToString::to_string).collect();
    // Port 0 takes a free port each time.
    all.retain(|own| !own.ends_with(":0"));
    all.push(Address::Unix(args.control.control.clone()).to_string());
    let mut seen = BTreeSet::new();
    match all.iter().find(|own| !seen.insert(*own)) {
        Some(twice) => Err(CliError::Refused(format!(
            "{twice} is given twice, by --nbd or --control; give each an address of its own"
        ))),
        None => Ok(()),
    }
}

/// Returns the file of each volume with a write log.
fn write_logs_of(args: &ServeArgs) -> Result<BTreeMap<String, PathBuf>, CliError> {
    let mut logs = BTreeMap::new();
    for (volume, file) in &args.write_logs {
        if logs.contains_key(volume) {
            return Err(CliError::Refused(format!(
                "--write-log {volume}={}: {volume} has a write log already; name each volume once",
                file.display()
            )));
        }
        if let Some((other, _)) = logs.iter().find(|(_, own)| *own == file) {
            return Err(CliError::Refused(format!(
                "--write-log {volume}={}: it is the write log of {other}; give each volume a file of its own",
                file.display()
            )));
        }
        logs.insert(volume.clone(), file.clone());
    }
    Ok(logs)
}

/// Checks that clients that the layout knows by their certificates have some.
fn check_access(args: &ServeArgs, layout: &Layout) -> Result<(), CliError> {
    if args.tls_verify_peer || !layout.access.needs_certificates() {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "{}: clients.certificates admits clients by their certificates, but the server asks for none; add \
         --tls-certificates DIR --tls-verify-peer, or use clients.addresses",
        args.layout.display()
    )))
}

/// Combines the page blob settings of the layout and of the arguments.
fn blob_of(
    args: &ServeArgs,
    layout: &Layout,
    edition: Option<&Edition>,
) -> Result<Option<Blob>, CliError> {
    let rooted = |mut blob: Blob| {
        // Paths in a layout are relative to its folder.
        let folder = args.layout.parent();
        if let (Some(folder), Some((certificate, key))) = (folder, &mut blob.tls) {
            (*certificate, *key) = (folder.join(&certificate), folder.join(&key));
        }
        blob
    };
    let Some(listen) = &args.blob else { return Ok(layout.blob.clone().map(rooted)) };
    let wrong = |kind| CliError::Refused(format!("--blob: {kind}"));
    let blob = layout.blob_or_default(edition).map(rooted).map_err(wrong)?;
    Ok(Some(Blob { listen: listen.clone().unwrap_or(blob.listen), ..blob }))
}

/// Prints the exports and addresses.
fn introduce(args: &ServeArgs, server: &Server, blob: Option<&Endpoint>) -> Result<(), CliError> {
    for refused in server.refused() {
        output::talk(&format!("weir: not served: {refused}"));
    }
    for (name, uris) in server.uris() {
        for uri in uris {
            output::print_text(&format!("{name} {uri}\n"))?;
        }
    }
    if blob.is_some_and(Endpoint::is_full) {
        output::talk(
            "weir: blobs: the disk of the data folder is full: reads and deletes are served, and \
             nothing else until there is space",
        );
    }
    for [old, new] in blob.iter().flat_map(|blob| blob.renamed()) {
        output::talk(&format!(
            "weir: blobs: {old} is now {new}, because a backslash is a slash and the name with slashes \
             is taken"
        ));
    }
    for url in blob.iter().flat_map(|blob| blob.urls()) {
        output::print_text(&format!("blobs {url}\n"))?;
    }
    let is_in_memory = |volume: &VolumeStatus| volume.backend.is_none();
    let status = server.status();
    let mut volumes = status.hosts.iter().flat_map(|host| &host.volumes);
    if args.data.is_none() && (blob.is_some() || volumes.any(is_in_memory)) {
        output::talk("the data is in memory and lost at exit; --data DIR keeps it");
    }
    output::talk(&format!("ready; control socket {}", args.control.control.display()));
    Ok(())
}
