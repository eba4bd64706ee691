//! Page blobs over REST, with signed requests. Each answer is a promise.

use super::oracle::{self, BLOCK, Block, content, stamp_of};
use super::server::{Served, lost};
use super::system::End;
use super::writers::{self, Progress};
use super::{Campaign, ROUNDS, Tally};
use crate::blob_client::BlobClient;
use crate::error::XtaskError;
use crate::suite::running::free_port;
use std::fs;
use weir_random::Rng;

/// Blocks of a blob.
const BLOCKS: usize = 64;
/// Blocks of a request, at most.
const LONGEST: u64 = 8;
/// Snapshots of a blob, at most.
const SNAPSHOTS: usize = 3;

/// A blob with its only writer.
struct Blob {
    path: String,
    blocks: Vec<Block>,
    /// Snapshots with the contents that they show.
    snapshots: Vec<(String, Vec<u64>)>,
    rng: Rng,
    stamp: u64,
    /// Changes and snapshots that were answered.
    answered: u64,
}

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let limits = match rng.below(3) {
        0 => format!("iops = {}\n", 500 << rng.below(6)),
        _ => String::new(),
    };
    let layout = campaign.folder.join("layout.toml");
    let text = format!("[host]\nunlimited = true\n[blob]\n{limits}");
    fs::write(&layout, text).map_err(XtaskError::file("writing", &layout))?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let args = ["serve", "layout.toml", "--nbd", "unix:nbd", "--data", "data", "--blob", &address];
    let serve = || Served::start_with(campaign, &args);
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
    let client = BlobClient::new(port)?;
    let mut blobs: Vec<Blob> = (0..rng.within(1, 4)).map(|at| Blob::new(at, rng)).collect();
    for round in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let mut served = serve()?;
        if round == 0 {
            create(&client, &blobs).map_err(|what| lost(&what))?;
        }
        let end = if rng.chance(10) { End::Stop } else { End::Kill };
        blobs = load(&client, &mut served, blobs, 10 + rng.below(300), end)?;
        if end == End::Stop {
            served.stop()?;
        }
        tally.ended(end);
        let served = serve()?;
        for blob in &mut blobs {
            tally.writes += std::mem::take(&mut blob.answered);
            let promises = blob.check(&client, end);
            tally.promises += promises.map_err(|what| lost(&format!("{}: {what}", blob.path)))?;
        }
        served.stop()?;
    }
    let limited = if limits.is_empty() { "without limits" } else { "limited" };
    Ok(format!("{} blobs, {limited}", blobs.len()))
}

fn create(client: &BlobClient, blobs: &[Blob]) -> Result<(), String> {
    client.must(("PUT", "/torture?restype=container&"), &[], &[], 201)?;
    let size = (BLOCKS as u64 * BLOCK).to_string();
    let kind = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*size)];
    for blob in blobs {
        client.must(("PUT", &format!("{}?", blob.path)), &kind, &[], 201)?;
    }
    Ok(())
}

/// Changes the blobs until there are some answers, and ends the server.
fn load(
    client: &BlobClient,
    served: &mut Served,
    blobs: Vec<Blob>,
    answers: u64,
    end: End,
) -> Result<Vec<Blob>, XtaskError> {
    let write = |blob: &mut Blob, progress: &Progress| blob.write(client, progress);
    let ended = writers::run(served, blobs, answers, end, write)?;
    let check = |(blob, wrote): (Blob, Result<(), String>)| {
        wrote.map(|()| blob).map_err(|what| lost(&what))
    };
    let blobs = ended.writers.into_iter().map(check).collect::<Result<_, _>>()?;
    match ended.is_early {
        true => Err(lost("a client got no answer")),
        false => Ok(blobs),
    }
}

impl Blob {
    fn new(at: u64, rng: &mut Rng) -> Self {
        Self {
            path: format!("/torture/blob-{at}"),
            blocks: vec![Block::default(); BLOCKS],
            snapshots: Vec::new(),
            rng: Rng::new(&[rng.next_u64()]),
            stamp: rng.next_u64() >> 8,
            answered: 0,
        }
    }

    /// Changes the blob until the server is gone. The error is a wrong answer.
    fn write(&mut self, client: &BlobClient, progress: &Progress) -> Result<(), String> {
        while !progress.is_over() {
            let is_answered = match self.rng.below(20) {
                0 => self.snapshot(client)?,
                1 | 2 => self.put(client, true)?,
                _ => self.put(client, false)?,
            };
            if !is_answered {
                break;
            }
            self.answered += 1;
            progress.count();
        }
        Ok(())
    }

    /// Puts or clears some blocks. Returns whether there was an answer.
    fn put(&mut self, client: &BlobClient, clears: bool) -> Result<bool, String> {
        let first = self.rng.index(BLOCKS);
        let longest = usize::try_from(self.rng.within(1, LONGEST)).unwrap_or(1);
        let last = (first + longest).min(BLOCKS);
        let (mut body, mut sent) = (Vec::new(), Vec::new());
        for at in first..last {
            self.stamp += 1;
            let stamp = if clears { 0 } else { self.stamp };
            sent.push((at, self.blocks[at].give(stamp)));
            if !clears {
                body.extend(content(stamp));
            }
        }
        let range = format!("bytes={}-{}", first as u64 * BLOCK, last as u64 * BLOCK - 1);
        let kind = if clears { "clear" } else { "update" };
        let headers = [("x-ms-page-write", kind), ("x-ms-range", &*range)];
        let path = format!("{}?comp=page&", self.path);
        // Without an answer, the blocks may have the old content or the new one.
        let Ok(answer) = client.ask(("PUT", &path), &headers, &body) else { return Ok(false) };
        if answer.status != 201 {
            return Err(format!("{kind} of {}: {}", self.path, answer.words()));
        }
        for (at, number) in sent {
            self.blocks[at].answered = number;
            self.blocks[at].promise();
        }
        Ok(true)
    }

    /// Takes a snapshot, and deletes the oldest one if there are many.
    fn snapshot(&mut self, client: &BlobClient) -> Result<bool, String> {
        if self.snapshots.len() == SNAPSHOTS {
            let (oldest, _) = self.snapshots.remove(0);
            let path = format!("{}?snapshot={oldest}&", self.path);
            let Ok(answer) = client.ask(("DELETE", &path), &[], &[]) else { return Ok(false) };
            if answer.status != 202 {
                return Err(format!("deleting a snapshot: {}", answer.words()));
            }
        }
        let path = format!("{}?comp=snapshot&", self.path);
        let Ok(answer) = client.ask(("PUT", &path), &[], &[]) else { return Ok(false) };
        let Some(time) = answer.header("x-ms-snapshot").filter(|_| answer.status == 201) else {
            return Err(format!("snapshot of {}: {}", self.path, answer.words()));
        };
        // The only writer has no change under way.
        let shown = self.blocks.iter().map(Block::newest).collect();
        self.snapshots.push((time.replace(':', "%3A"), shown));
        Ok(true)
    }

    /// Checks the blob and its snapshots. Returns how many blocks had a promise.
    fn check(&mut self, client: &BlobClient, end: End) -> Result<u64, String> {
        let path = format!("{}?", self.path);
        let mut promises =
            oracle::check(&mut |at, bytes| get(client, &path, at, bytes), &mut self.blocks, end)?;
        for (time, shown) in &self.snapshots {
            let path = format!("{}?snapshot={time}&", self.path);
            for (at, stamp) in (0..).zip(shown) {
                let mut bytes = content(0);
                get(client, &path, at * BLOCK, &mut bytes)?;
                if stamp_of(&bytes) != Some(*stamp) {
                    return Err(format!("block {at} of snapshot {time} is not {stamp}"));
                }
                promises += 1;
            }
        }
        Ok(promises)
    }
}

fn get(client: &BlobClient, path: &str, at: u64, bytes: &mut [u8]) -> Result<(), String> {
    let range = format!("bytes={at}-{}", at + bytes.len() as u64 - 1);
    let answer = client.must(("GET", path), &[("x-ms-range", &range)], &[], 206)?;
    if answer.body.len() != bytes.len() {
        return Err(format!("{path}: {} bytes instead of {}", answer.body.len(), bytes.len()));
    }
    bytes.copy_from_slice(&answer.body);
    Ok(())
}
