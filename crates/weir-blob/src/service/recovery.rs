//! Recovery after a crash at the start, and storing of the state at shutdown.

use super::shared::Service;
use crate::fault::Result;
use crate::journal::Change;
use crate::record::{Blob, Content, CopyStatus, Key, PageContent};
use crate::state::Names;
use crate::time::Moment;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

impl Service {
    /// Recovers from a crash: deletes volumes without a blob, and gives blobs whose pages were
    /// written without a record a new ETag. Returns the blobs that got other names than their own with
    /// slashes: the old and new names.
    ///
    /// # Errors
    ///
    /// The journal or the server failed.
    pub async fn recover(&self) -> Result<Vec<[[String; 3]; 2]>> {
        let named = self.state.borrow().volumes();
        for volume in self.volumes.all().iter().filter(|volume| !named.contains(*volume)) {
            self.unless_full(self.volumes.delete(volume).await)?;
        }
        let now = (self.clock)();
        let mut changes = vec![Change::put(Key::Running, &true)];
        let suffixed = {
            let mut state = self.state.borrow_mut();
            let renames = state.rename_backslashes();
            changes.extend(renames.changes);
            let crashed = state.crashed;
            let mut at = state.next(now);
            for (names, snapshot, blob) in state.all_mut() {
                if snapshot.is_none() {
                    self.tell_export(blob, now);
                }
                if self.recover_blob(blob, snapshot, crashed, &mut at) {
                    changes.push(Change::put(names.key(snapshot), blob));
                }
            }
            state.next(at);
            renames.suffixed
        };
        self.unless_full(self.commit(changes).await)?;
        for volume in self.volumes.all() {
            self.unless_full(self.forget_snapshots(&volume).await)?;
        }
        self.name_exports()?;
        Ok(suffixed)
    }

    /// Permits a step of the recovery to fail on a full disk. The next start makes up for it.
    fn unless_full(&self, result: Result<()>) -> Result<()> {
        if self.journal.is_full() { Ok(()) } else { result }
    }

    /// Exports the volumes of blobs under their names, and hides those that only snapshots use.
    fn name_exports(&self) -> Result<()> {
        let named: HashMap<String, Option<String>> = {
            let mut state = self.state.borrow_mut();
            let base = state.all_mut().filter(|(_, snapshot, _)| snapshot.is_none());
            let pages = base.filter_map(|(_, _, blob)| blob.page().cloned());
            pages.map(|page| (page.volume, page.export)).collect()
        };
        for volume in self.volumes.all().iter().filter(|volume| !named.contains_key(*volume)) {
            self.volumes.hide(volume)?;
        }
        for (volume, export) in named {
            if let Some(export) = export {
                self.volumes.export_as(&volume, &export);
            }
        }
        Ok(())
    }

    /// Returns whether the record was out of date.
    fn recover_blob(
        &self,
        blob: &mut Blob,
        snapshot: Option<Moment>,
        crashed: bool,
        at: &mut Moment,
    ) -> bool {
        let mut changed = blob.is_pending();
        if let (true, Some(copy)) = (changed, &mut blob.copy) {
            copy.status = CopyStatus::Failed;
            copy.description = Some("the server stopped during the copy".to_owned());
        }
        if let (Content::Page(page), None) = (&mut blob.content, snapshot) {
            // The size in the volume is current, except that an empty blob has the smallest size.
            let size = self.volumes.size(&page.volume).unwrap_or(page.size);
            let is_empty = page.size == 0 && size == 512;
            // Writes before a crash are in no record.
            if changed || crashed || (size != page.size && !is_empty) {
                page.size = if is_empty { 0 } else { size };
                *at = at.next(*at);
                blob.etag.0 = at.0;
                blob.modified = *at;
                // A write may have ended it.
                blob.lease.end_unless_held(*at);
                changed = true;
            }
        }
        changed
    }

    /// Deletes snapshots of a volume without a record, which a crash between the two leaves.
    async fn forget_snapshots(&self, volume: &str) -> Result<()> {
        let open = self.volumes.open(volume)?;
        let mut named: Vec<u64> = Vec::new();
        for (_, _, blob) in self.state.borrow_mut().all_mut() {
            let page = blob.page().filter(|page| page.volume == volume);
            named.extend(page.and_then(|page| page.snapshot));
        }
        for id in open.pages.snapshots() {
            if !named.contains(&id.0) {
                self.delete_snapshot(volume, id.0).await?;
            }
        }
        Ok(())
    }

    /// Stores the state that is only in memory, at shutdown.
    ///
    /// # Errors
    ///
    /// The journal failed.
    pub async fn close(&self) -> Result<()> {
        self.ending.store(true, Ordering::Relaxed);
        let all: Vec<[String; 3]> = {
            let mut state = self.state.borrow_mut();
            let own = state
                .all_mut()
                .filter(|(_, snapshot, blob)| snapshot.is_none() && blob.page().is_some());
            own.map(|(names, ..)| names.owned()).collect()
        };
        let (mut changes, mut quiet) = (Vec::new(), true);
        for [account, container, blob] in &all {
            let names = Names { account, container, blob };
            self.hear_export(names);
            // A client that still writes would change the ETag again.
            quiet &= self.lock(names).try_write().is_ok();
            let mut state = self.state.borrow_mut();
            let Ok(blob) = state.blob_mut(names, None) else { continue };
            if let Content::Page(page @ PageContent { unclean: true, .. }) = &mut blob.content {
                page.unclean = false;
                changes.push(Change::put(names.key(None), blob));
            }
        }
        if quiet {
            changes.push(Change::remove(Key::Running));
        }
        // The next start recovers as after a crash.
        self.unless_full(self.commit(changes).await)
    }
}
