//! A client of page blobs.

use super::shared::{Shared, count};
use crate::blob_client::BlobClient;
use crate::error::XtaskError;
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_random::Rng;

/// The time between two requests, in milliseconds.
const REST: u64 = 20;
const SIZE: usize = 1 << 20;
const PAGE: usize = 512;
/// Requests for a blob until it is deleted, at most.
const STAY: u64 = 300;

struct Client {
    shared: Arc<Shared>,
    blobs: BlobClient,
    rng: Rng,
}

/// Starts a client that creates page blobs, writes, reads and deletes them.
pub(super) fn start(shared: &Arc<Shared>, rng: &mut Rng) -> Result<JoinHandle<()>, XtaskError> {
    let rng = Rng::new(&[rng.next_u64()]);
    let blobs = BlobClient::new(shared.ports.1)?;
    let mut client = Client { shared: Arc::clone(shared), blobs, rng };
    Ok(shared.spawn("blobs", move || client.run()))
}

impl Client {
    fn run(&mut self) -> Result<(), String> {
        self.ask(("PUT", "/soak?restype=container&"), &[], &[], 201)?;
        while !self.shared.is_over() {
            let blob = format!("/soak/blob-{}", self.rng.below(4));
            let size = SIZE.to_string();
            let kind = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*size)];
            self.ask(("PUT", &format!("{blob}?")), &kind, &[], 201)?;
            let mut content = vec![0; SIZE];
            for _ in 0..self.rng.within(1, STAY) {
                if self.shared.is_over() {
                    break;
                }
                self.touch(&blob, &mut content)?;
                self.shared.rest(REST);
            }
            let all = self.ask(("GET", &format!("{blob}?")), &[], &[], 200)?;
            if all != content {
                return Err(format!("{blob}: other bytes than were written"));
            }
            self.ask(("DELETE", &format!("{blob}?")), &[], &[], 202)?;
        }
        Ok(())
    }

    /// Writes, clears or reads some pages.
    fn touch(&mut self, blob: &str, content: &mut [u8]) -> Result<(), String> {
        let first = self.rng.index(SIZE / PAGE);
        let pages = self.rng.index((SIZE / PAGE - first).min(64)) + 1;
        let (from, to) = (first * PAGE, (first + pages) * PAGE);
        let range = format!("bytes={from}-{}", to - 1);
        let pages = format!("{blob}?comp=page&");
        match self.rng.below(10) {
            0 => {
                content[from..to].fill(0);
                let headers = [("x-ms-page-write", "clear"), ("x-ms-range", &*range)];
                self.ask(("PUT", &pages), &headers, &[], 201).map(drop)
            }
            1..=4 => {
                self.rng.fill(&mut content[from..to]);
                let headers = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
                self.ask(("PUT", &pages), &headers, &content[from..to], 201).map(drop)
            }
            _ => {
                let headers = [("x-ms-range", &*range)];
                let found = self.ask(("GET", &format!("{blob}?")), &headers, &[], 206)?;
                if found != content[from..to] {
                    return Err(format!("{blob}: other bytes than were written in {range}"));
                }
                Ok(())
            }
        }
    }

    fn ask(
        &self,
        request: (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
        status: u16,
    ) -> Result<Vec<u8>, String> {
        let answer = self.blobs.must(request, headers, body, status)?;
        count(&self.shared.counts.blobs);
        Ok(answer.body)
    }
}
