//! `weir mcp`, called by the client library of the protocol.

use crate::common::{Place, run};

#[cfg(not(feature = "mcp"))]
#[test]
fn a_build_without_the_protocol_says_how_to_get_it() {
    let (_, stderr, code) = run(Place::new().weir(&["mcp", "--root", "."]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("cargo build --release --features mcp"), "{stderr}");
}

#[cfg(feature = "mcp")]
mod with_the_protocol {
    use super::{Place, run};
    use crate::tools::python_with;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::{Command, Stdio};

    const LAYOUT: &str = "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"data\"\ntier = \
        \"P10\"\n";

    /// Makes a root with a layout, jobs and observations, and a secret beside it.
    fn place() -> Place {
        let place = Place::new();
        fs::create_dir(place.path("root")).expect("a folder");
        place.file("secret", "secret");
        place.file("root/layout.toml", LAYOUT);
        let jobs = |more: &str| {
            format!(
                "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\n\
                 ioengine=libaio\n{more}\n"
            )
        };
        place.file("root/held.fio", &jobs("iodepth=32"));
        place.file("root/calm.fio", &jobs("iodepth=4\nrate_iops=100"));
        for name in ["held", "calm"] {
            let (jobs, observed) = (format!("root/{name}.fio"), format!("root/{name}.weirobs"));
            let (_, stderr, code) =
                run(place.weir(&["sim", "root/layout.toml", &jobs, "--observe", &observed]));
            assert_eq!((stderr.as_str(), code), ("", Some(0)));
        }
        symlink(place.path("secret"), place.path("root/link.weirobs")).expect("a link");
        place
    }

    #[test]
    fn the_client_library_calls_all_tools() {
        let Some(python) = python_with("mcp") else { return };
        let place = place();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mcp_client.py");
        let mut command = Command::new(python);
        command.arg(script).arg(env!("CARGO_BIN_EXE_weir")).arg(place.dir());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (stdout, stderr, code) = run(command);
        let failed: Vec<&str> = stdout.lines().filter(|line| !line.starts_with("ok ")).collect();
        assert_eq!((failed, code), (vec![], Some(0)), "{stderr}");
        assert!(stdout.lines().count() >= 30, "{stdout}");
    }

    #[test]
    fn a_root_that_is_no_folder_is_refused() {
        let place = Place::new();
        place.file("file", "");
        for (root, expect) in [
            ("file", "weir: --root file: it is not a folder\n"),
            ("/", "weir: --root /: it is the whole file system; name a folder in it\n"),
        ] {
            let (stdout, stderr, code) = run(place.weir(&["mcp", "--root", root]));
            assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", expect, Some(2)));
        }
        // A client that closes at once is no error.
        let (stdout, stderr, code) = run(place.weir(&["mcp", "--root", "."]));
        assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", "", Some(0)));
    }
}
