//! Mounts a folder without limits until it is unmounted: `passthrough BACKING DIR`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use weir_mount::{DirId, Mount, Options, Top, Unlimited};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(backing), Some(dir), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: passthrough BACKING DIR".into());
    };
    let top = Top { name: "volume".into(), backing: backing.into(), id: DirId(0) };
    let mount = Mount::single(top, Arc::new(Unlimited), Options::default());
    mount.spawn(Path::new(&dir))?.wait()?;
    Ok(())
}
