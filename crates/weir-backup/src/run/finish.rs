//! The end of a backup: manifest and footers to every stripe, then the names.

use crate::error::BackupError;
use crate::format::{Identity, Manifest, StripeDigest, closing};
use crate::key::Key;
use crate::target::StripeSink;
use std::sync::Arc;

/// Closes and publishes all stripes. No stripe has its name before all of them are complete and
/// durable.
pub(super) fn finish(
    identity: &Identity,
    key: Option<&Key>,
    stripes: &[Arc<dyn StripeSink>],
    digests: &[StripeDigest],
    mut manifest: Manifest,
) -> Result<Manifest, BackupError> {
    manifest.stripes = digests.iter().map(StripeDigest::summary).collect();
    manifest.finished_unix_ms = weir_wall::calendar() / 1_000_000;
    let close = |stripe: usize| {
        let (sink, position) = (&stripes[stripe], digests[stripe].position());
        // The footer must not be there before all that it speaks of.
        sink.sync(position, false)?;
        let number = u8::try_from(stripe).unwrap_or(u8::MAX);
        let end = closing(&manifest, identity, number, position, key)?;
        sink.write_at(position, &end)?;
        sink.sync(position + end.len() as u64, true)
    };
    let close = &close;
    let closed: Result<(), BackupError> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..stripes.len()).map(|stripe| scope.spawn(move || close(stripe))).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(closed) => closed,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    });
    closed?;
    stripes.iter().try_for_each(|sink| sink.publish())?;
    Ok(manifest)
}
