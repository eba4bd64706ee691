//! Bodies of requests and responses.

use crate::digest::{Check, Sums};
use crate::fault::{Code, Fault, Result};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// Timeout for the rest of a refused request body.
const DRAIN: Duration = Duration::from_secs(5);

/// The least rate of a body. A body of n bytes may keep the service waiting for `grace` and the time
/// that n bytes take at `rate`; the total is therefore bounded as well.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Wait that does not depend on the length.
    pub grace: Duration,
    /// In bytes per second.
    pub rate: u64,
}

impl Pace {
    /// The least rate of the service.
    pub const DEFAULT: Self = Self { grace: Duration::from_secs(30), rate: 16 << 10 };

    /// Returns how much longer a body of which `received` bytes took `waited` may take for its next
    /// bytes.
    #[must_use]
    pub fn left(&self, received: u64, waited: Duration) -> Duration {
        let earned = received.saturating_mul(1000) / self.rate;
        (self.grace + Duration::from_millis(earned)).saturating_sub(waited)
    }
}

/// A request body that is being received.
#[derive(Debug)]
pub struct Body {
    incoming: Option<Incoming>,
    pace: Pace,
    received: u64,
    /// Time spent waiting for the client.
    waited: Duration,
}

impl Body {
    /// Wraps the body of a connection.
    #[must_use]
    pub const fn new(incoming: Incoming, pace: Pace) -> Self {
        Self { incoming: Some(incoming), pace, received: 0, waited: Duration::ZERO }
    }

    /// Returns the body of a request that has none.
    #[must_use]
    pub(crate) const fn empty() -> Self {
        Self { incoming: None, pace: Pace::DEFAULT, received: 0, waited: Duration::ZERO }
    }

    /// Returns the next bytes; `None` at the end.
    ///
    /// # Errors
    ///
    /// The client disconnected, or sent too slowly.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(incoming) = &mut self.incoming else { return Ok(None) };
        loop {
            let begun = tokio::time::Instant::now();
            let left = self.pace.left(self.received, self.waited);
            let frame = tokio::time::timeout(left, incoming.frame()).await;
            self.waited += begun.elapsed();
            match frame.map_err(|_| Code::OperationTimedOut)? {
                None => return Ok(None),
                Some(Err(_)) => return Err(Code::InvalidInput.into()),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.received += data.len() as u64;
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Receives the whole body, of up to `most` bytes.
    ///
    /// # Errors
    ///
    /// [`Code::RequestBodyTooLarge`], and the errors of [`next`](Self::next).
    pub async fn all(&mut self, most: usize) -> Result<Bytes> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let mut rest = BytesMut::new();
        while let Some(bytes) = self.next().await? {
            if first.len() + rest.len() + bytes.len() > most {
                return Err(too_large(most));
            }
            rest.extend_from_slice(&bytes);
        }
        if first.len() > most {
            return Err(too_large(most));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let mut whole = BytesMut::with_capacity(first.len() + rest.len());
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&rest);
        Ok(whole.freeze())
    }

    /// Receives the whole body and verifies its checksums.
    ///
    /// # Errors
    ///
    /// The errors of [`all`](Self::all), and [`Code::Md5Mismatch`] or [`Code::Crc64Mismatch`].
    pub async fn checked(&mut self, mut check: Check, most: usize) -> Result<(Bytes, Sums)> {
        let bytes = self.all(most).await?;
        check.add(&bytes);
        Ok((bytes, check.end()?))
    }

    /// Reads and discards up to `most` bytes, because some clients send the whole body before they
    /// read the response. Returns whether the body ended.
    pub async fn drain(&mut self, most: usize) -> bool {
        tokio::time::timeout(DRAIN, self.drain_all(most)).await.unwrap_or(false)
    }

    async fn drain_all(&mut self, most: usize) -> bool {
        let mut left = most;
        loop {
            match self.next().await {
                Ok(None) => return true,
                Ok(Some(bytes)) if bytes.len() <= left => left -= bytes.len(),
                _ => return false,
            }
        }
    }
}

fn too_large(most: usize) -> Fault {
    Fault::from(Code::RequestBodyTooLarge).with("MaxLimit", most.to_string())
}

/// A future that yields the next part of a response.
pub type Source = Pin<Box<dyn Future<Output = Option<(Result<Bytes>, Rest)>>>>;

/// The continuation of a response after a part.
pub struct Rest(pub Box<dyn FnOnce() -> Source>);

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rest")
    }
}

/// The body of a response.
pub enum Content {
    /// No body.
    Empty,
    /// A body in memory.
    Whole(Bytes),
    /// A streamed body: its length, the first part, and the rest.
    Parts(u64, Bytes, Rest),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Whole(bytes) => write!(f, "Whole({})", bytes.len()),
            Self::Parts(len, ..) => write!(f, "Parts({len})"),
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: StatusCode,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// The response's body.
    pub content: Content,
}

impl Reply {
    /// Builds a response with a status, and neither headers nor body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, headers: HeaderMap::new(), content: Content::Empty }
    }

    /// Adds a header. A value that is not valid in HTTP is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(value.to_string())) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// Adds a header if there is a value.
    #[must_use]
    pub(crate) fn with_some(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a header. A value that is not valid in HTTP is left out.
    pub fn set(&mut self, name: &str, value: &str) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            self.headers.insert(name, value);
        }
    }

    /// Sets an XML document as body.
    #[must_use]
    pub fn xml(mut self, document: String) -> Self {
        self.set("content-type", "application/xml");
        self.content = Content::Whole(document.into());
        self
    }

    /// Sets bytes as body.
    #[must_use]
    pub fn bytes(mut self, bytes: Bytes) -> Self {
        self.content = Content::Whole(bytes);
        self
    }

    /// Returns the length of the body.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Empty => 0,
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Parts(len, ..) => *len,
        }
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_least_rate_and_an_end() {
        let check = |received, waited, expect| {
            let left = Pace::DEFAULT.left(received, Duration::from_secs(waited));
            assert_eq!(left, Duration::from_secs(expect), "{received} bytes in {waited} s");
        };
        check(0, 0, 30);
        check(0, 30, 0);
        // A byte each 15 s prolongs it by nothing.
        check(2, 31, 0);
        check(1 << 20, 31, 63);
        check(1 << 20, 94, 0);
        // The longest write of pages ends within 5 min.
        check(4 << 20, 0, 286);
        assert!(Pace::DEFAULT.left(u64::MAX, Duration::ZERO) > Duration::from_secs(1 << 30));
    }
}
