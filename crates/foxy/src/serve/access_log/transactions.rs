//! Keeps transactions in a ring, a file of fixed size that `foxy log` reads, and exports them as
//! traces. A worker chooses and encodes a transaction. A separate thread writes it.

use super::line::{address, squid_code, squid_suffix, url};
use super::queue::{LogQueue, LogWriter, Sink};
use crate::failure::{Failure, unwritten};
use crate::serve::otlp::OtlpQueue;
use crate::settings::Settings;
use foxy_log::lines::reason;
use foxy_log::ring::record::encode;
use foxy_log::ring::writer::RingWriter;
use foxy_log::selection::{OUTCOMES, Selected, Selector};
use foxy_log::transaction::{Text, Transaction};
use foxy_proxy::core::metrics::request_metrics::RequestOutcome;
use foxy_proxy::core::metrics::trace_context::Traceparent;
use foxy_proxy::core::outcome::HitSource;
use foxy_proxy::request::access::{AccessRecord, AccessSink, CutReason, Finished};
use foxy_proxy::request::cache_status::CacheStatus;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const _: () = assert!(OUTCOMES == RequestOutcome::ALL.len());

#[derive(Debug)]
pub struct TransactionLog {
    queue: Arc<LogQueue>,
}

#[derive(Debug)]
pub struct OpenTransactionLog {
    pub sink: Arc<TransactionLog>,
    pub queue: Arc<LogQueue>,
    _writer: LogWriter,
}

thread_local! {
    static SELECTOR: Selector = const { Selector::new() };
    /// The reason why the log keeps the transaction that ends now.
    static SELECTED: Cell<Option<Selected>> = const { Cell::new(None) };
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl AccessSink for TransactionLog {
    fn record(&self, record: &AccessRecord<'_>) {
        let Some(selected) = SELECTED.take() else { return };
        RECORD.with_borrow_mut(|bytes| {
            bytes.clear();
            encode(&transaction(record, selected), bytes);
            let is_written = self.queue.push(record.end, bytes);
            SELECTOR.with(|selector| selector.note(is_written));
        });
    }

    fn wants(&self, finished: &Finished) -> bool {
        let outcome = finished.outcome as usize;
        let selected = SELECTOR.with(|selector| {
            selector.select((is_error(finished), outcome), finished.elapsed, finished.now)
        });
        let is_selected = selected.is_some();
        if is_selected {
            SELECTED.set(selected);
        }
        is_selected
    }
}

/// Returns whether the ring keeps the transaction because it failed. A 407 is not a failure: it
/// asks for credentials.
fn is_error(finished: &Finished) -> bool {
    match finished.status {
        CacheStatus::Error(reason) => reason.status() != 407,
        CacheStatus::Forwarded { status: Some(500..), .. }
        | CacheStatus::Hit { source: HitSource::Fallback(_), .. } => true,
        _ => matches!(finished.cut, Some(CutReason::BrokeOff)),
    }
}

/// Returns whether the status is a hit without a reason. A look for the reason in its text would
/// take longer.
const fn is_plain_hit(status: CacheStatus) -> bool {
    let CacheStatus::Hit { source, permit, coding, .. } = status else { return false };
    matches!(source, HitSource::Memory | HitSource::Disk) && permit.is_none() && coding.is_none()
}

/// Returns the text that `write` writes.
fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a Vec takes all bytes");
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn transaction<'a>(record: &AccessRecord<'a>, selected: Selected) -> Transaction<'a> {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let cache_status = record.outcome.to_string();
    let reason = if is_plain_hit(record.outcome) { "" } else { reason(&cache_status) }.to_owned();
    let client = text(|out| address(record.client.ip(), out));
    let whole = text(|out| url(record, |part, out| out.write_all(part), out));
    let result = squid_code(record).to_owned() + squid_suffix(record.cut);
    let lossy = |text: Option<&'a [u8]>| String::from_utf8_lossy(text.unwrap_or_default());
    let (origin, server) = record.server.unwrap_or_default();
    let mut transaction = Transaction {
        end: record.end.0,
        elapsed: Some(micros(record.elapsed)),
        status: record.status,
        bytes: record.bytes,
        body: Some(record.body_bytes),
        origin_status: origin_status(record.outcome).map(u64::from),
        origin_ttfb: record.origin.map(|times| micros(times.first_byte)),
        origin_connect: record.origin.map(|times| micros(times.connect)),
        origin_start: record.origin.map(|times| micros(times.started.since(record.started))),
        kept: selected.kept,
        weight: selected.weight,
        seen: selected.seen,
        lost: selected.lost,
        texts: Default::default(),
    };
    let traceparent = record.traceparent();
    let traceparent = traceparent.as_ref().map_or("", Traceparent::as_str).to_owned();
    let texts: [(Text, Cow<'a, str>); 19] = [
        (Text::Id, record.id.to_owned().into()),
        (Text::Client, client.into()),
        (Text::User, record.user.unwrap_or_default().into()),
        (Text::Method, lossy(Some(record.method))),
        (Text::Url, whole.into()),
        (Text::Version, record.version.into()),
        (Text::Outcome, record.request_outcome.name().into()),
        (Text::Result, result.into()),
        (Text::Reason, reason.into()),
        (Text::CacheStatus, cache_status.into()),
        (Text::Cut, record.cut.map_or("", CutReason::name).into()),
        (Text::Rules, record.rules.unwrap_or_default().into()),
        (Text::Type, lossy(record.content_type)),
        (Text::Referer, lossy(record.referer)),
        (Text::Agent, lossy(record.user_agent)),
        (Text::Parent, record.parent.unwrap_or_default().into()),
        (Text::Origin, origin.into()),
        (Text::Server, server.into()),
        (Text::Traceparent, traceparent.into()),
    ];
    for (name, value) in texts {
        transaction.texts[name as usize] = value;
    }
    transaction
}

/// Returns the status from the origin, if foxy asked it.
const fn origin_status(status: CacheStatus) -> Option<u16> {
    match status {
        CacheStatus::Forwarded { status, .. } => status,
        CacheStatus::Hit { source: HitSource::Revalidated(_), .. } => Some(304),
        CacheStatus::Hit { source: HitSource::Fallback(status), .. } => status,
        _ => None,
    }
}

/// Collects whole records. On each flush, writes them to the ring and exports them, as far as the
/// settings want that.
struct TransactionSink {
    ring: Option<RingWriter>,
    export: Option<OtlpQueue>,
    records: Vec<u8>,
}

impl Write for TransactionSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.records.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(export) = &self.export {
            export.offer(&self.records);
        }
        let ring = self.ring.as_mut();
        let written = ring.map_or(Ok(()), |ring| ring.append(&self.records));
        self.records.clear();
        written
    }
}

/// Opens the transaction log that the settings name. Returns `None` if they name no log and
/// `export` is `None`.
pub fn open(
    settings: &Settings,
    export: Option<OtlpQueue>,
) -> Result<Option<OpenTransactionLog>, Failure> {
    let operation = &settings.operation;
    let (path, size) = (operation.transaction_log.clone(), operation.transaction_log_size.0);
    if path.is_none() && export.is_none() {
        return Ok(None);
    }
    let open = move || {
        let ring = path.as_deref().map(|path| ring(path, size)).transpose()?;
        let export = export.clone();
        Ok(Box::new(TransactionSink { ring, export, records: Vec::new() }) as Sink)
    };
    let sink = open().map_err(|error: io::Error| {
        let path = operation.transaction_log.as_deref().unwrap_or(Path::new(""));
        let why = unwritten(&error, "name a file this user may write");
        Failure::Unusable(format!(
            "cannot open the log of transactions {} (--transaction-log): {why}",
            path.display()
        ))
    })?;
    let queue = Arc::new(LogQueue::new(settings.network.workers));
    let writer = LogWriter::start(Arc::clone(&queue), sink, Box::new(open)).map_err(|error| {
        Failure::Failed(format!("cannot start the thread that writes transactions: {error}"))
    })?;
    let sink = Arc::new(TransactionLog { queue: Arc::clone(&queue) });
    Ok(Some(OpenTransactionLog { sink, queue, _writer: writer }))
}

/// Opens the ring. Only its owner may read a new file, because it names clients.
fn ring(path: &Path, size: u64) -> io::Result<RingWriter> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    RingWriter::open(file, size)
}
