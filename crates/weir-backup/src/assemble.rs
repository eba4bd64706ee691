//! The stripes of one backup, put together from what is given, before their frames are read.

use crate::damage::Damage;
use crate::error::BackupError;
use crate::format::{BackupId, Footer, FrameDecoder, Identity, Manifest, StripeSummary};
use crate::key::{Key, Keys};
use crate::probe::{Probe, read_manifest};
use crate::read_at::ReadAt;
use crate::walk::{About, FrameSink, Walk};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The most stripes that are read at the same time.
pub const MAX_READERS: usize = 16;

/// A file, region or blob that may hold a stripe.
pub struct StripeInput {
    /// Its name, for messages.
    pub name: String,
    /// The stripe, from 0, that its name says, if it says one.
    pub named: Option<u8>,
    /// Its contents.
    pub bytes: Box<dyn ReadAt>,
}

impl fmt::Debug for StripeInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeInput").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A stripe in its place.
struct Stripe {
    name: String,
    bytes: Box<dyn ReadAt>,
    probe: Probe,
    footer: Option<Footer>,
}

/// A backup whose stripes are known.
pub struct Assembly {
    /// The facts that all headers share.
    pub identity: Identity,
    /// The description, if a stripe has a sound one.
    pub manifest: Option<Manifest>,
    /// Damage found before the frames are read.
    pub damage: Vec<Damage>,
    /// The key, if the backup is encrypted and keys were given.
    pub key: Option<Arc<Key>>,
    stripes: Vec<Option<Stripe>>,
}

impl fmt::Debug for Assembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assembly")
            .field("identity", &self.identity)
            .field("damage", &self.damage)
            .finish_non_exhaustive()
    }
}

impl Assembly {
    /// Puts the stripes of a backup in their places: of the backup `id`, or of the one that most
    /// of them belong to.
    ///
    /// # Errors
    /// When no input belongs to a backup, for a stripe of another version of the format, and for
    /// a wrong key.
    pub fn new(
        inputs: Vec<StripeInput>,
        id: Option<BackupId>,
        keys: Option<&Keys>,
    ) -> Result<Self, BackupError> {
        let mut probed = Vec::new();
        for mut input in inputs {
            let probe = Probe::read(&input.name, input.bytes.as_mut());
            let probe = probe.map_err(|source| {
                BackupError::Failed(format!("reading {}: {source}", input.name))
            })?;
            if let Err(error @ BackupError::Version { .. }) = probe.header {
                return Err(error);
            }
            let manifest = match &probe.footer {
                Some(footer) => read_manifest(input.bytes.as_mut(), footer).unwrap_or(None),
                None => None,
            };
            probed.push((input, probe, manifest));
        }
        let id =
            id.or_else(|| most_common(probed.iter().filter_map(|(_, probe, _)| probe.place())));
        let own = |probe: &Probe| probe.place().is_some_and(|(own, _)| Some(own) == id);
        let identity =
            probed.iter().filter(|(_, probe, _)| own(probe)).find_map(|(_, probe, manifest)| {
                match &probe.header {
                    Ok(header) => Some(header.identity.clone()),
                    Err(_) => manifest.as_ref().and_then(Manifest::identity),
                }
            });
        let Some(identity) = identity else {
            return Err(BackupError::Unusable(nothing(&probed)));
        };
        let key = match (&identity.encryption, keys) {
            (Some(encryption), Some(keys)) => Some(keys.key(identity.id, encryption)?),
            _ => None,
        };
        let stripes = (0..identity.stripes).map(|_| None).collect();
        let mut assembly = Self { identity, manifest: None, damage: Vec::new(), key, stripes };
        let mut manifests = Vec::new();
        for (input, probe, manifest) in probed {
            assembly.place(input, probe, manifest, &mut manifests);
        }
        assembly.choose_manifest(manifests);
        assembly.complete();
        Ok(assembly)
    }

    /// Puts one input in its place, or says why it has none.
    fn place(
        &mut self,
        input: StripeInput,
        probe: Probe,
        manifest: Option<Manifest>,
        manifests: &mut Vec<(u8, [u8; 32], Manifest)>,
    ) {
        let StripeInput { name, named, bytes } = input;
        let Some((id, stripe)) = probe.place() else {
            self.damage.push(Damage::Unknown { name, named, length: probe.length });
            return;
        };
        if id != self.identity.id || usize::from(stripe) >= self.stripes.len() {
            self.damage.push(Damage::Stale { name, named, id });
            return;
        }
        if let Some(named) = named.filter(|named| *named != stripe) {
            self.damage.push(Damage::Swapped { stripe, name: name.clone(), named });
        }
        let taken = &self.stripes[usize::from(stripe)];
        if let Some(taken) = taken.as_ref() {
            // The complete one is used.
            if taken.footer.is_some() || probe.footer.is_none() {
                self.damage.push(Damage::Duplicate { stripe, name });
                return;
            }
            self.damage.push(Damage::Duplicate { stripe, name: taken.name.clone() });
            manifests.retain(|(own, ..)| *own != stripe);
        }
        let header = probe.header.as_ref().ok();
        if header.is_none_or(|header| header.identity != self.identity) {
            self.damage.push(Damage::Header { stripe, name: name.clone() });
        }
        if let Some(footer) = &probe.footer {
            let is_signed = self.key.as_ref().is_none_or(|key| footer.is_signed(key));
            let manifest = manifest.filter(|own| own.identity().as_ref() == Some(&self.identity));
            match manifest {
                _ if !is_signed => {
                    self.damage.push(Damage::Signature { stripe, name: name.clone() });
                }
                Some(manifest) => manifests.push((stripe, footer.manifest_hash, manifest)),
                None => self.damage.push(Damage::Manifest { stripe, name: name.clone() }),
            }
        }
        let footer = probe.footer.clone();
        self.stripes[usize::from(stripe)] = Some(Stripe { name, bytes, probe, footer });
    }

    /// Takes the manifest that most stripes have; the others are damaged.
    fn choose_manifest(&mut self, manifests: Vec<(u8, [u8; 32], Manifest)>) {
        let Some(chosen) = most_common(manifests.iter().map(|(_, hash, _)| (*hash, 0))) else {
            return;
        };
        for (stripe, hash, manifest) in manifests {
            if hash == chosen {
                self.manifest = Some(manifest);
            } else if let Some(own) = &self.stripes[usize::from(stripe)] {
                self.damage.push(Damage::Manifest { stripe, name: own.name.clone() });
            }
        }
    }

    /// Says which stripes are missing or incomplete.
    fn complete(&mut self) {
        let manifest_length =
            self.stripes.iter().flatten().find_map(|own| own.footer.as_ref().map(|own| own.length));
        for (stripe, place) in (0..self.identity.stripes).zip(&mut self.stripes) {
            let Some(own) = place else {
                self.damage.push(Damage::Missing { stripe, stripes: self.identity.stripes });
                let summary = summary(self.manifest.as_ref(), usize::from(stripe));
                if let Some(count) = summary.map(|own| own.frames).filter(|count| *count > 0) {
                    self.damage.push(Damage::Lost { stripe, first: 0, count });
                }
                continue;
            };
            if own.footer.is_some() {
                continue;
            }
            let summary =
                self.manifest.as_ref().and_then(|all| all.stripes.get(usize::from(stripe)));
            let expected = summary.zip(manifest_length).map(|(summary, length)| {
                summary.length.saturating_add(crate::format::padded(length) + crate::format::PAGE)
            });
            let (length, name) = (own.probe.length, own.name.clone());
            if let Some(end) = expected.filter(|end| *end < length)
                && let Ok(Some(footer)) = own.probe.footer_before(own.bytes.as_mut(), end)
            {
                own.footer = Some(footer);
                self.damage.push(Damage::Trailing { stripe, name, extra: length - end });
            } else {
                self.damage.push(Damage::Truncated { stripe, name, length, expected });
            }
        }
    }

    /// Returns the number of bytes that a walk through all frames passes.
    #[must_use]
    pub fn length(&self) -> u64 {
        let ends = (0..).zip(&self.stripes).filter_map(|(index, own)| {
            own.as_ref().map(|own| end(own, summary(self.manifest.as_ref(), index)))
        });
        ends.fold(0, u64::saturating_add)
    }

    /// Returns the name of each stripe that is there.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let all = self.stripes.iter().enumerate();
        all.filter_map(|(index, own)| own.as_ref().map(|own| (index, own.name.as_str())))
    }

    /// Reads all frames, with at most [`MAX_READERS`] threads. `sink` makes what the frames of a
    /// stripe go to. Returns the sinks of the stripes that are there.
    ///
    /// # Errors
    /// The first error of a sink. The other stripes end then at their next frame.
    pub fn walk<S: FrameSink + Send>(
        &mut self,
        sink: impl Fn(u8) -> Result<S, BackupError> + Sync,
    ) -> Result<Vec<S>, BackupError> {
        let sizes: Option<Vec<u64>> =
            self.manifest.as_ref().map(|all| all.sources.iter().map(|own| own.size).collect());
        let Self { identity, manifest, key, stripes, .. } = self;
        let (identity, manifest, key) = (&*identity, manifest.as_ref(), key.as_ref());
        let there = (0..).zip(stripes.iter_mut()).filter_map(|(n, own)| Some((n, own.as_mut()?)));
        let work = Mutex::new(there);
        let results = Mutex::new((Vec::new(), None));
        let read = || {
            loop {
                let is_failed = results.lock().unwrap_or_else(PoisonError::into_inner).1.is_some();
                let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((stripe, own)) = next.filter(|_| !is_failed) else { return };
                let done = FrameDecoder::new(identity, key).and_then(|decoder| {
                    let mut sink = sink(stripe)?;
                    let summary = summary(manifest, usize::from(stripe));
                    let about = About {
                        id: identity.id,
                        stripe,
                        name: &own.name,
                        end: end(own, summary),
                        sources: sizes.as_deref(),
                        summary,
                    };
                    Walk::new(about, own.bytes.as_mut(), decoder).run(&mut sink)?;
                    sink.finish()?;
                    Ok(sink)
                });
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                match done {
                    Ok(sink) => results.0.push((stripe, sink)),
                    Err(error) => {
                        results.1.get_or_insert(error);
                    }
                }
            }
        };
        thread::scope(|scope| {
            let readers = usize::from(identity.stripes).min(MAX_READERS);
            for _ in 1..readers {
                scope.spawn(read);
            }
            read();
        });
        let (mut sinks, error) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = error {
            return Err(error);
        }
        sinks.sort_by_key(|(stripe, _)| *stripe);
        Ok(sinks.into_iter().map(|(_, sink)| sink).collect())
    }
}

fn summary(manifest: Option<&Manifest>, stripe: usize) -> Option<&StripeSummary> {
    manifest.and_then(|manifest| manifest.stripes.get(stripe))
}

/// Returns the end of the frames of a stripe.
fn end(stripe: &Stripe, summary: Option<&StripeSummary>) -> u64 {
    match (&stripe.footer, summary) {
        (Some(footer), _) => footer.position,
        (None, Some(summary)) => summary.length.min(stripe.probe.length),
        (None, None) => stripe.probe.length,
    }
}

/// Returns the most common first part, of several the first.
fn most_common<T: Ord + Copy>(all: impl Iterator<Item = (T, u8)>) -> Option<T> {
    let mut counts: BTreeMap<T, (usize, usize)> = BTreeMap::new();
    for (place, (own, _)) in all.enumerate() {
        counts.entry(own).or_insert((0, place)).0 += 1;
    }
    let best = counts.into_iter().max_by_key(|(_, (count, place))| (*count, usize::MAX - place));
    best.map(|(own, _)| own)
}

/// Says that no input belongs to a backup.
fn nothing(probed: &[(StripeInput, Probe, Option<Manifest>)]) -> String {
    let names: Vec<&str> = probed.iter().map(|(input, ..)| input.name.as_str()).collect();
    match names.as_slice() {
        [] => {
            "no finished stripe of the backup is there, so nothing can be read; weir backup prune \
               --incomplete removes what an interrupted backup left"
                .to_owned()
        }
        [one] => format!("{one}: neither its header nor its manifest can be read"),
        [first, ..] => format!(
            "none of {} files, {first} first, has a header or a manifest that can be read",
            names.len()
        ),
    }
}
