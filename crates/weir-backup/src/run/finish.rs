//! The end of a backup: manifest and footers to every stripe, then the names.

use crate::error::BackupError;
use crate::format::{Identity, Manifest, StripeDigest, closing};
use crate::key::Key;
use crate::target::StripeSink;
use std::sync::{Arc, Mutex, PoisonError};

/// Closes and publishes all stripes. No stripe has a footer before the frames of all stripes are
/// durable, and none has its name before all of them are complete and durable.
pub(super) fn finish(
    identity: &Identity,
    key: Option<&Key>,
    stripes: &[Arc<dyn StripeSink>],
    digests: &[StripeDigest],
    mut manifest: Manifest,
) -> Result<Manifest, BackupError> {
    manifest.stripes = digests.iter().map(StripeDigest::summary).collect();
    manifest.finished_unix_ms = weir_wall::calendar() / 1_000_000;
    let manifest = manifest;
    each(stripes, &|stripe, sink| sink.sync(digests[stripe].position(), false))?;
    each(stripes, &|stripe, sink| {
        let position = digests[stripe].position();
        let number = u8::try_from(stripe).unwrap_or(u8::MAX);
        let end = closing(&manifest, identity, number, position, key)?;
        sink.write_at(position, &end)?;
        sink.sync(position + end.len() as u64, true)
    })?;
    stripes.iter().try_for_each(|sink| sink.publish())?;
    Ok(manifest)
}

/// Does something with all stripes at once. The first failure ends the others, and is the one that is
/// told.
fn each(
    stripes: &[Arc<dyn StripeSink>],
    work: &(dyn Fn(usize, &dyn StripeSink) -> Result<(), BackupError> + Sync),
) -> Result<(), BackupError> {
    let first = Mutex::new(Ok(()));
    let work = &|stripe: usize| {
        if let Err(error) = work(stripe, stripes[stripe].as_ref()) {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_ok() {
                *first = Err(error);
                stripes.iter().for_each(|sink| sink.cancel());
            }
        }
    };
    std::thread::scope(|scope| {
        for stripe in 0..stripes.len() {
            scope.spawn(move || work(stripe));
        }
    });
    first.into_inner().unwrap_or_else(PoisonError::into_inner)
}
