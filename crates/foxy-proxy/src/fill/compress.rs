//! Compresses a stored response once, and stores the result beside the response. An encoder on
//! another thread receives the body part by part. So no worker waits, and no slow client keeps the
//! body in memory.

use crate::cache::{CacheKey, PART, Stored, StoredBody, part_key};
use crate::core::Counter;
use crate::core::background::in_background;
use crate::fill::body_writer::{BodyWriter, Kept};
use crate::fill::encoder::Encoder;
use crate::flight::Needed;
use crate::request::coded::{coded_form, coded_head};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_rules::coding::Coding;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A coded form (such as gzip) is stored only if it saves at least 1/`LEAST_SAVING` of the bytes.
const LEAST_SAVING: u64 = 20;

/// A stored response to compress.
pub(crate) struct Compressing {
    /// The key of the URL.
    pub(crate) base: CacheKey,
    pub(crate) stored: Arc<Stored>,
    /// The key of the coded form (such as gzip).
    pub(crate) key: CacheKey,
    pub(crate) coding: Coding,
}

impl Compressing {
    /// Compresses the body. Stores the coded form, or an empty form if the body hardly shrinks.
    pub(crate) async fn run(self, worker: Rc<Worker>, _permit: OwnedSemaphorePermit) {
        let Self { base, stored, key, coding } = &self;
        let Some((body, coded_length)) = self.compressed(&worker).await else { return };
        let is_smaller = coded_length + stored.length / LEAST_SAVING <= stored.length;
        let (body, length) = match is_smaller {
            true => (body, coded_length),
            false => (StoredBody::Whole(Bytes::new()), 0),
        };
        let head = coded_head(&stored.head, *coding);
        let form = Arc::new(coded_form(stored, &head, key.text.clone(), body, length));
        worker.shared.cache.add_derived(base, key, &form, &worker.counters);
        worker.counters.add(Counter::CompressionInput, stored.length);
        worker.counters.add(Counter::CompressionOutput, coded_length);
        worker.counters.add(Counter::Compressions, 1);
    }

    /// Returns the coded body and its length. Returns `None` if a part (1 MiB) of the body is
    /// missing, or if the coded body cannot be stored.
    async fn compressed(&self, worker: &Rc<Worker>) -> Option<(StoredBody, u64)> {
        let Self { base, stored, key, coding } = self;
        let mut writer = BodyWriter::new(worker, base, key, None);
        let mut encoder = Encoder::new(*coding, stored.length).ok()?;
        for number in 0..stored.length.div_ceil(PART as u64) {
            let part = self.part(worker, number).await?;
            let work = move || -> io::Result<_> {
                let coded = encoder.take(&part)?;
                Ok((encoder, coded))
            };
            let coded;
            (encoder, coded) = in_background(work).await?.ok()?;
            write(&mut writer, &coded).await?;
        }
        let last = in_background(move || encoder.finish()).await?.ok()?;
        write(&mut writer, &last).await?;
        writer.complete(Needed::Later).await
    }

    /// Returns a part of the body, up to [`PART`] bytes.
    async fn part(&self, worker: &Worker, number: u64) -> Option<Bytes> {
        let stored = &self.stored;
        let first = number * PART as u64;
        let length = usize::try_from((stored.length - first).min(PART as u64)).ok()?;
        let part = match &stored.body {
            StoredBody::Whole(body) => {
                let first = usize::try_from(first).ok()?;
                (body.len() >= first + length).then(|| body.slice(first..first + length))?
            }
            StoredBody::Parts { fill } => {
                let key = part_key(stored.object(), *fill, number);
                worker.shared.cache.storage()?.part(key).await?
            }
        };
        (part.len() == length).then_some(part)
    }
}

async fn write(writer: &mut BodyWriter, coded: &Bytes) -> Option<()> {
    if coded.is_empty() {
        return Some(());
    }
    (writer.take(coded, Needed::Later).await == Kept::Yes).then_some(())
}
