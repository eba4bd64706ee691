//! The connections of a run, one for each process and device.

use crate::error::RunnerError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_client::{ClientError, Connection};
use weir_client::{WireId, Wires};
use weir_proto::Uri;
use weir_units::Bytes;
use weir_workload::job::Mix;
use weir_workload::{JobSpec, Placed, Region};

pub(super) struct Links {
    pub(super) wires: Wires,
    /// The device of each wire, by process.
    devices: Vec<u32>,
    /// The first wire of each process.
    first: Vec<WireId>,
}

impl Links {
    pub(super) fn open(placed: &[Placed], uris: &[Uri]) -> Result<Self, RunnerError> {
        raise_file_limit();
        let first = Vec::with_capacity(placed.len());
        let mut opening = Self { wires: Wires::new()?, devices: Vec::new(), first };
        for process in placed {
            opening.connect(process, uris)?;
        }
        Ok(opening)
    }

    fn connect(&mut self, process: &Placed, uris: &[Uri]) -> Result<(), RunnerError> {
        let first = self.devices.len();
        self.first.push(first);
        for region in &process.regions {
            let uri = uris.get(region.device as usize);
            let uri = uri.unwrap_or_else(|| panic!("device {} has no URI", region.device));
            let known = self.devices[first..].iter().position(|device| *device == region.device);
            let id = match known {
                Some(known) => first + known,
                None => {
                    self.devices.push(region.device);
                    self.wires.add(Connection::open(uri)?)?
                }
            };
            check(self.wires.connection(id), &process.spec, region, uri)?;
        }
        Ok(())
    }

    /// Returns the wire of a process to one of its devices.
    #[inline]
    pub(super) fn wire(&self, process: u32, device: u32) -> WireId {
        let mut id = self.first[process as usize];
        // A process has few devices, and a wire to each.
        while self.devices[id] != device {
            id += 1;
        }
        id
    }

    pub(super) fn device(&self, id: WireId) -> usize {
        self.devices[id] as usize
    }
}

/// Checks that the export accepts the job's requests.
fn check(
    connection: &Connection,
    spec: &JobSpec,
    region: &Region,
    uri: &Uri,
) -> Result<(), RunnerError> {
    let (size, maximum) = (connection.size(), connection.session().block.max_payload());
    let needed = Bytes::new(region.base.get().saturating_add(region.len.get()));
    if needed > size {
        let (job, export) = (spec.name.clone(), uri.export.clone());
        return Err(RunnerError::TooSmall { job, export, size, needed });
    }
    if spec.mix != Mix::Trim && spec.max_block() > maximum {
        let length = spec.max_block() as usize;
        return Err(RunnerError::from(ClientError::TooLong { length, maximum }).for_job(&spec.name));
    }
    Ok(())
}

/// Raises the limit on open files: 1,024 are too few for many processes.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Without the permission, the old limit remains.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
