//! Single requests, in order of arrival, with their latencies.

use super::request::{Begun, Device, Direction, Request, Sink};
use crate::error::ImportError;
use std::collections::HashMap;
use weir_trace::format::MAX_DEVICES;
use weir_trace::{Kind, Order};
use weir_units::{Instant, Span};

/// Requests that are held back, since others may have arrived earlier.
const WINDOW: usize = 1 << 16;
/// The time, in nanoseconds, by which a request may precede an earlier one; beyond, its time is
/// wrong.
const MOST_BACK: i64 = 60_000_000_000;
/// One request in so many may have a wrong time.
const MOST_WRONG: u64 = 100;
/// The most different objects of a trace for caches: each needs memory.
const MOST_OBJECTS: usize = 1 << 27;

/// A collector of requests.
#[derive(Debug)]
pub(crate) struct Collector {
    order: Order,
    /// Names of the devices.
    pub(crate) devices: Vec<String>,
    known: HashMap<String, HashMap<String, Device>>,
    /// Time of the latest request.
    latest: Option<i64>,
    /// Requests left out because they were much earlier than one before them, or moved nothing.
    wrong: u64,
    /// Requests that were taken or left out.
    taken: u64,
    /// A request much later than those before it. The next one shows which of them is wrong.
    held: Option<Request>,
    empty: u64,
    /// Requests that may be reads or writes.
    either: u64,
    objects: Objects,
}

/// Objects of a trace for caches, one behind the other in order of their first use.
#[derive(Debug, Default)]
struct Objects {
    /// Offset and length of each object.
    places: HashMap<u64, (u64, u64)>,
    end: u64,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self {
            order: Order::new(WINDOW),
            devices: Vec::new(),
            known: HashMap::new(),
            latest: None,
            wrong: 0,
            taken: 0,
            held: None,
            empty: 0,
            either: 0,
            objects: Objects::default(),
        }
    }

    /// Returns the next request that is complete.
    pub(crate) fn pop(&mut self) -> Option<weir_trace::Request> {
        self.order.pop()
    }

    /// Ends the trace.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if its times are in no order, so that too many requests were left out.
    pub(crate) fn finish(&mut self) -> Result<(), ImportError> {
        if let Some(held) = self.held.take() {
            self.add(&held)?;
        }
        self.order.finish();
        if self.wrong > self.taken / MOST_WRONG {
            return Err(ImportError::whole(format!(
                "{} of {} requests are more than 60 s earlier than a previous one, so its times are \
                 wrong; sort it by time, or correct the times that are too late",
                self.wrong, self.taken
            )));
        }
        Ok(())
    }

    fn add(&mut self, request: &Request) -> Result<(), ImportError> {
        if let Some(kept) = self.kept(request)? {
            self.order.add(kept);
        }
        Ok(())
    }

    /// Describes requests that were changed or left out.
    pub(crate) fn notes(&self) -> Vec<String> {
        let count = |count: u64, text: &str| (count > 0).then(|| format!("{count} {text}"));
        let objects = self.objects.places.len() as u64;
        let notes = [
            count(
                self.order.late(),
                "requests were more than 65,536 places too late: each has the time of the request \
                 before it",
            ),
            count(
                self.wrong,
                "requests that were more than 60 s away from those around them are left out",
            ),
            count(self.empty, "requests without a length are left out: they move no bytes"),
            count(self.either, "requests may be reads or writes: they are taken for reads"),
            count(
                objects,
                "objects have no offsets: they are placed one behind the other in order of their \
                 first use",
            ),
        ];
        notes.into_iter().flatten().collect()
    }

    /// Returns the request as it is kept, or `None` if it is left out.
    fn kept(&mut self, request: &Request) -> Result<Option<weir_trace::Request>, ImportError> {
        let Request { at, device, direction, offset, length, latency } = *request;
        let latest = self.latest.unwrap_or(at);
        self.taken += 1;
        if latest.saturating_sub(at) > MOST_BACK {
            self.wrong += 1;
            return Ok(None);
        }
        self.latest = Some(latest.max(at));
        let Ok(nanos) = u64::try_from(at) else {
            return Err(ImportError::whole(format!("a request is at {at} ns, before 1970")));
        };
        let kind = match direction {
            Direction::Read => Kind::Read,
            Direction::Write => Kind::Write,
            Direction::Discard => Kind::Discard,
            Direction::Flush => Kind::Flush,
            Direction::Either => {
                self.either += 1;
                Kind::Read
            }
        };
        let is_flush = kind == Kind::Flush;
        if length == 0 && !is_flush {
            self.empty += 1;
            return Ok(None);
        }
        let (Some(offset), len) = (if is_flush { (Some(0), 0) } else { (offset, length) }) else {
            return Err(ImportError::whole(
                "a request has no offset, and without offsets nothing can be replayed; \
                 `weir observe import` reads the rates of such a trace",
            ));
        };
        if offset.checked_add(len).is_none() {
            let reason = format!("a request of {len} bytes at offset {offset} ends beyond 2^64");
            return Err(ImportError::whole(reason));
        }
        Ok(Some(weir_trace::Request {
            at: Instant::from_nanos(nanos),
            // The number of devices is limited.
            device: u32::try_from(device.0).unwrap_or(u32::MAX),
            kind,
            offset,
            len,
            latency: latency.map(Span::from_nanos),
        }))
    }
}

impl Sink for Collector {
    fn device(&mut self, host: Option<&str>, name: &str) -> Result<Device, ImportError> {
        let of_host = host.unwrap_or_default();
        if let Some(device) = self.known.get(of_host).and_then(|devices| devices.get(name)) {
            return Ok(*device);
        }
        if self.devices.len() >= MAX_DEVICES {
            return Err(ImportError::whole(format!("it has more than {MAX_DEVICES} devices")));
        }
        let device = Device(self.devices.len());
        self.devices.push(host.map_or_else(|| name.to_owned(), |host| format!("{host}/{name}")));
        self.known.entry(of_host.to_owned()).or_default().insert(name.to_owned(), device);
        Ok(device)
    }

    fn request(&mut self, request: Request) -> Result<(), ImportError> {
        if let Some(held) = self.held.take() {
            if held.at.saturating_sub(request.at) > MOST_BACK {
                self.taken += 1;
                self.wrong += 1;
            } else {
                self.add(&held)?;
            }
        }
        if self.latest.is_some_and(|latest| request.at.saturating_sub(latest) > MOST_BACK) {
            self.held = Some(request);
            return Ok(());
        }
        self.add(&request)
    }

    fn object(&mut self, request: Request, object: u64) -> Result<(), ImportError> {
        let Objects { places, end } = &mut self.objects;
        if places.len() >= MOST_OBJECTS {
            return Err(ImportError::whole(format!("it has more than {MOST_OBJECTS} objects")));
        }
        let place = places.entry(object).or_insert((*end, 0));
        if place.1 < request.length {
            // An object that has grown needs another place.
            *place = (*end, request.length);
            *end = end.saturating_add(request.length);
        }
        let offset = Some(place.0);
        self.request(Request { offset, ..request })
    }

    fn begin(&mut self, request: &Request) -> Option<Begun> {
        // An event of the block layer has an offset within its disk.
        let kept = self.kept(request).ok().flatten()?;
        Some(Begun(Some(self.order.begin(kept))))
    }

    fn end(&mut self, begun: Begun, request: &Request) {
        if let Begun(Some(ticket)) = begun {
            self.order.end(ticket, request.latency.map(Span::from_nanos));
        }
    }

    fn done(&mut self, request: &Request) {
        let at = request.at.saturating_sub_unsigned(request.latency.unwrap_or(0));
        if let Ok(Some(kept)) = self.kept(&Request { at, ..*request }) {
            self.order.add(kept);
        }
    }

    fn leave(&mut self, begun: Begun, _device: Device) {
        if let Begun(Some(ticket)) = begun {
            self.order.cancel(ticket);
        }
    }

    fn lose(&mut self, begun: Begun, _device: Device) {
        if let Begun(Some(ticket)) = begun {
            self.order.end(ticket, None);
        }
    }

    fn pass(&mut self, _at: i64) {}
}
