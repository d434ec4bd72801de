//! Reads the manifests of all nodes, and writes the manifest of this node.

use crate::cold::health::pause;
use crate::cold::index::SegmentId;
use crate::cold::manifest::{Manifest, SegmentEntry};
use crate::cold::remote::{Remote, RemoteError, Version};
use crate::cold::segment::{footer_bytes, read_footer};
use crate::cold::state::{OtherNode, TierState, stopped};
use foxy_proxy::cache::purge::PurgeBook;
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// Interval at which the node looks for news in the manifests of other nodes.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Shortest time between two manifests without purges.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Time limit for the last manifest when the proxy stops.
const STOP_LIMIT: Duration = Duration::from_secs(3);
/// Largest number of footers that are read at the same time.
const MAX_FOOTERS: usize = 8;
/// Attempts to write a manifest that another process has also written.
const MAX_CONFLICTS: usize = 3;

pub struct Publisher<'a> {
    state: &'a Arc<TierState>,
    remote: &'a Remote,
    /// The version of this node's manifest in the store.
    version: Version,
    /// The versions of the manifests whose segments are in the index.
    seen: HashMap<u64, Version>,
    failures: u32,
    write_after: Instant,
}

impl<'a> Publisher<'a> {
    pub fn new(state: &'a Arc<TierState>, remote: &'a Remote) -> Self {
        let (version, seen, write_after) = (None, HashMap::new(), Instant::now());
        Self { state, remote, version, seen, failures: 0, write_after }
    }

    /// Runs until `done`. Then writes a last manifest if something has changed.
    pub async fn run(mut self, done: watch::Receiver<bool>) {
        let (mut look_at, mut failures) = (Instant::now(), 0);
        loop {
            tokio::select! {
                biased;
                () = stopped(done.clone()) => break,
                () = sleep_until(look_at) => {
                    let is_read = self.look().await.is_ok();
                    failures = if is_read { 0 } else { failures + 1 };
                    let pause = if is_read { LOOK_INTERVAL } else { pause(failures) };
                    look_at = Instant::now() + pause;
                }
                () = self.due() => self.publish().await,
            }
        }
        if self.state.is_dirty.load(Ordering::Acquire) {
            // The proxy stops in any case. The next start then does not find the last records.
            let _ = timeout(STOP_LIMIT, self.publish()).await;
        }
    }

    /// Waits until the manifest must be written. A purge does not wait for the interval.
    async fn due(&self) {
        loop {
            let changed = self.state.changed.notified();
            if !self.state.waiting().is_empty() {
                return;
            }
            if !self.state.is_dirty.load(Ordering::Acquire) {
                changed.await;
                continue;
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(self.write_after) => return,
            }
        }
    }

    /// Writes the manifest of this node. Answers the purges that wait for it.
    async fn publish(&mut self) {
        let waiting = std::mem::take(&mut *self.state.waiting());
        let is_written = self.write().await.is_ok();
        let pause = if is_written {
            self.failures = 0;
            WRITE_INTERVAL
        } else {
            self.state.is_dirty.store(true, Ordering::Release);
            self.failures += 1;
            pause(self.failures)
        };
        self.write_after = Instant::now() + pause;
        for purge in waiting {
            if is_written { purge.confirm() } else { purge.fail() }
        }
    }

    async fn write(&mut self) -> Result<(), RemoteError> {
        if !self.state.index().is_loaded() {
            self.look().await?;
        }
        for _ in 0..MAX_CONFLICTS {
            self.state.is_dirty.store(false, Ordering::Release);
            let (era, book) = (self.state.era, &self.state.book);
            let latest = book.latest();
            let known = self.state.index().manifest(era);
            let earlier = self.state.earlier().clone();
            let manifest = Manifest { latest, rules: book.rules(), earlier, ..known };
            match self.remote.put_manifest(era, manifest.encode(), self.version.clone()).await {
                Ok(version) => {
                    self.version = version;
                    return Ok(());
                }
                Err(RemoteError::Conflict) => {
                    let (bytes, version) = self.remote.manifest(era).await?;
                    self.version = version;
                    if let Some(manifest) = Manifest::decode(&bytes) {
                        self.state.index().apply(&manifest, true);
                        self.load(&manifest).await?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(RemoteError::Conflict)
    }

    /// Reads all manifests that have changed, and the footers of their new segments.
    async fn look(&mut self) -> Result<(), RemoteError> {
        let (own, is_first) = (self.state.era, !self.state.index().is_loaded());
        let mut news = Vec::new();
        for (era, version) in self.remote.list().await? {
            if self.seen.get(&era) == Some(&version) || (era == own && !is_first) {
                continue;
            }
            match self.remote.manifest(era).await {
                Ok((bytes, version)) => news.push((era, version, Manifest::decode(&bytes))),
                Err(RemoteError::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        for (era, version, manifest) in &news {
            if *era == own {
                self.version.clone_from(version);
            }
            let Some(manifest) = manifest.as_ref().filter(|found| found.era == *era) else {
                continue;
            };
            self.state.index().apply(manifest, *era == own);
            if *era == own {
                self.state.earlier().clone_from(&manifest.earlier);
                continue;
            }
            let book = Arc::new(PurgeBook::new(*era, manifest.latest, &manifest.rules));
            let other = OtherNode { book, earlier: manifest.earlier.clone() };
            self.state.others().insert(*era, other);
        }
        if is_first && !news.iter().any(|(era, ..)| *era == own) {
            let others = self.state.others();
            let latest = others.iter().map(|(era, other)| (*era, other.book.latest()));
            *self.state.earlier() = latest.collect();
        }
        for (era, version, manifest) in news {
            if let Some(manifest) = manifest {
                self.load(&manifest).await?;
            }
            self.seen.insert(era, version);
        }
        self.state.index().loaded();
        Ok(())
    }

    /// Reads the footers of the segments that the index does not have.
    async fn load(&self, manifest: &Manifest) -> Result<(), RemoteError> {
        let era = manifest.era;
        let is_new =
            |id: &SegmentEntry| !self.state.index().has_segment(SegmentId { era, id: id.id });
        let new: Vec<SegmentEntry> = manifest.segments.iter().copied().filter(is_new).collect();
        let reads = stream::iter(new).map(|entry| self.footer(era, entry));
        let mut reads = reads.buffer_unordered(MAX_FOOTERS);
        while let Some(read) = reads.next().await {
            read?;
        }
        Ok(())
    }

    async fn footer(&self, era: u64, entry: SegmentEntry) -> Result<(), RemoteError> {
        let (segment, length) = (SegmentId { era, id: entry.id }, u64::from(entry.length));
        let footer = footer_bytes(entry.count as usize) as u64;
        let bytes = match self.remote.footer(segment, length.saturating_sub(footer)..length).await {
            Ok(bytes) => bytes,
            Err(RemoteError::Missing) => Default::default(),
            Err(error) => return Err(error),
        };
        let records = read_footer(&bytes).unwrap_or_default();
        self.state.index().load(segment, &records);
        Ok(())
    }
}
