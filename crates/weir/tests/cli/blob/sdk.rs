//! Azure's SDKs, and rclone, against `weir serve`.

use super::Rig;
use crate::common::{Place, run};
use crate::tools;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Sizes decide tiers, and nothing is slow.
const LAYOUT: &str = "edition = \"azure-now\"\n[host]\nunlimited = true\n[blob]\n";

/// Where the clients' scripts are.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Returns whether a program succeeds. It has to with `CI=true`.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so aloud")]
fn can(program: &str, args: &[&str], needs: &str) -> bool {
    let status = Command::new(program)
        .args(args)
        .current_dir(node_folder())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let found = status.is_ok_and(|status| status.success());
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and {needs} is not installed");
    if !found {
        println!("skipped: needs {needs}");
    }
    found
}

/// Python with the SDK: that of `WEIR_TEST_PYTHON`, or the usual one.
fn python() -> Option<String> {
    let python = std::env::var("WEIR_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = ["-c", "import azure.storage.blob"];
    can(&python, &import, "azure-storage-blob for Python").then_some(python)
}

/// The folder with the SDK's node_modules: `WEIR_TEST_NODE`, or here.
fn node_folder() -> PathBuf {
    std::env::var_os("WEIR_TEST_NODE").map_or_else(|| PathBuf::from("."), PathBuf::from)
}

fn node() -> bool {
    can("node", &["-e", "require('@azure/storage-blob')"], "@azure/storage-blob for Node.js")
}

#[track_caller]
fn passes(mut command: Command) {
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let (stdout, stderr, code) = run(command);
    let failed: Vec<&str> = stdout.lines().filter(|line| !line.starts_with("ok ")).collect();
    assert_eq!((failed, code), (vec![], Some(0)), "{stderr}");
    assert!(stdout.lines().count() > 0, "it checked nothing");
}

fn rig(layout: &str) -> Rig {
    Rig::new(Place::without_a_disk(), layout, &[])
}

fn in_python(python: &str, connection: &str, groups: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.arg(script("azure_blob.py")).arg(connection).args(groups);
    command
}

fn in_node(connection: &str, groups: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.arg(script("azure_blob.mjs")).arg(connection).args(groups);
    command.current_dir(node_folder());
    command
}

#[test]
fn the_sdk_for_python_finds_all_that_it_knows() {
    let Some(python) = python() else { return };
    let rig = rig(LAYOUT);
    passes(in_python(&python, &rig.connection(), &[]));
    rig.server.stop();
}

#[test]
fn the_sdk_for_python_finds_it_on_a_disk_too() {
    let Some(python) = python() else { return };
    let rig = Rig::new(Place::new(), LAYOUT, &["--data", "data"]);
    passes(in_python(&python, &rig.connection(), &[]));
    rig.server.stop();
}

#[test]
fn the_sdk_for_javascript_finds_all_that_it_knows() {
    if !node() {
        return;
    }
    let rig = rig(LAYOUT);
    passes(in_node(&rig.connection(), &[]));
    rig.server.stop();
}

/// Over a cap the server says 503, and the SDKs come again until it does not.
const REJECTING: &str = "[host]\nunlimited = true\n[blob]\nover = \"reject\"\niops = 60\n";

#[test]
fn the_retry_of_both_sdks_brings_refused_requests_through() {
    if let Some(python) = python() {
        let rig = rig(REJECTING);
        passes(in_python(&python, &rig.connection(), &["retry"]));
    }
    if node() {
        let rig = rig(REJECTING);
        passes(in_node(&rig.connection(), &["retry"]));
    }
}

#[test]
fn https_with_a_certificate_of_ones_own() {
    let Some(python) = python() else { return };
    let place = Place::without_a_disk();
    let (stdout, _, code) = run(place.weir(&["cert", "tls"]));
    assert_eq!(code, Some(0));
    assert_eq!(stdout, "tls/authority.pem\ntls/certificate.pem\ntls/key.pem\n");
    let again = run(place.weir(&["cert", "tls"]));
    assert_eq!(again.2, Some(2), "{again:?}");
    let tls = "certificate = \"tls/certificate.pem\"\nkey = \"tls/key.pem\"\n";
    place.file("layout.toml", &format!("{LAYOUT}{tls}"));
    let args = ["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--blob", "127.0.0.1:0"];
    let mut command = place.weir(&args);
    command.stdout(std::fs::File::create(place.path("out")).expect("a file"));
    let server = crate::common::Server::start(command);
    let said = std::fs::read_to_string(place.path("out")).expect("text");
    let url = said.trim().strip_prefix("blobs ").expect("a URL");
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let key = super::client::KEY;
    let connection = format!(
        "DefaultEndpointsProtocol=https;AccountName=devstoreaccount1;AccountKey={key};\
         BlobEndpoint={url};"
    );
    let mut command = in_python(&python, &connection, &["page-write", "auth-account-sas"]);
    command.env("REQUESTS_CA_BUNDLE", place.path("tls/authority.pem"));
    passes(command);
    drop(server);
}

#[test]
fn rclone_copies_a_folder_in_and_out() {
    tools::needs!("rclone");
    let rig = rig(LAYOUT);
    let place = &rig.place;
    std::fs::create_dir_all(place.path("from/deep er/ü")).expect("folders");
    let large: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(place.path("from/large.bak"), &large).expect("a file");
    std::fs::write(place.path("from/empty"), b"").expect("a file");
    std::fs::write(place.path("from/deep er/ü/x y.txt"), b"some text").expect("a file");
    let remote = format!(":azureblob,sas_url='{}':backups", rig.client.signed_url());
    let rclone = |args: &[&str]| {
        let mut command = Command::new("rclone");
        command.args(args).current_dir(place.dir()).env("RCLONE_CONFIG", "/dev/null");
        let (stdout, stderr, code) = run(command);
        assert_eq!(code, Some(0), "{args:?}: {stdout} {stderr}");
        stdout
    };
    rclone(&[
        "copy",
        "from",
        &remote,
        "--azureblob-chunk-size",
        "4Mi",
        "--azureblob-upload-cutoff",
        "4Mi",
    ]);
    rclone(&["check", "from", &remote]);
    rclone(&["copy", &remote, "to"]);
    assert_eq!(std::fs::read(place.path("to/large.bak")).expect("a file"), large);
    assert_eq!(std::fs::read(place.path("to/deep er/ü/x y.txt")).expect("a file"), b"some text");
    assert_eq!(rclone(&["lsf", "-R", "--files-only", &remote]).lines().count(), 3);
    rclone(&["purge", &remote]);
}
