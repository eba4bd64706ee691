//! A trace with its devices.

use super::error::{BeyondEnd, ReplayError};
use super::lane::Lane;
use super::options::{Recording, ReplayOptions};
use super::pace::Pace;
use crate::place::Device;
use std::collections::BTreeSet;
use weir_trace::{Kind, ReadTrace, Request};
use weir_units::Instant;

/// A trace and the requests of it that are under way.
pub(super) struct Stream {
    name: String,
    trace: Box<dyn ReadTrace>,
    /// Several traces are replayed, so that names of devices need that of the trace.
    several: bool,
    /// The lane of each device of the trace.
    lanes: Vec<Option<usize>>,
    /// The next request, and its lane.
    next: Option<(Request, usize)>,
    has_ended: bool,
    /// Number of requests read.
    read: u64,
    /// First and last arrival.
    span: Option<(Instant, Instant)>,
    /// Recorded completions and tags of requests in flight, of a closed replay.
    pub(super) open: BTreeSet<(Instant, u32)>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("name", &self.name).field("read", &self.read).finish()
    }
}

impl Stream {
    pub(super) fn new(recording: Recording, several: bool) -> Self {
        let Recording { name, trace } = recording;
        Self {
            name,
            trace,
            several,
            lanes: Vec::new(),
            next: None,
            has_ended: false,
            read: 0,
            span: None,
            open: BTreeSet::new(),
        }
    }

    #[inline]
    pub(super) const fn wants_more(&self) -> bool {
        self.next.is_none() && !self.has_ended
    }

    pub(super) const fn is_done(&self) -> bool {
        self.next.is_none() && self.has_ended
    }

    pub(super) fn read(&mut self) -> Result<Option<Request>, ReplayError> {
        let failed = |source| ReplayError::Trace { trace: self.name.clone(), source };
        let request = self.trace.next_request().map_err(failed)?;
        match &request {
            Some(request) => {
                self.read += 1;
                let first = self.span.map_or(request.at, |(first, _)| first);
                self.span = Some((first, request.at));
            }
            None => self.has_ended = true,
        }
        Ok(request)
    }

    /// Keeps a request as the next one.
    pub(super) fn put(
        &mut self,
        request: Request,
        lane: usize,
        pace: Pace,
    ) -> Result<(), ReplayError> {
        if pace == (Pace::Closed { depth: None }) && request.latency.is_none() {
            return Err(ReplayError::NoLatency { trace: self.name.clone(), number: self.read });
        }
        self.next = Some((request, lane));
        Ok(())
    }

    pub(super) const fn take(&mut self) -> Option<(Request, usize)> {
        self.next.take()
    }

    /// Returns the time at which the next request may be issued; a closed replay may issue at `now`
    /// or only after a completion.
    #[inline]
    pub(super) fn due(&self, pace: Pace, now: Instant) -> Option<Instant> {
        let (next, _) = self.next.as_ref()?;
        match pace {
            Pace::Closed { depth: Some(depth) } => {
                (self.open.len() < depth as usize).then_some(now)
            }
            Pace::Closed { depth: None } => {
                let earliest = self.open.first();
                earliest.is_none_or(|(end, _)| *end > next.at).then_some(now)
            }
            _ => pace.due(next.at),
        }
    }

    /// Returns the lane of a device of the trace.
    #[inline]
    pub(super) fn lane(
        &mut self,
        device: u32,
        lanes: &mut Vec<Lane>,
        devices: &[Device],
        options: &ReplayOptions,
    ) -> Result<usize, ReplayError> {
        if let Some(Some(lane)) = self.lanes.get(device as usize) {
            return Ok(*lane);
        }
        self.new_lane(device as usize, lanes, devices, options)
    }

    fn new_lane(
        &mut self,
        device: usize,
        lanes: &mut Vec<Lane>,
        devices: &[Device],
        options: &ReplayOptions,
    ) -> Result<usize, ReplayError> {
        let name = self.device(device).to_owned();
        let mapped = options.map.iter().find(|(own, _)| *own == name);
        let wanted = mapped.map_or(name.as_str(), |(_, target)| target.as_str());
        let only = || (devices.len() == 1 && self.trace.wanted() == 1).then_some(0);
        let target = devices.iter().position(|own| own.name == wanted).or_else(only);
        let Some(target) = target else {
            let near = weir_units::nearest(wanted, devices.iter().map(|own| own.name.as_str()));
            return Err(ReplayError::NoDevice {
                trace: self.name.clone(),
                near: near.map(str::to_owned),
                known: known(devices),
                device: name,
            });
        };
        let on = &devices[target].name;
        let mut title = if *on == name { name } else { format!("{name} on {on}") };
        if self.several {
            title = format!("{}: {title}", self.name);
        }
        let lane = lanes.len();
        lanes.push(Lane::new(title, u32::try_from(target).unwrap_or(u32::MAX)));
        if self.lanes.len() <= device {
            self.lanes.resize(device + 1, None);
        }
        self.lanes[device] = Some(lane);
        Ok(lane)
    }

    fn device(&self, device: usize) -> &str {
        self.trace.devices().get(device).map_or("", String::as_str)
    }

    pub(super) fn device_names(&self) -> impl Iterator<Item = &str> {
        self.trace.devices().iter().map(String::as_str)
    }

    /// Returns the first arrival so far.
    pub(super) fn first(&self) -> Instant {
        self.span.map_or(Instant::ZERO, |(first, _)| first)
    }

    /// Returns the last arrival so far.
    pub(super) fn last(&self) -> Instant {
        self.span.map_or(Instant::ZERO, |(_, last)| last)
    }

    /// Returns the devices that were asked for and not seen so far.
    pub(super) fn missing(&self) -> Vec<&str> {
        self.trace.missing()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let notes = self.trace.notes().into_iter();
        notes.map(|note| format!("{}: {note}", self.name)).collect()
    }

    pub(super) fn too_long(&self, request: &Request) -> ReplayError {
        let (trace, number, len) = (self.name.clone(), self.read, request.len);
        ReplayError::TooLong { trace, number, len }
    }

    pub(super) fn beyond(&self, request: &Request, target: &Device, wraps: bool) -> ReplayError {
        let kind = match request.kind {
            Kind::WriteThrough => Kind::Write,
            kind => kind,
        };
        let hint = match wraps {
            true => "leave such requests out: it is longer than the volume",
            false => "move such requests into it with --wrap",
        };
        ReplayError::Beyond(Box::new(BeyondEnd {
            trace: self.name.clone(),
            number: self.read,
            kind: kind.name(),
            len: request.len,
            offset: request.offset,
            device: self.device(request.device as usize).to_owned(),
            target: target.name.clone(),
            size: target.size,
            hint,
        }))
    }
}

fn known(devices: &[Device]) -> String {
    devices.iter().map(|own| own.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Checks that each device is mapped once, to a device that exists.
pub(super) fn check_map(map: &[(String, String)], devices: &[Device]) -> Result<(), ReplayError> {
    for (at, (device, target)) in map.iter().enumerate() {
        if map[..at].iter().any(|(other, _)| other == device) {
            return Err(ReplayError::MappedTwice { device: device.clone() });
        }
        if !devices.iter().any(|own| own.name == *target) {
            let near = weir_units::nearest(target, devices.iter().map(|own| own.name.as_str()));
            return Err(ReplayError::Map {
                device: device.clone(),
                target: target.clone(),
                near: near.map(str::to_owned),
                known: known(devices),
            });
        }
    }
    Ok(())
}
